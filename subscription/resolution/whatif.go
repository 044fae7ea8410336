// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"reflect"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Changed returns the Input after changes, one after the other. in stays as it is. The error is an
// *olmcore.InputError that names what a change is about and the Input does not have.
func Changed(in Input, changes ...Change) (Input, error) { return model.Changed(in, changes...) }

// Difference is what changes make of the answer for a namespace.
type Difference struct {
	Before, After Result
	// Subscriptions are those for which the answers differ, sorted by name.
	Subscriptions []SubscriptionDifference
	// Added are the operators that are installed or upgraded after the changes only, Dropped those before them only;
	// both are sorted as in a Result.
	Added, Dropped []olmcore.Operator
}

// SubscriptionDifference is what becomes of one Subscription, before and after.
type SubscriptionDifference struct {
	Subscription  string
	Before, After Standing
}

// Standing is what an answer says of one Subscription; it is zero where the Subscription is not there.
type Standing struct {
	Target
	// HeldBack is why it does not get its best candidate, nil when it does.
	HeldBack *HeldBack
	// Failure says why there is no solution for it, "" when there is one.
	Failure string
}

// WhatIf resolves a namespace as it is and after changes, and compares the answers. The error is that of Changed.
func WhatIf(in Input, changes ...Change) (Difference, error) {
	changed, err := Changed(in, changes...)
	if err != nil {
		return Difference{}, err
	}
	return Compare(Resolve(in), Resolve(changed)), nil
}

// Compare returns how two answers for one namespace differ.
func Compare(before, after Result) Difference {
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

// Standing returns what the answer says of one Subscription; it is zero where the answer has none of the name.
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
		if s.Failure = strings.TrimSpace(s.Failure + " " + c.Summary); s.Failure == "" {
			s.Failure = c.Message
		}
	}
	if s.Failure == "" && r.Failure != nil {
		s.Failure = r.Failure.Message
	}
	return s
}
