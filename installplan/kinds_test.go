// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryKindOfStepIsReadAndWatched reports what a new row of the table of kinds of steps lacks elsewhere.
func TestEveryKindOfStepIsReadAndWatched(t *testing.T) {
	for _, table := range []kinds.Table{kinds.Known, kinds.Supported} {
		for name, k := range table {
			if k.GVK.Empty() {
				continue // a CustomResourceDefinition defines it
			}
			known, ok := olmcore.KindOf(k.GVK.GroupKind())
			require.True(t, ok, "%s is no row of olmcore's table of kinds", name)
			require.Equal(t, known.Namespaced, k.Namespaced, name)
			require.False(t, k.Owned && k.Labelled || k.Owned && !k.Namespaced, "%s: who owns it?", name)
			o := olmcore.NewObject(k.GVK)
			o.SetName("x")
			if k.Namespaced {
				o.SetNamespace(ns)
			}
			require.NotEmpty(t, installplan.Affected(o), "%s: no plan is affected", name)
			if _, ok := kinds.Known[name]; ok {
				require.Contains(t, known.ReadBy, "installplan", "%s: olmcore's table of kinds does not say who reads it", name)
				_, untyped := o.(*unstructured.Unstructured)
				require.False(t, untyped, "%s has no Go type", name)
				require.NotEmpty(t, k.Word, name)
			}
		}
	}
}
