// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription/internal/quoted"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// rule words one rule as OLM does.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, the message of each constraint.
func rule(p *View, key model.RuleKey) Rule {
	switch key.Kind {
	case model.RuleSubscription, model.RuleImpossible, model.RuleRequires, model.RuleKeeps:
		return subscriptionRule(p, key.Kind, p.Subs[key.A])
	case model.RuleGroup:
		return exclusion(p, key)
	}
	n := p.Nodes[key.A]
	r := about(p, n)
	switch id := p.Identifier(n.Ref); key.Kind {
	case model.RuleCSV:
		r.Kind, r.Text = model.CSVExists, fmt.Sprintf("clusterserviceversion %s exists and is not referenced by a subscription", n.Entry.Name)
		if kept := p.Scope.Kept(n.Entry); kept != nil {
			r.Text = fmt.Sprintf("clusterserviceversion %s stays because subscription %s cannot be resolved", n.Entry.Name, kept.Object.Name)
		}
	case model.RuleBundle:
		q := n.Entry.Requirements[key.B]
		r.Kind, r.Need, r.FailureMessage = model.BundleRequires, words(q.Predicate), q.Message
		r.Text = fmt.Sprintf("bundle %s requires an operator %s", n.Entry.Name, q.Text())
		r.Objects = p.Identifiers(n.Choices[key.B].Offer)
	case model.RuleReplaces:
		old := p.Identifier(p.Nodes[key.B].Ref)
		r.Kind, r.Objects, r.Text = model.Conflicts, []string{id, old}, id+" conflicts with "+old
	case model.RuleBlocked:
		r.Kind = n.Blocked
		switch n.Blocked {
		case model.BundleDeprecated:
			r.Text = fmt.Sprintf("bundle %s is deprecated", id)
		case model.BundleInvalid:
			r.Text = fmt.Sprintf("bundle %s is invalid: %s", id, n.BlockedText)
		default:
			r.Text = n.BlockedText
		}
		r.FailureMessage = n.BlockedText
	}
	return r
}

// exclusion words a rule that at most one of some entries can be selected.
func exclusion(p *View, key model.RuleKey) Rule {
	group := p.Groups[key.A]
	ids := occupants(p, key.A)
	r := Rule{Kind: group.Kind, Objects: ids}
	switch group.Kind {
	case model.OnePerPackage:
		r.Package, r.Text = group.Name, enumerate(ids, " and ")+" originate from package "+group.Name
	case model.OnePerAPI:
		r.Need = group.API.String()
		r.Text = enumerate(ids, " and ") + " provide " + r.Need
	default: // identifiers do not tell the packages apart
		r.Bundle = group.Name
		r.Text = fmt.Sprintf("bundles of packages %s have the name %s", enumerate(packagesOf(p, group.Name), " and "), group.Name)
	}
	return r
}

func about(p *View, n *model.Node) Rule {
	r := Rule{Bundle: n.Entry.Name, Package: n.Entry.Pkg, Version: n.Entry.VersionText}
	if n.Source == model.ExistingSource {
		r.Version = n.Entry.Version.String()
	} else {
		r.Channel, r.Catalog = n.Entry.Channel.Name, p.Sources[n.Source].Key
	}
	return r
}

func subscriptionRule(p *View, kind model.RuleID, s *model.Subscription) Rule {
	spec, name := s.Object.Spec, s.Object.Name
	r := Rule{Subscription: name, Package: spec.Package, Channel: spec.Channel, Catalog: catalogKey(spec)}
	switch kind {
	case model.RuleSubscription:
		r.Kind, r.Text = model.SubscriptionExists, fmt.Sprintf("subscription %s exists", name)
		return r
	case model.RuleImpossible:
		r.Kind, r.Text = model.SubscriptionImpossible, s.Impossible
		return r
	case model.RuleKeeps:
		r.Kind, r.Bundle = model.KeepsCandidate, p.target(s).Entry.Name
		r.Objects = []string{p.Identifier(p.target(s))}
		r.Text = fmt.Sprintf("subscription %s keeps %s", name, r.Objects[0])
		return r
	}
	r.Objects = p.Identifiers(s.Choice.Offer)
	r.Kind, r.Text = model.SubscriptionRequires, fmt.Sprintf("subscription %s requires ", name)
	if len(r.Objects) > 1 {
		r.Text += "at least one of "
	}
	r.Text += enumerate(r.Objects, " or ")
	return r
}

func catalogKey(spec *v1alpha1.SubscriptionSpec) types.NamespacedName {
	return types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource}
}

// occupants returns the sorted identifiers of all considered entries of a group.
func occupants(p *View, group int32) []string {
	var ids []string
	for _, n := range p.Considered() {
		if slices.Contains(n.Groups, group) {
			ids = append(ids, p.Identifier(n.Ref))
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
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
// Differs: long ones are shortened, unless the policy says otherwise: first the lists of entries, then the list of
// rules.
func message(p *View, rules []Rule) string {
	texts := make([]string, len(rules))
	for i, r := range rules {
		texts[i] = r.Text
	}
	if len(texts) == 0 {
		return "constraints not satisfiable"
	}
	message := messagePrefix + strings.Join(texts, ", ")
	limit := p.Policy.MessageBytes()
	for keep := 16; limit >= 0 && len(message) > limit && keep >= 2; keep /= 2 {
		for i, r := range rules {
			texts[i] = shorten(r, keep)
		}
		message = messagePrefix + strings.Join(texts, ", ")
	}
	if limit >= 0 {
		more := ""
		for size := len(message); len(texts) > 2 && size+len(more) > limit; more = fmt.Sprintf(", … (%d more)", len(rules)-len(texts)) {
			size -= len(", ") + len(texts[len(texts)-1])
			texts = texts[:len(texts)-1]
		}
		if more != "" {
			message = messagePrefix + strings.Join(texts, ", ") + more
		}
		message = model.Cut(message, limit)
	}
	return message
}

// shorten replaces the middle of a rule's list of entries.
func shorten(r Rule, keep int) string {
	n := len(r.Objects)
	if n <= keep || !strings.Contains(r.Text, r.Objects[0]) {
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

// words says what a predicate looks for, for people.
func words(q *model.Predicate) string {
	switch q.Kind {
	case model.IsGVK:
		return "an operator that provides " + q.API.String()
	case model.IsPackage:
		if _, err := semver.Parse(strings.TrimLeft(q.In.Text, "= ")); err == nil {
			return fmt.Sprintf("exactly version %s of package %s", strings.TrimLeft(q.In.Text, "= "), quoted.Name(q.Name))
		}
		return fmt.Sprintf("an operator of package %s in version %s", quoted.Name(q.Name), q.In.Text)
	case model.IsLabel:
		return "an operator with the label " + quoted.Name(q.Name)
	case model.IsCEL:
		if q.Message != "" {
			return fmt.Sprintf("an operator for which %s holds (%q)", q.Rule, q.Message)
		}
		return fmt.Sprintf("an operator for which %s holds", q.Rule)
	}
	parts := make([]string, len(q.Parts))
	for i, part := range q.Parts {
		parts[i] = words(part)
		if part.Kind >= model.IsAll && part.Kind <= model.IsNot && len(q.Parts) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	switch {
	case q.Kind == model.IsNot:
		return "an operator that is not " + enumerate(parts, " or ")
	case len(parts) == 0 && q.Kind == model.IsAll:
		return "any operator"
	case len(parts) == 0:
		return "an operator that cannot exist (an empty list of alternatives)"
	case q.Kind == model.IsAll:
		return enumerate(parts, " that is at the same time ")
	}
	return enumerate(parts, " or ")
}

// Exists returns the Rule of kind SubscriptionExists for a Subscription. The rule requires that the Subscription is
// satisfied.
func Exists(s *model.Subscription) Rule { return subscriptionRule(nil, model.RuleSubscription, s) }
