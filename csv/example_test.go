// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"encoding/json"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/olmcore"
)

func printRecords(res olmcore.Result) {
	for _, a := range res.Actions {
		r, err := olmcore.RecordOf(a)
		if err != nil {
			panic(err)
		}
		r.Target.UID, r.Target.ResourceVersion = "", ""
		line, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}

// A new CSV gets its finalizer and the annotations of its OperatorGroup first.
func ExampleReconcile() {
	c := &v1alpha1.ClusterServiceVersion{}
	c.Namespace, c.Name, c.UID, c.ResourceVersion = "operators", "cool.v1", "u1", "7"
	group := &operatorsv1.OperatorGroup{}
	group.Namespace, group.Name = "operators", "global"
	group.Status.Namespaces = []string{""} // all namespaces

	out, err := csv.Reconcile(csv.Input{
		Now:                   time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		ClusterServiceVersion: c,
		OperatorGroups:        olmcore.Found(group),
		Neighbours:            olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	})
	if err != nil {
		panic(err)
	}
	printRecords(out.Result)
	// Output:
	// {"verb":"update","target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","namespace":"operators","name":"cool.v1"},"cause":{"reason":"FinalizerMissing","message":"cleanup must run before this ClusterServiceVersion goes"},"patch":{"metadata":{"annotations":{"olm.operatorGroup":"global","olm.operatorNamespace":"operators","olm.targetNamespaces":""},"finalizers":["operators.coreos.com/csv-cleanup"]}}}
}

// Assess tells what blocks an installation without building anything.
func ExampleAssess() {
	in := input("Pending", "RequirementsUnknown", "requirements not yet checked")
	in.CustomResourceDefinitions.Items = nil
	a, err := csv.Assess(in)
	fmt.Println(a.Rule, a.Phase, a.Reason, err)
	for _, r := range a.Requirements {
		fmt.Println(r.Kind, r.Name, r.Status)
	}
	// Output:
	// RequirementsNotMet Pending RequirementsNotMet <nil>
	// CustomResourceDefinition cools.example.com NotPresent
	// ServiceAccount cool Present
}

// Group computes what the operators of a namespace may watch.
func Example_operatorGroup() {
	group := &operatorsv1.OperatorGroup{}
	group.Namespace, group.Name, group.UID, group.ResourceVersion = "operators", "team", "u2", "3"
	group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	res, err := reconcileGroup(operatorgroup.Input{
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
	printRecords(res)
	// Output:
	// {"verb":"updateStatus","target":{"apiVersion":"operators.coreos.com/v1","kind":"OperatorGroup","namespace":"operators","name":"team"},"cause":{"reason":"StatusChanged","message":"the targets, the ServiceAccount or the conditions changed"},"patch":{"status":{"lastUpdated":"2026-01-01T00:00:00Z","namespaces":["shop"]}}}
}

// Cleanup is what Reconcile does with a CSV that is being deleted: here there is
// nothing outside its namespace, so it is released at once.
func Example_cleanup() {
	c := operator("cool.v1", 1)
	c.DeletionTimestamp = ago(time.Second)
	out, err := reconcileCleanup(csv.Input{
		Now: now, ClusterServiceVersion: c,
		Neighbours:  olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		Deployments: olmcore.Found[*appsv1.Deployment](),
		Deletion: cleanup.Deletion{
			Namespaces:     olmcore.Found(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}),
			ClusterObjects: olmcore.Found[olmcore.Object](),
			WellKnown:      olmcore.Found[olmcore.Object](), Copies: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		},
	})
	if err != nil {
		panic(err)
	}
	printRecords(out.Result)
	// Output:
	// {"verb":"update","target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","namespace":"ns","name":"cool.v1"},"cause":{"reason":"CleanupComplete","message":"nothing is left to clean up"},"patch":{"metadata":{"finalizers":null}}}
}
