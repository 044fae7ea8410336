// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/component"
)

// The Operator object lists the objects that have its label.
func ExampleReconcile() {
	label := "operators.coreos.com/etcd.ops"
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		&operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: "etcd.ops", UID: "1", ResourceVersion: "5"}},
		&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", Labels: map[string]string{label: ""}}},
	}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := component.Gather(context.Background(), snapshot, "etcd.ops")
	if err != nil {
		panic(err)
	}
	out, err := component.Reconcile(in)
	if err != nil {
		panic(err)
	}
	operator, _ := olmcore.StatusOf[*operatorsv1.Operator](out.Actions)
	for _, ref := range operator.Status.Components.Refs {
		fmt.Println(ref.Kind, ref.Namespace+"/"+ref.Name)
	}
	// Output:
	// Subscription ops/etcd
}

// Affected returns the Operator object that the label of an object names.
func ExampleAffected() {
	fmt.Println(component.Affected(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "etcd", Labels: map[string]string{"operators.coreos.com/etcd.ops": ""},
	}}))
	// Output:
	// [/etcd.ops]
}
