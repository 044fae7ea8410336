// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

// ExampleGather creates the plan of a resolution. Its steps are written in a later call, once the Subscriptions
// reference it.
func ExampleGather() {
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "1", ResourceVersion: "8"},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "etcd", InstallPlanApproval: v1alpha1.ApprovalManual},
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}
	group.Status.Namespaces = []string{"ops"}
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{sub, group}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "etcd.v1"}}
	version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	resolved := olmcore.Resolution{
		Observed: []olmcore.SubscriptionFingerprint{olmcore.FingerprintOf(sub)},
		Operators: []olmcore.Operator{{
			Name: "etcd.v1", Package: "etcd", Catalog: types.NamespacedName{Namespace: "olm", Name: "community"}, For: []string{"etcd"},
			Bundle: olmcore.Bundle{Objects: []olmcore.Object{version}},
		}},
		Decisions: []olmcore.SubscriptionDecision{{Name: "etcd", CurrentCSV: "etcd.v1", Changed: true}},
	}
	in, err := create.Gather(context.Background(), snapshot, "ops", resolved, installplan.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := create.Plan(in)
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		plan := a.(olmcore.Create).Object.(*v1alpha1.InstallPlan)
		fmt.Println(verb, target, cause.Reason, plan.Spec.ClusterServiceVersionNames, "approved:", plan.Spec.Approved)
	}
	for _, d := range out.Diagnostics {
		fmt.Println(d.Reason, d.Message)
	}
	// Output:
	// create InstallPlan ops/install-tum3alcor7 PlanNeeded [etcd.v1] approved: false
}
