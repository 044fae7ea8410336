// SPDX-License-Identifier: Apache-2.0

package unpack_test

import (
	"context"
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
)

// ExampleGather starts to unpack a bundle image. The first action creates the ConfigMap for its content.
func ExampleGather() {
	catalog := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community", UID: "1"}}
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{catalog}, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	lookup := v1alpha1.BundleLookup{
		Path: "registry.example.com/etcd-bundle:v1", Identifier: "etcd.v1",
		CatalogSourceRef: &corev1.ObjectReference{Namespace: "olm", Name: "community"},
		Conditions:       []v1alpha1.BundleLookupCondition{{Type: v1alpha1.BundleLookupPending, Status: corev1.ConditionTrue}},
	}
	config := installplan.Config{OPMImage: "registry.example.com/opm", UtilImage: "registry.example.com/util"}
	in, err := unpack.Gather(context.Background(), snapshot, "ops", lookup, config)
	if err != nil {
		panic(err)
	}
	in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out, err := unpack.Bundle(in)
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target.Kind, "in", target.Namespace, cause.Reason)
	}
	fmt.Println("unpacked:", out.Bundle != nil, "again in", out.RequeueAfter)
	// Output:
	// create ConfigMap in olm UnpackObjectAbsent
	// unpacked: false again in 0s
}
