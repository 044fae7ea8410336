// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ruleSet is the rules of one contradiction.
type ruleSet struct {
	rules   []int32
	minimal bool
}

// contradiction returns a minimal set of rules that exclude each other, or none
// when the problem with these demands has a solution. It names as few
// Subscriptions as can be, too: the others shall not fail for it. Those of later
// Subscriptions are given up first, so that the earlier ones explain the result.
// budget: the step budget ran out before any set was found.
func (p *problem) contradiction(d *demands) (set ruleSet, budget bool) {
	p.considered() // says which Subscription each entry serves
	v, conflict := satisfiable, bitset(nil)
	if d != nil && d.keep == nil {
		// Most demands fail by themselves, whatever the other Subscriptions ask for.
		v, conflict = p.trial(&search{demands: d, subs: bitset{0}})
	}
	if v == satisfiable {
		v, conflict = p.trial(&search{demands: d})
	}
	if v != unsatisfiable {
		return ruleSet{}, v == exhausted
	}
	conflict, ok := p.fewerSubscriptions(d, conflict)
	if !ok {
		return ruleSet{rules: conflict.members()}, false
	}
	order := conflict.members()
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.rules.weight(a), p.rules.weight(b)), cmp.Compare(p.rules.owner[a], p.rules.owner[b]))
	})
	for i := len(order) - 1; i >= 0; i-- {
		rule := order[i]
		if !conflict.has(rule) {
			continue
		}
		conflict.remove(rule)
		switch v, smaller := p.trial(&search{demands: d, only: conflict}); v {
		case satisfiable:
			conflict.add(rule)
		case unsatisfiable:
			conflict = smaller
		case exhausted:
			conflict.add(rule)
			return ruleSet{rules: conflict.members()}, false
		}
	}
	return ruleSet{rules: conflict.members(), minimal: true}, false
}

// fewerSubscriptions leaves out one Subscription of a conflict after the other,
// with all rules for the rest in force. A false ok means that the step budget
// ran out.
func (p *problem) fewerSubscriptions(d *demands, conflict bitset) (_ bitset, ok bool) {
	subs := p.subscriptionsOf(conflict)
	for i := int32(len(p.subs)) - 1; i >= 0; i-- {
		if !subs.has(i) {
			continue
		}
		subs.remove(i)
		switch v, smaller := p.trial(&search{demands: d, subs: subs}); v {
		case satisfiable:
			subs.add(i)
		case unsatisfiable:
			conflict, subs = smaller, p.subscriptionsOf(smaller)
		case exhausted:
			return conflict, false
		}
	}
	return conflict, true
}

// subscriptionsOf returns the numbers of the Subscriptions in a set of rules; it
// is never nil.
func (p *problem) subscriptionsOf(rules bitset) bitset {
	subs := bitset{0}
	for _, id := range rules.members() {
		if key := p.rules.keys[id]; key.kind == ruleSubscription {
			subs.add(key.a)
		}
	}
	return subs
}

// trial runs a search and returns the rules that its failure used.
func (p *problem) trial(s *search) (verdict, bitset) {
	s.p, s.track = p, true
	v := s.run()
	s.done()
	return v, s.conflict
}

// weight puts the rules that are given up first behind the others.
func (t *ruleTable) weight(rule int32) int {
	if t.keys[rule].kind == ruleKeeps {
		return 1
	}
	return 0
}

// core words a contradiction.
func (p *problem) core(set ruleSet) Core {
	c := Core{Minimal: set.minimal, Rules: p.words(set)}
	names := map[string]bool{}
	for _, r := range c.Rules {
		if r.Kind == SubscriptionExists {
			names[r.Subscription] = true
		}
	}
	for _, s := range p.subs {
		if names[s.object.Name] {
			c.Subscriptions = append(c.Subscriptions, s.object.Name)
		}
	}
	slices.Sort(c.Subscriptions)
	c.Message = p.message(c.Rules)
	if text := p.unavailable(set); text != "" {
		c.Error, c.Message = true, text
	}
	c.Summary = p.summary(&c)
	c.Remedies = p.remedies(&c)
	return c
}

// words returns the rules of a set, sorted by text.
func (p *problem) words(set ruleSet) []Rule {
	var rules []Rule
	for _, id := range set.rules {
		rules = append(rules, p.rule(p.rules.keys[id]))
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Text, b.Text) })
	return rules
}

// unavailable returns OLM's text about catalogs without content when the set
// depends on what they may hold.
//
// Differs: OLM stops for every such catalog, whatever it could contribute.
func (p *problem) unavailable(set ruleSet) string {
	if len(p.missing) == 0 {
		return ""
	}
	for _, id := range set.rules {
		switch key := p.rules.keys[id]; key.kind {
		case ruleImpossible:
			if m := p.missingOf(p.subs[key.a]); m != nil {
				return catalogError([]source{*m})
			}
		case ruleBundle:
			if p.byID[key.a].choices[key.b].total == 0 {
				return catalogError(p.missing)
			}
		}
	}
	return ""
}

// missingOf returns the catalog of a Subscription when it has no content.
func (p *problem) missingOf(s *subscription) *source {
	for i := range p.missing {
		if key := p.missing[i].key; key.Name == s.object.Spec.CatalogSource && key.Namespace == s.object.Spec.CatalogSourceNamespace {
			return &p.missing[i]
		}
	}
	return nil
}

// catalogError is OLM's text. Differs: several are sorted.
func catalogError(missing []source) string {
	texts := make([]string, len(missing))
	for i, m := range missing {
		texts[i] = fmt.Sprintf("error using catalogsource %s/%s: %s", m.key.Namespace, m.key.Name, m.problem)
	}
	slices.Sort(texts)
	if len(texts) == 1 {
		return texts[0]
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
