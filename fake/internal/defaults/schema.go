// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// Schema contains the defaults of a CRD's schema. A nil Schema has no defaults.
type Schema struct {
	value      any // nil: none
	properties map[string]*Schema
	items      *Schema // of a list, or of a map with any keys
}

// SchemaOf returns the defaults of a schema, or nil if it has none.
func SchemaOf(s *apiextensionsv1.JSONSchemaProps) *Schema {
	if s == nil {
		return nil
	}
	d := &Schema{properties: map[string]*Schema{}}
	if s.Default != nil {
		if err := json.Unmarshal(s.Default.Raw, &d.value); err != nil {
			d.value = nil // the API server would have refused the CRD
		}
	}
	for name := range s.Properties {
		property := s.Properties[name]
		if below := SchemaOf(&property); below != nil {
			d.properties[name] = below
		}
	}
	if s.Items != nil {
		d.items = SchemaOf(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		d.items = SchemaOf(s.AdditionalProperties.Schema)
	}
	if d.value == nil && len(d.properties) == 0 && d.items == nil {
		return nil
	}
	return d
}

// fill puts the defaults into a value and reports whether it changed.
func (d *Schema) fill(v any) (changed bool) {
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

// Apply fills the fields of an object that the schema has defaults for.
func (d *Schema) Apply(o olmcore.Object) {
	if d == nil {
		return
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = runtime.DeepCopyJSON(u.Object)
		d.fill(u.Object)
		return
	}
	if m, err := olmcore.ToMap(o); err == nil && d.fill(m) {
		// An object with the defaults of its own schema can be decoded.
		_ = decode.FromMap(m, o)
	}
}
