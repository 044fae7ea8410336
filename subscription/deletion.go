// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

const (
	// Finalizer holds a Subscription that is being deleted until the plans are gone that no other Subscription wants.
	// Whoever wants that puts it on their Subscriptions; this library adds it to none.
	Finalizer = "operators.coreos.com/subscription-cleanup"

	// deletionGrace is how long a Subscription is held at most.
	deletionGrace   = 5 * time.Minute
	deletionRecheck = 5 * time.Second
)

// PlanDeletion decides about the Subscriptions of a namespace that are being deleted and carry Finalizer: InstallPlans in
// progress that are for no other Subscription are deleted, so that none is approved later that is not wanted any more; once
// they are gone the finalizer goes, and after five minutes in any case, with a Diagnostic. ClusterServiceVersions and
// finished plans stay, and a plan keeps its labels. The result is zero when no Subscription is held. It takes the Input of
// Reconcile, of which memory, answers and catalogs do not matter; the error is an *olmcore.InputError.
//
// Differs: OLM has no finalizer on Subscriptions.
func PlanDeletion(in Input) (olmcore.Result, error) {
	n, err := newNamespace(&in, conditionTable)
	if err != nil {
		return olmcore.Result{}, err
	}
	var out olmcore.Result
	var deletions, releases []olmcore.Action
	doomed := map[string]bool{}
	for _, s := range n.subs {
		if s.DeletionTimestamp == nil || !slices.Contains(s.Finalizers, Finalizer) {
			continue
		}
		plans := n.wantedOnlyBy(s)
		for _, p := range plans {
			doomed[p.Name] = doomed[p.Name] || p.DeletionTimestamp == nil && p.UID != ""
		}
		left := s.DeletionTimestamp.Add(deletionGrace).Sub(n.now)
		switch {
		case len(plans) > 0 && left > 0:
			out.Requeue(min(left, deletionRecheck))
			continue
		case len(plans) > 0:
			out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonDeletionGivenUp, olmcore.RefOf(s), "metadata.finalizers",
				"InstallPlans %s could not be deleted within 5 minutes", relation.Names(plans)))
		}
		after := s.DeepCopy()
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == Finalizer })
		releases = append(releases, olmcore.UpdateOf(s, after, olmcore.Cause{
			Reason: ReasonSubscriptionDeleted, Message: "no InstallPlan in progress is left that only this Subscription wants",
		}))
	}
	for _, p := range n.sortedPlans {
		if doomed[p.Name] {
			deletions = append(deletions, olmcore.DeleteOf(p, olmcore.Cause{
				Reason: ReasonSubscriptionDeleted, Message: "every Subscription that the plan is for is being deleted",
			}))
		}
	}
	out.Actions = append(deletions, releases...)
	return out, nil
}

// wantedOnlyBy returns the plans in progress that are for a Subscription and for none that stays.
func (n *namespace) wantedOnlyBy(s *v1alpha1.Subscription) []*v1alpha1.InstallPlan {
	return slices.DeleteFunc(slices.Clone(n.sortedPlans), func(p *v1alpha1.InstallPlan) bool {
		return relation.Over(p) || !relation.Contributes(s, p) || slices.ContainsFunc(n.subs, func(o *v1alpha1.Subscription) bool {
			return o.DeletionTimestamp == nil && relation.Contributes(o, p)
		})
	})
}
