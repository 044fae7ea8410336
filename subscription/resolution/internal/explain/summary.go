// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// maxNamed is how many names a sentence lists.
const maxNamed = 3

// summary says in one sentence why there is no solution.
func summary(p *View, c *Core) string {
	if c.Error {
		return fmt.Sprintf("%s cannot be resolved before the catalogs are complete: %s.", who(c.Subscriptions, p.In.Namespace), c.Message)
	}
	for _, r := range c.Rules {
		if r.Kind == model.SubscriptionImpossible {
			return impossibleSummary(p, p.SubscriptionNamed(r.Subscription))
		}
	}
	first := ""
	if len(c.Subscriptions) > 0 {
		first = c.Subscriptions[0]
	}
	return fmt.Sprintf("%s cannot be resolved: %s.", who(c.Subscriptions, p.In.Namespace), causes(p, c.Rules, first))
}

func who(subscriptions []string, namespace string) string {
	switch len(subscriptions) {
	case 0:
		return "Namespace " + namespace
	case 1:
		return "Subscription " + subscriptions[0]
	}
	return "Together, Subscriptions " + some(subscriptions, " and ")
}

// some lists at most a few names.
func some(names []string, last string) string {
	if n := len(names); n > maxNamed+1 {
		names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", n-maxNamed))
	}
	return enumerate(names, last)
}

// impossibleSummary says what a Subscription asks for in vain.
func impossibleSummary(p *View, s *model.Subscription) string {
	spec := s.Object.Spec
	catalog := catalogKey(spec).String()
	subject := "Subscription " + s.Object.Name
	switch {
	case s.ImpossibleCode == model.PinInvalid:
		return fmt.Sprintf("%s waits: %s.", subject, s.Impossible)
	case s.ImpossibleCode == model.Pinned:
		return fmt.Sprintf("%s gets nothing: %s allows nothing that package %s offers it; the best would be %s.", subject, s.Outside(s.PinnedOut), spec.Package, s.PinnedOut.Name)
	case s.ImpossibleCode == model.CatalogMissing && (spec.CatalogSource == "" || spec.CatalogSourceNamespace == ""):
		return subject + " names no catalog (spec.source and spec.sourceNamespace)."
	case s.ImpossibleCode == model.CatalogMissing:
		return fmt.Sprintf("%s follows catalog %s, which does not exist, is empty, or cannot be seen from namespace %s.", subject, catalog, p.In.Namespace)
	case spec.Package == "":
		return subject + " names no package (spec.name)."
	case s.ImpossibleCode == model.ChannelMalformed:
		return fmt.Sprintf("%s follows package %s, whose upgrade graph in catalog %s is broken: %s.", subject, spec.Package, catalog, model.Cut(s.Impossible, model.MaxDiagnostic))
	case s.Pkg == nil:
		return fmt.Sprintf("%s asks for package %s, which catalog %s does not have.%s", subject, spec.Package, catalog, meant(spec.Package, packagesIn(p, s)))
	case s.Pkg.Channel(spec.Channel) == nil && spec.Channel != "":
		return fmt.Sprintf("%s asks for channel %s of package %s; catalog %s has %s.%s", subject, spec.Channel, spec.Package, catalog, some(s.Pkg.ChannelNames(), " and "), meant(spec.Channel, s.Pkg.ChannelNames()))
	case spec.StartingCSV != "":
		return fmt.Sprintf("%s asks to start with %s, which catalog %s does not have in that channel of package %s.%s", subject, spec.StartingCSV, catalog, spec.Package, meant(spec.StartingCSV, bundleNames(s)))
	}
	return fmt.Sprintf("%s follows channel %q of package %s, which has no bundle that can be installed.", subject, spec.Channel, spec.Package)
}

// packagesIn returns the packages of a Subscription's catalog.
func packagesIn(p *View, s *model.Subscription) []string {
	if s.Source == model.NoSource {
		return nil
	}
	return p.Sources[s.Source].Content.Packages()
}

// causes says what contradicts what, the most telling first. subscription is whose view it is.
func causes(p *View, rules []Rule, subscription string) string {
	var unmet, clashes, needs, forbidden []string
	unmetBy, neededBy := map[string][]string{}, map[string][]string{}
	subs := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Kind != model.SubscriptionExists })
	for _, r := range rules {
		switch r.Kind {
		case model.BundleRequires:
			by, list := unmetBy, &unmet
			if len(r.Objects) > 0 {
				by, list = neededBy, &needs
			}
			if len(by[r.Need]) == 0 {
				*list = append(*list, r.Need)
			}
			by[r.Need] = append(by[r.Need], r.Bundle)
		case model.CSVExists:
			clashes = append(clashes, standing(p, r))
		case model.OnePerAPI:
			clashes = append(clashes, fmt.Sprintf("%s provide %s, and only one operator may", names(r.Objects), r.Need))
		case model.OnePerPackage:
			clashes = append(clashes, fmt.Sprintf("only one operator of package %s can be installed", r.Package))
		case model.OnePerName:
			clashes = append(clashes, fmt.Sprintf("packages %s each have a bundle %s, and only one ClusterServiceVersion can have that name", someNames(packagesOf(p, r.Bundle)), r.Bundle))
		case model.Conflicts:
			clashes = append(clashes, fmt.Sprintf("%s cannot stay beside %s", baseName(r.Objects[1]), baseName(r.Objects[0])))
		case model.KeepsCandidate:
			clashes = append(clashes, fmt.Sprintf("Subscription %s has %s", r.Subscription, r.Bundle))
		case model.BundleDeprecated:
			forbidden = append(forbidden, r.Bundle+" is deprecated")
		case model.BundleInvalid:
			forbidden = append(forbidden, r.Bundle+" is invalid ("+r.FailureMessage+")")
		case model.BundleExcluded:
			forbidden = append(forbidden, r.Bundle+" is excluded ("+r.FailureMessage+")")
		case model.SubscriptionRequires:
			if len(subs) > 1 || r.Subscription != subscription {
				needs = append(needs, fmt.Sprintf("Subscription %s needs %s", r.Subscription, names(r.Objects)))
			}
		}
	}
	var parts []string
	for _, need := range unmet {
		parts = append(parts, fmt.Sprintf("%s, and no catalog visible from namespace %s has one", needing(unmetBy[need], need), p.In.Namespace))
	}
	parts = append(append(parts, clashes...), forbidden...)
	for _, need := range needs {
		if by := neededBy[need]; len(by) > 0 {
			need = needing(by, need)
		}
		parts = append(parts, need)
	}
	const most = 5
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more reasons", n-most))
	}
	return strings.Join(parts, "; ")
}

func someNames(list []string) string { return some(list, " and ") }

// needing says that bundles need something.
func needing(bundles []string, need string) string {
	if len(bundles) == 1 {
		return bundles[0] + " needs " + need
	}
	return someNames(bundles) + " need " + need
}

// standing describes an existing operator that must stay.
func standing(p *View, r Rule) string {
	if kept := keptFor(p, r.Bundle); kept != nil {
		return fmt.Sprintf("ClusterServiceVersion %s has to stay for Subscription %s, which cannot be resolved itself", r.Bundle, kept.Object.Name)
	}
	what := r.Bundle
	if r.Package != "" {
		what += " of package " + r.Package
	}
	return fmt.Sprintf("ClusterServiceVersion %s exists already and no Subscription refers to it", what)
}

// packagesOf returns the packages of the considered catalog entries of a name.
func packagesOf(p *View, name string) []string {
	var packages []string
	for _, n := range p.Considered() {
		if n.Source != model.ExistingSource && n.Entry.Name == name {
			packages = append(packages, n.Entry.Channel.Pkg.Name)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// baseName is the bundle's name in an identifier.
func baseName(identifier string) string { return identifier[strings.LastIndexByte(identifier, '/')+1:] }

func names(identifiers []string) string {
	var list []string
	for _, id := range identifiers {
		if name := baseName(id); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return someNames(list)
}

// keptFor returns the Subscription for which an existing operator stays although it failed, nil when there is none.
func keptFor(p *View, csv string) *model.Subscription { return p.Scope.Kept(p.ByName[csv].Entry) }

// nearest returns at most three of some names that a mistyped one may stand for, the most alike first: those of which
// it is a part or that are a part of it, and those that few letters tell apart.
func nearest(wrong string, names []string) []string {
	if wrong == "" {
		return nil
	}
	wrong = strings.ToLower(wrong)
	far := map[string]int{}
	var near []string
	for _, name := range names {
		lower := strings.ToLower(name)
		d := distance(wrong, lower)
		if name != "" && (d <= len(wrong)/4 || strings.Contains(lower, wrong) || strings.Contains(wrong, lower)) {
			far[name] = d
			near = append(near, name)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	return near[:min(len(near), maxNamed)]
}

// distance is how many letters must be changed, added, left out or swapped with the next one to make one text of
// another. Texts whose lengths differ a lot are as far apart as these.
func distance(a, b string) int {
	if d := len(a) - len(b); d > len(a)/4 || -d > len(a)/4 {
		return max(len(a), len(b))
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			d := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// meant says which names a mistyped one may stand for, "" when none is alike.
func meant(wrong string, names []string) string {
	if near := nearest(wrong, names); len(near) > 0 {
		return " Did you mean " + enumerate(near, " or ") + "?"
	}
	return ""
}
