// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// An action becomes one JSON record; the patch holds the change alone.
func ExampleRecordOf() {
	before := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "7", ResourceVersion: "3"}}
	after := before.DeepCopy()
	after.Status.State = v1alpha1.SubscriptionStateAtLatest

	record, err := olmcore.RecordOf(olmcore.UpdateStatusOf(before, after, olmcore.Cause{Reason: "StateChanged"}))
	if err != nil {
		panic(err)
	}
	out, _ := json.MarshalIndent(record, "", "  ")
	fmt.Println(string(out))
	// Output:
	// {
	//   "verb": "updateStatus",
	//   "target": {
	//     "apiVersion": "operators.coreos.com/v1alpha1",
	//     "kind": "Subscription",
	//     "namespace": "ops",
	//     "name": "etcd",
	//     "uid": "7",
	//     "resourceVersion": "3"
	//   },
	//   "cause": {
	//     "reason": "StateChanged"
	//   },
	//   "patch": {
	//     "status": {
	//       "state": "AtLatestKnown"
	//     }
	//   }
	// }
}

// A Snapshot answers reads from plain objects: for tests, tools and caches.
func ExampleNewSnapshot() {
	owner := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: "registry", OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(owner)},
	}}
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{pod, owner})
	if err != nil {
		panic(err)
	}
	for _, o := range snapshot.Owned("1") {
		fmt.Println(olmcore.KeyOf(o))
	}
	found, err := olmcore.Get[*corev1.Pod](context.Background(), snapshot, "ops", "registry")
	fmt.Println(found.Name, err)
	// Output:
	// Pod ops/registry
	// registry <nil>
}

// printer is an Executor that only prints.
type printer struct{}

func (printer) Do(_ context.Context, a olmcore.Action) error {
	verb, target, cause := a.Describe()
	fmt.Printf("%s %s (%s)\n", verb, target, cause.Reason)
	return nil
}

func ExampleRun() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "registry", UID: "1"}}
	err := olmcore.Run(context.Background(), printer{}, []olmcore.Action{
		olmcore.DeleteOf(pod, olmcore.Cause{Reason: "NodeNotReady"}),
	})
	fmt.Println(err)
	// Output:
	// delete Pod ops/registry (NodeNotReady)
	// <nil>
}

func ExampleInputError() {
	_, err := olmcore.ComponentLabelKey("", "ops")
	fmt.Println(err, errors.Is(err, olmcore.ErrInvalidInput))
	// Output: invalid input: package is empty true
}

func ExampleComponentLabelKey() {
	key, err := olmcore.ComponentLabelKey("etcd", "ops")
	fmt.Println(key, err)
	// Output: operators.coreos.com/etcd.ops <nil>
}
