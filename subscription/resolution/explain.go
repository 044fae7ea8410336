// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
)

// Explanation says why a bundle is or is not chosen.
type Explanation struct {
	Subscription, Bundle string
	// Chosen: the bundle is part of the solution, newly or as it is.
	Chosen bool
	// Code is why it is not chosen.
	Code HeldBackCode
	// Summary says it for a person.
	Summary string
	// Rules are what excludes the bundle, where rules do.
	Rules []Rule
}

// More reasons why a bundle is not chosen, beside those of HeldBack.
const (
	// UnknownBundle: no visible catalog has it.
	UnknownBundle HeldBackCode = "UnknownBundle"
	// NotFollowed: no Subscription follows its package and channel, and nothing
	// that is selected needs it.
	NotFollowed HeldBackCode = "NotFollowed"
	// Skipped: another bundle of the channel skips it, so it is never installed
	// unless startingCSV names it.
	Skipped HeldBackCode = "Skipped"
	// LessPreferred: a better candidate is chosen.
	LessPreferred HeldBackCode = "LessPreferred"
	// Unresolved: the Subscription has no solution at all.
	Unresolved HeldBackCode = "Unresolved"
)

// Explain says why a bundle, named by its ClusterServiceVersion, is or is not
// chosen for a Subscription; an empty subscription asks about the whole
// namespace. It resolves as Resolve does and then asks what stands in the way.
func Explain(in Input, subscription, bundle string) Explanation {
	in.Policy.OmitHeldBack = true
	p := newProblem(&in)
	res := p.resolve()
	x := Explanation{Subscription: subscription, Bundle: bundle}
	if subscription != "" && p.subscriptionNamed(subscription) == nil {
		x.Code, x.Summary = NotFollowed, fmt.Sprintf("There is no Subscription %s in namespace %s.", subscription, in.Namespace)
		return x
	}
	if p.chosen(&res, &x) {
		x.Chosen = true
		return x
	}
	for _, s := range p.subs {
		if (subscription == "" || s.object.Name == subscription) && p.explainFor(&res, s, &x) {
			return x
		}
	}
	x.Code = NotFollowed
	asker := "no Subscription asks for"
	if subscription != "" {
		asker = fmt.Sprintf("Subscription %s does not ask for", subscription)
	}
	x.Summary = p.elsewhere(bundle, asker)
	if x.Summary == "" {
		x.Code, x.Summary = UnknownBundle, fmt.Sprintf("No catalog visible from namespace %s has %s.", in.Namespace, bundle)
	}
	return x
}

// chosen reports whether the bundle is part of the solution.
func (p *problem) chosen(res *Result, x *Explanation) bool {
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
	if c := p.byName[x.Bundle]; c != nil && c.freestanding() && x.Subscription == "" {
		x.Summary = fmt.Sprintf("%s stays installed: it exists, and no Subscription refers to it.", x.Bundle)
		return true
	}
	return false
}

// explainFor explains a bundle that a Subscription could or could nearly have.
// false: the bundle has nothing to do with it.
func (p *problem) explainFor(res *Result, s *subscription, x *Explanation) bool {
	if s.choice == nil {
		if res.Failure == nil {
			return false
		}
		x.Code, x.Summary = Unresolved, fmt.Sprintf("Nothing is resolved in namespace %s: %s.", p.in.Namespace, res.Failure.Message)
		return true
	}
	found := p.inChannels(s, x.Bundle)
	candidate, ok := s.candidateNamed(x.Bundle)
	switch {
	case ok && s.target.entry != nil && !s.failed && res.Failure == nil:
		p.explainCandidate(s, candidate, x)
	case ok || (found != nil && s.failed):
		x.Code = Unresolved
		x.Summary = fmt.Sprintf("Subscription %s has no solution at all.", s.object.Name)
		if res.Failure != nil {
			x.Summary = fmt.Sprintf("Nothing is resolved in namespace %s: %s.", p.in.Namespace, res.Failure.Message)
		}
		for _, c := range res.CoresFor(s.object.Name) {
			x.Summary, x.Rules = c.Summary, c.Rules
			break
		}
	case found == nil:
		return false
	case s.held != "":
		x.Code, x.Summary = s.held, fmt.Sprintf("Subscription %s stays at %s: %s.", s.object.Name, s.current.object.Name, s.heldText)
	case s.current == nil && s.object.Spec.StartingCSV != "":
		x.Code, x.Summary = LessPreferred, fmt.Sprintf("Subscription %s asks to start with %s.", s.object.Name, s.object.Spec.StartingCSV)
	case found.stranded:
		x.Code, x.Summary = ChannelMalformed, fmt.Sprintf("%s is stranded: the head of channel %s does not lead to it.", x.Bundle, found.channel.name)
	case found.position < 0 && found.channel.malformed == "":
		x.Code, x.Summary = Skipped, fmt.Sprintf("%s is skipped by another bundle of channel %s.", x.Bundle, found.channel.name)
	case s.current != nil:
		x.Code, x.Summary = NoUpgradeEdge, fmt.Sprintf("There is no upgrade from %s to %s: it neither replaces nor skips it, nor has a skipRange for its version.", s.current.object.Name, x.Bundle)
	default:
		x.Code, x.Summary = ChannelMalformed, fmt.Sprintf("The upgrade graph of channel %s is broken: %s.", found.channel.name, found.channel.malformed)
	}
	x.Subscription = s.object.Name
	return true
}

func (p *problem) explainCandidate(s *subscription, candidate ref, x *Explanation) {
	x.Code = LessPreferred
	for _, segment := range s.choice.segments {
		for _, e := range segment.entries {
			r := ref{segment.source, e}
			if r == s.target {
				x.Summary = fmt.Sprintf("Subscription %s gets %s, which it prefers to %s.", s.object.Name, e.name, x.Bundle)
				return
			}
			if r == candidate {
				h := p.whyNot(s, candidate)
				x.Code, x.Summary, x.Rules = h.Code, h.Summary, h.Rules
				return
			}
		}
	}
}

func (s *subscription) candidateNamed(name string) (ref, bool) {
	for _, segment := range s.choice.segments {
		for _, e := range segment.entries {
			if e.name == name {
				return ref{segment.source, e}, true
			}
		}
	}
	return ref{}, false
}

// inChannels finds a bundle in the channels that a Subscription follows.
func (p *problem) inChannels(s *subscription, bundle string) *entry {
	if s.pkg == nil {
		return nil
	}
	for _, ch := range s.pkg.channels {
		if spec := s.object.Spec.Channel; spec == "" || spec == ch.name {
			if e := ch.byName[bundle]; e != nil {
				return e
			}
		}
	}
	return nil
}

// elsewhere says where the visible catalogs have a bundle that, as asker says, is
// not asked for.
func (p *problem) elsewhere(bundle, asker string) string {
	var places []string
	obstacle := ""
	for i := range p.sources {
		for _, pkg := range p.sources[i].content.sorted {
			for _, ch := range pkg.channels {
				if e := ch.byName[bundle]; e != nil {
					obstacle = p.obstacle(ref{int32(i), e})
					places = append(places, fmt.Sprintf("channel %s of package %s in catalog %s", ch.name, pkg.name, p.sources[i].key))
				}
			}
		}
	}
	if len(places) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is in %s, which %s, and nothing that is selected needs it.%s", bundle, some(places, " and "), asker, obstacle)
}

// obstacle says why an entry could not be installed in any case.
func (p *problem) obstacle(r ref) string {
	const prefix = " It could not be installed anyway: it "
	n := p.node(r, 0)
	p.expand(n)
	switch {
	case n.blocked == BundleDeprecated:
		return prefix + "is deprecated."
	case n.blocked != "":
		return fmt.Sprintf("%sis ruled out (%s).", prefix, n.blockedText)
	case n.dead >= 0:
		return fmt.Sprintf("%sneeds %s, and no catalog visible from namespace %s has one.", prefix, n.entry.requirements[n.dead].words(), p.in.Namespace)
	}
	return ""
}
