// SPDX-License-Identifier: Apache-2.0

package maintenancewindow_test

import (
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/examples/maintenancewindow"
	"github.com/olmcore/olm/olmcore"
)

// A plan waits, and the window is open.
func ExampleReconcile() {
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-x", UID: "1", ResourceVersion: "2"}}
	plan.Spec.Approval, plan.Status.Phase = v1alpha1.ApprovalManual, v1alpha1.InstallPlanPhaseRequiresApproval
	sub := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "3"}}
	sub.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "ops", Name: "install-x", UID: "1"}
	window := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"schedule": "0 22 * * *", "duration": "2h", "namespaces": []any{"ops"}},
	}}
	window.SetGroupVersionKind(maintenancewindow.Kind)
	window.SetName("night")
	out, err := maintenancewindow.Reconcile(maintenancewindow.Input{
		Now: time.Date(2026, 1, 1, 22, 30, 0, 0, time.UTC), Window: window, Objects: []olmcore.Object{plan, sub},
	})
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	for _, d := range out.Diagnostics {
		fmt.Println(d.Reason, d.Message)
	}
	// Output:
	// update InstallPlan ops/install-x WindowOpen
}
