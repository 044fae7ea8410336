// SPDX-License-Identifier: Apache-2.0

// Package examples_test holds the code that the README shows.
package examples_test

import (
	"encoding/json"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

func Example() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	sub := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "1", ResourceVersion: "8"},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "etcd", Channel: "alpha"},
	}
	sub.Status.State = v1alpha1.SubscriptionStateUpgradePending
	sub.Status.InstallPlanRef = &corev1.ObjectReference{
		APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: "ops", Name: "install-abcde", UID: "2",
	}
	plan := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "install-abcde", UID: "2", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
	}}
	plan.Status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval

	out, err := subscription.Reconcile(subscription.Input{
		Now: now, Namespace: "ops",
		Subscriptions: olmcore.Found(sub), InstallPlans: olmcore.Found(plan),
		ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		OperatorGroups:         olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}),
	})
	if err != nil {
		panic(err)
	}
	for _, t := range out.Transitions {
		fmt.Println(t.From, "->", t.To, t.Certainty)
	}
	for _, a := range out.Actions {
		record, _ := olmcore.RecordOf(a)
		text, _ := json.MarshalIndent(record, "", "  ")
		fmt.Println(string(text))
	}
	// Output:
	// NoPlan -> NotYetReconciled Proven
	// NotYetReconciled -> RequiresApproval Observed
	// {
	//   "verb": "updateStatus",
	//   "target": {
	//     "apiVersion": "operators.coreos.com/v1alpha1",
	//     "kind": "Subscription",
	//     "namespace": "ops",
	//     "name": "etcd",
	//     "uid": "1",
	//     "resourceVersion": "8"
	//   },
	//   "cause": {
	//     "reason": "StatusObserved",
	//     "message": "the InstallPlan is RequiresApproval"
	//   },
	//   "patch": {
	//     "status": {
	//       "conditions": [
	//         {
	//           "lastTransitionTime": "2026-01-01T12:00:00Z",
	//           "reason": "RequiresApproval",
	//           "status": "True",
	//           "type": "InstallPlanPending"
	//         }
	//       ],
	//       "installplan": {
	//         "apiVersion": "operators.coreos.com/v1alpha1",
	//         "kind": "InstallPlan",
	//         "name": "install-abcde",
	//         "uuid": "2"
	//       },
	//       "lastUpdated": "2026-01-01T12:00:00Z"
	//     }
	//   }
	// }
}
