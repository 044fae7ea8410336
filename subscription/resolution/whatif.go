// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"reflect"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Difference compares two Results of one namespace, for example before and after changes.
type Difference struct {
	Before, After Result
	// Subscriptions contains the Subscriptions whose Standing differs, sorted by name.
	Subscriptions []SubscriptionDifference
	// Added contains the operators that only the Result After installs or upgrades. Dropped contains the operators that
	// only the Result Before installs or upgrades. Both lists have the order of Result.Operators.
	Added, Dropped []olmcore.Operator
}

// SubscriptionDifference contains the Standing of one Subscription before and after the changes.
type SubscriptionDifference struct {
	Subscription  string
	Before, After Standing
}

// Standing is the part of a Result that concerns one Subscription. It is zero if the Subscription does not exist.
type Standing struct {
	Target
	// HeldBack explains why the Subscription does not get its best candidate. It is nil if the Subscription gets its best
	// candidate.
	HeldBack *HeldBack
	// Failure explains why there is no solution for the Subscription. It is empty if there is a solution.
	Failure string
}

// WhatIf resolves a namespace before and after the changes and compares the Results. It does
// not modify in. It returns an *olmcore.InputError if a change names a Subscription or ClusterServiceVersion that in
// does not contain.
func WhatIf(in Input, changes ...Change) (Difference, error) {
	changed, err := model.Changed(in, changes...)
	if err != nil {
		return Difference{}, err
	}
	return compare(Resolve(in), Resolve(changed)), nil
}

// compare returns the differences between two Results of one namespace.
func compare(before, after Result) Difference {
	d := Difference{Before: before, After: after}
	var names []string
	for _, t := range slices.Concat(before.Targets, after.Targets) {
		names = append(names, t.Subscription)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, is := before.Standing(name), after.Standing(name)
		if !reflect.DeepEqual(was, is) {
			d.Subscriptions = append(d.Subscriptions, SubscriptionDifference{Subscription: name, Before: was, After: is})
		}
	}
	d.Added, d.Dropped = without(after.Operators, before.Operators), without(before.Operators, after.Operators)
	return d
}

// without returns the operators of a list that another does not have.
func without(list, other []olmcore.Operator) []olmcore.Operator {
	return slices.DeleteFunc(slices.Clone(list), func(a olmcore.Operator) bool {
		return slices.ContainsFunc(other, func(b olmcore.Operator) bool {
			return a.Name == b.Name && a.Package == b.Package && a.Channel == b.Channel && a.Catalog == b.Catalog
		})
	})
}

// Standing returns the part of the Result that concerns one Subscription. It returns the zero value if the Result has
// no Subscription of that name.
func (r *Result) Standing(subscription string) (s Standing) {
	i := slices.IndexFunc(r.Targets, func(t Target) bool { return t.Subscription == subscription })
	if i < 0 {
		return Standing{}
	}
	s.Target = r.Targets[i]
	if i := slices.IndexFunc(r.HeldBack, func(h HeldBack) bool { return h.Subscription == subscription }); i >= 0 {
		s.HeldBack = &r.HeldBack[i]
	}
	for _, c := range r.CoresFor(subscription) {
		s.Failure = strings.TrimSpace(s.Failure + " " + c.Summary)
		if s.Failure == "" {
			s.Failure = c.Message
		}
	}
	if s.Failure == "" && r.Failure != nil {
		s.Failure = r.Failure.Message
	}
	return s
}
