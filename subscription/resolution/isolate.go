// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// solve looks for a solution, leaving out the Subscriptions that cannot have
// one. On unsatisfiable no Subscription is left, or the policy does not let
// the others go on.
func (p *problem) solve() (*search, []Core, verdict) {
	var cores []Core
	for {
		s := &search{p: p}
		switch s.run() {
		case exhausted:
			return nil, cores, exhausted
		case satisfiable:
			p.targets(s)
			if core, ok := p.unsafe(s); ok {
				s.done()
				cores = append(cores, core)
				if !p.leaveOut(core) {
					return nil, cores, unsatisfiable
				}
				continue
			}
			if len(cores) > 0 && (p.policy.AllOrNothing || !slices.ContainsFunc(p.subs, func(s *subscription) bool { return !s.failed })) {
				s.done()
				return nil, cores, unsatisfiable
			}
			return s, cores, satisfiable
		}
		s.done()
		set, budget := p.contradiction(nil)
		if budget {
			return nil, cores, exhausted
		}
		if p.waive(set) {
			continue
		}
		core := p.core(set)
		cores = append(cores, core)
		if !p.leaveOut(core) {
			return nil, cores, unsatisfiable
		}
	}
}

// leaveOut takes the Subscriptions of a core out of the problem; what they have
// installed must stay. false: the core names none.
func (p *problem) leaveOut(core Core) bool {
	found := false
	for _, s := range p.subs {
		if s.failed || !slices.Contains(core.Subscriptions, s.object.Name) {
			continue
		}
		s.failed, found = true, true
		if p.failures == nil {
			p.failures = map[string]*olmcore.ResolutionFailure{}
		}
		p.failures[s.object.Name] = failureOf(&core)
		if c := s.current; c != nil && c.kept == nil && !c.leftOut && !p.ownedByOther(c) {
			c.kept = s
		}
	}
	return found
}

// waive gives up the requirements in a contradiction that no Subscription is
// part of, and whose operators stay only because their Subscription failed.
func (p *problem) waive(set ruleSet) bool {
	found := false
	for _, id := range set.rules {
		switch key := p.rules.keys[id]; key.kind {
		case ruleSubscription:
			return false
		case ruleBundle:
			if n := p.byID[key.a]; n.source == existingSource && p.byName[n.entry.name].kept != nil {
				found = true
			}
		}
	}
	for _, id := range set.rules {
		if key := p.rules.keys[id]; found && key.kind == ruleBundle {
			if n := p.byID[key.a]; n.source == existingSource && p.byName[n.entry.name].kept != nil {
				if p.waived == nil {
					p.waived = map[ruleKey]bool{}
				}
				p.waived[key] = true
			}
		}
	}
	return found
}

// ownedByOther reports whether a Subscription that still takes part has the
// operator.
func (p *problem) ownedByOther(c *existing) bool {
	return slices.ContainsFunc(c.owners, func(s *subscription) bool { return !s.failed })
}

// unsafe looks for a solution that catalogs without content could make wrong: a
// new dependency, while a catalog that would come before its own is missing, or
// a new operator that is not the best one because a dependency of the better
// ones is nowhere to be found.
//
// Differs: OLM stops for every catalog without content.
func (p *problem) unsafe(s *search) (Core, bool) {
	if len(p.missing) == 0 {
		return Core{}, false
	}
	for level := range s.frames {
		c, n := s.queue[level], s.frames[level].selected
		if n == nil || c.parent == nil || n.source == existingSource || n.source == c.parent.source {
			continue
		}
		for _, m := range p.missing {
			if m.priority >= p.sources[n.source].priority {
				return p.unavailableCore(s, c, m), true
			}
		}
	}
	for _, sub := range p.subs {
		if sub.failed || sub.current != nil || sub.target.entry == nil || sub.target == sub.choice.first() {
			continue
		}
		for _, e := range sub.upgrades {
			if e == sub.target.entry {
				break
			}
			if n := p.nodes[ref{sub.source, e}]; n != nil && n.dead >= 0 {
				return p.unavailableCore(s, sub.choice, p.missing[0]), true
			}
		}
	}
	return Core{}, false
}

func (p *problem) unavailableCore(s *search, c *choice, m source) Core {
	for c.parent != nil {
		c = s.queue[c.parent.level]
	}
	core := Core{Error: true, Minimal: true, Message: catalogError(p.missing)}
	core.Rules = []Rule{{Kind: CatalogUnavailable, Catalog: m.key, Text: catalogError([]source{m})}}
	who := "an existing operator"
	if c.sub != nil {
		core.Subscriptions = []string{c.sub.object.Name}
		core.Rules = append(core.Rules, p.subscriptionRule(ruleSubscription, c.sub))
		who = "Subscription " + c.sub.object.Name
	}
	slices.SortFunc(core.Rules, func(a, b Rule) int { return strings.Compare(a.Text, b.Text) })
	core.Summary = fmt.Sprintf("The answer for %s depends on what catalog %s/%s offers, and its content is not available: %s.", who, m.key.Namespace, m.key.Name, m.problem)
	core.Remedies = []Remedy{{Code: RepairCatalog, Object: m.key.String(), Message: "Make catalog " + m.key.String() + " available again, or delete its CatalogSource."}}
	return core
}
