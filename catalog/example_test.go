// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// The node under the only registry Pod has been silent for a minute.
func ExampleReconcile() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	source := &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool", UID: "1", ResourceVersion: "10"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "quay.io/example/catalog:v1"},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "olm", Name: "cool-old", UID: "2", ResourceVersion: "11",
			Labels:          map[string]string{"olm.catalogSource": "cool", "olm.managed": "true"},
			OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(source)},
		},
		Spec: corev1.PodSpec{NodeName: "a"},
	}
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}}},
		}
	}
	outcome, err := catalog.Reconcile(catalog.Input{
		Now: now, CatalogSource: source, Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}}, Pods: olmcore.Found(pod),
		Nodes:           olmcore.Found(node("a", corev1.ConditionUnknown), node("b", corev1.ConditionTrue)),
		NetworkPolicies: olmcore.Found[*networkingv1.NetworkPolicy](),
		Services:        olmcore.Found[*corev1.Service](), ServiceAccounts: olmcore.Found[*corev1.ServiceAccount](),
	})
	if err != nil {
		fmt.Println(err)
	}
	for _, action := range outcome.Actions {
		verb, target, cause := action.Describe()
		fmt.Printf("%s %s (%s: %s)\n", verb, target, cause.Reason, cause.Message)
	}
	// Output:
	// create ServiceAccount olm/cool (ObjectMissing: the catalog needs it)
	// create NetworkPolicy olm/cool-grpc-server (ObjectMissing: the catalog needs it)
	// create NetworkPolicy olm/cool-unpack-bundles (ObjectMissing: the catalog needs it)
	// create Service olm/cool (ObjectMissing: the catalog needs it)
	// create Pod olm/cool-loux2pfewh (NodeUnreachable: replaces cool-old: node a is unreachable)
	// updateStatus CatalogSource olm/cool (StatusChanged: 0/1 registry pods ready: cool-old (a, lost, its node is unreachable))
}

// Assess tells what is decided without building any object.
func ExampleAssess() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := catalog.Assess(catalog.Input{
		Now: now, CatalogSource: &v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool", UID: "1"},
			Spec:       v1alpha1.CatalogSourceSpec{SourceType: "Grpc"},
		},
		Pods: olmcore.Found[*corev1.Pod](), Services: olmcore.Found[*corev1.Service](), ServiceAccounts: olmcore.Found[*corev1.ServiceAccount](),
	})
	fmt.Println(a.State)
	for _, c := range a.Conditions {
		fmt.Println(c.Type, c.Status, c.Reason, c.Message)
	}
	// Output:
	// Invalid
	// Available False SpecInvalid unknown sourcetype: Grpc
	// Progressing False SpecInvalid unknown sourcetype: Grpc
	// Degraded True SpecInvalid unknown sourcetype: Grpc
}

// Gather reads the input from anything that can get and list: here from objects.
func ExampleGather() {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		&v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cool", UID: "1"},
			Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "registry.example.com:50051"},
		},
	}, olmcore.Everything)
	if err != nil {
		fmt.Println(err)
	}
	in, err := catalog.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "olm", Name: "cool"}, catalog.Config{})
	if err != nil {
		fmt.Println(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	outcome, err := catalog.Reconcile(in)
	fmt.Println(outcome.Connection.Verb, outcome.Connection.Address, err)
	// Output: Connect registry.example.com:50051 <nil>
}

// Affected says which CatalogSources to reconcile when a watch reports an object.
func ExampleAffected() {
	fmt.Println(catalog.Affected(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "olm", Labels: map[string]string{"olm.catalogSource": "cool"}}}))
	// Output: [olm/cool]
}
