// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// rule words one rule as OLM does.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, the message of each constraint.
func (p *problem) rule(key ruleKey) Rule {
	switch key.kind {
	case ruleSubscription, ruleImpossible, ruleRequires, ruleKeeps:
		return p.subscriptionRule(key.kind, p.subs[key.a])
	case rulePackage, ruleAPI, ruleName:
		return p.exclusion(key)
	}
	n := p.byID[key.a]
	r := p.about(n)
	switch id := p.identifier(n.ref); key.kind {
	case ruleCSV:
		r.Kind, r.Text = CSVExists, fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", n.entry.name)
		if kept := p.byName[n.entry.name].kept; kept != nil {
			r.Text = fmt.Sprintf("clusterserviceversion %s stays because subscription %s cannot be resolved", n.entry.name, kept.object.Name)
		}
	case ruleBundle:
		q := n.entry.requirements[key.b]
		r.Kind, r.Need, r.FailureMessage = BundleRequires, q.words(), q.message
		r.Text = fmt.Sprintf("bundle %s requires an operator %s", n.entry.name, q.text())
		for _, s := range n.choices[key.b].segments {
			for _, e := range s.entries {
				r.Objects = append(r.Objects, p.identifier(ref{s.source, e}))
			}
		}
	case ruleReplaces:
		old := p.identifier(p.byID[key.b].ref)
		r.Kind, r.Objects, r.Text = Conflicts, []string{id, old}, id+" conflicts with "+old
	case ruleBlocked:
		r.Kind = n.blocked
		switch n.blocked {
		case BundleDeprecated:
			r.Text = fmt.Sprintf("bundle %s is deprecated", id)
		case BundleInvalid:
			r.Text = fmt.Sprintf("bundle %s is invalid: %s", id, n.blockedText)
		default:
			r.Text = n.blockedText
		}
		r.FailureMessage = n.blockedText
	}
	return r
}

// exclusion words a rule that at most one of some entries can be selected.
func (p *problem) exclusion(key ruleKey) Rule {
	switch key.kind {
	case rulePackage:
		name := p.packages.keys[key.a]
		ids := p.occupants(func(n *node) bool { return slices.Contains(n.packages, key.a) })
		return Rule{Kind: OnePerPackage, Package: name, Objects: ids, Text: enumerate(ids, " and ") + " originate from package " + name}
	case ruleAPI:
		api := p.apis.keys[key.a]
		ids := p.occupants(func(n *node) bool { return slices.Contains(n.apis, key.a) })
		return Rule{Kind: OnePerAPI, Need: api.String(), Objects: ids, Text: enumerate(ids, " and ") + " provide " + api.String()}
	}
	name := p.names.keys[key.a]
	ids := p.occupants(func(n *node) bool { return n.name == key.a })
	// Identifiers do not tell the packages apart.
	text := fmt.Sprintf("bundles of packages %s have the name %s", enumerate(p.packagesOf(name), " and "), name)
	return Rule{Kind: OnePerName, Bundle: name, Objects: ids, Text: text}
}

func (p *problem) about(n *node) Rule {
	r := Rule{Bundle: n.entry.name, Package: n.entry.pkg, Version: n.entry.text}
	if n.source == existingSource {
		r.Version = n.entry.version.String()
	} else {
		r.Channel, r.Catalog = n.entry.channel.name, p.sources[n.source].key
	}
	return r
}

func (p *problem) subscriptionRule(kind ruleID, s *subscription) Rule {
	spec, name := s.object.Spec, s.object.Name
	r := Rule{Subscription: name, Package: spec.Package, Channel: spec.Channel, Catalog: catalogKey(spec)}
	switch kind {
	case ruleSubscription:
		r.Kind, r.Text = SubscriptionExists, fmt.Sprintf("subscription %s exists", name)
		return r
	case ruleImpossible:
		r.Kind, r.Text = SubscriptionImpossible, s.impossible
		return r
	case ruleKeeps:
		r.Kind, r.Bundle = KeepsCandidate, s.target.entry.name
		r.Objects = []string{p.identifier(s.target)}
		r.Text = fmt.Sprintf("subscription %s keeps %s", name, r.Objects[0])
		return r
	}
	for _, segment := range s.choice.segments {
		for _, e := range segment.entries {
			r.Objects = append(r.Objects, p.identifier(ref{segment.source, e}))
		}
	}
	r.Kind, r.Text = SubscriptionRequires, fmt.Sprintf("subscription %s requires ", name)
	if len(r.Objects) > 1 {
		r.Text += "at least one of "
	}
	r.Text += enumerate(r.Objects, " or ")
	return r
}

func catalogKey(spec *v1alpha1.SubscriptionSpec) types.NamespacedName {
	return types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource}
}

// occupants returns the sorted identifiers of all considered entries that a test
// holds for.
func (p *problem) occupants(holds func(*node) bool) []string {
	var ids []string
	for _, n := range p.considered() {
		if holds(n) {
			ids = append(ids, p.identifier(n.ref))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// considered returns every entry that could take part: existing operators, the
// candidates of Subscriptions, and what their requirements lead to.
func (p *problem) considered() []*node {
	if p.closure != nil {
		return p.closure
	}
	seen := map[*node]bool{}
	var list []*node
	add := func(segments []segment, owner int32) {
		for _, s := range segments {
			for _, e := range s.entries {
				if n := p.node(ref{s.source, e}, owner); !seen[n] {
					seen[n] = true
					n.owner = owner // whatever search met it first
					list = append(list, n)
				}
			}
		}
	}
	for i, c := range p.existing {
		if !c.leftOut {
			add([]segment{{existingSource, []*entry{c.entry}}}, int32(len(p.subs)+i))
		}
	}
	for _, s := range p.subs {
		if s.impossible == "" {
			add(s.choice.segments, s.index)
		}
	}
	for i := 0; i < len(list); i++ {
		p.expand(list[i])
		for j := range list[i].choices {
			list[i].choices[j].owner = list[i].owner
			add(list[i].choices[j].segments, list[i].owner)
		}
	}
	p.closure = list
	return list
}

// enumerate joins a list; last stands before its last element.
func enumerate(list []string, last string) string {
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + last + list[n-1]
	}
	return strings.Join(list, "")
}

const messagePrefix = "constraints not satisfiable: "

// message is OLM's message for a set of rules.
//
// Differs: long ones are shortened, unless the policy says otherwise: first the
// lists of entries, then the list of rules.
func (p *problem) message(rules []Rule) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = r.Text
	}
	if len(texts) == 0 {
		return "constraints not satisfiable"
	}
	message := messagePrefix + strings.Join(texts, ", ")
	limit := p.policy.messageLimit()
	for keep := 16; limit >= 0 && len(message) > limit && keep >= 2; keep /= 2 {
		for i, r := range rules {
			texts[i] = shorten(r, keep)
		}
		message = messagePrefix + strings.Join(texts, ", ")
	}
	for len(texts) > 2 && limit >= 0 && len(message) > limit {
		texts = texts[:len(texts)-1]
		message = messagePrefix + strings.Join(texts, ", ") + fmt.Sprintf(", … (%d more)", len(rules)-len(texts))
	}
	if limit >= 0 {
		message = cut(message, limit)
	}
	return message
}

// shorten replaces the middle of a rule's list of entries.
func shorten(r Rule, keep int) string {
	n := len(r.Objects)
	if n <= keep {
		return r.Text
	}
	for _, last := range []string{" or ", " and "} {
		if whole := enumerate(r.Objects, last); strings.Contains(r.Text, whole) {
			kept := append(slices.Clone(r.Objects[:keep-1]), fmt.Sprintf("… (%d more)", n-keep), r.Objects[n-1])
			return strings.Replace(r.Text, whole, enumerate(kept, last), 1)
		}
	}
	return r.Text
}

func cut(text string, limit int) string {
	const end = "…"
	if len(text) <= limit {
		return text
	}
	limit = max(limit-len(end), 0)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + end
}

// words says what a predicate looks for, for people.
func (q *predicate) words() string {
	switch q.kind {
	case isGVK:
		return "an operator that provides " + q.api.String()
	case isPackage:
		return fmt.Sprintf("an operator of package %s in version %s", q.name, q.in.text)
	case isLabel:
		return "an operator with the label " + q.name
	case isCEL:
		if q.message != "" {
			return fmt.Sprintf("an operator for which %s holds (%s)", q.rule, q.message)
		}
		return fmt.Sprintf("an operator for which %s holds", q.rule)
	}
	parts := make([]string, len(q.parts))
	for i, part := range q.parts {
		parts[i] = part.words()
		if part.kind >= isAll && part.kind <= isNot && len(q.parts) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	switch {
	case q.kind == isNot:
		return "an operator that is not " + enumerate(parts, " or ")
	case len(parts) == 0 && q.kind == isAll:
		return "any operator"
	case len(parts) == 0:
		return "an operator that cannot exist (an empty list of alternatives)"
	case q.kind == isAll:
		return enumerate(parts, " that is at the same time ")
	}
	return enumerate(parts, " or ")
}
