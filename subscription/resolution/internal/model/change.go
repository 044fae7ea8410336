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

// Change is a possible change of a namespace or its catalogs. Each field that is not zero is applied.
type Change struct {
	// Subscription is the name of the Subscription to change. The fields from Package to Remove describe the change.
	Subscription string
	// Package, Channel and Catalog replace the values in the spec of the Subscription. If Package is set, startingCSV is
	// cleared. If Package is set and Channel is empty, all channels of the package are allowed.
	Package, Channel string
	Catalog          types.NamespacedName
	// StartingCSV replaces spec.startingCSV. A pointer to "" clears it.
	StartingCSV *string
	// VersionRange replaces all version ranges of the Subscription. A pointer to "" removes them.
	VersionRange *string
	// Adopt is the name of an existing ClusterServiceVersion that becomes the installed operator of the Subscription.
	Adopt string
	// Remove deletes the Subscription. Its installed operator remains.
	Remove bool
	// DeleteCSV is the name of a ClusterServiceVersion to delete.
	DeleteCSV string
	// Content replaces the state of the catalog with the same key, or adds a catalog.
	Content *CatalogState `json:"-"` // omitted from JSON: the indexed content has no JSON form, and may be large
}

// Changed returns a copy of in with the changes applied in order. It does not modify in. It returns an
// *olmcore.InputError if a change names a Subscription or ClusterServiceVersion that in does not contain.
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
		s.Spec.Package, s.Spec.Channel = c.Package, ""
		s.Spec.StartingCSV = ""
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
