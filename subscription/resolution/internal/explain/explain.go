// SPDX-License-Identifier: Apache-2.0

// Package explain describes the result of a search in words. It explains why there is no solution, why a Subscription
// does not get its best candidate, and what would help.
package explain

import (
	"fmt"
	"slices"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// Explanation explains why a bundle is or is not chosen.
type Explanation struct {
	Subscription, Bundle string
	// Chosen means that the bundle is part of the solution: it is installed already, or it will be installed.
	Chosen bool
	// Code is the kind of reason why the bundle is not chosen. It is empty if Chosen is true.
	Code model.HeldBackCode
	// Summary contains the explanation in one or more sentences.
	Summary string
	// Rules contains the rules that exclude the bundle. It is empty if the reason is not a rule.
	Rules []Rule
}

// These are the reasons why a bundle is not chosen, in addition to those of HeldBack.
const (
	// UnknownBundle means that no visible catalog contains the bundle.
	UnknownBundle model.HeldBackCode = "UnknownBundle"
	// NotFollowed means that no Subscription names the bundle's package and channel, and that no selected operator
	// requires the bundle.
	NotFollowed model.HeldBackCode = "NotFollowed"
	// Skipped means that another bundle of the channel skips the bundle. A skipped bundle is installed only if startingCSV
	// names it.
	Skipped model.HeldBackCode = "Skipped"
	// LessPreferred means that a better candidate was chosen.
	LessPreferred model.HeldBackCode = "LessPreferred"
	// Unresolved means that the Subscription has no solution.
	Unresolved model.HeldBackCode = "Unresolved"
)

// Of explains why a bundle is or is not chosen for a Subscription. If subscription is empty, Of considers the whole
// namespace. budget limits the search for the reasons.
func Of(p *View, d *Decided, subscription, bundle string, budget *search.Budget) Explanation {
	x := Explanation{Subscription: subscription, Bundle: bundle}
	if subscription != "" && p.SubscriptionNamed(subscription) == nil {
		x.Code, x.Summary = NotFollowed, fmt.Sprintf("There is no Subscription %s in namespace %s.", subscription, p.In.Namespace)
		return x
	}
	if chosen(p, d, &x) {
		x.Chosen = true
		return x
	}
	for _, s := range p.Subs {
		if (subscription == "" || s.Object.Name == subscription) && explainFor(p, d, s, &x, budget) {
			return x
		}
	}
	x.Code = NotFollowed
	asker := "no Subscription asks for"
	if subscription != "" {
		asker = fmt.Sprintf("Subscription %s does not ask for", subscription)
	}
	x.Summary = elsewhere(p, bundle, asker)
	if x.Summary == "" {
		x.Code, x.Summary = UnknownBundle, fmt.Sprintf("No catalog visible from namespace %s has %s.%s", p.In.Namespace, bundle, meant(bundle, offered(p)))
	}
	return x
}

func chosen(p *View, res *Decided, x *Explanation) bool {
	for _, op := range res.Operators {
		if op.Name != x.Bundle || (x.Subscription != "" && len(op.For) > 0 && !slices.Contains(op.For, x.Subscription)) {
			continue
		}
		why := "for Subscription " + enumerate(op.For, " and ")
		if len(op.For) == 0 {
			why = "because " + enumerate(op.RequiredBy, " and ") + " needs it"
		}
		x.Summary = fmt.Sprintf("%s is installed from channel %s of catalog %s %s.", op.Name, op.Channel, op.Catalog, why)
		return true
	}
	for _, t := range res.Targets {
		if t.Target == x.Bundle && t.Target != "" && (x.Subscription == "" || x.Subscription == t.Subscription) {
			x.Summary = fmt.Sprintf("%s stays installed for Subscription %s.", x.Bundle, t.Subscription)
			return true
		}
	}
	if c := p.ByName[x.Bundle]; c != nil && p.Scope.Freestanding(c) && x.Subscription == "" {
		x.Summary = fmt.Sprintf("%s stays installed: it exists, and no Subscription refers to it.", x.Bundle)
		return true
	}
	return false
}

// explainFor explains a bundle that a Subscription could or could nearly have. false: the bundle has nothing to do with
// it.
func explainFor(p *View, res *Decided, s *model.Subscription, x *Explanation, budget *search.Budget) bool {
	if s.Choice == nil {
		if res.Failure == nil {
			return false
		}
		x.Code, x.Summary = Unresolved, fmt.Sprintf("Nothing is resolved in namespace %s: %s.", p.In.Namespace, res.Failure.Message)
		return true
	}
	found := inChannels(s, x.Bundle)
	candidates := candidatesNamed(s, x.Bundle)
	switch {
	case len(candidates) > 0 && p.target(s).Entry != nil && !p.Scope.Failed(s) && res.Failure == nil:
		explainCandidates(p, s, candidates, x, budget)
	case len(candidates) > 0 || (found != nil && p.Scope.Failed(s)):
		x.Code = Unresolved
		x.Summary = fmt.Sprintf("Subscription %s has no solution at all.", s.Object.Name)
		if res.Failure != nil {
			x.Summary = fmt.Sprintf("Nothing is resolved in namespace %s: %s.", p.In.Namespace, res.Failure.Message)
		}
		for _, c := range CoresFor(res.Cores, s.Object.Name) {
			x.Summary, x.Rules = c.Summary, c.Rules
			break
		}
	case found == nil:
		return false
	case s.Held != "":
		x.Code, x.Summary = s.Held, fmt.Sprintf("Subscription %s stays at %s: %s.", s.Object.Name, s.Current.Object.Name, s.HeldText)
	case s.Current == nil && s.Object.Spec.StartingCSV != "":
		x.Code, x.Summary = LessPreferred, fmt.Sprintf("Subscription %s asks to start with %s.", s.Object.Name, s.Object.Spec.StartingCSV)
	case found.Stranded:
		x.Code, x.Summary = model.ChannelMalformed, fmt.Sprintf("%s is stranded: the head of channel %s does not lead to it.", x.Bundle, found.Channel.Name)
	case found.Position < 0 && found.Channel.Malformed == "":
		x.Code = Skipped
		x.Summary = fmt.Sprintf("%s is skipped by %s of channel %s.", x.Bundle, found.Channel.SkippedBy(found), found.Channel.Name)
	case s.Outside(found) != "":
		x.Code, x.Summary = model.Pinned, fmt.Sprintf("Subscription %s may not have %s: %s does not allow it.", s.Object.Name, x.Bundle, s.Outside(found))
	case s.Current != nil && model.EdgeFrom(s.Current.Entry, found) != "":
		x.Code = model.NoUpgradeEdge
		x.Summary = fmt.Sprintf("There is no upgrade from %s to %s: it %s %s, but %s.", s.Current.Object.Name, x.Bundle,
			model.EdgeFrom(s.Current.Entry, found), s.Current.Object.Name, model.WhyNoCandidate(found))
	case s.Current != nil:
		x.Code, x.Summary = model.NoUpgradeEdge, fmt.Sprintf("There is no upgrade from %s to %s: it neither replaces nor skips it, nor has a skipRange for its version.", s.Current.Object.Name, x.Bundle)
	default:
		x.Code, x.Summary = model.ChannelMalformed, fmt.Sprintf("The upgrade graph of channel %s is broken: %s.", found.Channel.Name, found.Channel.Malformed)
	}
	x.Subscription = s.Object.Name
	return true
}

// explainCandidates explains why none of a bundle's entries was chosen. A Subscription without a channel has one for
// each channel of the bundle. The bundle is less preferred if one of them was possible, else the rules against all of
// them are named.
func explainCandidates(p *View, s *model.Subscription, candidates []model.Ref, x *Explanation, budget *search.Budget) {
	target := p.target(s)
	lessPreferred := func(r model.Ref) {
		chosen, other := target.Entry.Name, x.Bundle
		if len(candidates) > 1 {
			chosen, other = withChannel(target), withChannel(r)
		}
		x.Code, x.Summary = LessPreferred, fmt.Sprintf("Subscription %s gets %s, which it prefers to %s.", s.Object.Name, chosen, other)
	}
	if s.Choice.Precedes(target, candidates[0]) {
		lessPreferred(candidates[0])
		return
	}
	var against search.Contradiction
	for _, r := range candidates {
		found, verdict := reasonsAgainst(p, s, r, budget)
		switch {
		case verdict == search.Satisfiable:
			lessPreferred(r)
			return
		case len(found.Rules) == 0:
			x.Code, x.Summary = model.Unknown, reasonNotFound(s, x.Bundle, verdict, budget)
			return
		}
		against.Rules = append(against.Rules, found.Rules...)
	}
	slices.Sort(against.Rules)
	against.Rules = slices.Compact(against.Rules)
	x.Rules = rulesOf(p, against)
	x.Code, _ = classify(x.Rules, s.Object.Name, x.Bundle)
	x.Summary = fmt.Sprintf("Subscription %s does not get %s: %s.", s.Object.Name, x.Bundle, causes(p, x.Rules, s.Object.Name))
}

// withChannel returns the name of a candidate, with its channel unless it is an existing ClusterServiceVersion.
func withChannel(r model.Ref) string {
	if r.Source == model.ExistingSource {
		return r.Entry.Name
	}
	return fmt.Sprintf("%s from channel %s", r.Entry.Name, r.Entry.Channel.Name)
}

// candidatesNamed returns a Subscription's candidates of a name, in order of preference.
func candidatesNamed(s *model.Subscription, name string) (list []model.Ref) {
	for r := range s.Choice.Refs {
		if r.Entry.Name == name {
			list = append(list, r)
		}
	}
	return list
}

func inChannels(s *model.Subscription, bundle string) *model.Entry {
	for _, ch := range followed(s) {
		if e := ch.ByName[bundle]; e != nil {
			return e
		}
	}
	return nil
}

func followed(s *model.Subscription) []*model.ChannelIndex {
	if s.Pkg == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Pkg.Channels), func(ch *model.ChannelIndex) bool {
		return s.Object.Spec.Channel != "" && s.Object.Spec.Channel != ch.Name
	})
}

// elsewhere says where the visible catalogs have a bundle that, as asker says, is not asked for.
func elsewhere(p *View, bundle, asker string) string {
	var places []string
	note := ""
	for i := range p.Sources {
		for _, pkg := range p.Sources[i].Content.Sorted {
			for _, ch := range pkg.Channels {
				if e := ch.ByName[bundle]; e != nil {
					note = obstacle(p, model.Ref{Source: int32(i), Entry: e})
					places = append(places, fmt.Sprintf("channel %s of package %s in catalog %s", ch.Name, pkg.Name, p.Sources[i].Key))
				}
			}
		}
	}
	if len(places) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is in %s, which %s, and nothing that is selected needs it.%s", bundle, some(places, " and "), asker, note)
}

func offered(p *View) (names []string) {
	for i := range p.Sources {
		for _, e := range p.Sources[i].Content.All {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// obstacle says why an entry could not be installed in any case.
func obstacle(p *View, r model.Ref) string {
	const prefix = " It could not be installed anyway: it "
	n := p.Node(r, 0)
	p.Expand(n)
	switch {
	case n.Blocked == model.BundleDeprecated:
		return prefix + "is deprecated."
	case n.Blocked != "":
		return fmt.Sprintf("%sis ruled out (%s).", prefix, n.BlockedText)
	case n.Dead >= 0:
		return fmt.Sprintf("%sneeds %s, and no catalog visible from namespace %s has one.", prefix, words(n.Entry.Requirements[n.Dead].Predicate), p.In.Namespace)
	}
	return ""
}

// View contains a Problem and its solution. Its Scope contains the Subscriptions that failed. Targets contains the
// entries that the other Subscriptions get.
type View struct {
	*model.Problem
	Scope *model.Scope
	// Targets contains the entry that each Subscription gets, by the Index of the Subscription. If a Subscription gets no
	// entry, its Ref has a nil Entry. Targets is empty if there is no solution yet.
	Targets []model.Ref
	// Solver answers further Questions about the problem.
	Solver *search.Solver
}

func (v *View) target(s *model.Subscription) model.Ref {
	if int(s.Index) >= len(v.Targets) {
		return model.Ref{}
	}
	return v.Targets[s.Index]
}

// Question returns the search.Question for the Problem and Scope of the View. Subscriptions that the Scope marks as
// failed are left out.
func (v *View) Question() search.Question {
	return search.Question{Problem: v.Problem, Scope: v.Scope}
}

// Decided contains the parts of a Result that Of needs in addition to the View.
type Decided struct {
	Operators []olmcore.Operator
	Targets   []Target
	Failure   *olmcore.ResolutionFailure
	Cores     []Core
}
