// SPDX-License-Identifier: Apache-2.0

package operatorgroup_test

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/olmcore"
)

// Reconcile computes what the operators of a namespace may watch.
func ExampleReconcile() {
	group := &operatorsv1.OperatorGroup{}
	group.Namespace, group.Name, group.UID, group.ResourceVersion = "operators", "team", "u2", "3"
	group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	out, err := operatorgroup.Reconcile(operatorgroup.Input{
		Now:           time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		OperatorGroup: group,
		Namespaces: olmcore.Found(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bank", Labels: map[string]string{"team": "b"}}},
		),
	})
	if err != nil {
		panic(err)
	}
	printRecords(out.Result)
	// Output:
	// {"verb":"updateStatus","target":{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","namespace":"operators","name":"team"},"cause":{"reason":"StatusChanged","message":"the targets, the ServiceAccount or the conditions changed"},"patch":{"status":{"lastUpdated":"2026-01-01T00:00:00Z","namespaces":["shop"]}}}
}
