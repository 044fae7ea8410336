// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
)

// exampleObjects are a Subscription that waits for approval, as its status says,
// and its plan, which meanwhile was approved and is done.
func exampleObjects() []olmcore.Object {
	at := func(s int) metav1.Time { return metav1.NewTime(time.Date(2026, 3, 1, 10, 0, s, 0, time.UTC)) }
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "1", ResourceVersion: "11", Labels: map[string]string{"operators.coreos.com/etcd.ops": ""}},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "etcd", CatalogSource: "cool", CatalogSourceNamespace: "olm"},
	}
	plan := &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-1", UID: "2", ResourceVersion: "12", Generation: 2, CreationTimestamp: at(0)},
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalManual, Approved: true, Generation: 1},
		Status:     v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseComplete, StartTime: new(at(20))},
	}
	plan.Status.SetCondition(v1alpha1.ConditionMet(v1alpha1.InstallPlanInstalled, new(at(24))))
	plan.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(sub)}
	ref := olmcore.RefOf(plan)
	sub.Status = v1alpha1.SubscriptionStatus{
		CurrentCSV: "etcd.v1", State: v1alpha1.SubscriptionStateUpgradePending, InstallPlanGeneration: 1, LastUpdated: at(1),
		InstallPlanRef: refTo("install-1"),
		Conditions: []v1alpha1.SubscriptionCondition{{
			Type: v1alpha1.SubscriptionInstallPlanPending, Status: "True", Reason: "RequiresApproval", LastTransitionTime: new(at(1)),
		}},
	}
	sub.Status.InstallPlanRef.UID = ref.UID
	sub.Status.Install = v1alpha1.NewInstallPlanReference(sub.Status.InstallPlanRef)
	return []olmcore.Object{sub, plan,
		&v1alpha1.ClusterServiceVersion{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd.v1", UID: "3", ResourceVersion: "13", Labels: sub.Labels},
			Status:     v1alpha1.ClusterServiceVersionStatus{Phase: v1alpha1.CSVPhaseSucceeded},
		},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group", UID: "4", ResourceVersion: "14"}},
	}
}

func ExampleReconcile() {
	snapshot, err := olmcore.NewSnapshot(exampleObjects(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := subscription.Gather(context.Background(), snapshot, "ops", subscription.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)
	out, err := subscription.Reconcile(in)
	if err != nil {
		panic(err)
	}
	for _, t := range out.Transitions {
		fmt.Println(t.Type, t.From, "->", t.To, t.Certainty, t.Bound, t.At.UTC().Format(time.TimeOnly))
	}
	for _, a := range out.Actions {
		record, err := olmcore.RecordOf(a)
		if err != nil {
			panic(err)
		}
		fmt.Println(record.Verb, record.Target)
		text, err := json.MarshalIndent(record.Patch, "", "  ")
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
	assessment, _ := subscription.Assess(in)
	fmt.Println(assessment.Gate)
	// Output:
	// InstallPlan RequiresApproval -> Installing Proven NotAfter 10:00:20
	// InstallPlan Installing -> Complete Observed Exact 10:00:24
	// State UpgradePending -> AtLatestKnown Observed NotAfter 10:00:30
	// updateStatus Subscription ops/etcd
	// {
	//   "status": {
	//     "conditions": null,
	//     "installedCSV": "etcd.v1",
	//     "lastUpdated": "2026-03-01T10:00:30Z",
	//     "state": "AtLatestKnown"
	//   }
	// }
	// Deferred
}

func ExampleAssess() {
	snapshot, err := olmcore.NewSnapshot(exampleObjects(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := subscription.Gather(context.Background(), snapshot, "ops", subscription.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)
	assessment, err := subscription.Assess(in)
	if err != nil {
		panic(err)
	}
	for _, v := range assessment.Decisions {
		fmt.Println(v.Subscription.Name, v.Status.State, v.Plan.Name, v.Plan.Stage)
	}
	// Output:
	// etcd AtLatestKnown install-1 Complete
}

func Example_operator() {
	snapshot, err := olmcore.NewSnapshot(exampleObjects(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := component.Gather(context.Background(), snapshot, "etcd.ops")
	if err != nil {
		panic(err)
	}
	in.Operator = &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "etcd.ops", UID: "5", ResourceVersion: "15"}}
	out, err := component.Reconcile(in)
	if err != nil {
		panic(err)
	}
	operator, _ := olmcore.StatusOf[*operatorsv1.Operator](out.Actions)
	for _, ref := range operator.Status.Components.Refs {
		fmt.Println(ref.Kind, ref.Name, ref.Conditions[0].Type)
	}
	// Output:
	// ClusterServiceVersion etcd.v1 Succeeded
	// Subscription etcd InstallPlanPending
}

// A plan concerns the Subscriptions of its namespace.
func ExampleAffected() {
	fmt.Println(subscription.Affected(&v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-1"}}))
	// Output:
	// [ops/]
}

// Gather returns an error for a kind that was not read.
func ExampleGather() {
	snapshot, err := olmcore.NewSnapshot(exampleObjects(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := subscription.Gather(context.Background(), snapshot, "ops", subscription.Config{})
	fmt.Println(len(in.Subscriptions.Items), len(in.InstallPlans.Items), in.InstallPlans.Complete, err)

	nothing, err := olmcore.NewSnapshot(nil)
	if err != nil {
		panic(err)
	}
	_, err = subscription.Gather(context.Background(), nothing, "ops", subscription.Config{})
	fmt.Println(errors.Is(err, olmcore.ErrNotRead), err)
	// Output:
	// 1 1 true <nil>
	// true Subscription objects of namespace ops were not read, so which operators are wanted is unknown
}
