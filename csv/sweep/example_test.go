// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/olmcore"
)

// A ClusterRole whose ClusterServiceVersion does not exist is reported. It is deleted if the Config allows it.
func ExampleReconcile() {
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "etcd", UID: "1", ResourceVersion: "2", Labels: map[string]string{
			"olm.owner": "etcd.v1", "olm.owner.namespace": "ops", "olm.owner.kind": "ClusterServiceVersion",
		}}},
	}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	in, err := sweep.Gather(context.Background(), snapshot, cleanup.Config{}, nil)
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := sweep.Reconcile(in)
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	for _, d := range out.Diagnostics {
		fmt.Println(d.Severity, d.Reason, d.Target)
	}
	// Output:
	// Warning Orphaned ClusterRole etcd
}
