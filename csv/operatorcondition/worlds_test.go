// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// world returns a cluster with an operator that runs and has no OperatorCondition, and an OperatorCondition that a user
// created. Then it calls change.
func world(t *testing.T, change func(t *testing.T, c *fake.Cluster)) invariant.World {
	all := func(name string, is bool) (kept []controller.Controller) {
		for _, c := range new(olm.OLM).Controllers() {
			if (c.Name == name) == is {
				kept = append(kept, c)
			}
		}
		return kept
	}
	return invariant.World{
		Rounds: 5,
		New: func() (*fake.Cluster, error) {
			c := fake.NewCluster(now)
			c.AutoCreateNamespaces = true
			require.NoError(t, c.Node("a").Create(nil))
			create(t, c, "base", "v1")
			require.NoError(t, c.Create(&operatorsv2.OperatorCondition{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "by-hand"}, Spec: operatorsv2.OperatorConditionSpec{ServiceAccounts: []string{"mine"}},
			}))
			others := &fake.Driver{Cluster: c, Controllers: all(controllers.Condition, false)}
			require.NoError(t, others.RunFor(t.Context(), time.Minute))
			change(t, c)
			return c, nil
		},
		Controllers: func(*fake.Cluster) []controller.Controller { return all(controllers.Condition, true) },
	}
}

// converge runs only the controller of this package.
func converge(t *testing.T, c *fake.Cluster) {
	d := &fake.Driver{Cluster: c, Controllers: world(t, nil).Controllers(c)}
	require.NoError(t, d.Settle(t.Context()))
}

func TestConvergenceDespiteLostWrites(t *testing.T) {
	edit := func(t *testing.T, c *fake.Cluster, change func(o *operatorsv2.OperatorCondition)) {
		converge(t, c)
		require.NoError(t, fake.Edit(c, "ns", "cool.v1", change))
	}
	remove := func(t *testing.T, c *fake.Cluster, apiVersion, kind string) {
		converge(t, c)
		require.NoError(t, c.Delete(olmcore.Ref{APIVersion: apiVersion, Kind: kind, Namespace: "ns", Name: "cool.v1"}))
	}
	for name, change := range map[string]func(t *testing.T, c *fake.Cluster){
		"a first installation": func(*testing.T, *fake.Cluster) {},
		"the operator reports": func(t *testing.T, c *fake.Cluster) {
			edit(t, c, func(o *operatorsv2.OperatorCondition) {
				o.Spec.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: "False", Reason: "Busy", LastTransitionTime: metav1.NewTime(now)}}
			})
		},
		"everything differs": func(t *testing.T, c *fake.Cluster) {
			edit(t, c, func(o *operatorsv2.OperatorCondition) {
				o.Labels, o.Spec.ServiceAccounts, o.Spec.Deployments = nil, []string{"x"}, nil
				o.Spec.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: "True", Reason: "Idle"}}
			})
		},
		"the object is deleted":      func(t *testing.T, c *fake.Cluster) { remove(t, c, "operators.coreos.com/v2", "OperatorCondition") },
		"the Role is deleted":        func(t *testing.T, c *fake.Cluster) { remove(t, c, "rbac.authorization.k8s.io/v1", "Role") },
		"the RoleBinding is deleted": func(t *testing.T, c *fake.Cluster) { remove(t, c, "rbac.authorization.k8s.io/v1", "RoleBinding") },
		"the CSV is being deleted": func(t *testing.T, c *fake.Cluster) {
			converge(t, c)
			require.NoError(t, fake.Edit(c, "ns", "cool.v1", func(v *v1alpha1.ClusterServiceVersion) { v.Finalizers = nil }))
			remove(t, c, "operators.coreos.com/v1alpha1", "ClusterServiceVersion")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, change)
			require.NoError(t, invariant.Settles(w))
			require.NoError(t, invariant.Repeatable(w))
			require.NoError(t, invariant.Resumable(w))
			require.NoError(t, invariant.TwoManagers(w))
		})
	}
}
