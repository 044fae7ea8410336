// SPDX-License-Identifier: Apache-2.0

package crvalidation_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// published reads a bundle's definitions, and the resources that it shows as examples.
func published(t *testing.T, b realdata.Bundle) (definitions map[string]*apiextensionsv1.CustomResourceDefinition, examples []olmcore.Object) {
	definitions = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, o := range b.Objects {
		switch o := o.(type) {
		case *apiextensionsv1.CustomResourceDefinition:
			definitions[o.Spec.Group+"/"+o.Spec.Names.Kind] = o
		case *v1alpha1.ClusterServiceVersion:
			var list []json.RawMessage
			if text := o.Annotations["alm-examples"]; text != "" {
				require.NoError(t, json.Unmarshal([]byte(text), &list))
			}
			for _, data := range list {
				example, err := olmcore.Decode(data)
				require.NoError(t, err)
				examples = append(examples, example)
			}
		}
	}
	return definitions, examples
}

// TestPublishedUpgrades: no upgrade is refused for the example resources of the version before, many of which are
// incomplete, in both versions.
func TestPublishedUpgrades(t *testing.T) {
	if os.Getenv("OLMCORE_DATA") == "" {
		t.Setenv("OLMCORE_DATA", filepath.Join("..", "..", "..", "shared", "data"))
	}
	bundles := realdata.Bundles(t)
	judged, already := 0, 0
	for i := 1; i < len(bundles); i++ {
		if bundles[i].Operator != bundles[i-1].Operator {
			continue
		}
		old, examples := published(t, bundles[i-1])
		next, _ := published(t, bundles[i])
		for _, o := range examples {
			gvk := olmcore.GVKOf(o)
			before, after := old[gvk.Group+"/"+gvk.Kind], next[gvk.Group+"/"+gvk.Kind]
			if before == nil || after == nil {
				continue
			}
			before = before.DeepCopy()
			before.Status = definition(t, true).Status
			reader, err := olmcore.NewSnapshot([]olmcore.Object{o}, olmcore.Everything)
			require.NoError(t, err)
			verdicts, err := crvalidation.Judge(t.Context(), reader,
				[]installplan.SchemaChange{{Before: before, After: after, Versions: []string{gvk.Version}}})
			require.NoError(t, err)
			judged++
			for _, v := range verdicts {
				require.Empty(t, v.ReadError)
				require.NotEmpty(t, v.Old, "%s %s: %s %s: %q", bundles[i].Operator, bundles[i].Version, gvk, v.Name, v.New)
				already++
			}
		}
	}
	t.Logf("%d examples, %d of them invalid in both versions", judged, already)
	require.Positive(t, judged)
	require.Positive(t, already)
}
