// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// readTransitions finds out which existing ClusterServiceVersions are on their way out, and which Subscriptions have to
// wait for that.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, fail_forward.go.
// Differs: an upgrade in progress holds its own Subscription only; a broken chain is a Diagnostic.
func readTransitions(p *Problem) (failure string) {
	successor := successors(p)
	if len(successor) == 0 {
		return ""
	}
	if p.Group.Spec.UpgradeStrategy == operatorsv1.UpgradeStrategyUnsafeFailForward {
		if failure := failForward(p, successor); failure != "" {
			return failure
		}
	}
	if p.Policy.TransitionAsFreestanding {
		return ""
	}
	for _, s := range p.Subs {
		if s.Current == nil {
			continue
		}
		leftBehind(p, s.Current, successor)
		next := successor[s.Current.Object.Name]
		if next != nil && isUnfinished(s, next) {
			s.resumes = next
		}
		if upgrading(p, s.Current, successor) {
			s.Held = ReplacementInProgress
			s.HeldText = fmt.Sprintf("the upgrade from %s to %s is not finished", s.Current.Object.Spec.Replaces, s.Current.Object.Name)
		}
	}
	return ""
}

// isUnfinished reports whether a Subscription forgot the InstallPlan of a version: the version exists, was never
// installed, and no Subscription refers to it.
func isUnfinished(s *Subscription, next *CSV) bool {
	status := &s.Object.Status
	return status.CurrentCSV == "" && status.InstallPlanRef == nil && len(next.Owners) == 0 && !next.LeftOut &&
		plans.NeverInstalled(next.Object)
}

// successors maps each name to the existing ClusterServiceVersion that replaces it.
func successors(p *Problem) map[string]*CSV {
	var successor map[string]*CSV
	for _, c := range p.Existing {
		replaces := c.Object.Spec.Replaces
		if replaces == "" || p.ByName[replaces] == nil {
			continue
		}
		if successor == nil {
			successor = map[string]*CSV{}
		}
		first := successor[replaces]
		if first == nil {
			successor[replaces] = c
			continue
		}
		p.Report(olmcore.Warning, ReasonBrokenReplacementChain, p.CSVRef(replaces), "",
			"ClusterServiceVersions %s and %s both replace %s", first.Object.Name, c.Object.Name, replaces)
		if len(first.Owners) == 0 && len(c.Owners) > 0 {
			successor[replaces] = c
		}
	}
	return successor
}

// lastOf walks up the chain of replacements. broken says where it does not hold together.
func lastOf(p *Problem, c *CSV, successor map[string]*CSV) (last *CSV, broken string) {
	seen := map[*CSV]bool{}
	for {
		name := c.Object.Namespace + "/" + c.Object.Name
		if seen[c] {
			return nil, fmt.Sprintf("csv %s has already been seen", name)
		}
		seen[c] = true
		next := successor[c.Object.Name]
		if next == nil {
			return c, broken
		}
		if c.Object.Status.Phase != v1alpha1.CSVPhaseReplacing && broken == "" {
			broken = fmt.Sprintf("csv %s in phase %s instead of Replacing", name, c.Object.Status.Phase)
		}
		c = next
	}
}

func failForward(p *Problem, successor map[string]*CSV) (failure string) {
	for _, c := range p.Existing {
		last, broken := lastOf(p, c, successor)
		if broken != "" {
			p.Report(olmcore.Warning, ReasonBrokenReplacementChain, p.CSVRef(c.Object.Name), "",
				"%s, so a failed upgrade cannot roll forward", broken)
			if p.Policy.TransitionAsFreestanding {
				return fmt.Sprintf("error using catalogsource %s/@existing: %s", p.In.Namespace, broken)
			}
			continue
		}
		if last != c && last.Object.Status.Phase == v1alpha1.CSVPhaseFailed && c.Object.Status.Phase == v1alpha1.CSVPhaseReplacing {
			c.LeftOut = true
			for _, sub := range c.Owners { // what it names takes no part, so it begins anew
				sub.Current = nil
			}
			c.Owners = nil
		}
	}
	return ""
}

// upgrading reports whether an upgrade to current is in progress, and leaves what it replaces out.
func upgrading(p *Problem, current *CSV, successor map[string]*CSV) bool {
	seen := map[*CSV]bool{current: true}
	found := false
	for c := current; ; {
		old := p.ByName[c.Object.Spec.Replaces]
		if old == nil || seen[old] || successor[old.Object.Name] != c || len(old.Owners) > 0 {
			return found
		}
		seen[old] = true
		last, _ := lastOf(p, old, successor)
		if last == nil || last.Object.Status.Phase == v1alpha1.CSVPhaseFailed || !leaving(old, c) {
			return found
		}
		old.LeftOut = true
		found = true
		c = old
	}
}

// leftBehind leaves out what a failed upgrade of more than one step left behind, but for the newest: together they
// would contradict each other, and so stop everybody; one is enough to stop its Subscription.
func leftBehind(p *Problem, current *CSV, successor map[string]*CSV) {
	last, _ := lastOf(p, current, successor)
	if last == nil || last.Object.Status.Phase != v1alpha1.CSVPhaseFailed {
		return
	}
	found := false
	for c := last; c != nil; {
		if len(c.Owners) == 0 && !c.LeftOut {
			c.LeftOut = found && c.Object.Status.Phase == v1alpha1.CSVPhaseReplacing
			found = true
		}
		old := p.ByName[c.Object.Spec.Replaces]
		if old == nil || successor[old.Object.Name] != c {
			return
		}
		c = old
	}
}

// leaving reports whether old makes way for next: its phase says so, or next is too young for old to have noticed.
func leaving(old, next *CSV) bool {
	switch old.Object.Status.Phase {
	case v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting:
		return true
	case v1alpha1.CSVPhaseFailed:
		return old.Deleting()
	}
	return old.Deleting() || next.Object.Status.Phase == v1alpha1.CSVPhaseNone || next.Object.Status.Phase == v1alpha1.CSVPhasePending
}
