// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

// A resolution becomes a plan that every Subscription of the namespace owns.
func ExamplePlan() {
	subscription := func(name, approval string) *v1alpha1.Subscription {
		return &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, UID: types.UID("uid-of-" + name)},
			Spec:       &v1alpha1.SubscriptionSpec{Package: name, InstallPlanApproval: v1alpha1.Approval(approval)},
		}
	}
	a, b := subscription("a", "Manual"), subscription("b", "Automatic")
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "b.v1"}}
	version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	outcome, err := create.Plan(create.Input{
		Now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Namespace: "ops",
		Subscriptions: olmcore.Found(a, b), InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](),
		OperatorGroups:         olmcore.Found[*operatorsv1.OperatorGroup](),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](), ConfigMaps: olmcore.Found[*corev1.ConfigMap](),
		Resolution: olmcore.Resolution{
			Observed:  []olmcore.SubscriptionFingerprint{olmcore.FingerprintOf(a), olmcore.FingerprintOf(b)},
			Decisions: []olmcore.SubscriptionDecision{{Name: "a"}, {Name: "b", CurrentCSV: "b.v1", Changed: true}},
			Operators: []olmcore.Operator{{Name: "b.v1", Package: "b", For: []string{"b"}, Bundle: olmcore.Bundle{Objects: []olmcore.Object{version}}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := outcome.Actions[0].(olmcore.Create).Object.(*v1alpha1.InstallPlan)
	for _, owner := range plan.OwnerReferences {
		fmt.Println("owner:", owner.Kind, owner.Name)
	}
	fmt.Println("approval:", plan.Spec.Approval, plan.Spec.Approved)
	for _, d := range outcome.Diagnostics {
		fmt.Println(d.Reason+":", d.Message)
	}
	// Output:
	// owner: Subscription a
	// owner: Subscription b
	// approval: Manual false
	// ManualBecauseOf: the plan needs approval because of Subscription a
}
