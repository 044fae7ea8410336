// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// CoreOf words a contradiction.
func CoreOf(p *View, set search.Contradiction) Core {
	c := Core{Minimal: set.Minimal, Rules: rulesOf(p, set)}
	names := map[string]bool{}
	for _, r := range c.Rules {
		if r.Kind == model.SubscriptionExists {
			names[r.Subscription] = true
		}
	}
	for _, s := range p.Subs {
		if names[s.Object.Name] {
			c.Subscriptions = append(c.Subscriptions, s.Object.Name)
		}
	}
	slices.Sort(c.Subscriptions)
	c.Message = message(p, c.Rules)
	if text := unavailable(p, set); text != "" {
		c.Error, c.Message = true, text
	}
	c.Summary = summary(p, &c)
	return c
}

// rulesOf returns the rules of a set, sorted by text.
func rulesOf(p *View, set search.Contradiction) []Rule {
	var rules []Rule
	for _, id := range set.Rules {
		rules = append(rules, rule(p, p.Rules.Key(id)))
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Text, b.Text) })
	return rules
}

// unavailable returns OLM's text about catalogs without content when the set depends on what they may hold.
//
// Differs: OLM stops for every such catalog, whatever it could contribute.
func unavailable(p *View, set search.Contradiction) string {
	if len(p.Missing) == 0 {
		return ""
	}
	for _, id := range set.Rules {
		switch key := p.Rules.Key(id); key.Kind {
		case model.RuleImpossible:
			if m := missingOf(p, p.Subs[key.A]); m != nil {
				return model.CatalogError([]model.Source{*m})
			}
		case model.RuleBundle:
			if p.NodeOf(key.A).Choices[key.B].Total == 0 {
				return model.CatalogError(p.Missing)
			}
		}
	}
	return ""
}

// missingOf returns the catalog of a Subscription when it has no content.
func missingOf(p *View, s *model.Subscription) *model.Source {
	for i := range p.Missing {
		if key := p.Missing[i].Key; key.Name == s.Object.Spec.CatalogSource && key.Namespace == s.Object.Spec.CatalogSourceNamespace {
			return &p.Missing[i]
		}
	}
	return nil
}
