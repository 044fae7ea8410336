// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/controllers"
	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	"github.com/olmcore/olm/olmcore"
)

// TestWhatCountsIsWatched asks each controller about a plain object of each kind
// that the library has a Go type for: one that counts must be watched.
func TestWhatCountsIsWatched(t *testing.T) {
	all := controllers.New(&controllers.Options{Sweeps: true, Operators: true}).Controllers
	known := 0
	for gvk := range olmruntime.Scheme().AllKnownTypes() {
		o := olmcore.NewObject(gvk)
		if _, untyped := o.(*unstructured.Unstructured); untyped {
			continue
		}
		known++
		o.SetName("x")
		o.SetNamespace("y")
		counts := false
		for _, c := range all {
			counts = counts || len(c.Affected(o)) > 0
		}
		if _, watched := olmruntime.WatchedKinds[gvk]; counts && !watched {
			t.Errorf("%s counts and is not watched", gvk)
		}
	}
	require.Greater(t, known, 25)
	for gvk := range olmruntime.WatchedKinds {
		_, untyped := olmcore.NewObject(gvk).(*unstructured.Unstructured)
		require.False(t, untyped, "%s has no Go type", gvk)
		require.True(t, olmruntime.Scheme().Recognizes(gvk), gvk)
	}
	for _, c := range all {
		for _, gvk := range c.Kinds {
			require.Contains(t, olmruntime.WatchedKinds, gvk, c.Name)
		}
	}
}
