// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// RulesOf returns rules with the text that OLM has for them, sorted by text.
func (p *Problem) RulesOf(ids []int32, scope *Scope) (rules []Rule) {
	for _, id := range ids {
		r := ruleOf(p, p.Rules.Keys[id], scope)
		p.work += 32 + len(r.Objects)/4
		rules = append(rules, r)
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Text, b.Text) })
	return rules
}

// ruleOf returns a rule with the text that OLM has for it.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, the message of each constraint.
func ruleOf(p *Problem, key RuleKey, scope *Scope) Rule {
	switch key.Kind {
	case RuleSubscription, RuleImpossible, RuleRequires, RuleKeeps:
		return subscriptionRule(p, key)
	case RuleGroup:
		return groupRule(p, key.A)
	}
	n := p.Nodes[key.A]
	r := Rule{Bundle: n.Entry.Name, Package: n.Entry.Pkg, Version: n.Entry.VersionText}
	if n.Source == ExistingSource {
		r.Version = n.Entry.Version.String()
	} else {
		r.Channel, r.Catalog = n.Entry.Channel.Name, p.Sources[n.Source].Key
	}
	switch key.Kind {
	case RuleCSV:
		r.Kind, r.Text = CSVExists, fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", r.Bundle)
		if kept := scope.Kept(n.Entry); kept != nil {
			r.Text = fmt.Sprintf("clusterserviceversion %s stays because subscription %s cannot be resolved", r.Bundle, kept.Object.Name)
		}
	case RuleBundle:
		q := n.Entry.Requirements[key.B]
		r.Kind, r.Text = BundleRequires, fmt.Sprintf("bundle %s requires an operator %s", r.Bundle, q.Text())
		r.Need, r.FailureMessage = q.Words(), q.Message
		r.Objects = p.Identifiers(n.Choices[key.B].Offer)
	case RuleReplaces:
		r.Kind, r.Objects = Conflicts, []string{p.Identifier(n.Ref), p.Identifier(p.Nodes[key.B].Ref)}
		r.Text = r.Objects[0] + " conflicts with " + r.Objects[1]
	case RuleBlocked:
		r.Kind, r.FailureMessage = n.Blocked, n.BlockedText
		r.Text = blockedText(n, p.Identifier(n.Ref))
	}
	return r
}

func blockedText(n *Node, id string) string {
	switch n.Blocked {
	case BundleDeprecated:
		return "bundle " + id + " is deprecated"
	case BundleInvalid:
		return "bundle " + id + " is invalid: " + n.BlockedText
	}
	return n.BlockedText
}

// Exists returns the Rule of kind SubscriptionExists for a Subscription. The rule requires that the Subscription is
// satisfied.
func (p *Problem) Exists(s *Subscription) Rule {
	return subscriptionRule(p, RuleKey{Kind: RuleSubscription, A: s.Index})
}

func subscriptionRule(p *Problem, key RuleKey) Rule {
	s := p.Subs[key.A]
	spec, name := s.Object.Spec, s.Object.Name
	r := Rule{Subscription: name, Package: spec.Package, Channel: spec.Channel, Catalog: CatalogKey(spec)}
	switch key.Kind {
	case RuleSubscription:
		r.Kind, r.Text = SubscriptionExists, fmt.Sprintf("subscription %s exists", name)
	case RuleImpossible:
		r.Kind, r.Text = SubscriptionImpossible, s.Impossible
	case RuleKeeps:
		kept := p.Nodes[key.B].Ref
		r.Kind, r.Bundle = KeepsCandidate, kept.Entry.Name
		r.Objects = []string{p.Identifier(kept)}
		r.Text = fmt.Sprintf("subscription %s keeps %s", name, r.Objects[0])
	default:
		r.Kind, r.Objects = SubscriptionRequires, p.Identifiers(s.Choice.Offer)
		r.Text = fmt.Sprintf("subscription %s requires ", name)
		if len(r.Objects) > 1 {
			r.Text += "at least one of "
		}
		r.Text += Enumerate(r.Objects, " or ")
	}
	return r
}

// groupRule returns the rule that at most one entry of a group can be selected.
func groupRule(p *Problem, group int32) Rule {
	g := p.Groups[group]
	r := Rule{Kind: g.Kind}
	for _, n := range p.Considered() {
		if slices.Contains(n.Groups, group) {
			r.Objects = append(r.Objects, p.Identifier(n.Ref))
		}
	}
	slices.Sort(r.Objects)
	r.Objects = slices.Compact(r.Objects)
	switch g.Kind {
	case OnePerPackage:
		r.Package, r.Text = g.Name, Enumerate(r.Objects, " and ")+" originate from package "+g.Name
	case OnePerAPI:
		r.Need = g.API.String()
		r.Text = Enumerate(r.Objects, " and ") + " provide " + r.Need
	default: // identifiers do not tell the packages apart
		r.Bundle = g.Name
		r.Text = fmt.Sprintf("bundles of packages %s have the name %s", Enumerate(p.PackagesWith(g.Name), " and "), g.Name)
	}
	return r
}

// PackagesWith returns the sorted names of the packages whose considered entries have the given bundle name.
func (p *Problem) PackagesWith(bundle string) (packages []string) {
	for _, n := range p.Considered() {
		if n.Source != ExistingSource && n.Entry.Name == bundle {
			packages = append(packages, n.Entry.Channel.Pkg.Name)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// CatalogKey returns the namespace and name of the catalog that a Subscription names.
func CatalogKey(spec *v1alpha1.SubscriptionSpec) types.NamespacedName {
	return types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource}
}

// Enumerate joins a list with commas, and its last two elements with last.
func Enumerate(list []string, last string) string {
	if n := len(list); n > 1 {
		return strings.Join(list[:n-1], ", ") + last + list[n-1]
	}
	return strings.Join(list, "")
}

const messagePrefix = "constraints not satisfiable"

// Message returns OLM's message for a set of rules.
//
// Differs: a long message is shortened to Policy.MessageLimit: first the lists of entries, then the list of rules.
func (p *Problem) Message(rules []Rule) string {
	if len(rules) == 0 {
		return messagePrefix
	}
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = r.Text
	}
	message := func() string { return messagePrefix + ": " + strings.Join(texts, ", ") }
	limit := p.Policy.MessageBytes()
	if limit < 0 {
		return message()
	}
	for keep := 16; len(message()) > limit && keep >= 2; keep /= 2 {
		for i, r := range rules {
			texts[i] = shorten(r, keep)
		}
	}
	more := ""
	for size := len(message()); len(texts) > 2 && size+len(more) > limit; more = fmt.Sprintf(", … (%d more)", len(rules)-len(texts)) {
		size -= len(", ") + len(texts[len(texts)-1])
		texts = texts[:len(texts)-1]
	}
	return Cut(message()+more, limit)
}

// shorten replaces the middle of a rule's list of entries.
func shorten(r Rule, keep int) string {
	n := len(r.Objects)
	if n <= keep || !strings.Contains(r.Text, r.Objects[0]) {
		return r.Text
	}
	for _, last := range []string{" or ", " and "} {
		if whole := Enumerate(r.Objects, last); strings.Contains(r.Text, whole) {
			kept := append(slices.Clone(r.Objects[:keep-1]), fmt.Sprintf("… (%d more)", n-keep), r.Objects[n-1])
			return strings.Replace(r.Text, whole, Enumerate(kept, last), 1)
		}
	}
	return r.Text
}

// Unavailable returns OLM's message about catalogs without content if one of some rules depends on what they may
// contain. Otherwise, it returns "".
//
// Differs: OLM stops for every such catalog, whatever it could contribute.
func (p *Problem) Unavailable(ids []int32) string {
	if len(p.Missing) == 0 {
		return ""
	}
	for _, id := range ids {
		key := p.Rules.Keys[id]
		if key.Kind != RuleImpossible {
			continue
		}
		if m := p.MissingCatalog(p.Subs[key.A]); m != nil {
			return CatalogError([]Source{*m})
		}
	}
	if len(p.Unmet(ids)) > 0 {
		return CatalogError(p.Missing)
	}
	return ""
}

// Unmet returns those of some rules that are requirements without candidates.
func (p *Problem) Unmet(ids []int32) (unmet []RuleKey) {
	for _, id := range ids {
		key := p.Rules.Keys[id]
		if key.Kind == RuleBundle && p.Nodes[key.A].Choices[key.B].Total == 0 {
			unmet = append(unmet, key)
		}
	}
	return unmet
}
