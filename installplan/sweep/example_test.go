// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
)

// ExampleGather reports and restores the owner reference of a plan to the Subscription that references it.
func ExampleGather() {
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "1", ResourceVersion: "8"},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "etcd"},
	}
	sub.Status.InstallPlanRef = &corev1.ObjectReference{
		APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: "ops", Name: "install-abcde", UID: "2",
	}
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-abcde", UID: "2", ResourceVersion: "9"}}
	plan.Status.Phase = v1alpha1.InstallPlanPhaseComplete
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{sub, plan, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}}}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := sweep.Gather(context.Background(), snapshot, "ops", installplan.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := sweep.Reconcile(in)
	if err != nil {
		panic(err)
	}
	for _, d := range out.Diagnostics {
		fmt.Println(d.Severity, d.Reason, d.Target)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	// Output:
	// Warning OwnerReferenceMissing InstallPlan ops/install-abcde
	// Warning PlanWithoutOwner InstallPlan ops/install-abcde
	// Warning ComponentLabelMissing InstallPlan ops/install-abcde
	// update InstallPlan ops/install-abcde RelationRepaired
}

func ExampleAffected() {
	fmt.Println(sweep.Affected(&v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-abcde"}}))
	// Output:
	// [ops/]
}
