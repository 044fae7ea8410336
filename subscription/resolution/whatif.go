// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Change is a change of a namespace or its catalogs that somebody thinks about. Each
// field that is not zero is one.
type Change struct {
	// Subscription is the one that the fields up to Adopt are about.
	Subscription string
	// Channel and Catalog are what it follows instead.
	Channel string
	Catalog types.NamespacedName
	// VersionRange is the only range that holds it; a pointer to "" takes all away.
	VersionRange *string
	// Adopt is an existing ClusterServiceVersion that becomes the one that it has
	// installed.
	Adopt string
	// Remove: the Subscription is gone; what it has installed stays.
	Remove bool
	// DeleteCSV is the name of a ClusterServiceVersion that is gone.
	DeleteCSV string
	// Content is the state of a catalog: in place of the one with its key, or a new one.
	Content *CatalogState
}

// Changed returns the Input after changes, one after the other. in stays as it is.
// The error is an *olmcore.InputError that names what a change is about and the
// Input does not have.
func Changed(in Input, changes ...Change) (Input, error) {
	for i := range changes {
		if problem := changes[i].apply(&in); problem != "" {
			return Input{}, &olmcore.InputError{Field: fmt.Sprintf("changes[%d]", i), Problem: problem}
		}
	}
	return in, nil
}

// apply replaces what it changes by copies.
func (c *Change) apply(in *Input) (problem string) {
	if problem = c.applyToSubscription(in); problem != "" {
		return problem
	}
	if c.DeleteCSV != "" {
		csvs := slices.DeleteFunc(slices.Clone(in.CSVs), func(csv *v1alpha1.ClusterServiceVersion) bool { return isCSV(in, csv, c.DeleteCSV) })
		if len(csvs) == len(in.CSVs) {
			return "there is no ClusterServiceVersion " + c.DeleteCSV
		}
		in.CSVs = csvs
	}
	if c.Content != nil {
		others := slices.DeleteFunc(slices.Clone(in.Catalogs), func(s CatalogState) bool { return s.Key == c.Content.Key })
		in.Catalogs = append(others, *c.Content)
	}
	return ""
}

func (c *Change) applyToSubscription(in *Input) (problem string) {
	own := Change{DeleteCSV: c.DeleteCSV, Content: c.Content}
	if *c == own {
		return ""
	}
	at := slices.IndexFunc(in.Subscriptions, func(s *v1alpha1.Subscription) bool {
		return s != nil && s.Spec != nil && s.Namespace == in.Namespace && s.Name == c.Subscription
	})
	if at < 0 {
		return fmt.Sprintf("there is no Subscription %q", c.Subscription)
	}
	in.Subscriptions = slices.Clone(in.Subscriptions)
	if c.Remove {
		in.Subscriptions = slices.Delete(in.Subscriptions, at, at+1)
		return ""
	}
	s := in.Subscriptions[at].DeepCopy()
	in.Subscriptions[at] = s
	s.Spec.Channel = cmp.Or(c.Channel, s.Spec.Channel)
	s.Spec.CatalogSource = cmp.Or(c.Catalog.Name, s.Spec.CatalogSource)
	s.Spec.CatalogSourceNamespace = cmp.Or(c.Catalog.Namespace, s.Spec.CatalogSourceNamespace)
	if c.VersionRange != nil {
		in.Pins = slices.DeleteFunc(slices.Clone(in.Pins), func(p Pin) bool { return p.Subscription == s.Name })
		delete(s.Annotations, AnnotationVersionRange)
		if *c.VersionRange != "" {
			in.Pins = append(in.Pins, Pin{Subscription: s.Name, Range: *c.VersionRange})
		}
	}
	if c.Adopt != "" {
		if !slices.ContainsFunc(in.CSVs, func(csv *v1alpha1.ClusterServiceVersion) bool { return isCSV(in, csv, c.Adopt) }) {
			return "there is no ClusterServiceVersion " + c.Adopt
		}
		s.Status.CurrentCSV, s.Status.InstalledCSV = c.Adopt, c.Adopt
		in.InFlight = maps.Clone(in.InFlight)
		delete(in.InFlight, s.Name)
	}
	return ""
}

func isCSV(in *Input, csv *v1alpha1.ClusterServiceVersion, name string) bool {
	return csv != nil && csv.Namespace == in.Namespace && csv.Name == name
}

// Difference is what changes make of the answer for a namespace.
type Difference struct {
	Before, After Result
	// Subscriptions are those for which the answers differ, sorted by name.
	Subscriptions []SubscriptionDifference
	// Added are the operators that are installed or upgraded after the changes only,
	// Dropped those before them only; both are sorted as in a Result.
	Added, Dropped []olmcore.Operator
}

// SubscriptionDifference is what becomes of one Subscription, before and after.
type SubscriptionDifference struct {
	Subscription  string
	Before, After Standing
}

// Standing is what an answer says of one Subscription; it is zero where the
// Subscription is not there.
type Standing struct {
	Target
	// HeldBack is why it does not get its best candidate, nil when it does.
	HeldBack *HeldBack
	// Failure says why there is no solution for it, "" when there is one.
	Failure string
}

// WhatIf resolves a namespace as it is and after changes, and compares the answers. The
// error is that of Changed.
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
	was, is := before.standings(), after.standings()
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !reflect.DeepEqual(was[name], is[name]) {
			d.Subscriptions = append(d.Subscriptions, SubscriptionDifference{Subscription: name, Before: was[name], After: is[name]})
		}
	}
	d.Added, d.Dropped = without(after.Operators, before.Operators), without(before.Operators, after.Operators)
	return d
}

// without returns the operators of a list that another does not have.
func without(list, other []olmcore.Operator) []olmcore.Operator {
	same := func(a, b olmcore.Operator) bool {
		return a.Name == b.Name && a.Package == b.Package && a.Channel == b.Channel && a.Catalog == b.Catalog
	}
	return slices.DeleteFunc(slices.Clone(list), func(a olmcore.Operator) bool {
		return slices.ContainsFunc(other, func(b olmcore.Operator) bool { return same(a, b) })
	})
}

// standings returns what an answer says of each Subscription.
func (r *Result) standings() map[string]Standing {
	standings := make(map[string]Standing, len(r.Targets))
	for _, t := range r.Targets {
		standings[t.Subscription] = r.Standing(t.Subscription)
	}
	return standings
}

// Standing returns what the answer says of one Subscription.
func (r *Result) Standing(subscription string) (s Standing) {
	for _, t := range r.Targets {
		if t.Subscription == subscription {
			s.Target = t
		}
	}
	for i := range r.HeldBack {
		if r.HeldBack[i].Subscription == subscription {
			s.HeldBack = &r.HeldBack[i]
		}
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
