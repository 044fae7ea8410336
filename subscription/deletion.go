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
	// Finalizer delays the deletion of a Subscription until the unfinished InstallPlans that no other Subscription needs
	// are deleted, for at most five minutes. Users add the Finalizer to their Subscriptions. This library never adds it.
	Finalizer = "operators.coreos.com/subscription-cleanup"

	// deletionGrace is the longest time for which the deletion of a Subscription is delayed.
	deletionGrace = 5 * time.Minute
	// deletionRecheck is the time until InstallPlans that are being deleted are observed again.
	deletionRecheck = 5 * time.Second
)

// PlanDeletion returns the actions for the Subscriptions of a namespace that are being deleted and have the Finalizer.
// It deletes their unfinished InstallPlans that no other Subscription needs, so that these InstallPlans cannot be
// approved later. Once these InstallPlans are deleted, PlanDeletion removes the Finalizer. After five minutes, it
// removes the Finalizer even if such an InstallPlan still exists, and a Diagnostic reports the InstallPlan.
// ClusterServiceVersions and finished InstallPlans are not deleted.
//
// PlanDeletion takes the Input of Reconcile. It ignores Histories, Resolution and Catalogs. The error is an
// *olmcore.InputError.
//
// Differs: OLM has no finalizer on Subscriptions.
func PlanDeletion(in Input) (olmcore.Result, error) {
	n, err := newNamespace(&in, conditionTable)
	if err != nil {
		return olmcore.Result{}, err
	}
	var out olmcore.Result
	var releases []olmcore.Action
	unneeded := map[string]bool{} // names of InstallPlans
	for _, s := range n.subs {
		if s.DeletionTimestamp == nil || !slices.Contains(s.Finalizers, Finalizer) {
			continue
		}
		plans := n.plansOnlyFor(s)
		for _, p := range plans {
			unneeded[p.Name] = unneeded[p.Name] || p.DeletionTimestamp == nil && p.UID != ""
		}
		left := s.DeletionTimestamp.Add(deletionGrace).Sub(n.now)
		if len(plans) > 0 && left > 0 {
			out.Requeue(min(left, deletionRecheck))
			continue
		}
		if len(plans) > 0 {
			out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(
				olmcore.Warning, ReasonDeletionGivenUp, olmcore.RefOf(s), "metadata.finalizers",
				"InstallPlans %s could not be deleted within 5 minutes", relation.Names(plans)))
		}
		releases = append(releases, releaseOf(s))
	}
	out.Actions = append(n.deletionsOf(unneeded), releases...)
	return out, nil
}

// releaseOf returns the action that removes the Finalizer.
func releaseOf(s *v1alpha1.Subscription) olmcore.Action {
	after := s.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == Finalizer })
	return olmcore.UpdateOf(s, after, olmcore.Cause{
		Reason: ReasonSubscriptionDeleted, Message: "no unfinished InstallPlan is left that only this Subscription needs",
	})
}

// deletionsOf returns the actions that delete InstallPlans, sorted by name.
func (n *namespace) deletionsOf(names map[string]bool) []olmcore.Action {
	var actions []olmcore.Action
	for _, p := range n.sortedPlans {
		if names[p.Name] {
			actions = append(actions, olmcore.DeleteOf(p, olmcore.Cause{
				Reason: ReasonSubscriptionDeleted, Message: "every Subscription of the InstallPlan is being deleted",
			}))
		}
	}
	return actions
}

// plansOnlyFor returns the InstallPlans in progress that a Subscription needs and that no Subscription needs which
// stays.
func (n *namespace) plansOnlyFor(s *v1alpha1.Subscription) []*v1alpha1.InstallPlan {
	var list []*v1alpha1.InstallPlan
	for _, p := range n.sortedPlans {
		isNeeded := slices.ContainsFunc(n.subs, func(o *v1alpha1.Subscription) bool {
			return o.DeletionTimestamp == nil && relation.Contributes(o, p)
		})
		if !relation.Over(p) && relation.Contributes(s, p) && !isNeeded {
			list = append(list, p)
		}
	}
	return list
}
