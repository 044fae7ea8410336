// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// own gives a plan its owners, labels, memory of both, and finalizer.
func (c *creation) own(plan *v1alpha1.InstallPlan) {
	var owners, involved []*v1alpha1.Subscription
	for _, s := range c.in.Subscriptions {
		mine := c.involves(s, plan)
		if mine {
			involved = append(involved, s)
			if _, err := olmcore.ComponentLabelKey(packageOf(s), c.in.Namespace); err != nil {
				c.warn(ReasonLabelImpossible, "Subscription %s: %s", s.Name, err)
			}
		}
		if mine || !c.in.Config.ContributorsOnly {
			owners = append(owners, s)
		}
	}
	relate(plan, owners, involved, c.in.Config)
	if !c.in.Config.DisableFinalizer {
		addFinalizer(plan)
	}
}

// involves reports whether a Subscription's own operator is in the plan.
func (c *creation) involves(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	if plan.Name != "" && plan.UID != "" && refersTo(s, plan) || c.changed(s.Name) {
		return true
	}
	return slices.ContainsFunc(c.in.Resolution.Operators, func(o olmcore.Operator) bool {
		return slices.Contains(o.For, s.Name) || o.Name == s.Status.CurrentCSV || o.Package != "" && o.Package == packageOf(s)
	})
}

// changed reports whether the resolution gives a Subscription a new version.
func (c *creation) changed(subscription string) bool {
	return slices.ContainsFunc(c.in.Resolution.Decisions, func(d olmcore.SubscriptionDecision) bool {
		return d.Name == subscription && d.Changed && d.CurrentCSV != "" && d.Failure == nil
	})
}

// manual is the approval policy: one Subscription of the namespace that wants to
// be asked makes every plan of it wait.
func (c *creation) manual() bool {
	return slices.ContainsFunc(c.in.Subscriptions, func(s *v1alpha1.Subscription) bool { return wantsManual(s) })
}

func (c *creation) explainManual() {
	var because []string
	for _, s := range c.in.Subscriptions {
		if !wantsManual(s) {
			continue
		}
		if c.changed(s.Name) {
			return
		}
		because = append(because, s.Name)
	}
	slices.Sort(because)
	c.warn(ReasonManualBecauseOf, "the plan needs approval because of Subscription %s", strings.Join(because, ", "))
}

// join makes the plan that was met this resolution's plan too: owners first,
// then, once it is referred to, its steps.
func (c *creation) join(plan *v1alpha1.InstallPlan) {
	after := plan.DeepCopy()
	c.own(after)
	cause := olmcore.Cause{Reason: ReasonRelationRepaired, Message: "another resolution of the namespace came to the same plan"}
	if c.manual() && after.Spec.Approval != v1alpha1.ApprovalManual && untouched(plan) {
		after.Spec.Approval, after.Spec.Approved = v1alpha1.ApprovalManual, false
		cause = olmcore.Cause{Reason: ReasonManualOwner, Message: "a Subscription that owns the plan wants manual approval"}
	}
	if !sameRelations(plan, after) {
		if after.Spec.ClusterServiceVersionNames == nil {
			after.Spec.ClusterServiceVersionNames = []string{}
		}
		c.out.Actions = append(c.out.Actions, olmcore.UpdateOf(plan, after, cause))
		return
	}
	if len(plan.Status.Plan) > 0 || len(plan.Status.BundleLookups) > 0 {
		return
	}
	if waiting, referred := c.awaited(plan); len(waiting) > 0 || !referred {
		message := "no Subscription refers to the plan yet"
		if len(waiting) > 0 {
			message = fmt.Sprintf("Subscription %s does not refer to the plan yet", strings.Join(waiting, ", "))
		}
		c.out.Diagnostics = append(c.out.Diagnostics, olmcore.Diagnostic{
			Severity: olmcore.Info, Reason: ReasonReferencesAwaited, Target: c.out.Plan,
			Message: message,
		})
		return
	}
	c.fill(plan)
}

func sameRelations(a, b *v1alpha1.InstallPlan) bool {
	return a.Spec.Approval == b.Spec.Approval && a.Spec.Approved == b.Spec.Approved &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, olmcore.SameOwnerReference) &&
		equalMaps(a.Labels, b.Labels) && equalMaps(a.Annotations, b.Annotations)
}

func equalMaps(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if other, ok := b[key]; !ok || other != value {
			return false
		}
	}
	return true
}

// awaited names the Subscriptions that the resolution changes, or whose plan is gone
// before it installed the version that this one installs, and that do not refer to the
// plan by its UID yet, and reports whether any Subscription does. One that is being
// deleted never will.
func (c *creation) awaited(plan *v1alpha1.InstallPlan) (names []string, referred bool) {
	for _, s := range c.in.Subscriptions {
		if s.DeletionTimestamp != nil {
			continue
		}
		if refersTo(s, plan) && s.Status.InstallPlanRef.UID == plan.UID {
			referred = true
		} else if c.changed(s.Name) || c.lostPlan(s, plan) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names, referred
}

// lostPlan reports that a Subscription waits for a version of this plan and refers to one
// that is not there: it is about to refer to this one, or to forget the version, and
// were that installed meanwhile it would be without a Subscription for ever.
func (c *creation) lostPlan(s *v1alpha1.Subscription, plan *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && s.Status.State == v1alpha1.SubscriptionStateUpgradePending &&
		s.Status.InstalledCSV != s.Status.CurrentCSV && slices.Contains(plan.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV) &&
		!slices.ContainsFunc(c.in.InstallPlans, func(p *v1alpha1.InstallPlan) bool { return refersTo(s, p) })
}

// fill asks for the status that starts the plan.
func (c *creation) fill(plan *v1alpha1.InstallPlan) {
	after := plan.DeepCopy()
	status := &after.Status
	status.Phase = v1alpha1.InstallPlanPhaseInstalling
	if plan.Spec.Approval == v1alpha1.ApprovalManual {
		status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
	}
	status.Plan, status.BundleLookups = c.steps, c.lookups
	status.CatalogSources = catalogsOf(c.steps)
	c.out.Actions = append(c.out.Actions, olmcore.UpdateStatusOf(plan, after, olmcore.Cause{
		Reason: ReasonPlanReady, Message: "every Subscription that it changes refers to it",
	}))
	c.out.Transitions = append(c.out.Transitions, olmcore.Transition{
		Target: c.out.Plan, Type: "Phase", From: string(plan.Status.Phase), To: string(status.Phase),
		At: olmcore.Timestamp(c.in.Now), Bound: olmcore.Exact, Certainty: olmcore.CertaintyObserved,
	})
}
