// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/olmcore/olm/internal/spelling"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"

	"github.com/olmcore/olm/internal/printable"
)

// impossibility is one reason why nothing matches a Subscription.
type impossibility struct {
	holds func(*model.Subscription) bool
	// summary describes the reason. The sentence begins with the Subscription. sentence lists the placeholders.
	summary string
	// remedies proposes changes of the Subscription or its catalog.
	remedies func(v *search.View, s *model.Subscription) []proposal
}

// impossibilities is the table of impossibilities. The first one that holds describes a Subscription.
var impossibilities = []impossibility{
	{is(model.PinInvalid), "waits: {problem}.", otherRange},
	{is(model.Pinned), "gets nothing: {range} allows nothing that package {package} offers it; the best would be {best}.", otherRange},
	{namesNoCatalog, "names no catalog (spec.source and spec.sourceNamespace).", otherCatalog},
	{is(model.CatalogMissing), "follows catalog {catalog}, which does not exist, is empty, or cannot be seen from namespace {namespace}.",
		otherCatalog},
	{func(s *model.Subscription) bool { return s.Object.Spec.Package == "" }, "names no package (spec.name).", otherPackage},
	{is(model.ChannelMalformed), "follows package {package}, whose upgrade graph in catalog {catalog} is broken: {problem}.", repairedChannel},
	{func(s *model.Subscription) bool { return s.Pkg == nil },
		"asks for package {package}, which catalog {catalog} does not have.{similar package}", otherPackage},
	{hasNoChannel, "asks for channel {channel} of package {package}; catalog {catalog} has {channels}.{similar channel}", otherChannel},
	{func(s *model.Subscription) bool { return s.Object.Spec.StartingCSV != "" },
		"asks to start with {start}, which catalog {catalog} does not have in that channel of package {package}.{similar start}", otherStart},
	{func(*model.Subscription) bool { return true },
		"follows channel {quoted channel} of package {package}, which has no bundle that can be installed.", otherPackage},
}

func is(code model.HeldBackCode) func(*model.Subscription) bool {
	return func(s *model.Subscription) bool { return s.ImpossibleCode == code }
}

func namesNoCatalog(s *model.Subscription) bool {
	return s.ImpossibleCode == model.CatalogMissing && (s.Object.Spec.CatalogSource == "" || s.Object.Spec.CatalogSourceNamespace == "")
}

func hasNoChannel(s *model.Subscription) bool {
	return s.Object.Spec.Channel != "" && s.Pkg.Channel(s.Object.Spec.Channel) == nil
}

func impossibilityOf(s *model.Subscription) *impossibility {
	return &impossibilities[slices.IndexFunc(impossibilities, func(i impossibility) bool { return i.holds(s) })]
}

// sentence describes a Subscription for which the impossibility holds.
func (i *impossibility) sentence(v *search.View, s *model.Subscription) string {
	spec := s.Object.Spec
	fields := []string{
		"{package}", spec.Package, "{channel}", spec.Channel, "{quoted channel}", strconv.Quote(spec.Channel), "{start}", spec.StartingCSV,
		"{catalog}", catalogOf(s), "{namespace}", v.In.Namespace, "{problem}", model.Cut(s.Impossible, model.MaxDiagnostic),
		"{similar package}", meant(spec.Package, v.PackagesFor(s)),
	}
	if s.Pkg != nil {
		channels := s.Pkg.ChannelNames()
		fields = append(fields, "{channels}", someNames(channels), "{similar channel}", meant(spec.Channel, channels),
			"{similar start}", meant(spec.StartingCSV, s.BundleNames()))
	}
	if s.PinnedOut != nil {
		fields = append(fields, "{range}", s.Outside(s.PinnedOut), "{best}", s.PinnedOut.Name)
	}
	return "Subscription " + s.Object.Name + " " + strings.NewReplacer(fields...).Replace(i.summary)
}

func catalogOf(s *model.Subscription) string { return model.CatalogKey(s.Object.Spec).String() }

// meant returns a question that proposes the names that a mistyped name may stand for, or "" if no name is similar.
func meant(wrong string, names []string) string {
	if near := spelling.Similar(wrong, names, maxNamed); len(near) > 0 {
		return " Did you mean " + model.Enumerate(near, " or ") + "?"
	}
	return ""
}

// forImpossible proposes changes for the Subscriptions that nothing matches.
func forImpossible(v *search.View, c *conflict, _ []model.Rule) (list []proposal) {
	for _, s := range c.subs {
		if s.Impossible == "" {
			continue
		}
		if v.MissingCatalog(s) != nil {
			list = append(list, leaving(s, model.RepairCatalog, catalogOf(s), "Make catalog %s available again.", catalogOf(s)))
		}
		list = append(list, impossibilityOf(s).remedies(v, s)...)
	}
	return list
}

func otherCatalog(v *search.View, s *model.Subscription) []proposal {
	if v.MissingCatalog(s) != nil {
		return nil
	}
	return []proposal{leaving(s, model.AddCatalog, catalogOf(s),
		"Create CatalogSource %s, or name another one in Subscription %s.", catalogOf(s), s.Object.Name)}
}

func repairedChannel(_ *search.View, s *model.Subscription) []proposal {
	return []proposal{leaving(s, model.RepairCatalog, catalogOf(s), "Repair the channel in catalog %s.", catalogOf(s))}
}

func otherRange(_ *search.View, s *model.Subscription) []proposal {
	return []proposal{changing(model.ChangePin, s.Object.Name, []model.Change{{Subscription: s.Object.Name, VersionRange: new("")}},
		"Change the version range of Subscription %s.", s.Object.Name)}
}

func otherPackage(v *search.View, s *model.Subscription) (list []proposal) {
	if s.Source == model.NoSource || s.ImpossibleCode != model.PackageMissing {
		return nil
	}
	name := s.Object.Name
	for _, pkg := range spelling.Similar(s.Object.Spec.Package, v.PackagesFor(s), maxNamed) {
		list = append(list, changing(model.ChangePackage, s.Object.Name, []model.Change{{Subscription: s.Object.Name, Package: pkg}},
			"Let Subscription %s follow package %s of catalog %s.", name, pkg, catalogOf(s)))
	}
	if len(list) == 0 {
		return []proposal{leaving(s, model.ChangePackage, name,
			"Let Subscription %s follow a package of catalog %s, or another catalog.", name, catalogOf(s))}
	}
	return list
}

// otherChannel proposes the most similar channel of the package, or any other one.
func otherChannel(_ *search.View, s *model.Subscription) (list []proposal) {
	name, pkg, channels := s.Object.Name, s.Pkg.Name, s.Pkg.ChannelNames()
	if near := spelling.Similar(s.Object.Spec.Channel, channels, maxNamed); len(near) > 0 {
		return []proposal{changing(model.ChangeChannel, s.Object.Name, []model.Change{{Subscription: s.Object.Name, Channel: near[0]}},
			"Let Subscription %s follow channel %s of package %s.", name, near[0], pkg)}
	}
	for _, channel := range channels {
		list = append(list, changing(model.ChangeChannel, s.Object.Name, []model.Change{{Subscription: s.Object.Name, Channel: channel}},
			"Let Subscription %s follow a channel of package %s that exists: %s.", name, pkg, enumeration(some(printable.Names(channels), " or "))))
	}
	return list
}

// otherStart proposes other bundles for spec.startingCSV, or to clear it.
func otherStart(_ *search.View, s *model.Subscription) (list []proposal) {
	name := s.Object.Name
	for _, start := range spelling.Similar(s.Object.Spec.StartingCSV, s.BundleNames(), maxNamed) {
		list = append(list, changing(model.ChangeChannel, s.Object.Name, []model.Change{{Subscription: s.Object.Name, StartingCSV: &start}},
			"Let Subscription %s start with %s.", name, start))
	}
	return append(list, changing(model.ChangeChannel, s.Object.Name, []model.Change{{Subscription: s.Object.Name, StartingCSV: new("")}},
		"Take spec.startingCSV out of Subscription %s.", name))
}
