// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// Nothing exists outside the namespace, so the ClusterServiceVersion is released at once.
func ExampleReconcile() {
	in := leaving()
	out, err := cleanup.Reconcile(in)
	if err != nil {
		panic(err)
	}
	printRecords(out.Result)
	// Output:
	// {"verb":"update","target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","namespace":"ns","name":"cool.v1"},"cause":{"reason":"CleanupComplete","message":"nothing is left to clean up"},"patch":{"metadata":{"finalizers":null}}}
}

// Gather reads the objects that the deleted version left outside its namespace.
func ExampleGather() {
	in := leaving()
	owner := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: in.ClusterServiceVersion.Namespace, Name: in.ClusterServiceVersion.Name}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cool", Labels: owner.Labels()}}
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{role}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	found, err := cleanup.Gather(context.Background(), snapshot, in)
	if err != nil {
		panic(err)
	}
	for _, o := range found.ClusterObjects.Items {
		fmt.Println(olmcore.KeyOf(o))
	}
	// Output:
	// ClusterRole cool
}
