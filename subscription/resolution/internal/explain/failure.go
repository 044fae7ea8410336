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

// Core is one reason why there is no solution: a set of rules that contradict each other.
type Core struct {
	// Subscriptions contains the names of the Subscriptions that the rules concern, sorted. If it is empty, the Core
	// affects all Subscriptions.
	Subscriptions []string
	// Rules contains the rules, sorted by text. Minimal means that every rule is necessary for the contradiction. Minimal
	// is false if the limit of steps was reached before this was known.
	Rules   []Rule
	Minimal bool
	// Error means that the reason is not a contradiction: either a catalog is unavailable, or the limit of steps was
	// reached.
	Error bool
	// Message is the message that OLM would write for these rules.
	Message string
	// Summary describes the same reason as Message in a readable sentence.
	Summary  string
	Remedies []Remedy
}

// Rule is one rule that a solution must satisfy.
type Rule struct {
	Kind model.RuleKind
	// Text is OLM's text for the rule.
	Text string
	// Subscription, Bundle, Package, Channel, Version and Catalog name the objects of the rule. Fields that do not
	// apply are empty.
	Subscription                      string
	Bundle, Package, Channel, Version string
	Catalog                           types.NamespacedName
	// Objects contains OLM's identifiers of the candidates, or of the entries that exclude each other.
	Objects []string
	// Need describes the requirement of a rule of kind BundleRequires. FailureMessage is the message that the bundle's
	// author wrote for this requirement.
	Need, FailureMessage string
}

// Remedy is a change after which the Subscriptions can be resolved. Usually, the resolution was repeated with the
// change and succeeded. If the change needs unknown content, such as another catalog, that content is assumed to exist.
// Three kinds of Remedies are not tested: to retry with fewer bundles or more steps, to restore a catalog, and to ask a
// publisher for an upgrade.
type Remedy struct {
	Code RemedyCode
	// Object is the name of the ClusterServiceVersion, Subscription, package or catalog to change, or a description of
	// the missing requirement.
	Object string
	// Message is the advice as one sentence.
	Message string
	// Changes contains the arguments with which WhatIf applies the change to the Input. It is empty if the change cannot
	// be expressed, for example because it needs an unknown catalog.
	Changes []model.Change
}

// RemedyCode is the kind of a Remedy.
type RemedyCode string

// These are the kinds of remedies.
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

// HeldBack explains why a Subscription did not get its best candidate.
type HeldBack struct {
	Subscription string
	// Candidate is the bundle that the Subscription did not get. It is empty if there is no candidate.
	Candidate string
	// Also contains the next candidates that the Subscription did not get for the same reason, in order of preference.
	Also []string
	Code model.HeldBackCode
	// Blocker is the name of the Subscription, ClusterServiceVersion, package or catalog that blocks the candidate. It may
	// also be a version range and its source, or a description of the missing requirement.
	Blocker string
	// Summary explains the reason in one sentence. Rules contains the rules that exclude Candidate.
	Summary string
	Rules   []Rule
	// Remedies contains changes after which the Subscription gets Candidate.
	Remedies []Remedy
}

// Target contains the operators of one Subscription before and after a resolution.
type Target struct {
	Subscription string
	// Current is the installed operator before this resolution, or empty if there is none. Target is the operator after
	// this resolution, or empty if there is none.
	Current, Target string
	// Adopt means that the Subscription adopts Target, which exists already. The Decision sets status.currentCSV to
	// Target. Package subscription then observes that Target exists, and sets status.installedCSV.
	Adopt bool
}

// CoresFor returns the Cores that affect a Subscription: the Cores that name the Subscription, and the Cores that name
// no Subscription.
func CoresFor(cores []Core, subscription string) []Core {
	return slices.DeleteFunc(slices.Clone(cores), func(c Core) bool {
		return len(c.Subscriptions) > 0 && !slices.Contains(c.Subscriptions, subscription)
	})
}

// GivenUp returns a Core for Subscriptions that could not be decided within the given number of steps. If subs is
// empty, the Core is about the operators without Subscription.
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

// CoreOf returns a Core that describes a Contradiction.
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
