// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/operator-framework/api/crds"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheDefaultsOfOLMAreThoseOfItsCRDs(t *testing.T) {
	found := 0
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{
		crds.CatalogSource(), crds.ClusterServiceVersion(), crds.InstallPlan(), crds.OLMConfig(),
		crds.Operator(), crds.OperatorCondition(), crds.OperatorGroup(), crds.Subscription(),
	} {
		for _, v := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
			if v.Storage && v.Schema != nil {
				want := SchemaOf(v.Schema.OpenAPIV3Schema).lines("")
				require.Equal(t, want, OLM(gvk).lines(""), gvk)
				found += len(want)
			}
		}
	}
	require.Greater(t, found, 50)
}

// lines returns the defaults as "path value" lines.
func (d *Schema) lines(path string) (lines []string) {
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
