// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/planhistory"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// part is the share of an answer that one InstallPlan carries out: the whole answer, or the decisions about one set of
// Subscriptions. No part delays another one. It is read-only.
type part struct {
	decisions []*olmcore.SubscriptionDecision
	progress  *PlanProgress
	installs  bool // it installs operators
	// speaks means that a decision changes something or failed.
	speaks bool

	// applies means that the decisions can be written to the Subscriptions.
	applies bool
	// plan is the InstallPlan of the part. It is nil if there is none or if it is not visible.
	plan   *v1alpha1.InstallPlan
	unpack unpackFacts
}

// emptyPart returns the part of a Subscription for which a resolution installs nothing.
func emptyPart() part { return part{progress: &PlanProgress{}} }

// divide returns an answer with its decisions and its parts. A Subscription that is in no set is a part without an
// InstallPlan.
func divide(in *Resolved) answer {
	resolution := &in.Resolution
	a := answer{
		decisions: make(map[string]*olmcore.SubscriptionDecision, len(resolution.Decisions)),
		operators: resolution.Operators,
		partIndex: make(map[string]int, len(resolution.Decisions)),
		isDivided: len(in.Parts) > 0,
	}
	if !a.isDivided {
		a.parts = append(a.parts, part{progress: &in.PlanProgress, installs: len(resolution.Operators) > 0})
	}
	for i := range in.Parts {
		for _, name := range in.Parts[i].Subscriptions {
			a.partIndex[name] = len(a.parts)
		}
		a.parts = append(a.parts, part{progress: &in.Parts[i].PlanProgress, installs: true})
	}
	for i := range resolution.Decisions {
		d := &resolution.Decisions[i]
		at, hasPart := a.partIndex[d.Name]
		if !hasPart && a.isDivided {
			at = len(a.parts)
			a.parts = append(a.parts, emptyPart())
		}
		speaks := d.Changed || d.Failure != nil
		a.decisions[d.Name], a.partIndex[d.Name] = d, at
		a.speaks = a.speaks || speaks
		a.parts[at].decisions = append(a.parts[at].decisions, d)
		a.parts[at].speaks = a.parts[at].speaks || speaks
	}
	return a
}

// partOf returns the part of a Subscription. Without sets of Subscriptions that is the whole answer.
func (a *answer) partOf(name string) *part {
	i, hasPart := a.partIndex[name]
	if hasPart || len(a.parts) > 0 && !a.isDivided {
		return &a.parts[i]
	}
	return new(emptyPart())
}

// inOnePart reports whether one InstallPlan carries out the decisions about two different Subscriptions.
func (a *answer) inOnePart(name, other string) bool {
	if !a.isDivided {
		return true
	}
	i, hasPart := a.partIndex[name]
	j, hasOther := a.partIndex[other]
	return hasPart && hasOther && i == j
}

// carryOut returns a part with its InstallPlan and its unpacked bundles, and when the namespace is resolved again
// because of it.
func carryOut(n *namespace, in *Resolved, p part) (part, nextResolution) {
	// 1. The bundles have to be unpacked.
	p.unpack = unpackingOf(&p, in.Attempts)
	next := resolveAfter(n.now, in.At, p.unpack.pause).and(nextResolution{wait: p.unpack.recheck})
	// 2. The decisions are written once the InstallPlan exists.
	if !p.installs || p.progress.Plan.Name == "" {
		p.applies = !p.installs
		return p, next
	}
	p.plan = visiblePlan(n, p.progress.Plan)
	switch {
	case p.plan == nil && p.hasUndone(n):
		return p, next.and(awaitPlan(n, &p, in.At))
	case p.plan == nil:
		return p, next
	case p.isSpent(n, in.At):
		return p, next.and(nextResolution{reason: ResolvePlanGone})
	}
	p.applies = true
	return p, next
}

// visiblePlan returns the InstallPlan that was created for a resolution. It is nil if it is not visible or being
// deleted.
func visiblePlan(n *namespace, ref olmcore.Ref) *v1alpha1.InstallPlan {
	p := n.plans.Plans[ref.Name]
	if p == nil || p.DeletionTimestamp != nil || n.plans.Window.HasDeletion(p.UID, "") {
		return nil
	}
	if ref.UID != "" && p.UID != ref.UID {
		return nil
	}
	return p
}

// awaitPlan returns the next resolution while the InstallPlan of a part is not visible. A cache may be stale during the
// grace period. After that the namespace is resolved again.
func awaitPlan(n *namespace, p *part, answered time.Time) nextResolution {
	start := answered
	if start.IsZero() {
		for _, s := range n.subs {
			start = relation.Latest(start, s.Status.LastUpdated.Time)
		}
	}
	left := n.plans.Grace - elapsed(start, n.now)
	switch {
	case n.plans.Live || n.plans.Window.HasDeletion(p.progress.Plan.UID, p.progress.Plan.Name):
		return nextResolution{reason: ResolvePlanGone}
	case start.IsZero():
		return nextResolution{wait: planhistory.Recheck}
	case left <= 0:
		return nextResolution{reason: ResolvePlanGone}
	}
	return nextResolution{wait: min(planhistory.Recheck, left)}
}

// isSpent reports whether a part was carried out before a Subscription cleared its reference: the InstallPlan is
// complete, the CSV was deleted, and the Subscription was written after the resolution. The same InstallPlan would not
// install the CSV again.
func (p *part) isSpent(n *namespace, answered time.Time) bool {
	if p.plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete {
		return false
	}
	return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool {
		s := n.subNamed[d.Name]
		if !d.Changed || n.versions.csvs[d.CurrentCSV] != nil || s == nil || s.Status.InstallPlanRef != nil {
			return false
		}
		return answered.IsZero() || !s.Status.LastUpdated.Time.Before(answered.Truncate(time.Second))
	})
}

// mayHaveChanged reports whether a Subscription that has the version of a decision may have it from this part. Another
// answer may have chosen the same version with another InstallPlan.
func (p *part) mayHaveChanged(s *v1alpha1.Subscription) bool {
	ref, plan := s.Status.InstallPlanRef, p.progress.Plan
	return !p.installs || ref != nil && plan.Name != "" && relation.SamePlan(ref, plan.UID, plan.Name)
}

// hasUndone reports whether a decision was not written to its Subscription yet.
func (p *part) hasUndone(n *namespace) bool {
	return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool {
		s := n.subNamed[d.Name]
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
		return p.progress.Plan.Name != "" && (ref == nil || ref.Name != p.progress.Plan.Name)
	})
}

// isHeld reports whether a part has to wait because a Subscription that it changes keeps its InstallPlan for now. All
// Subscriptions that one InstallPlan changes are changed together. The InstallPlan gets no steps before that.
func (p *part) isHeld(n *namespace) bool {
	return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool {
		s := n.subNamed[d.Name]
		return s != nil && d.Changed && s.Status.CurrentCSV != d.CurrentCSV && n.keepsPlan(s)
	})
}

// firstSubscription returns the first Subscription that a part decides about, or nil.
func (p *part) firstSubscription(n *namespace) *v1alpha1.Subscription {
	i := slices.IndexFunc(n.subs, func(s *v1alpha1.Subscription) bool {
		return slices.ContainsFunc(p.decisions, func(d *olmcore.SubscriptionDecision) bool { return d.Name == s.Name })
	})
	if i < 0 {
		return nil
	}
	return n.subs[i]
}
