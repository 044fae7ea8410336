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
	// maxDeletes bounds the plans that one call deletes; the next ones follow after
	// nextDeletes.
	maxDeletes  = 5
	nextDeletes = time.Second
)

// deleteOld deletes plans that are not needed, the oldest first, and returns their
// UIDs.
func deleteOld(in Input, n namespace, f *findings) (gone map[types.UID]bool) {
	keep := cmp.Or(in.Config.MaxInstallPlans, installplan.DefaultMaxInstallPlans)
	plans := slices.SortedStableFunc(slices.Values(n.plans), func(a, b *v1alpha1.InstallPlan) int {
		return cmp.Or(cmp.Compare(a.Spec.Generation, b.Spec.Generation), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	gone = map[types.UID]bool{}
	active := 0
	for i, p := range plans {
		reason, message := ReasonPlanHistory, "newer plans are kept, and no Subscription refers to this one"
		switch {
		case p.DeletionTimestamp != nil:
			continue
		case !relation.Terminal(p) && len(p.Status.Plan)+len(p.Status.BundleLookups) == 0:
			if !isOrphan(in, n, p, f) {
				continue
			}
			reason, message = ReasonPlanWithoutStatus, "the plan never got its steps"
		case !relation.Terminal(p):
			active++
			continue
		case i >= len(plans)-keep || neededBy(n, p) != nil:
			continue
		}
		if len(gone) == maxDeletes {
			f.Requeue(nextDeletes)
			continue
		}
		gone[p.UID] = true
		action := olmcore.DeleteOf(p, olmcore.Cause{Reason: reason, Message: message})
		action.Target = olmcore.RefOf(p)
		f.do(action)
	}
	if active > keep {
		f.namespace(in.Namespace, olmcore.Warning, ReasonTooManyActivePlans, "%d InstallPlans of namespace %s wait or run", active, in.Namespace)
	}
	return gone
}

// isOrphan reports that a plan without steps will never get any: it is old, and
// no Subscription refers to it. One that a Subscription refers to is kept: without it
// the Subscription would resolve again, beside the plan that may have its version.
func isOrphan(in Input, n namespace, p *v1alpha1.InstallPlan, f *findings) bool {
	if left := p.CreationTimestamp.Add(relation.OrphanGrace).Sub(in.Now); left > 0 {
		f.Requeue(left)
		return false
	}
	s := neededBy(n, p)
	if s != nil {
		f.object(olmcore.Warning, ReasonPlanWithoutStatus, p, "the plan has no steps, and Subscription %s refers to it", s.Name)
	}
	return s == nil
}

// neededBy returns the first Subscription that needs a plan, nil for none.
func neededBy(n namespace, p *v1alpha1.InstallPlan) *v1alpha1.Subscription {
	for _, s := range n.ties.Of(p) {
		if relation.Needs(s, p) {
			return s
		}
	}
	return nil
}

// deleteBundles deletes unpacked bundles that no plan needs once their retention is
// over.
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
		if key, ok := bundle.LookedUp(lookup); ok {
			needed[key] = true
		}
	}
	for _, cm := range old {
		if !needed[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] {
			f.object(olmcore.Info, ReasonUnpackedBundleUnused, cm, "no InstallPlan refers to it")
			f.do(bundle.Delete(cm, ReasonUnpackedBundleUnused, "no InstallPlan refers to it"))
		}
	}
}

// auditCollisions reports plans that were made twice.
func auditCollisions(n namespace, gone map[types.UID]bool, f *findings) {
	generations, contents := map[int]string{}, map[string]string{}
	for _, p := range n.plans {
		if p.DeletionTimestamp != nil || gone[p.UID] {
			continue
		}
		if other, taken := generations[p.Spec.Generation]; taken && p.Spec.Generation > 0 {
			f.object(olmcore.Warning, ReasonPlansCollide, p, "InstallPlan %s has generation %d too", other, p.Spec.Generation)
		} else {
			generations[p.Spec.Generation] = p.Name
		}
		hash := p.Annotations[relation.ContentHash]
		if hash == "" || relation.Terminal(p) {
			continue
		}
		if other, taken := contents[hash]; taken {
			f.object(olmcore.Warning, ReasonPlansCollide, p, "InstallPlan %s has the same content and is not done either", other)
		} else {
			contents[hash] = p.Name
		}
	}
}
