// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

// CSV is a short name for ClusterServiceVersion in the packages below csv.
type CSV = v1alpha1.ClusterServiceVersion

// ValidateCSV returns an *olmcore.InputError if c lacks its name, namespace or UID, or if now is zero. Otherwise it
// returns nil.
func ValidateCSV(c *CSV, now time.Time) error {
	switch {
	case c == nil:
		return &olmcore.InputError{Field: "ClusterServiceVersion", Problem: "is nil"}
	case c.Name == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.name", Problem: "is empty"}
	case c.Namespace == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.namespace", Problem: "is empty"}
	case c.UID == "":
		return &olmcore.InputError{Field: "ClusterServiceVersion.metadata.uid", Problem: "is empty, so no object could reference its owner"}
	case now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	return nil
}

// DeploymentNames returns the names of the Deployments in a CSV's install strategy.
func DeploymentNames(c *CSV) sets.Set[string] {
	names := sets.New[string]()
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		names.Insert(d.Name)
	}
	return names
}

// IsInstalledBy reports whether a Subscription has installed a CSV or is about to install it.
func IsInstalledBy(c *CSV, s *v1alpha1.Subscription) bool {
	return s.Namespace == c.Namespace && (s.Status.InstalledCSV == c.Name || s.Status.CurrentCSV == c.Name)
}

// IsLabelValue reports whether a name is a valid label value. If the name of an owner is not a valid label value, no
// object can have the owner labels of that owner.
func IsLabelValue(name string) bool { return len(validation.IsValidLabelValue(name)) == 0 }

// Find returns the object with the given namespace and name, or the zero value and false if there is none.
func Find[T metav1.Object](items []T, namespace, name string) (found T, ok bool) {
	for _, item := range items {
		if item.GetName() == name && item.GetNamespace() == namespace {
			return item, true
		}
	}
	return found, false
}

// IndexByName returns a map of the objects of a namespace. The keys are the names of the objects.
func IndexByName[T metav1.Object](items []T, namespace string) map[string]T {
	index := make(map[string]T, len(items))
	for _, item := range items {
		if item.GetNamespace() == namespace {
			index[item.GetName()] = item
		}
	}
	return index
}
