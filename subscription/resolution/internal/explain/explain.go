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

// Explain explains why a bundle is not chosen for a Subscription. If subscription is empty, Of considers the whole
// namespace. failure and cores are the reasons why nothing, or not everything, is resolved. budget limits the search
// for the reasons.
func Explain(v *search.View, failure *olmcore.ResolutionFailure, cores []model.Core, subscription, bundle string,
	budget *search.Budget) model.Explanation {
	x := model.Explanation{Subscription: subscription, Bundle: bundle}
	if subscription != "" && v.SubscriptionNamed(subscription) == nil {
		x.Code, x.Summary = model.NotFollowed, fmt.Sprintf("There is no Subscription %s in namespace %s.", subscription, v.In.Namespace)
		return x
	}
	for _, s := range v.Subs {
		if subscription != "" && subscription != s.Object.Name {
			continue
		}
		if h, related := explainFor(v, failure, cores, s, bundle, budget); related {
			return model.Explanation{Subscription: s.Object.Name, Bundle: bundle, Code: h.Code, Summary: h.Summary, Rules: h.Rules}
		}
	}
	x.Code, x.Summary = notFollowed(v, subscription, bundle)
	return x
}

// explainFor explains why a Subscription does not get a bundle. It returns false if the bundle is unrelated to the
// Subscription.
func explainFor(
	v *search.View, failure *olmcore.ResolutionFailure, cores []model.Core, s *model.Subscription, bundle string, budget *search.Budget,
) (h model.HeldBack, related bool) {
	unresolved := model.HeldBack{Code: model.Unresolved, Summary: fmt.Sprintf("Subscription %s has no solution at all.", s.Object.Name)}
	if failure != nil {
		unresolved.Summary = fmt.Sprintf("Nothing is resolved in namespace %s: %s.", v.In.Namespace, failure.Message)
	}
	if s.Choice == nil {
		return unresolved, failure != nil
	}
	entry, candidates := s.FollowedEntry(bundle), s.Choice.Named(bundle)
	switch {
	case len(candidates) > 0 && v.Target(s).Entry != nil && !v.Scope.Failed(s) && failure == nil:
		return explainCandidates(v, s, candidates, budget), true
	case len(candidates) > 0, entry != nil && v.Scope.Failed(s):
		if own := model.CoresFor(cores, s.Object.Name); len(own) > 0 {
			unresolved.Summary, unresolved.Rules = own[0].Summary, own[0].Rules
		}
		return unresolved, true
	case entry == nil:
		return model.HeldBack{}, false
	}
	h.Code, h.Summary = s.NotCandidate(entry)
	return h, true
}

// explainCandidates explains why none of a bundle's entries was chosen. A Subscription without a channel has one for
// each channel of the bundle. The bundle is less preferred if one of them was possible. Otherwise, the rules that
// exclude all of them are named.
func explainCandidates(v *search.View, s *model.Subscription, candidates []model.Ref, budget *search.Budget) model.HeldBack {
	target, bundle := v.Target(s), candidates[0].Entry.Name
	lessPreferred := func(r model.Ref) model.HeldBack {
		chosen, other := target.Entry.Name, bundle
		if len(candidates) > 1 {
			chosen, other = withChannel(target), withChannel(r)
		}
		return model.HeldBack{Code: model.LessPreferred,
			Summary: fmt.Sprintf("Subscription %s gets %s, which it prefers to %s.", s.Object.Name, chosen, other)}
	}
	if s.Choice.Precedes(target, candidates[0]) {
		return lessPreferred(candidates[0])
	}
	var all search.Contradiction
	for _, r := range candidates {
		found, verdict := v.ReasonsAgainst(s, r, budget)
		switch {
		case verdict == search.Satisfiable:
			return lessPreferred(r)
		case len(found.Rules) == 0:
			return reasonNotFound(s, bundle, verdict, budget)
		}
		all.Rules = append(all.Rules, found.Rules...)
	}
	slices.Sort(all.Rules)
	all.Rules = slices.Compact(all.Rules)
	return excludedBy(v, s, all, bundle, bundle)
}

// notFollowed explains that no Subscription, or a certain one, asks for a bundle, and where the bundle is.
func notFollowed(v *search.View, subscription, bundle string) (model.HeldBackCode, string) {
	var places, names []string
	obstacle := ""
	for i := range v.Sources {
		for _, pkg := range v.Sources[i].Content.Sorted {
			for _, ch := range pkg.Channels {
				for _, e := range ch.Chain {
					names = append(names, e.Name)
				}
				if e := ch.ByName[bundle]; e != nil {
					obstacle = whyNeverInstalled(v, model.Ref{Source: int32(i), Entry: e})
					places = append(places, fmt.Sprintf("channel %s of package %s in catalog %s", ch.Name, ch.Pkg.Name, v.Sources[i].Key))
				}
			}
		}
	}
	if len(places) == 0 {
		slices.Sort(names)
		text := fmt.Sprintf("No catalog visible from namespace %s has %s.", v.In.Namespace, bundle)
		return model.UnknownBundle, text + meant(bundle, slices.Compact(names))
	}
	asker := "no Subscription asks for"
	if subscription != "" {
		asker = fmt.Sprintf("Subscription %s does not ask for", subscription)
	}
	return model.NotFollowed, fmt.Sprintf("%s is in %s, which %s, and nothing that is selected needs it.%s",
		bundle, someNames(places), asker, obstacle)
}

// whyNeverInstalled returns a sentence about the reason why an entry could never be installed, or "" if it could.
func whyNeverInstalled(v *search.View, r model.Ref) string {
	why := ""
	n := v.Node(r, 0)
	v.Expand(n)
	switch {
	case n.Blocked == model.BundleDeprecated:
		why = "is deprecated"
	case n.Blocked != "":
		why = fmt.Sprintf("is ruled out (%s)", n.BlockedText)
	case n.Dead >= 0:
		need := n.Entry.Requirements[n.Dead].Words()
		why = fmt.Sprintf("needs %s, and no catalog visible from namespace %s has one", need, v.In.Namespace)
	default:
		return ""
	}
	return " It could not be installed anyway: it " + why + "."
}

// withChannel returns the name of a candidate, with its channel unless it is an existing ClusterServiceVersion.
func withChannel(r model.Ref) string {
	if r.Source == model.ExistingSource {
		return r.Entry.Name
	}
	return fmt.Sprintf("%s from channel %s", r.Entry.Name, r.Entry.Channel.Name)
}
