// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan"
)

func TestNarrowingsNamesEveryField(t *testing.T) {
	type schema = apiextensionsv1.JSONSchemaProps
	of := func(storage string, versions map[string]*schema) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		for _, name := range []string{"v1", "v2", "v3"} {
			if s, has := versions[name]; has {
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
					Name: name, Served: true, Storage: name == storage, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s},
				})
			}
		}
		return crd
	}
	before := of("v1", map[string]*schema{
		"v1": {Type: "object", Properties: map[string]schema{
			"gone": {Type: "string"}, "kind": {Type: "string"}, "list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string"}}},
		}},
		"v2": {Type: "object"},
	})
	after := of("v3", map[string]*schema{
		"v1": {Type: "object", Required: []string{"kind"}, Properties: map[string]schema{
			"kind": {Type: "string", MaxLength: new(int64(3))}, "list": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}}}}},
		}},
		"v3": {Type: "object", Properties: map[string]schema{"gone": {Type: "string"}, "kind": {Type: "string"}}},
	})
	require.Equal(t, []string{
		"spec.versions[v1].schema.openAPIV3Schema.required",
		"spec.versions[v1].schema.openAPIV3Schema.properties[gone]",
		"spec.versions[v1].schema.openAPIV3Schema.properties[kind] (validation)",
		"spec.versions[v1].schema.openAPIV3Schema.properties[list].items.enum",
		"spec.versions[v2] (removed)",
		"spec.versions[v3].schema.openAPIV3Schema.properties[list] (stored instead of v1)",
	}, slices.Collect(installplan.Narrowings(before, after)))
	require.Empty(t, slices.Collect(installplan.Narrowings(before, before)))
	for field := range installplan.Narrowings(before, after) { // each call returns a new sequence
		require.Equal(t, "spec.versions[v1].schema.openAPIV3Schema.required", field)
		break
	}
}
