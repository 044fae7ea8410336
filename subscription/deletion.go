// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// Finalizer holds a Subscription that is being deleted until the plans are gone
	// that nobody else wants. Whoever wants that puts it on their Subscriptions;
	// this library adds it to none.
	Finalizer = "operators.coreos.com/subscription-cleanup"

	// deletionPatience is how long a Subscription is held at most.
	deletionPatience = 5 * time.Minute
	deletionRecheck  = 5 * time.Second
)

// PlanDeletion decides about the Subscriptions of a namespace that are being
// deleted and carry Finalizer: InstallPlans in progress that are for no other
// Subscription are deleted, so that nobody approves later what nobody asks for
// any more; once they are gone the finalizer goes, and after five minutes in any
// case, with a Diagnostic. ClusterServiceVersions and finished plans stay, and a
// plan keeps its labels. The result is zero when no Subscription is held. It
// reads Input.Now, Namespace, Subscriptions and InstallPlans; the error is an
// *olmcore.InputError.
//
// Differs: OLM has no finalizer on Subscriptions.
func PlanDeletion(in Input) (olmcore.Result, error) {
	var v view
	if err := v.fill(&in); err != nil {
		return olmcore.Result{}, err
	}
	var out olmcore.Result
	var doomed []*v1alpha1.InstallPlan
	for _, s := range v.subs {
		if s.DeletionTimestamp == nil || !slices.Contains(s.Finalizers, Finalizer) {
			continue
		}
		var waits []string
		for _, p := range v.plans {
			if !v.contributes(s, p) || isTerminal(p) || slices.ContainsFunc(v.subs, func(o *v1alpha1.Subscription) bool {
				return o.DeletionTimestamp == nil && v.contributes(o, p)
			}) {
				continue
			}
			waits = append(waits, p.Name)
			if p.DeletionTimestamp == nil && p.UID != "" && !slices.Contains(doomed, p) {
				doomed = append(doomed, p)
			}
		}
		left := s.DeletionTimestamp.Add(deletionPatience).Sub(v.now)
		if len(waits) > 0 && left > 0 {
			out.Requeue(min(left, deletionRecheck))
			continue
		}
		if len(waits) > 0 {
			out.Diagnostics = append(out.Diagnostics, olmcore.Diagnostic{
				Severity: warning, Reason: ReasonDeletionGivenUp, Target: olmcore.RefOf(s).Unversioned(), Path: "metadata.finalizers",
				Message: "InstallPlans " + strings.Join(waits, ", ") + " could not be deleted within 5 minutes",
			})
		}
		after := s.DeepCopy()
		after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == Finalizer })
		out.Actions = append(out.Actions, olmcore.UpdateOf(s, after, olmcore.Cause{
			Reason: ReasonSubscriptionDeleted, Message: "no InstallPlan in progress is left that only this Subscription wants",
		}))
	}
	slices.SortFunc(doomed, func(a, b *v1alpha1.InstallPlan) int { return strings.Compare(a.Name, b.Name) })
	deletions := make([]olmcore.Action, 0, len(doomed)+len(out.Actions))
	for _, p := range doomed {
		action := olmcore.DeleteOf(p, olmcore.Cause{Reason: ReasonSubscriptionDeleted, Message: "every Subscription that the plan is for is being deleted"})
		action.Target = olmcore.RefOf(p)
		deletions = append(deletions, action)
	}
	if out.Actions = append(deletions, out.Actions...); len(out.Actions) == 0 {
		out.Actions = nil
	}
	return out, nil
}
