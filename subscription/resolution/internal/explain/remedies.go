// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"

	"github.com/olmcore/olm/internal/printable"
)

// conflict is a contradiction that remedies are proposed for.
type conflict struct {
	rules []model.Rule
	found search.Contradiction
	subs  []*model.Subscription // the oldest first
	// candidate is the entry that the only Subscription should get. If its Entry is nil, any candidate is enough.
	candidate model.Ref
}

// proposal is a Remedy that has to be tried.
type proposal struct {
	model.Remedy
	search.Attempt
}

// order is the order of the kinds of remedies.
var order = []model.RemedyCode{
	model.AddCatalog, model.RepairCatalog, model.ChangePin, model.ChangePackage, model.ChangeChannel,
	model.DeleteOrphanCSV, model.AdoptOrphanCSV, model.ApproveOrFixFailed, model.RemoveConflictingSubscription,
}

// mostChecked bounds the proposals that are tried for one conflict.
const mostChecked = 12

// RemediesFor returns the remedies for a contradiction. Call it only after all contradictions are known, because it
// ignores the Subscriptions that failed because of another contradiction.
func RemediesFor(v *search.View, core *model.Core, found search.Contradiction, budget *search.Budget) []model.Remedy {
	c := conflict{rules: core.Rules, found: found}
	c.subs = slices.DeleteFunc(slices.Clone(v.Subs), func(s *model.Subscription) bool {
		return !slices.Contains(core.Subscriptions, s.Object.Name)
	})
	return c.remedies(v, causes, budget)
}

// remedies returns the proposals of a table that help. Each of them was tried: with it, the Subscriptions are served.
func (c *conflict) remedies(v *search.View, table []cause, budget *search.Budget) (list []model.Remedy) {
	var proposals []proposal
	for _, row := range table {
		rules := slices.DeleteFunc(slices.Clone(c.rules), func(r model.Rule) bool { return !row.has(&r) })
		if row.remedies != nil && len(rules) > 0 {
			proposals = append(proposals, row.remedies(v, c, rules)...)
		}
	}
	slices.SortStableFunc(proposals, func(a, b proposal) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Code), slices.Index(order, b.Code)), cmp.Compare(a.Object, b.Object))
	})
	for _, p := range proposals[:min(len(proposals), mostChecked)] {
		same := func(r model.Remedy) bool { return r.Code == p.Code && r.Object == p.Object && r.Message == p.Message }
		p.For, p.Candidate = c.subs, c.candidate
		if v.Helps(p.Attempt, budget) && !slices.ContainsFunc(list, same) {
			list = append(list, p.Remedy)
		}
	}
	return list
}

// leaving proposes a change that gives a Subscription what it lacks. It helps if the others are served without the
// Subscription.
func leaving(s *model.Subscription, code model.RemedyCode, object, format string, args ...any) proposal {
	return proposal{model.Remedy{Code: code, Object: object, Message: advise(format, args...)},
		search.Attempt{Scope: func(scope *model.Scope) { scope.LeaveOut(s) }}}
}

// changing proposes changes of the input.
func changing(code model.RemedyCode, object string, changes []model.Change, format string, args ...any) proposal {
	return proposal{model.Remedy{Code: code, Object: object, Message: advise(format, args...), Changes: changes},
		search.Attempt{Changes: changes}}
}

// enumeration is a list of names that are quoted already.
type enumeration string

// advise formats a sentence of advice, and quotes the names among its arguments.
func advise(format string, args ...any) string {
	for i, arg := range args {
		if name, isName := arg.(string); isName {
			args[i] = printable.Name(name)
		}
	}
	return fmt.Sprintf(format, args...)
}

// forUnmet proposes catalogs with operators that meet the unmet requirements.
func forUnmet(v *search.View, c *conflict, rules []model.Rule) (list []proposal) {
	unmet := v.Unmet(c.found.Rules)
	for _, r := range rules {
		list = append(list, proposal{
			model.Remedy{Code: model.AddCatalog, Object: r.Need, Message: fmt.Sprintf("Add a catalog that has %s.", r.Need)},
			search.Attempt{Scope: func(s *model.Scope) { s.Waive(unmet...) }}})
	}
	return list
}

// forExisting proposes to delete or adopt the existing operators of the Subscriptions' packages that no Subscription
// refers to, and to repair the Subscriptions for which the others remain.
func forExisting(v *search.View, c *conflict, rules []model.Rule) (list []proposal) {
	var orphans []model.Change
	for _, r := range rules {
		deletion := model.Change{DeleteCSV: r.Bundle}
		if kept := keptFor(v, r.Bundle); kept != nil {
			repair := changing(model.ApproveOrFixFailed, r.Bundle, []model.Change{deletion}, "Repair Subscription %s first.", kept.Object.Name)
			repair.Remedy.Changes = nil // the deletion has the effect of the repair, and is not the advice
			list = append(list, repair)
			continue
		}
		i := slices.IndexFunc(c.subs, func(s *model.Subscription) bool { return s.Object.Spec.Package == r.Package })
		if i < 0 {
			continue
		}
		orphans = append(orphans, deletion)
		if s := c.subs[i]; s.Current == nil {
			list = append(list, changing(model.AdoptOrphanCSV, r.Bundle, []model.Change{{Subscription: s.Object.Name, Adopt: r.Bundle}},
				"Adopt ClusterServiceVersion %s: set status.installedCSV of Subscription %s to it.", r.Bundle, s.Object.Name))
		}
	}
	for _, orphan := range orphans {
		list = append(list, changing(model.DeleteOrphanCSV, orphan.DeleteCSV, orphans,
			"Delete ClusterServiceVersion %s, so that its Subscription can install it again.", orphan.DeleteCSV))
	}
	return list
}

// forSubscriptions proposes to remove a Subscription that contradicts others, or an older one that keeps what another
// one wants.
func forSubscriptions(v *search.View, c *conflict, rules []model.Rule) (list []proposal) {
	if c.candidate.Entry == nil {
		if len(c.subs) < 2 {
			return nil
		}
		var names []string
		for _, s := range c.subs {
			names = append(names, s.Object.Name)
		}
		slices.Sort(names)
		last := c.subs[len(c.subs)-1]
		return []proposal{leaving(last, model.RemoveConflictingSubscription, last.Object.Name,
			"Remove one of the Subscriptions %s, for example the youngest, %s, or let it follow another channel.",
			enumeration(model.Enumerate(names, " and ")), last.Object.Name)}
	}
	for _, r := range rules {
		s := v.SubscriptionNamed(r.Subscription)
		if s == c.subs[0] {
			continue
		}
		changes := []model.Change{{Subscription: r.Subscription, Remove: true}}
		if s.Current != nil { // its operator is deleted with it
			changes = append(changes, model.Change{DeleteCSV: s.Current.Object.Name})
		}
		list = append(list, changing(model.RemoveConflictingSubscription, r.Subscription, changes,
			"Remove Subscription %s, or let it follow another channel.", r.Subscription))
	}
	return list
}

// missingEdge asks the publisher for an upgrade from an installed operator that no entry of its channel upgrades.
func missingEdge(s *model.Subscription) model.Remedy {
	catalog, head := catalogOf(s), s.HeadToReach()
	return model.Remedy{Code: model.RepairCatalog, Object: catalog, Message: advise("Ask the publisher of catalog %s for an upgrade from %s: "+
		"%s, or an entry on the way to it, must replace it, skip it or have a skipRange for it.", catalog, s.Current.Object.Name, head)}
}
