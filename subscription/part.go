// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// part is the part of an answer that one plan carries out: all of it, or that of one set of Subscriptions. What happens to one part
// holds up no other.
type part struct {
	a *answer
	// decisions are those of its Subscriptions.
	decisions []*olmcore.SubscriptionDecision
	in        *PlanProgress
	// installs: there are operators to install.
	installs bool
	// applies: its decisions can be written. speaks: one of them changes something or failed.
	applies, speaks         bool
	unpacking, unpackFailed want
	// unpackError is why its bundles cannot be unpacked for now. It is reported and not published.
	unpackError string
	plan        *v1alpha1.InstallPlan
}

// divide makes the parts of an answer. A Subscription that is in none of the sets is a part without a plan.
func (a *answer) divide() {
	resolution, named := &a.in.Resolution, map[string]*part{}
	add := func(in *PlanProgress, installs bool) *part {
		p := &part{a: a, in: in, installs: installs}
		a.parts = append(a.parts, p)
		return p
	}
	var rest *part
	if len(a.in.Parts) == 0 {
		rest = add(&a.in.PlanProgress, len(resolution.Operators) > 0)
	}
	for i := range a.in.Parts {
		p := add(&a.in.Parts[i].PlanProgress, true)
		for _, name := range a.in.Parts[i].Subscriptions {
			named[name] = p
		}
	}
	for i := range resolution.Decisions {
		d := &resolution.Decisions[i]
		if named[d.Name] == nil {
			if named[d.Name] = rest; rest == nil {
				named[d.Name] = add(&PlanProgress{}, false)
			}
		}
		p := named[d.Name]
		p.decisions = append(p.decisions, d)
		p.speaks = p.speaks || d.Changed || d.Failure != nil
	}
	a.partNamed = named
}

// partOf returns the part of a Subscription. If the answer does not decide about it, the part is empty or the whole answer.
func (a *answer) partOf(name string) *part {
	switch p := a.partNamed[name]; {
	case p != nil:
		return p
	case a.in != nil && len(a.in.Parts) == 0:
		return a.parts[0]
	}
	return &part{a: a, in: &PlanProgress{}}
}

// firstOf returns the first Subscription that a part decides about, or nil.
func (n *namespace) firstOf(p *part) *v1alpha1.Subscription {
	i := slices.IndexFunc(n.subs, func(s *v1alpha1.Subscription) bool {
		return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool { return d.Name == s.Name })
	})
	if i < 0 {
		return nil
	}
	return n.subs[i]
}

// carry finds the plan of a part, and sets whether its decisions can be written.
func (p *part) carry() {
	if p.unpack(); !p.installs || p.in.Plan.Name == "" {
		p.applies = !p.installs
		return
	}
	n := p.a.n
	plan := n.planNamed[p.in.Plan.Name]
	if plan != nil && (p.in.Plan.UID != "" && plan.UID != p.in.Plan.UID || plan.DeletionTimestamp != nil || n.window.gone(plan.UID, "")) {
		plan = nil
	}
	switch p.plan = plan; {
	case plan == nil:
		p.planNotVisible()
	case p.isSpent():
		p.a.again = ResolvePlanGone
	default:
		p.applies = true
	}
}

// isSpent reports whether a part was carried out to its end before a Subscription was made to forget it: the plan is
// complete, what it brought is gone, and the Subscription was written after the resolution. To carry such an answer out
// again would bring nothing.
func (p *part) isSpent() bool {
	if p.plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		return false
	}
	n, at := p.a.n, p.a.in.At
	for _, d := range p.decisions {
		s := n.subNamed[d.Name]
		if d.Changed && n.csvs[d.CurrentCSV] == nil && s != nil && s.Status.InstallPlanRef == nil &&
			(at.IsZero() || !s.Status.LastUpdated.Time.Before(at.Truncate(time.Second))) {
			return true
		}
	}
	return false
}

// planNotVisible waits for a plan that was just made, and gives the answer up when it stays away while it is needed.
func (p *part) planNotVisible() {
	if !p.hasUndone() {
		return
	}
	a, n := p.a, p.a.n
	start := a.in.At
	if start.IsZero() {
		for _, s := range n.subs {
			start = relation.Latest(start, s.Status.LastUpdated.Time)
		}
	}
	left := n.grace - since(start, n.now)
	switch {
	case n.live || n.window.gone(p.in.Plan.UID, p.in.Plan.Name), !start.IsZero() && left <= 0:
		a.again = ResolvePlanGone
	case start.IsZero():
		a.waitAtMost(recheck)
	default:
		a.waitAtMost(min(recheck, left))
	}
}

// isReached reports whether a Subscription that has the version of a decision can have it from this part: another one
// may bring the same version by another plan.
func (p *part) isReached(s *v1alpha1.Subscription) bool {
	ref, plan := s.Status.InstallPlanRef, p.in.Plan
	return !p.installs || ref != nil && plan.Name != "" && relation.SamePlan(ref, plan.UID, plan.Name)
}

// hasUndone reports whether a decision of a part is not carried out yet.
func (p *part) hasUndone() bool {
	return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool {
		s := p.a.n.subNamed[d.Name]
		switch {
		case !d.Changed:
			return false
		case s == nil:
			return true
		case s.Status.InstalledCSV == d.CurrentCSV:
			return false
		case s.Status.CurrentCSV != d.CurrentCSV:
			return true
		}
		ref := s.Status.InstallPlanRef
		return p.in.Plan.Name != "" && (ref == nil || ref.Name != p.in.Plan.Name)
	})
}

// isHeld reports whether a part has to wait because a Subscription that it changes keeps its plan for now. All Subscriptions
// that one plan changes move together. The plan gets no steps before that.
func (p *part) isHeld() bool {
	return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool {
		s := p.a.n.subNamed[d.Name]
		return s != nil && d.Changed && s.Status.CurrentCSV != d.CurrentCSV && p.a.n.keepsPlan(s)
	})
}

// isShared reports whether the plan that a Subscription references was made for other sets of Subscriptions, too, so that plans of
// the sets are to supersede it. Without an answer that holds, each Subscription is a set of its own.
func (n *namespace) isShared(plan *v1alpha1.InstallPlan, of *v1alpha1.Subscription) bool {
	return n.isSeparate && plans.IsShared(plan, n.subs, func(name string) bool {
		if name == of.Name || !n.answer.succeeded {
			return name == of.Name
		}
		return n.answer.partOf(name) == n.answer.partOf(of.Name)
	})
}

// unpack sets the conditions BundleUnpacking and BundleUnpackFailed of the Subscriptions of a part.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: a failure is
// tried again every time, not only the first; BundleUnpacking and BundleUnpackFailed are never both there.
func (p *part) unpack() {
	a, u := p.a, p.in.Unpacking
	p.unpacking, p.unpackFailed = absent, absent
	switch {
	case p.in.PlanError != "":
		p.unpackFailed = present(ReasonEnsureInstallPlanFailed, "error ensuring InstallPlan: "+p.in.PlanError)
		a.retry(&olmcore.ResolutionFailure{})
	case p.in.PlanRefused.Reason != "":
		p.unpackFailed = present(p.in.PlanRefused.Reason, p.in.PlanRefused.Message)
	case u == nil && p.installs && p.in.Plan.Name == "":
		p.unpacking, p.unpackFailed = want{}, want{}
	case u == nil:
	case u.Failure != nil && u.Failure.Transient:
		p.unpacking, p.unpackFailed, p.unpackError = want{}, want{}, u.Failure.Message
		a.retry(&olmcore.ResolutionFailure{}) // as after any other error
	case u.Failure != nil:
		p.unpackFailed = present(ReasonErrorPreventedUnpacking, u.Failure.Message)
	default:
		p.lookups()
	}
}

// lookups sets what the lookups add up to: a failure, the first one; else progress; else nothing.
func (p *part) lookups() {
	pending, hint := false, ""
	for _, lookup := range p.in.Unpacking.Lookups {
		for _, c := range lookup.Conditions {
			switch {
			case c.Status != corev1.ConditionTrue:
			case c.Type == v1alpha1.BundleLookupFailed:
				p.a.retryAfter(unpackRetry)
				message := "Bundle unpacking failed - " + c.Reason + ": " + c.Message
				if !strings.Contains(c.Message, "Auto-retry") && !strings.Contains(c.Message, "Common causes") {
					message += ". " + unpackGuidance
				}
				p.unpackFailed = present(ReasonBundleUnpackFailed, message)
				return
			case c.Type == v1alpha1.BundleLookupPending:
				pending = true
				if hint == "" && c.Reason == "JobIncomplete" &&
					(strings.Contains(c.Message, "ImagePullBackOff") || strings.Contains(c.Message, "ErrImagePull")) {
					hint = "an image cannot be pulled: " + c.Message
				}
			}
		}
	}
	if pending {
		p.unpacking = present(ReasonUnpackingInProgress, hint)
		p.a.waitAtMost(unpackRecheck)
	}
}
