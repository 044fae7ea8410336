// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// ExampleReconcile reconciles an approved plan. The phase changes, and no step is applied in the same call.
func ExampleReconcile() {
	plan := &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "install-x", UID: "7", ResourceVersion: "42", Finalizers: []string{installplan.Finalizer},
		},
		Spec: v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalManual, Approved: true},
		Status: v1alpha1.InstallPlanStatus{
			Phase: v1alpha1.InstallPlanPhaseRequiresApproval, CatalogSources: []string{"cool"},
			Plan: []*v1alpha1.Step{{Resolving: "a.v1", Status: v1alpha1.StepStatusUnknown,
				Resource: v1alpha1.StepResource{Kind: "ClusterServiceVersion", Name: "a.v1", Manifest: `{"metadata":{"name":"a.v1"}}`}}},
		},
	}
	group := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}, Status: operatorsv1.OperatorGroupStatus{Namespaces: []string{"ops"}},
	}
	world, err := olmcore.NewSnapshot([]olmcore.Object{plan, group}, olmcore.Everything)
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := installplan.Gather(context.Background(), world, types.NamespacedName{Namespace: "ops", Name: "install-x"}, installplan.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	in.Now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	result, err := installplan.Reconcile(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, action := range result.Actions {
		record, _ := olmcore.RecordOf(action)
		text, _ := json.Marshal(record)
		fmt.Println(string(text))
	}
	for _, t := range result.Transitions {
		fmt.Println(t.From, "->", t.To)
	}
	fmt.Println("again in", result.RequeueAfter)
	// Output:
	// {"verb":"updateStatus","target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","namespace":"ops","name":"install-x","uid":"7","resourceVersion":"42"},"cause":{"reason":"PlanProgressed","message":"state Approved"},"patch":{"status":{"phase":"Installing"}}}
	// RequiresApproval -> Installing
	// again in 5s
}

// waitingPlan returns a plan that waits for approval, and the OperatorGroup of its namespace.
func waitingPlan() []olmcore.Object {
	plan := &v1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-x", UID: "7", ResourceVersion: "42", Finalizers: []string{installplan.Finalizer}},
		Spec:       v1alpha1.InstallPlanSpec{Approval: v1alpha1.ApprovalManual},
		Status: v1alpha1.InstallPlanStatus{
			Phase: v1alpha1.InstallPlanPhaseRequiresApproval, CatalogSources: []string{"cool"},
			Plan: []*v1alpha1.Step{{Resolving: "a.v1", Status: v1alpha1.StepStatusUnknown,
				Resource: v1alpha1.StepResource{Kind: "ClusterServiceVersion", Name: "a.v1", Manifest: `{"metadata":{"name":"a.v1"}}`}}},
		},
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}
	group.Status.Namespaces = []string{"ops"}
	return []olmcore.Object{plan, group}
}

// ExampleAssess reports what a plan is doing, without building any object.
func ExampleAssess() {
	snapshot, err := olmcore.NewSnapshot(waitingPlan(), olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := installplan.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ops", Name: "install-x"}, installplan.Config{})
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	a, err := installplan.Assess(in)
	fmt.Println(a.State, a.Phase, err)
	// Output:
	// RequiresApproval RequiresApproval <nil>
}

// ExampleGather recognizes the error about a plan that does not exist.
func ExampleGather() {
	snapshot, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	_, err = installplan.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ops", Name: "install-x"}, installplan.Config{})
	fmt.Println(apierrors.IsNotFound(err))
	// Output:
	// true
}

// ExampleAffected shows that an InstallPlan affects itself, and an OperatorGroup all plans of its namespace.
func ExampleAffected() {
	fmt.Println(installplan.Affected(waitingPlan()[0]))
	fmt.Println(installplan.Affected(waitingPlan()[1]))
	// Output:
	// [ops/ ops/install-x]
	// [ops/]
}
