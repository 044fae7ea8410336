// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/olmcore"
)

// TestWhatIsNotOLMsIsReadFromTheAPIServer: a cache holds the metadata of ConfigMaps that are none of OLM's business;
// one that a Gather looks for by a label is there with its content, and so is each where another controller watches
// them.
func TestWhatIsNotOLMsIsReadFromTheAPIServer(t *testing.T) {
	for name, tt := range map[string]struct {
		watches bool // a controller of the user's
		want    map[string]int
	}{
		"alone":                                 {want: map[string]int{"get": 1}},
		"beside a controller that watches them": {watches: true, want: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, time.Now())
			managed := colored("a", "green")
			managed.Name, managed.Labels = "bundle", map[string]string{olmcore.LabelManaged: "true"}
			require.NoError(t, c.Create(managed, colored("a", "red")))
			s, config := serve(t, c)
			user := usersManager(t, config, ctrl.Options{NewCache: olmruntime.NewCache})
			mgr, err := olmruntime.SetupWithManager(user, olmruntime.Options{}, controllers.Catalog)
			require.NoError(t, err)
			if tt.watches {
				require.NoError(t, c.Create(noteDefinition()))
				require.NoError(t, c.Settle())
				own := noteController()
				own.Kinds = nil
				require.NoError(t, mgr.AddController(own, configMap))
			}
			run(t, user)
			require.True(t, user.GetCache().WaitForCacheSync(t.Context()))
			<-user.Elected()
			var all []olmcore.Object
			require.Eventually(t, func() bool { all, err = mgr.ListMetadata(t.Context(), configMap, "a", nil); return err == nil }, 20*time.Second, time.Millisecond)
			require.Len(t, all, 2)
			s.Requests()
			for name, color := range map[string]string{"bundle": "green", "x": "red"} {
				cm, err := olmcore.Get[*corev1.ConfigMap](t.Context(), mgr, "a", name)
				require.NoError(t, err)
				require.Equal(t, map[string]string{"color": color}, cm.Data)
			}
			require.Equal(t, tt.want, only(s.Requests(), "get"))
		})
	}
}

func only(counts map[string]int, verb string) map[string]int {
	if counts[verb] == 0 {
		return map[string]int{}
	}
	return map[string]int{verb: counts[verb]}
}

// TestPredicatesSeeAPITypes: also of objects of which a cache holds the metadata alone.
func TestPredicatesSeeAPITypes(t *testing.T) {
	c := newCluster(t, time.Now())
	_, config := serve(t, c)
	seen := make(chan client.Object, 100)
	see := predicate.NewPredicateFuncs(func(o client.Object) bool {
		if o.GetName() == "x" {
			seen <- o
		}
		return true
	})
	user := usersManager(t, config, ctrl.Options{})
	_, err := olmruntime.SetupWithManager(user, olmruntime.Options{Predicates: []predicate.Predicate{see}}, controllers.Catalog)
	require.NoError(t, err)
	require.NoError(t, c.Create(colored("a", "red")))
	run(t, user)
	select {
	case o := <-seen:
		require.IsType(t, &corev1.ConfigMap{}, o)
		require.Equal(t, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, olmcore.GVKOf(o))
		require.Equal(t, "a", o.GetNamespace())
	case <-time.After(20 * time.Second):
		t.Fatal("no predicate was asked")
	}
}
