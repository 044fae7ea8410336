// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/content"
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
		return fmt.Sprintf("%s follows package %s, whose upgrade graph in catalog %s is broken: %s.", subject, spec.Package, catalog, content.Cut(s.Impossible, content.MaxDiagnostic))
	case s.Pkg == nil:
		return fmt.Sprintf("%s asks for package %s, which catalog %s does not have.%s", subject, spec.Package, catalog, alike(p, s))
	case s.Pkg.Channel(spec.Channel) == nil && spec.Channel != "":
		var names []string
		for _, ch := range s.Pkg.Channels {
			names = append(names, ch.Name)
		}
		return fmt.Sprintf("%s asks for channel %s of package %s; catalog %s has %s.", subject, spec.Channel, spec.Package, catalog, some(names, " and "))
	case spec.StartingCSV != "":
		return fmt.Sprintf("%s asks to start with %s, which catalog %s does not have in that channel of package %s.", subject, spec.StartingCSV, catalog, spec.Package)
	}
	return fmt.Sprintf("%s follows channel %q of package %s, which has no bundle that can be installed.", subject, spec.Channel, spec.Package)
}

// alike names packages of a Subscription's catalog that it may have meant.
func alike(p *View, s *model.Subscription) string {
	if s.Source == model.NoSource {
		return ""
	}
	want := strings.ToLower(s.Object.Spec.Package)
	var names []string
	for _, pkg := range p.Sources[s.Source].Content.Sorted {
		if name := strings.ToLower(pkg.Name); strings.Contains(name, want) || strings.Contains(want, name) {
			names = append(names, pkg.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" It has %s.", some(names, " and "))
}

// causes says what contradicts what, the most telling first. subscription is
// whose view it is.
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
		parts = append(parts, fmt.Sprintf("%s %s %s, and no catalog visible from namespace %s has one", someNames(unmetBy[need]), plural(unmetBy[need], "needs", "need"), need, p.In.Namespace))
	}
	parts = append(append(parts, clashes...), forbidden...)
	for _, need := range needs {
		if by := neededBy[need]; len(by) > 0 {
			need = fmt.Sprintf("%s %s %s", someNames(by), plural(by, "needs", "need"), need)
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

func plural(list []string, one, many string) string {
	if len(list) == 1 {
		return one
	}
	return many
}

// standing describes an existing operator that must stay.
func standing(p *View, r Rule) string {
	if kept := keptFor(p, r.Bundle); kept != nil {
		return fmt.Sprintf("ClusterServiceVersion %s has to stay for Subscription %s, which cannot be resolved itself", r.Bundle, kept.Object.Name)
	}
	if r.Package != "" {
		return fmt.Sprintf("ClusterServiceVersion %s of package %s exists already and no Subscription refers to it", r.Bundle, r.Package)
	}
	return fmt.Sprintf("ClusterServiceVersion %s exists already and no Subscription refers to it", r.Bundle)
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
	if len(list) == 1 {
		return list[0]
	}
	return some(list, " and ")
}

// remedies are hints at what would help.
func remedies(p *View, c *Core) []Remedy {
	var list []Remedy
	add := func(code RemedyCode, object, format string, args ...any) {
		r := Remedy{Code: code, Object: object, Message: fmt.Sprintf(format, args...)}
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	for _, r := range c.Rules {
		switch r.Kind {
		case model.SubscriptionImpossible:
			impossibleRemedy(p, r, add)
		case model.CSVExists:
			if wanted(p, r.Package, c.Subscriptions) {
				add(DeleteOrphanCSV, r.Bundle, "Delete ClusterServiceVersion %s, so that its Subscription can install it anew.", r.Bundle)
			} else if kept := keptFor(p, r.Bundle); kept != nil {
				add(ApproveOrFixFailed, r.Bundle, "Repair Subscription %s first.", kept.Object.Name)
			}
		case model.BundleRequires:
			if len(r.Objects) == 0 {
				add(AddCatalog, r.Need, "Add a catalog that has %s.", r.Need)
			}
		case model.CatalogUnavailable:
			add(RepairCatalog, r.Catalog.String(), "Make catalog %s available again.", r.Catalog)
		}
	}
	if len(c.Subscriptions) > 1 {
		last := c.Subscriptions[len(c.Subscriptions)-1]
		for _, s := range p.Subs {
			if slices.Contains(c.Subscriptions, s.Object.Name) {
				last = s.Object.Name // the youngest
			}
		}
		add(RemoveConflictingSubscription, last, "Remove one of the Subscriptions %s, for example the youngest, %s, or let it follow another channel.", enumerate(c.Subscriptions, " and "), last)
	}
	return list
}

// wanted reports whether one of the Subscriptions follows a package.
func wanted(p *View, pkg string, subscriptions []string) bool {
	return slices.ContainsFunc(p.Subs, func(s *model.Subscription) bool {
		return s.Object.Spec.Package == pkg && slices.Contains(subscriptions, s.Object.Name)
	})
}

func impossibleRemedy(p *View, r Rule, add func(RemedyCode, string, string, ...any)) {
	s := p.SubscriptionNamed(r.Subscription)
	if missingOf(p, s) != nil {
		add(RepairCatalog, r.Catalog.String(), "Make catalog %s available again.", r.Catalog)
		return
	}
	switch s.ImpossibleCode {
	case model.Pinned, model.PinInvalid:
		add(ChangePin, r.Subscription, "Change the version range of Subscription %s.", r.Subscription)
	case model.CatalogMissing:
		add(AddCatalog, r.Catalog.String(), "Create CatalogSource %s, or name another one in Subscription %s.", r.Catalog, r.Subscription)
	case model.ChannelMissing:
		add(ChangeChannel, r.Subscription, "Let Subscription %s follow a channel of package %s that exists: %s.", r.Subscription, r.Package, some(channelNames(p, s), " or "))
	case model.ChannelMalformed:
		add(RepairCatalog, r.Catalog.String(), "Repair the channel in catalog %s.", r.Catalog)
	default:
		add(ChangePackage, r.Subscription, "Let Subscription %s follow a package of catalog %s, or another catalog.", r.Subscription, r.Catalog)
	}
}

func channelNames(p *View, s *model.Subscription) []string {
	if s.Pkg == nil {
		return nil
	}
	var names []string
	for _, ch := range s.Pkg.Channels {
		names = append(names, ch.Name)
	}
	return names
}

// keptFor returns the Subscription for which an existing operator stays although it
// failed, nil when there is none.
func keptFor(p *View, csv string) *model.Subscription { return p.Scope.Kept(p.ByName[csv].Entry) }
