// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// candidates finds what each Subscription can end with, in order of preference.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, getSubscriptionVariables.
func (p *problem) candidates() {
	p.subsOver = map[*catalogPackage][]*subscription{}
	for _, s := range p.subs {
		s.choice = &choice{sub: s, owner: s.index}
		p.candidatesOf(s)
		if s.current != nil && s.pkg != nil {
			p.subsOver[s.pkg] = append(p.subsOver[s.pkg], s)
		}
		p.stats.Candidates += s.choice.total
	}
}

func (p *problem) candidatesOf(s *subscription) {
	code, text := p.locate(s)
	if code == "" && s.held == "" {
		code, text = p.catalogCandidates(s)
	}
	if code != "" && s.held == "" {
		if s.current == nil || p.policy.FailOnMissingCatalog {
			s.impossible, s.impossibleCode = text, code
			return
		}
		s.held, s.heldText = code, text
	}
	if s.current != nil {
		s.choice.add(segment{existingSource, []*entry{s.current.entry}})
	} else if p.policy.AdoptSameBundle {
		p.adoptable(s)
	}
}

// locate finds the catalog and the package of a Subscription. A code says what
// is missing, with OLM's text.
func (p *problem) locate(s *subscription) (code HeldBackCode, text string) {
	spec, name := s.object.Spec, s.object.Name
	switch {
	case spec.Package == "":
		return PackageMissing, fmt.Sprintf("subscription %s has no package", name)
	case spec.CatalogSource == "" || spec.CatalogSourceNamespace == "":
		return CatalogMissing, fmt.Sprintf("subscription %s has no catalog", name)
	}
	index, _ := p.sourceOf(types.NamespacedName{Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource})
	if index == noSource || len(p.sources[index].content.sorted) == 0 {
		return CatalogMissing, fmt.Sprintf("no operators found from catalog %s in namespace %s referenced by subscription %s", spec.CatalogSource, spec.CatalogSourceNamespace, name)
	}
	s.source = index
	s.pkg = p.sources[index].content.packages[spec.Package]
	if s.pkg == nil || !s.pkg.hasEntries() {
		s.pkg = nil
		return PackageMissing, fmt.Sprintf("no operators found in package %s in the catalog referenced by subscription %s", spec.Package, name)
	}
	return "", ""
}

func (p *catalogPackage) hasEntries() bool {
	return slices.ContainsFunc(p.channels, func(ch *channel) bool { return len(ch.byName) > 0 })
}

// catalogCandidates adds the entries of the Subscription's package and channel.
func (p *problem) catalogCandidates(s *subscription) (code HeldBackCode, text string) {
	spec, name := s.object.Spec, s.object.Name
	channels := s.pkg.channels
	if spec.Channel != "" {
		ch := s.pkg.channel(spec.Channel)
		if ch == nil || len(ch.byName) == 0 {
			return ChannelMissing, fmt.Sprintf("no operators found in channel %s of package %s in the catalog referenced by subscription %s", spec.Channel, spec.Package, name)
		}
		channels = []*channel{ch}
	}
	if s.current == nil && spec.StartingCSV != "" {
		for _, ch := range channels {
			if e := ch.byName[spec.StartingCSV]; e != nil {
				s.upgrades = append(s.upgrades, e)
			}
		}
		if len(s.upgrades) == 0 {
			return ChannelMissing, fmt.Sprintf("no operators found with name %s in channel %s of package %s in the catalog referenced by subscription %s", spec.StartingCSV, spec.Channel, spec.Package, name)
		}
		p.offerCatalog(s)
		return "", ""
	}
	if i := slices.IndexFunc(channels, func(ch *channel) bool { return ch.malformed == "" }); i < 0 {
		return ChannelMalformed, channels[0].malformed
	}
	switch {
	case s.current != nil:
		p.upgrades(s, channels)
	case spec.Channel != "":
		s.upgrades = channels[0].chain
	default:
		s.upgrades = s.pkg.chains
	}
	p.offerCatalog(s)
	if s.choice.total == 0 && s.current == nil {
		return PackageMissing, fmt.Sprintf("no operators found matching the criteria of subscription %s", name)
	}
	return "", ""
}

// offerCatalog adds the catalog's candidates to the choice: the one whose plan is on
// its way first.
func (p *problem) offerCatalog(s *subscription) {
	if bundle := p.in.InFlight[s.object.Name]; bundle != "" {
		if i := slices.IndexFunc(s.upgrades, func(e *entry) bool { return e.name == bundle }); i > 0 {
			reordered := make([]*entry, 0, len(s.upgrades))
			reordered = append(append(append(reordered, s.upgrades[i]), s.upgrades[:i]...), s.upgrades[i+1:]...)
			s.upgrades = reordered
		}
	}
	s.choice.add(segment{s.source, s.upgrades})
}

// upgrades collects the entries with an upgrade edge from the current operator.
func (p *problem) upgrades(s *subscription, channels []*channel) {
	current := s.current.entry
	atHead := false
	for _, ch := range channels {
		chain := ch.chain
		installed := ch.byName[current.name]
		ordered := installed != nil && installed.position >= 0
		if ordered && installed.position == 0 {
			atHead = true
		}
		if ordered && !p.policy.AllowBackwardSkipRange {
			chain = chain[:installed.position]
		}
		for _, e := range chain {
			if p.upgradesFrom(e, current, ordered) {
				s.upgrades = append(s.upgrades, e)
			}
		}
	}
	if len(s.upgrades) == 0 && !atHead {
		s.held = NoUpgradeEdge
		s.heldText = fmt.Sprintf("nothing in the channel replaces, skips or has a skipRange for %s", current.name)
	}
}

// upgradesFrom reports whether there is an upgrade edge from an installed
// operator to e. ordered: the chain of e's channel says that e is newer.
//
// Differs: unless the policy says otherwise, a skipRange never leads to the
// installed operator itself or to an older one.
func (p *problem) upgradesFrom(e, installed *entry, ordered bool) bool {
	if (e.replaces != "" && e.replaces == installed.name) || slices.Contains(e.skips, installed.name) {
		return true
	}
	if e.skip == nil || !e.skip.contains(installed.version) {
		return false
	}
	return p.policy.AllowBackwardSkipRange || ordered || (e.hasVersion && e.version.GT(installed.version))
}

// adoptable offers an existing operator that nobody owns as the last candidate.
func (p *problem) adoptable(s *subscription) {
	for _, e := range s.upgrades {
		c := p.byName[e.name]
		if c == nil || c.leftOut || len(c.owners) > 0 || c.entry.pkg != e.pkg || !c.entry.version.Equals(e.version) {
			continue
		}
		if _, annotated := c.object.Annotations[propertiesAnnotation]; annotated {
			s.choice.add(segment{existingSource, []*entry{c.entry}})
			return
		}
	}
}
