// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

const (
	// maxDeletes bounds the plans that one call deletes; the next ones follow after nextDeletes.
	maxDeletes  = 5
	nextDeletes = time.Second
)

// deleteOld deletes plans that are not needed, the oldest first, and returns their UIDs.
func deleteOld(n namespace, f *findings) (gone map[types.UID]bool) {
	keep := cmp.Or(n.Config.MaxInstallPlans, installplan.DefaultMaxInstallPlans)
	plans := slices.Clone(n.plans)
	slices.SortStableFunc(plans, func(a, b plan) int {
		return cmp.Or(cmp.Compare(a.Spec.Generation, b.Spec.Generation), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	gone = map[types.UID]bool{}
	active := 0
	for i, tied := range plans {
		p := tied.InstallPlan
		cause := olmcore.Cause{Reason: ReasonPlanHistory, Message: "newer plans are kept, and no Subscription refers to this one"}
		switch {
		case p.DeletionTimestamp != nil:
			continue
		case !relation.Terminal(p) && len(p.Status.Plan)+len(p.Status.BundleLookups) == 0:
			if !isOrphan(n, tied, f) {
				continue
			}
			cause = olmcore.Cause{Reason: ReasonPlanWithoutStatus, Message: "the plan never got its steps"}
		case !relation.Terminal(p):
			active++
			continue
		case i >= len(plans)-keep || tied.neededBy() != nil:
			continue
		}
		if len(gone) == maxDeletes {
			f.Requeue(nextDeletes)
			continue
		}
		gone[p.UID] = true
		action := olmcore.DeleteOf(p, cause)
		action.Target = olmcore.RefOf(p)
		f.do(action)
	}
	if active > keep {
		f.warn(ReasonTooManyActivePlans, n.object(), "%d InstallPlans of namespace %s wait or run", active, n.Namespace)
	}
	return gone
}

// isOrphan reports that a plan without steps will never get any: it is old, and no Subscription refers to it. One that
// a Subscription refers to is kept: without it the Subscription would resolve again, beside the plan that may have its
// version.
func isOrphan(n namespace, p plan, f *findings) bool {
	if left := p.CreationTimestamp.Add(relation.OrphanGrace).Sub(n.Now); left > 0 {
		f.Requeue(left)
		return false
	}
	s := p.neededBy()
	if s != nil {
		f.warn(ReasonPlanWithoutStatus, p.InstallPlan, "the plan has no steps, and Subscription %s refers to it", s.Name)
	}
	return s == nil
}

// neededBy returns the first Subscription that needs the plan, nil for none.
func (p plan) neededBy() *v1alpha1.Subscription {
	for _, s := range p.subscriptions {
		if relation.Needs(s, p.InstallPlan) {
			return s
		}
	}
	return nil
}

// deleteBundles deletes unpacked bundles that no plan needs once their retention is over.
func deleteBundles(in Input, f *findings) {
	var old []*corev1.ConfigMap
	for _, cm := range input.ByName(in.ConfigMaps.Items) {
		if cm.DeletionTimestamp != nil || !bundle.IsUnpacked(cm) {
			continue
		}
		if left := bundle.Retained(cm, in.Now); left > 0 {
			f.Requeue(left)
		} else {
			old = append(old, cm)
		}
	}
	if len(old) == 0 || !in.OtherPlans.Complete {
		return
	}
	needed := bundle.Needed(slices.Concat(in.InstallPlans.Items, in.OtherPlans.Items)...)
	for _, lookup := range in.Lookups {
		needed[bundle.LookedUp(lookup)] = true
	}
	for _, cm := range old {
		if !needed[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] {
			f.say(olmcore.Info, ReasonUnpackedBundleUnused, cm, "no InstallPlan refers to it")
			f.do(bundle.Delete(cm, ReasonUnpackedBundleUnused, "no InstallPlan refers to it"))
		}
	}
}
