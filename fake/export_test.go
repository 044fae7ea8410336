// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OperatorDefaults returns the defaults of a kind of OLM as "path value" lines, SchemaDefaults those of a schema.
func OperatorDefaults(gvk schema.GroupVersionKind) []string { return operatorDefaults[gvk].lines("") }

// SchemaDefaults returns the defaults of a schema as "path value" lines.
func SchemaDefaults(s *apiextensionsv1.JSONSchemaProps) []string { return defaultingOf(s).lines("") }

func (d *defaulting) lines(path string) (lines []string) {
	if d == nil {
		return nil
	}
	if d.value != nil {
		value, err := json.Marshal(d.value)
		if err != nil {
			panic(err)
		}
		lines = append(lines, path+" "+string(value))
	}
	for name, property := range d.properties {
		lines = append(lines, property.lines(path+"."+name)...)
	}
	lines = append(lines, d.items.lines(path+"[]")...)
	slices.Sort(lines)
	return lines
}
