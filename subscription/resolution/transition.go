// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// transitions finds out which existing ClusterServiceVersions are on their way
// out, and which Subscriptions have to wait for that.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, fail_forward.go.
// Differs: an upgrade in progress holds its own Subscription only; a broken
// chain is a Diagnostic.
func (p *problem) transitions() (failure string) {
	successor := p.successors()
	if len(successor) == 0 {
		return ""
	}
	if p.group.Spec.UpgradeStrategy == operatorsv1.UpgradeStrategyUnsafeFailForward {
		if failure := p.failForward(successor); failure != "" {
			return failure
		}
	}
	if p.policy.TransitionAsFreestanding {
		return ""
	}
	for _, s := range p.subs {
		if s.current == nil {
			continue
		}
		p.leftBehind(s.current, successor)
		if p.upgrading(s.current, successor) {
			s.held = ReplacementInProgress
			s.heldText = fmt.Sprintf("the upgrade from %s to %s is not finished", s.current.object.Spec.Replaces, s.current.object.Name)
		}
	}
	return ""
}

// successors maps each name to the existing ClusterServiceVersion that replaces
// it.
func (p *problem) successors() map[string]*existing {
	var successor map[string]*existing
	for _, c := range p.existing {
		replaces := c.object.Spec.Replaces
		if replaces == "" || p.byName[replaces] == nil {
			continue
		}
		if successor == nil {
			successor = map[string]*existing{}
		}
		first := successor[replaces]
		if first == nil {
			successor[replaces] = c
			continue
		}
		p.report(olmcore.Warning, ReasonBrokenReplacementChain, p.csvRef(replaces), "", "ClusterServiceVersions %s and %s both replace %s", first.object.Name, c.object.Name, replaces)
		if len(first.owners) == 0 && len(c.owners) > 0 {
			successor[replaces] = c
		}
	}
	return successor
}

// lastOf walks up the chain of replacements. broken says where it does not hold
// together.
func (p *problem) lastOf(c *existing, successor map[string]*existing) (last *existing, broken string) {
	seen := map[*existing]bool{}
	for {
		name := c.object.Namespace + "/" + c.object.Name
		if seen[c] {
			return nil, fmt.Sprintf("csv %s has already been seen", name)
		}
		seen[c] = true
		next := successor[c.object.Name]
		if next == nil {
			return c, broken
		}
		if c.object.Status.Phase != v1alpha1.CSVPhaseReplacing && broken == "" {
			broken = fmt.Sprintf("csv %s in phase %s instead of Replacing", name, c.object.Status.Phase)
		}
		c = next
	}
}

func (p *problem) failForward(successor map[string]*existing) (failure string) {
	for _, c := range p.existing {
		last, broken := p.lastOf(c, successor)
		if broken != "" {
			p.report(olmcore.Warning, ReasonBrokenReplacementChain, p.csvRef(c.object.Name), "", "%s; there is no rolling forward from it", broken)
			if p.policy.TransitionAsFreestanding {
				return fmt.Sprintf("error using catalogsource %s/@existing: %s", p.in.Namespace, broken)
			}
			continue
		}
		if last != c && last.object.Status.Phase == v1alpha1.CSVPhaseFailed && c.object.Status.Phase == v1alpha1.CSVPhaseReplacing {
			c.leftOut = true
		}
	}
	return ""
}

// upgrading reports whether an upgrade to current is in progress, and leaves
// what it replaces out.
func (p *problem) upgrading(current *existing, successor map[string]*existing) bool {
	seen := map[*existing]bool{current: true}
	found := false
	for c := current; ; {
		old := p.byName[c.object.Spec.Replaces]
		if old == nil || seen[old] || successor[old.object.Name] != c || len(old.owners) > 0 {
			return found
		}
		seen[old] = true
		last, _ := p.lastOf(old, successor)
		if last == nil || last.object.Status.Phase == v1alpha1.CSVPhaseFailed || !leaving(old, c) {
			return found
		}
		old.leftOut = true
		found = true
		c = old
	}
}

// leftBehind leaves out what a failed upgrade of more than one step left behind,
// but for the newest: together they would contradict each other, and so stop
// everybody; one is enough to stop its Subscription.
func (p *problem) leftBehind(current *existing, successor map[string]*existing) {
	last, _ := p.lastOf(current, successor)
	if last == nil || last.object.Status.Phase != v1alpha1.CSVPhaseFailed {
		return
	}
	found := false
	for c := last; c != nil; {
		if len(c.owners) == 0 && !c.leftOut {
			c.leftOut = found && c.object.Status.Phase == v1alpha1.CSVPhaseReplacing
			found = true
		}
		old := p.byName[c.object.Spec.Replaces]
		if old == nil || successor[old.object.Name] != c {
			return
		}
		c = old
	}
}

// leaving reports whether old makes way for next: its phase says so, or next is
// too young for old to have noticed.
func leaving(old, next *existing) bool {
	switch old.object.Status.Phase {
	case v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting:
		return true
	case v1alpha1.CSVPhaseFailed:
		return old.deleting()
	}
	return old.deleting() || next.object.Status.Phase == v1alpha1.CSVPhaseNone || next.object.Status.Phase == v1alpha1.CSVPhasePending
}
