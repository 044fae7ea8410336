// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

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
	// {"verb":"update","target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","namespace":"operators","name":"cool.v1"},"cause":{"reason":"FinalizerMissing","message":"cleanup must run before this ClusterServiceVersion is deleted"},"patch":{"metadata":{"annotations":{"olm.operatorGroup":"global","olm.operatorNamespace":"operators","olm.targetNamespaces":""},"finalizers":["operators.coreos.com/csv-cleanup"]}}}
}

// Assess reports what blocks an installation, without building actions.
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

// Gather returns a NotFound error for a version that does not exist.
func ExampleGather() {
	snapshot, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	_, err = csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "operators", Name: "cool.v1"}, csv.Config{})
	fmt.Println(apierrors.IsNotFound(err))
	// Output:
	// true
}

// A change of a version or of an OperatorGroup affects all versions of its namespace. Such a key has an empty name.
func ExampleAffected() {
	fmt.Println(csv.Affected(&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "cool.v1"}}))
	fmt.Println(csv.Affected(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "global"}}))
	// Output:
	// [operators/]
	// [operators/]
}
