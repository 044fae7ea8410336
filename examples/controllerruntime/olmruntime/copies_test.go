// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// TestCopiesAreKeptSlim: the cache holds no content of them, and they follow their original exactly: a field that it
// loses, they lose. Once that is so, nothing is asked of the API server.
func TestCopiesAreKeptSlim(t *testing.T) {
	t.Parallel()
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	original := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "mesh.v1", Annotations: map[string]string{"alm-examples": "[]"}}}
	original.Spec.DisplayName, original.Spec.Maturity, original.Spec.Labels = "Mesh", "stable", map[string]string{"gone": "soon"}
	original.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
	original.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	original.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{}
	require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "global"}}, original))
	for i := range 5 {
		require.NoError(t, c.Create(group(fmt.Sprint("team-", i))))
	}
	s, config := serve(t, c)
	copied := func(of func(*v1alpha1.ClusterServiceVersion) bool) func(*fake.Cluster) bool {
		return func(c *fake.Cluster) bool {
			for i := range 5 {
				o := fake.Find[*v1alpha1.ClusterServiceVersion](c, fmt.Sprint("team-", i), "mesh.v1")
				if o == nil || o.Status.Phase != v1alpha1.CSVPhaseSucceeded || !of(o) {
					return false
				}
			}
			return true
		}
	}
	start(t, config, controllers.Options{}, &heard{})
	until(t, s, "the copies are there", copied(func(o *v1alpha1.ClusterServiceVersion) bool { return o.Spec.Maturity == "stable" }))
	do(t, s, func(c *fake.Cluster) error {
		return fake.Edit(c, "operators", "mesh.v1", func(o *v1alpha1.ClusterServiceVersion) {
			o.Spec.Maturity, o.Spec.Labels, o.Spec.Description = "", map[string]string{"new": "one"}, "a mesh"
			delete(o.Annotations, "alm-examples")
		})
	})
	until(t, s, "the copies follow", copied(func(o *v1alpha1.ClusterServiceVersion) bool {
		return o.Spec.Maturity == "" && o.Spec.Labels["gone"] == "" && o.Spec.Labels["new"] == "one" && o.Spec.Description == "a mesh" && len(o.Annotations) == 2
	}))
	atRest(t, s)

	mgr, err := newCached(t.Context(), config, controllers.Options{})
	require.NoError(t, err)
	slim, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](t.Context(), mgr, "team-0", "mesh.v1")
	require.NoError(t, err)
	require.True(t, slim.IsCopied())
	require.Empty(t, slim.Spec.DisplayName)
	whole, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](t.Context(), mgr, "operators", "mesh.v1")
	require.NoError(t, err)
	require.Equal(t, "Mesh", whole.Spec.DisplayName)
}
