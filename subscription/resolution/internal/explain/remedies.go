// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/olmcore/olm/subscription/internal/quoted"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// remedy is one kind of help.
type remedy struct {
	code RemedyCode
	// propose returns changes that may help against what a trouble is made of.
	propose func(*View, *trouble) []proposal
}

// trouble is what a remedy is looked for: why some Subscriptions are not served, or why one of them does not get its
// best candidate.
type trouble struct {
	rules []Rule
	found search.Contradiction
	subs  []*model.Subscription // oldest first
	// candidate is what the only Subscription should get; without entry anything will do.
	candidate model.Ref
}

// proposal is a change, and what to say when it helps.
type proposal struct {
	object, message string
	// changes are made to the input; scope makes a change to what is to be solved, where what would help cannot be
	// named. Exactly one is set.
	changes []model.Change
	scope   func(*model.Scope)
	// proxy: the changes have the effect of what the message says, and are not it.
	proxy bool
}

// remedies is the table of all kinds of help, in the order in which they are given.
var remedies = []remedy{
	{AddCatalog, missingCatalogs},
	{RepairCatalog, brokenCatalogs},
	{ChangePin, otherRanges},
	{ChangePackage, otherPackages},
	{ChangeChannel, otherChannels},
	{AddCatalog, missingProviders},
	{DeleteOrphanCSV, orphans},
	{AdoptOrphanCSV, adoptions},
	{ApproveOrFixFailed, keptOperators},
	{RemoveConflictingSubscription, competitors},
}

// mostChecked bounds the changes that are tried for one trouble.
const mostChecked = 12

// RemediesFor returns the remedies for a contradiction. Call it only after all contradictions are known, because it
// ignores the Subscriptions that failed because of another contradiction.
func RemediesFor(v *View, core *Core, found search.Contradiction, budget *search.Budget) []Remedy {
	t := trouble{rules: core.Rules, found: found}
	for _, s := range v.Subs {
		if slices.Contains(core.Subscriptions, s.Object.Name) {
			t.subs = append(t.subs, s)
		}
	}
	return remediesFor(v, remedies, &t, budget)
}

// remediesFor returns what helps. Each change is tried: the problem is solved again with it, and it is given only
// when the Subscriptions are served then.
func remediesFor(v *View, table []remedy, t *trouble, budget *search.Budget) []Remedy {
	var list []Remedy
	checked := 0
	for _, row := range table {
		var helpful []proposal
		for _, p := range row.propose(v, t) {
			if checked++; checked > mostChecked {
				return append(list, merged(row.code, helpful)...)
			}
			if helps(v, t, &p, budget) {
				helpful = append(helpful, p)
			}
		}
		list = append(list, merged(row.code, helpful)...)
	}
	return list
}

// merged makes one Remedy of each message.
func merged(code RemedyCode, helpful []proposal) (list []Remedy) {
	for _, p := range helpful {
		if slices.ContainsFunc(list, func(r Remedy) bool { return r.Object == p.object && r.Message == p.message }) {
			continue
		}
		r := Remedy{Code: code, Object: p.object, Message: p.message}
		if !p.proxy {
			r.Changes = p.changes
		}
		list = append(list, r)
	}
	return list
}

// helps solves the problem again with a change, without the Subscriptions that are left out for other reasons.
func helps(v *View, t *trouble, p *proposal, budget *search.Budget) bool {
	problem, solver := v.Problem, v.Solver
	if p.changes != nil {
		in, err := model.Changed(*v.In, p.changes...)
		if err != nil {
			return false
		}
		problem, solver = model.Read(&in), &search.Solver{}
		budget.Spent += problem.Stats.Reading
		if problem.Blocked != "" || problem.Failure != "" {
			return false
		}
	}
	scope := &model.Scope{}
	for _, s := range v.Subs {
		if !v.Scope.Failed(s) || slices.Contains(t.subs, s) {
			continue
		}
		if other := problem.SubscriptionNamed(s.Object.Name); other != nil {
			scope.LeaveOut(other)
		}
	}
	if p.scope != nil {
		p.scope(scope)
	}
	q := search.Question{Problem: problem, Scope: scope}
	if t.candidate.Entry != nil {
		sub := problem.SubscriptionNamed(t.subs[0].Object.Name)
		if sub == nil || sub.Impossible != "" || !sub.Choice.Contains(t.candidate) {
			return false
		}
		q.Demands = &search.Demands{Hard: sub, Candidate: t.candidate}
	}
	part := search.Budget{Limit: budget.Left(budget.Limit)}
	if budget.Limit < 0 {
		part.Limit = -1
	}
	verdict := solver.Decide(q, &part).Verdict
	budget.Spent += part.Spent
	return verdict == search.Satisfiable
}

// leaving proposes what gives a Subscription what it lacks: without that the others have to go on without it.
func leaving(s *model.Subscription, object, format string, args ...any) proposal {
	return proposal{object: object, message: advise(format, args...), scope: func(scope *model.Scope) { scope.LeaveOut(s) }}
}

func changing(c model.Change, format string, args ...any) proposal {
	return proposal{object: c.Subscription, message: advise(format, args...), changes: []model.Change{c}}
}

// enumeration is a list of names that are quoted already.
type enumeration string

// advise writes a sentence of advice, whose arguments are names.
func advise(format string, args ...any) string {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = quoted.Name(arg)
		case fmt.Stringer:
			args[i] = quoted.Name(arg.String())
		}
	}
	return fmt.Sprintf(format, args...)
}

// impossible returns the Subscriptions that nothing matches for one of some reasons.
func impossible(t *trouble, codes ...model.HeldBackCode) []*model.Subscription {
	return slices.DeleteFunc(slices.Clone(t.subs), func(s *model.Subscription) bool {
		return s.Impossible == "" || !slices.Contains(codes, s.ImpossibleCode)
	})
}

func missingCatalogs(v *View, t *trouble) (list []proposal) {
	for _, s := range impossible(t, model.CatalogMissing) {
		if key := catalogKey(s.Object.Spec); missingOf(v, s) == nil {
			list = append(list, leaving(s, key.String(), "Create CatalogSource %s, or name another one in Subscription %s.", key, s.Object.Name))
		}
	}
	return list
}

func brokenCatalogs(v *View, t *trouble) (list []proposal) {
	for _, s := range t.subs {
		switch key := catalogKey(s.Object.Spec); {
		case missingOf(v, s) != nil && s.Impossible != "":
			list = append(list, leaving(s, key.String(), "Make catalog %s available again.", key))
		case s.ImpossibleCode == model.ChannelMalformed:
			list = append(list, leaving(s, key.String(), "Repair the channel in catalog %s.", key))
		}
	}
	return list
}

// missingEdge asks for an upgrade from an installed operator that no entry of its channel upgrades.
func missingEdge(s *model.Subscription) Remedy {
	key, head := catalogKey(s.Object.Spec), ""
	for _, ch := range followed(s) {
		if len(ch.Chain) > 0 {
			head = ch.Chain[0].Name
			break
		}
	}
	return Remedy{Code: RepairCatalog, Object: key.String(),
		Message: advise("Ask the publisher of catalog %s for an upgrade from %s: "+
			"%s, or an entry on the way to it, must replace it, skip it or have a skipRange for it.", key, s.Current.Object.Name, head)}
}

func otherRanges(_ *View, t *trouble) (list []proposal) {
	for _, s := range impossible(t, model.Pinned, model.PinInvalid) {
		name := s.Object.Name
		list = append(list, changing(model.Change{Subscription: name, VersionRange: new("")}, "Change the version range of Subscription %s.", name))
	}
	return list
}

func otherPackages(v *View, t *trouble) (list []proposal) {
	for _, s := range impossible(t, model.PackageMissing) {
		key, name := catalogKey(s.Object.Spec), s.Object.Name
		if s.Source == model.NoSource {
			continue
		}
		near := nearest(s.Object.Spec.Package, v.Sources[s.Source].Content.Packages())
		for _, pkg := range near {
			list = append(list, changing(model.Change{Subscription: name, Package: pkg}, "Let Subscription %s follow package %s of catalog %s.", name, pkg, key))
		}
		if len(near) == 0 {
			list = append(list, leaving(s, name, "Let Subscription %s follow a package of catalog %s, or another catalog.", name, key))
		}
	}
	return list
}

// otherChannels proposes channels of the package, the most alike first, or bundles where it is startingCSV that is
// wrong.
func otherChannels(_ *View, t *trouble) (list []proposal) {
	for _, s := range impossible(t, model.ChannelMissing) {
		if s.Pkg == nil {
			continue
		}
		name, wrong := s.Object.Name, s.Object.Spec.Channel
		channels := s.Pkg.ChannelNames()
		near := nearest(wrong, channels)
		switch {
		case s.Pkg.Channel(wrong) != nil || wrong == "":
			for _, start := range nearest(s.Object.Spec.StartingCSV, bundleNames(s)) {
				list = append(list, changing(model.Change{Subscription: name, StartingCSV: &start}, "Let Subscription %s start with %s.", name, start))
			}
			list = append(list, changing(model.Change{Subscription: name, StartingCSV: new("")}, "Take spec.startingCSV out of Subscription %s.", name))
		case len(near) > 0:
			list = append(list, changing(model.Change{Subscription: name, Channel: near[0]}, "Let Subscription %s follow channel %s of package %s.", name, near[0], s.Pkg.Name))
		default:
			for _, channel := range channels {
				list = append(list, changing(model.Change{Subscription: name, Channel: channel},
					"Let Subscription %s follow a channel of package %s that exists: %s.",
					name, s.Pkg.Name, enumeration(some(quoted.Names(channels), " or "))))
			}
		}
	}
	return list
}

// bundleNames are those in the channels that a Subscription follows.
func bundleNames(s *model.Subscription) (names []string) {
	for _, ch := range followed(s) {
		names = slices.AppendSeq(names, maps.Keys(ch.ByName))
	}
	slices.Sort(names)
	return names
}

// missingProviders proposes catalogs that have what is required.
func missingProviders(v *View, t *trouble) (list []proposal) {
	var missing []model.RuleKey
	var needs []string
	for _, id := range t.found.Rules {
		if key := v.Rules.Keys[id]; key.Kind == model.RuleBundle && v.Nodes[key.A].Choices[key.B].Total == 0 {
			missing = append(missing, key)
			needs = append(needs, words(v.Nodes[key.A].Entry.Requirements[key.B].Predicate))
		}
	}
	slices.Sort(needs)
	for _, need := range slices.Compact(needs) {
		list = append(list, proposal{
			object: need, message: fmt.Sprintf("Add a catalog that has %s.", need),
			scope: func(s *model.Scope) { s.Waive(missing...) },
		})
	}
	return list
}

// orphansOf returns the existing operators of a trouble that no Subscription refers to and that are of the package of
// one of its Subscriptions.
func orphansOf(v *View, t *trouble) (csvs []*model.CSV, of []*model.Subscription) {
	for _, r := range t.rules {
		if r.Kind != model.CSVExists || keptFor(v, r.Bundle) != nil {
			continue
		}
		i := slices.IndexFunc(t.subs, func(s *model.Subscription) bool { return s.Object.Spec.Package == r.Package })
		if i >= 0 {
			csvs, of = append(csvs, v.ByName[r.Bundle]), append(of, t.subs[i])
		}
	}
	return csvs, of
}

func deleted(csvs ...*model.CSV) (changes []model.Change) {
	for _, c := range csvs {
		changes = append(changes, model.Change{DeleteCSV: c.Object.Name})
	}
	return changes
}

func orphans(v *View, t *trouble) (list []proposal) {
	csvs, _ := orphansOf(v, t)
	for _, c := range csvs {
		name := c.Object.Name
		list = append(list, proposal{object: name, message: fmt.Sprintf("Delete ClusterServiceVersion %s, so that its Subscription can install it again.", name), changes: deleted(csvs...)})
	}
	return list
}

// adoptions proposes to tie an orphan to the Subscription that follows its package.
func adoptions(v *View, t *trouble) (list []proposal) {
	csvs, subs := orphansOf(v, t)
	for i, c := range csvs {
		if subs[i].Current == nil {
			name, sub := c.Object.Name, subs[i].Object.Name
			p := changing(model.Change{Subscription: sub, Adopt: name}, "Adopt ClusterServiceVersion %s: set status.installedCSV of Subscription %s to it.", name, sub)
			p.object = name
			list = append(list, p)
		}
	}
	return list
}

func keptOperators(v *View, t *trouble) (list []proposal) {
	for _, r := range t.rules {
		if r.Kind != model.CSVExists {
			continue
		}
		if kept := keptFor(v, r.Bundle); kept != nil {
			list = append(list, proposal{object: r.Bundle, message: fmt.Sprintf("Repair Subscription %s first.", kept.Object.Name), changes: deleted(v.ByName[r.Bundle]), proxy: true})
		}
	}
	return list
}

// competitors proposes to give up a Subscription that contradicts others, the youngest first, or an older one that
// keeps what another one wants.
func competitors(v *View, t *trouble) (list []proposal) {
	if t.candidate.Entry == nil {
		if len(t.subs) < 2 {
			return nil
		}
		var names []string
		for _, s := range t.subs {
			names = append(names, s.Object.Name)
		}
		slices.Sort(names)
		last := t.subs[len(t.subs)-1]
		return []proposal{leaving(last, last.Object.Name,
			"Remove one of the Subscriptions %s, for example the youngest, %s, or let it follow another channel.",
			enumeration(enumerate(names, " and ")), last.Object.Name)}
	}
	for _, r := range t.rules {
		s := v.SubscriptionNamed(r.Subscription)
		if s == nil || s == t.subs[0] || r.Kind != model.KeepsCandidate && r.Kind != model.SubscriptionExists {
			continue
		}
		p := changing(model.Change{Subscription: r.Subscription, Remove: true}, "Remove Subscription %s, or let it follow another channel.", r.Subscription)
		if s.Current != nil { // what it has installed goes with it
			p.changes = append(p.changes, deleted(s.Current)...)
		}
		list = append(list, p)
	}
	return list
}
