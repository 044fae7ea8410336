// SPDX-License-Identifier: Apache-2.0

package operatorgroup_test

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// Reconcile computes the namespaces that the operators of a namespace watch.
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

// A controller gathers, reconciles, runs the actions, and keeps the Checkpoint for the next call. At rest, a call only
// compares resourceVersions.
func ExampleReconcile_checkpoint() {
	ctx, cluster := context.Background(), fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cluster.AutoCreateNamespaces = true
	if err := cluster.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "team"}}); err != nil {
		panic(err)
	}
	var last *olmcore.Checkpoint
	for range 3 {
		in, err := operatorgroup.Gather(ctx, cluster, types.NamespacedName{Namespace: "operators", Name: "team"})
		if err != nil {
			panic(err)
		}
		in.Now, in.Checkpoint = cluster.Now(), last
		out, err := operatorgroup.Reconcile(in)
		if err != nil {
			panic(err)
		}
		if err := olmcore.Run(ctx, cluster, out.Actions); err != nil { // olmcore.ErrStale: gather again
			panic(err)
		}
		last = out.Checkpoint
		fmt.Println(len(out.Actions), "actions, at rest:", last != nil)
	}
	// Output:
	// 4 actions, at rest: false
	// 0 actions, at rest: true
	// 0 actions, at rest: true
}

// Gather reads the OperatorGroup and the Namespaces that it may select.
func ExampleGather() {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "team"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "operators"}},
	}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := operatorgroup.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "operators", Name: "team"})
	fmt.Println(in.OperatorGroup.Name, in.Namespaces.Complete, err)
	// Output:
	// team true <nil>
}

// A change of an OperatorGroup affects all OperatorGroups of its namespace, because only one is allowed. The key has no
// name.
func ExampleAffected() {
	fmt.Println(operatorgroup.Affected(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "team"}}))
	// Output:
	// [operators/]
}
