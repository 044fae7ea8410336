// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// index is all plans by the bundles that they need, as positions in the list.
type index struct {
	all      olmcore.Observed[*v1alpha1.InstallPlan]
	byBundle map[types.NamespacedName][]int
}

// Needing reads the plans of all namespaces that need one of some unpacked bundles, as Needed says. All plans are gone
// through for it, once for all calls where the Reader keeps an index.
func Needing(ctx context.Context, r olmcore.Reader, bundles []*corev1.ConfigMap) (olmcore.Observed[*v1alpha1.InstallPlan], error) {
	var err error
	build := func() any {
		x := &index{byBundle: map[types.NamespacedName][]int{}}
		if x.all, err = olmcore.Observe[*v1alpha1.InstallPlan](ctx, r, "", nil); err != nil {
			return nil
		}
		for i, plan := range x.all.Items {
			for key := range Needed(plan) {
				x.byBundle[key] = append(x.byBundle[key], i)
			}
		}
		return x
	}
	var kept *index
	if keeper, ok := r.(olmcore.Indexer); ok {
		kept, _ = keeper.Index(olmcore.GVKOf(&v1alpha1.InstallPlan{}), "", "bundles", build).(*index)
	} else {
		kept, _ = build().(*index)
	}
	if kept == nil {
		return olmcore.Observed[*v1alpha1.InstallPlan]{}, err
	}
	var positions []int
	for _, cm := range bundles {
		positions = append(positions, kept.byBundle[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}]...)
	}
	slices.Sort(positions)
	found := olmcore.Observed[*v1alpha1.InstallPlan]{Complete: kept.all.Complete}
	for _, i := range slices.Compact(positions) {
		found.Items = append(found.Items, kept.all.Items[i])
	}
	return found, nil
}
