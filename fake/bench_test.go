// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// BenchmarkRound is one reconcile round in a world of 30 objects: four gets, two
// lists (one by label), a status write every second round, and a settle.
func BenchmarkRound(b *testing.B) {
	for _, lagging := range []bool{false, true} {
		b.Run(fmt.Sprintf("view=%v", lagging), func(b *testing.B) { benchmarkRound(b, lagging) })
	}
}

func benchmarkRound(b *testing.B, lagging bool) {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	must(b, c.Node("a").Create(nil), c.Node("b").Create(nil))
	for i := range 5 {
		must(b, c.Create(newPod(fmt.Sprintf("p%d", i)), configMap(fmt.Sprintf("cm%d", i)), deployment(fmt.Sprintf("d%d", i)),
			&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i), Namespace: "ns"}, Spec: &v1alpha1.SubscriptionSpec{Package: "p"}},
			&v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ip%d", i), Namespace: "ns"}}))
	}
	must(b, c.Settle())
	ctx := context.Background()
	var r olmcore.Reader = c
	var view *fake.View
	if lagging {
		view = c.View("bench")
		r = view
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "x"})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if view != nil {
			view.Sync()
		}
		sub, err := olmcore.Get[*v1alpha1.Subscription](ctx, r, "ns", fmt.Sprintf("s%d", i%5))
		must(b, err)
		_, err = olmcore.Get[*v1alpha1.InstallPlan](ctx, r, "ns", "ip1")
		must(b, err)
		_, err = olmcore.Get[*corev1.Namespace](ctx, r, "", "ns")
		must(b, err)
		_, err = olmcore.Get[*corev1.Node](ctx, r, "", "a")
		must(b, err)
		_, err = olmcore.List[*corev1.Pod](ctx, r, "ns", selector)
		must(b, err)
		_, err = olmcore.List[*v1alpha1.InstallPlan](ctx, r, "ns", nil)
		must(b, err)
		if i%2 == 0 {
			after := sub.DeepCopy()
			after.Status.State = v1alpha1.SubscriptionState(fmt.Sprint(i))
			must(b, c.Do(ctx, olmcore.UpdateStatusOf(sub, after, olmcore.Cause{})))
		}
		must(b, c.Settle())
	}
}

// BenchmarkPodLife creates a Pod, lets it start, and deletes it.
func BenchmarkPodLife(b *testing.B) {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	must(b, c.Node("a").Create(nil))
	b.ReportAllocs()
	for b.Loop() {
		must(b, c.Create(newPod("p")), c.Settle(), c.Delete(refTo(newPod("p"))), c.Settle())
	}
}

// BenchmarkLoad loads 10,000 ConfigMaps with an owner each.
func BenchmarkLoad(b *testing.B) {
	owner := configMap("owner")
	owner.UID = "owner"
	objects := []olmcore.Object{owner}
	for i := range 10_000 {
		objects = append(objects, configMap(fmt.Sprintf("cm-%d", i), owner))
	}
	b.ReportAllocs()
	for b.Loop() {
		must(b, fake.NewCluster(start).Load(objects...))
	}
}

func must(b *testing.B, errs ...error) {
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}
