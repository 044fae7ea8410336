// SPDX-License-Identifier: Apache-2.0

package fake

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// defaulting is what a CRD's schema says about defaults, without all else; nil where there are none.
type defaulting struct {
	value      any // nil: none
	properties map[string]*defaulting
	items      *defaulting // of a list, or of a map with any keys
}

// defaultingOf returns nil when the schema has no default anywhere.
func defaultingOf(s *apiextensionsv1.JSONSchemaProps) *defaulting {
	if s == nil {
		return nil
	}
	d := &defaulting{properties: map[string]*defaulting{}}
	if s.Default != nil {
		if err := json.Unmarshal(s.Default.Raw, &d.value); err != nil {
			d.value = nil // the API server would have refused the CRD
		}
	}
	for name := range s.Properties {
		property := s.Properties[name]
		if below := defaultingOf(&property); below != nil {
			d.properties[name] = below
		}
	}
	if s.Items != nil {
		d.items = defaultingOf(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		d.items = defaultingOf(s.AdditionalProperties.Schema)
	}
	if d.value == nil && len(d.properties) == 0 && d.items == nil {
		return nil
	}
	return d
}

// fill puts the defaults into a value and reports whether it changed.
func (d *defaulting) fill(v any) (changed bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, property := range d.properties {
			if v[name] == nil && property.value != nil {
				v[name] = runtime.DeepCopyJSONValue(property.value)
				changed = true
			}
			if v[name] != nil && property.fill(v[name]) {
				changed = true
			}
		}
		for name := range v {
			if d.items != nil && d.properties[name] == nil && d.items.fill(v[name]) {
				changed = true
			}
		}
	case []any:
		for i := range v {
			if d.items != nil && d.items.fill(v[i]) {
				changed = true
			}
		}
	}
	return changed
}

// schemaDefaults fills in what the schema of the kind's CRD says.
func (k *kind) schemaDefaults(o olmcore.Object) {
	d := k.defaults
	if !k.custom {
		d = operatorDefaults[k.gvk]
	}
	if d == nil {
		return
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(u.Object)
		d.fill(u.Object)
		return
	}
	if m, err := olmcore.ToMap(o); err == nil && d.fill(m) {
		// What was read from the object with defaults of its own schema fits it.
		_ = decode.FromMap(m, o)
	}
}
