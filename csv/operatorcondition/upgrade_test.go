// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// TestUpgradesDependOnConditionsAndOverrides installs a version, sets the conditions of its operator and the overrides
// of an administrator, and creates the next version, which replaces it or waits.
func TestUpgradesDependOnConditionsAndOverrides(t *testing.T) {
	const refused = "operator is not upgradeable: "
	conditions := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: "Upgradeable", Status: status, Reason: "Said", Message: "so", LastTransitionTime: metav1.NewTime(now)}}
	}
	for name, c := range map[string]struct {
		operator, administrator []metav1.Condition
		// stale is true if the conditions of the operator are not copied to the status.
		stale bool
		// waits is why the next version does; empty: it takes over.
		waits string
	}{
		"no conditions":            {},
		"upgradeable":              {operator: conditions("True")},
		"not upgradeable":          {operator: conditions("False"), waits: refused + "the operator is not upgradeable: so"},
		"unknown":                  {operator: conditions("Unknown")},
		"the administrator allows": {operator: conditions("False"), administrator: conditions("True")},
		"the administrator forbids": {
			operator: conditions("True"), administrator: conditions("False"), waits: refused + "the operator is not upgradeable: so",
		},
		"the condition is outdated": {
			operator: conditions("True"), stale: true, waits: refused + `the operatorcondition status "Upgradeable"="True" is outdated`,
		},
		"outdated, and overridden": {operator: conditions("False"), administrator: conditions("True"), stale: true},
		"outdated, and forbidden": {
			operator: conditions("True"), administrator: conditions("False"), stale: true, waits: refused + "the operator is not upgradeable: so",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			cluster := fake.NewCluster(now)
			cluster.AutoCreateNamespaces = true
			require.NoError(t, cluster.Node("a").Create(nil))
			driver := &fake.Driver{Cluster: cluster, Controllers: new(olm.OLM).Controllers()}
			create(t, cluster, "base", "v1")
			require.NoError(t, driver.Settle(ctx))
			speak := func(change func(o *operatorsv2.OperatorCondition)) {
				condition := fake.Find[*operatorsv2.OperatorCondition](cluster, "ns", "cool.v1")
				require.NoError(t, cluster.Edit(olmcore.KeyOf(condition), func(o olmcore.Object) { change(o.(*operatorsv2.OperatorCondition)) }))
			}
			speak(func(o *operatorsv2.OperatorCondition) { o.Spec.Conditions = c.operator })
			require.NoError(t, driver.Settle(ctx))
			if c.stale {
				driver.Controllers = slices.DeleteFunc(driver.Controllers, func(c controller.Controller) bool {
					return c.Name == controllers.Condition
				})
				speak(func(o *operatorsv2.OperatorCondition) { o.Spec.Deployments = append(o.Spec.Deployments, "more") })
			}
			speak(func(o *operatorsv2.OperatorCondition) { o.Spec.Overrides = c.administrator })
			create(t, cluster, "rbac-v2", "v2")
			require.NoError(t, driver.RunFor(ctx, 5*time.Minute))
			next := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v2")
			if c.waits != "" {
				require.Equal(t, v1alpha1.CSVPhasePending, next.Status.Phase)
				require.Equal(t, c.waits, next.Status.Message)
				return
			}
			require.Equal(t, v1alpha1.CSVPhaseSucceeded, next.Status.Phase)
			require.Nil(t, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1"))
		})
	}
}

func create(t *testing.T, c *fake.Cluster, files ...string) {
	for _, file := range files {
		f, err := os.Open("../testdata/" + file + ".yaml")
		require.NoError(t, err)
		objects, err := decode.Read(file, f)
		require.NoError(t, err)
		for _, o := range objects {
			require.NoError(t, c.Create(o.Object))
		}
	}
}
