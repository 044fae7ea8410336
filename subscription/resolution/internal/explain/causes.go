// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// cause is one kind of rule that can be part of a contradiction.
type cause struct {
	kind model.RuleKind
	// unmet selects the requirements without candidates. The other row of kind BundleRequires has the rest.
	unmet bool
	// place is the place of the cause in a sentence, and words describes it: see fill. Without words, it is left out.
	place int
	words string
	// more returns further placeholders of words, each with its value. It returns nil if an earlier rule describes r, too.
	more func(v *search.View, rules []model.Rule, r *model.Rule) []string
	// code is the reason why a rule of this kind holds a candidate back, and blocker names what does: see fill. A rule for
	// which counts returns false does not hold the candidate back. If counts is nil, every rule does.
	code    model.HeldBackCode
	blocker string
	counts  func(r *model.Rule, subscription, candidate string) bool
	// remedies proposes changes against the rules of this kind.
	remedies func(v *search.View, c *conflict, rules []model.Rule) []proposal
}

// These are the places of causes in a sentence.
const (
	unoffered = iota
	exclusive
	forbidden
	needed
	places
)

// causes is the table of causes. The cause that is most useful to a user comes first.
var causes = []cause{
	{kind: model.BundleDeprecated, place: forbidden, words: "{bundle} is deprecated",
		code: model.CandidateDeprecated, blocker: "{bundle}", counts: isOfCandidate},
	{kind: model.BundleInvalid, place: forbidden, words: "{bundle} is invalid ({reason})",
		code: model.CandidateInvalid, blocker: "{bundle}", counts: isOfCandidate},
	{kind: model.BundleExcluded, place: forbidden, words: "{bundle} is excluded ({reason})",
		code: model.CandidateExcluded, blocker: "{bundle}", counts: isOfCandidate},
	{kind: model.KeepsCandidate, place: exclusive, words: "Subscription {subscription} has {bundle}",
		code: model.BlockedBySubscription, blocker: "{subscription}", remedies: forSubscriptions},
	{kind: model.SubscriptionExists,
		code: model.BlockedBySubscription, blocker: "{subscription}", counts: isOfOther, remedies: forSubscriptions},
	{kind: model.BundleRequires, unmet: true, place: unoffered,
		words: "{bundles need} {need}, and no catalog visible from namespace {namespace} has one", more: needing,
		code: model.RequirementUnmet, blocker: "{need}", remedies: forUnmet},
	{kind: model.OnePerAPI, place: exclusive, words: "{names} provide {need}, and only one operator may", more: names,
		code: model.ProvidedByOther, blocker: "{need}"},
	{kind: model.OnePerName, place: exclusive,
		words: "packages {packages} each have a bundle {bundle}, and only one ClusterServiceVersion can have that name", more: packages,
		code: model.NameConflict, blocker: "{bundle}"},
	{kind: model.BundleRequires, place: needed, words: "{bundles need} {need}", more: needing,
		code: model.RequirementUnmet, blocker: "{need or bundle}"},
	{kind: model.OnePerPackage, place: exclusive, words: "only one operator of package {package} can be installed",
		code: model.PackageConflict, blocker: "{package}"},
	{kind: model.CSVExists, place: exclusive, words: "ClusterServiceVersion {bundle}{stays}", more: staying,
		code: model.ProvidedByOther, blocker: "{bundle}", remedies: forExisting},
	{kind: model.Conflicts, place: exclusive, words: "{replaced} cannot stay beside {successor}", more: upgrade},
	{kind: model.SubscriptionRequires, place: needed, words: "Subscription {subscription} needs {names}", more: names},
	{kind: model.SubscriptionImpossible, remedies: forImpossible},
}

func isOfCandidate(r *model.Rule, _, candidate string) bool { return r.Bundle == candidate }
func isOfOther(r *model.Rule, subscription, _ string) bool  { return r.Subscription != subscription }

// has reports whether a rule belongs to the row.
func (c *cause) has(r *model.Rule) bool {
	return c.kind == r.Kind && c.unmet == (r.Kind == model.BundleRequires && len(r.Objects) == 0)
}

// classify returns the reason why some rules hold a candidate of a Subscription back, and what blocks the candidate.
func classify(rules []model.Rule, subscription, candidate string) (code model.HeldBackCode, blocker string) {
	for _, row := range causes {
		for i := range rules {
			r := &rules[i]
			if row.code == "" || !row.has(r) || row.counts != nil && !row.counts(r, subscription, candidate) {
				continue
			}
			needOrBundle := r.Bundle // another operator needs what the candidate is not
			if r.Bundle == candidate {
				needOrBundle = r.Need
			}
			return row.code, fill(row.blocker, r, "{need or bundle}", needOrBundle)
		}
	}
	return model.Unknown, ""
}

// mostCauses is the number of causes that a sentence describes.
const mostCauses = 5

// describe returns the causes of a contradiction. What subscription needs is described only if other Subscriptions are
// part of the contradiction.
func describe(v *search.View, rules []model.Rule, subscription string) string {
	alone := !slices.ContainsFunc(rules, func(r model.Rule) bool {
		return r.Kind == model.SubscriptionExists && r.Subscription != subscription
	})
	var byPlace [places][]string
	for i := range rules {
		r := &rules[i]
		row := &causes[slices.IndexFunc(causes, func(c cause) bool { return c.has(r) })]
		if row.words == "" || r.Kind == model.SubscriptionRequires && alone && r.Subscription == subscription {
			continue
		}
		var more []string
		if row.more != nil {
			if more = row.more(v, rules, r); more == nil {
				continue
			}
		}
		byPlace[row.place] = append(byPlace[row.place], fill(row.words, r, more...))
	}
	parts := slices.Concat(byPlace[:]...)
	if n := len(parts); n > mostCauses {
		parts = append(parts[:mostCauses], fmt.Sprintf("and %d more reasons", n-mostCauses))
	}
	return strings.Join(parts, "; ")
}

// fill replaces the placeholders of a text about a rule. more contains further placeholders, each with its value.
func fill(text string, r *model.Rule, more ...string) string {
	return strings.NewReplacer(append(more, "{bundle}", r.Bundle, "{package}", r.Package, "{subscription}", r.Subscription,
		"{need}", r.Need, "{reason}", r.FailureMessage)...).Replace(text)
}

// needing returns the bundles that have the requirement of a rule. It returns nil if the rule is not the first of them.
func needing(v *search.View, rules []model.Rule, r *model.Rule) []string {
	var bundles []string
	for i := range rules {
		other := &rules[i]
		if other.Kind != r.Kind || other.Need != r.Need || (len(other.Objects) == 0) != (len(r.Objects) == 0) {
			continue
		}
		if len(bundles) == 0 && other != r {
			return nil
		}
		bundles = append(bundles, other.Bundle)
	}
	if len(bundles) == 1 {
		return []string{"{bundles need}", r.Bundle + " needs", "{namespace}", v.In.Namespace}
	}
	return []string{"{bundles need}", someNames(bundles) + " need", "{namespace}", v.In.Namespace}
}

func packages(v *search.View, _ []model.Rule, r *model.Rule) []string {
	return []string{"{packages}", someNames(v.PackagesWith(r.Bundle))}
}

// names returns the distinct names of the bundles whose identifiers a rule contains.
func names(_ *search.View, _ []model.Rule, r *model.Rule) []string {
	var list []string
	for _, id := range r.Objects {
		if name := baseName(id); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return []string{"{names}", someNames(list)}
}

func upgrade(_ *search.View, _ []model.Rule, r *model.Rule) []string {
	return []string{"{successor}", baseName(r.Objects[0]), "{replaced}", baseName(r.Objects[1])}
}

// staying returns why an existing operator must remain.
func staying(v *search.View, _ []model.Rule, r *model.Rule) []string {
	why := " exists already and no Subscription refers to it"
	if kept := keptFor(v, r.Bundle); kept != nil {
		return []string{"{stays}", " has to stay for Subscription " + kept.Object.Name + ", which cannot be resolved itself"}
	}
	if r.Package != "" {
		why = " of package " + r.Package + why
	}
	return []string{"{stays}", why}
}

// keptFor returns the failed Subscription for which an existing operator remains. Otherwise, it returns nil.
func keptFor(v *search.View, csv string) *model.Subscription {
	return v.Scope.Kept(v.ByName[csv].Entry)
}

// baseName returns the name of a bundle from its identifier.
func baseName(identifier string) string { return identifier[strings.LastIndexByte(identifier, '/')+1:] }

// maxNamed is the number of names that a sentence lists.
const maxNamed = 3

// some lists at most a few names.
func some(names []string, last string) string {
	if n := len(names); n > maxNamed+1 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", n-maxNamed))
	}
	return model.Enumerate(names, last)
}

func someNames(list []string) string { return some(list, " and ") }
