// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// Core is one reason why there is no solution: rules that contradict each other.
type Core struct {
	// Subscriptions are the names of those that the rules are about, sorted.
	Subscriptions []string
	// Rules are the rules, sorted by text. When Minimal, leaving any one out would make the others satisfiable;
	// otherwise the step budget ran out before.
	Rules   []Rule
	Minimal bool
	// Error: this is not a contradiction but something that prevented an answer; trying again later may help.
	Error bool
	// Message is the text that OLM would write for these rules.
	Message string
	// Summary says the same for a person.
	Summary  string
	Remedies []Remedy
}

// Rule is one demand.
type Rule struct {
	Kind model.RuleKind
	// Text is OLM's text for it.
	Text string
	// Subscription, Bundle, Package, Channel and Catalog say what it is about, as far as it is about one.
	Subscription                      string
	Bundle, Package, Channel, Version string
	Catalog                           types.NamespacedName
	// Objects are the identifiers of the candidates, or of what excludes each other.
	Objects []string
	// Need says in words what a BundleRequires rule looks for; FailureMessage is what the bundle's author says about it.
	Need, FailureMessage string
}

// Remedy is a change that helps: the Subscriptions were resolved with it before it is named. Where it needs content
// that is not known, such as another catalog, that was taken to be there.
type Remedy struct {
	Code RemedyCode
	// Object is the name of what it is about: a ClusterServiceVersion, a Subscription, a package or a catalog.
	Object string
	// Message says it for a person.
	Message string
	// Changes are what it does to the Input, for WhatIf; none where that cannot be said, such as for a catalog that
	// is to be found.
	Changes []model.Change
}

// RemedyCode is what kind of help a Remedy is.
type RemedyCode string

// Remedies.
const (
	AddCatalog                    RemedyCode = "AddCatalog"
	ChangeChannel                 RemedyCode = "ChangeChannel"
	ChangePackage                 RemedyCode = "ChangePackage"
	RepairCatalog                 RemedyCode = "RepairCatalog"
	ChangePin                     RemedyCode = "ChangePin"
	AdoptOrphanCSV                RemedyCode = "AdoptOrphanCSV"
	DeleteOrphanCSV               RemedyCode = "DeleteOrphanCSV"
	RemoveConflictingSubscription RemedyCode = "RemoveConflictingSubscription"
	ApproveOrFixFailed            RemedyCode = "ApproveOrFixFailed"
)

// HeldBack says why a Subscription did not get its best candidate.
type HeldBack struct {
	Subscription string
	// Candidate is the bundle that it did not get; "" when there is none.
	Candidate string
	// Also are the next ones in its order that it did not get for the same reason.
	Also []string
	Code model.HeldBackCode
	// Blocker is the name of what stands in the way: a Subscription, a ClusterServiceVersion, a package or a catalog;
	// or the version range, and where it stands.
	Blocker string
	// Summary says it for a person. Rules are why the candidate is impossible.
	Summary string
	Rules   []Rule
	// Remedies would give it Candidate.
	Remedies []Remedy
}

// Target is where one Subscription ends.
type Target struct {
	Subscription string
	// Current is the installed operator that it starts from, Target the one that it has after this resolution; "" is none.
	Current, Target string
	// Adopt: Target exists already and becomes the Subscription's. Its Decision names it as the new
	// status.currentCSV; package subscription, which sees that it exists, then writes status.installedCSV.
	Adopt bool
}

// CoresFor returns the reasons that name a Subscription, and those that name none and so stop all of them.
func CoresFor(cores []Core, subscription string) []Core {
	return slices.DeleteFunc(slices.Clone(cores), func(c Core) bool {
		return len(c.Subscriptions) > 0 && !slices.Contains(c.Subscriptions, subscription)
	})
}

// GivenUp says that Subscriptions were not decided within some steps. They are none when there is nothing to leave out.
func GivenUp(p *View, subs []*model.Subscription, steps int) Core {
	c := Core{Error: true, Message: fmt.Sprintf("resolution stopped after %d steps", p.Policy.Steps())}
	if len(subs) == 0 {
		c.Summary = fmt.Sprintf("Namespace %s was not decided within %d steps: its operators without Subscription exclude each other in too many ways.", p.In.Namespace, steps)
		return c
	}
	var what []string
	for _, s := range subs {
		c.Subscriptions = append(c.Subscriptions, s.Object.Name)
		c.Rules = append(c.Rules, Exists(s))
		what = append(what, tried(s))
		c.Remedies = append(c.Remedies, Remedy{Code: ChangeChannel, Object: s.Object.Name, Message: fmt.Sprintf("Let Subscription %s follow a channel with fewer bundles, or name one in spec.startingCSV; or resolve with a higher Policy.MaxSteps.", s.Object.Name)})
	}
	slices.Sort(c.Subscriptions)
	slices.SortFunc(c.Rules, func(a, b Rule) int { return strings.Compare(a.Text, b.Text) })
	c.Summary = fmt.Sprintf("%s was not decided within %d steps: %s was tried, together with what older Subscriptions can have.", who(c.Subscriptions, p.In.Namespace), steps, someNames(what))
	return c
}

func tried(s *model.Subscription) string {
	var list []string
	for r := range s.Choice.Refs {
		list = append(list, r.Entry.Name)
	}
	if len(list) > 2 {
		return fmt.Sprintf("each of the %d candidates from %s to %s", len(list), list[0], list[len(list)-1])
	}
	return enumerate(list, " and ")
}

// CoreOf words a contradiction.
func CoreOf(p *View, set search.Contradiction) Core {
	c := Core{Minimal: set.Minimal, Rules: rulesOf(p, set)}
	for _, r := range c.Rules {
		if r.Kind == model.SubscriptionExists {
			c.Subscriptions = append(c.Subscriptions, r.Subscription)
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

func rulesOf(p *View, set search.Contradiction) []Rule {
	var rules []Rule
	for _, id := range set.Rules {
		r := rule(p, p.Rules.Keys[id])
		p.Count(32 + len(r.Objects)/4)
		rules = append(rules, r)
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
		switch key := p.Rules.Keys[id]; key.Kind {
		case model.RuleImpossible:
			if m := missingOf(p, p.Subs[key.A]); m != nil {
				return model.CatalogError([]model.Source{*m})
			}
		case model.RuleBundle:
			if p.Nodes[key.A].Choices[key.B].Total == 0 {
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
