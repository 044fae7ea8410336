// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Change is a change of a namespace or its catalogs that may be made. Each field that is not zero is one.
type Change struct {
	// Subscription is the one that the fields up to Adopt are about.
	Subscription string
	// Package, Channel and Catalog are what it follows instead. With a Package, an empty Channel is all of its
	// channels, and there is no startingCSV.
	Package, Channel string
	Catalog          types.NamespacedName
	// StartingCSV is where it starts; a pointer to "" is the best.
	StartingCSV *string
	// VersionRange is the only range that holds it; a pointer to "" takes all away.
	VersionRange *string
	// Adopt is an existing ClusterServiceVersion that becomes the one that it has installed.
	Adopt string
	// Remove: the Subscription is gone; what it has installed stays.
	Remove bool
	// DeleteCSV is the name of a ClusterServiceVersion that is gone.
	DeleteCSV string
	// Content is the state of a catalog: in place of the one with its key, or a new one.
	Content *CatalogState `json:"-"` // what it holds is no JSON, and may be large
}

// Changed returns the Input after changes, one after the other. in stays as it is. The error is an *olmcore.InputError
// that names what a change is about and the Input does not have.
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
	if c.Package != "" {
		s.Spec.Package, s.Spec.Channel, s.Spec.StartingCSV = c.Package, "", ""
	}
	if c.StartingCSV != nil {
		s.Spec.StartingCSV = *c.StartingCSV
	}
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
	if c.Adopt == "" {
		return ""
	}
	if !slices.ContainsFunc(in.CSVs, func(csv *v1alpha1.ClusterServiceVersion) bool { return isCSV(in, csv, c.Adopt) }) {
		return "there is no ClusterServiceVersion " + c.Adopt
	}
	s.Status.CurrentCSV, s.Status.InstalledCSV = c.Adopt, c.Adopt
	in.InFlight = maps.Clone(in.InFlight)
	delete(in.InFlight, s.Name)
	return ""
}

func isCSV(in *Input, csv *v1alpha1.ClusterServiceVersion, name string) bool {
	return csv != nil && csv.Namespace == in.Namespace && csv.Name == name
}
