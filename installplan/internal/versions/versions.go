// SPDX-License-Identifier: Apache-2.0

// Package versions finds the ClusterServiceVersions that a plan knows of, and says who
// replaces whom and who owns a CustomResourceDefinition.
package versions

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Known are the ClusterServiceVersions that a plan knows of.
type Known struct {
	// Namespace is the plan's.
	Namespace string
	// Here are those that exist in it, by name.
	Here map[string]*v1alpha1.ClusterServiceVersion
	// Elsewhere are those of other namespaces that definitions record.
	Elsewhere map[types.NamespacedName]*v1alpha1.ClusterServiceVersion
	// Announced are such that do not exist and that a plan in progress is to make.
	Announced []types.NamespacedName
	// Described are those that the steps of the plan describe, by name.
	Described map[string]*v1alpha1.ClusterServiceVersion
}

// At returns the ClusterServiceVersion that exists under a name, nil for none.
func (k Known) At(namespace, name string) *v1alpha1.ClusterServiceVersion {
	if namespace == k.Namespace {
		return k.Here[name]
	}
	return k.Elsewhere[types.NamespacedName{Namespace: namespace, Name: name}]
}

// IsAnnounced reports whether a plan in progress of another namespace is to make a
// ClusterServiceVersion.
func (k Known) IsAnnounced(namespace, name string) bool {
	return slices.Contains(k.Announced, types.NamespacedName{Namespace: namespace, Name: name})
}

// Of returns a ClusterServiceVersion of the plan's namespace as it exists or, where it
// does not, as the plan describes it; nil for neither.
func (k Known) Of(name string) *v1alpha1.ClusterServiceVersion {
	if csv := k.Here[name]; csv != nil {
		return csv
	}
	return k.Described[name]
}

// Precedes reports whether a ClusterServiceVersion is what one of own takes over from:
// an earlier one of its package.
func (k Known) Precedes(namespace, name string, own []string) bool {
	if namespace != k.Namespace || slices.Contains(own, name) {
		return false
	}
	return slices.ContainsFunc(own, func(o string) bool {
		csv := k.Of(o)
		return packagePrefix(o) == packagePrefix(name) || csv != nil && csv.Spec.Replaces == name
	})
}

// Replaced returns the names of own and of those that they replace or skip, directly or
// through others.
func (k Known) Replaced(own []string) map[string]bool {
	found := map[string]bool{}
	for open := slices.Clone(own); len(open) > 0; open = open[1:] {
		name := open[0]
		if name == "" || found[name] {
			continue
		}
		found[name] = true
		if csv := k.Of(name); csv != nil {
			open = append(append(open, csv.Spec.Replaces), csv.Spec.Skips...)
		}
	}
	return found
}

// Chain returns the names of the upgrade chain of a version that does not exist yet:
// those that are linked with it by what they replace. What does not exist links nothing.
func (k Known) Chain(version *v1alpha1.ClusterServiceVersion) map[string]bool {
	replaces := map[string]string{version.Name: version.Spec.Replaces}
	for _, csv := range k.Here {
		if !csv.IsCopied() {
			replaces[csv.Name] = csv.Spec.Replaces
		}
	}
	chain := map[string]bool{version.Name: true}
	for grown := true; grown; {
		grown = false
		for name, old := range replaces {
			if _, exists := replaces[old]; exists && chain[name] != chain[old] {
				chain[name], chain[old], grown = true, true, true
			}
		}
	}
	return chain
}

// OwnersHere returns the names of the live ClusterServiceVersions of the namespace that
// own a definition, sorted.
func (k Known) OwnersHere(crd string) []string {
	var owners []string
	for _, csv := range k.Here {
		if !csv.IsCopied() && csv.DeletionTimestamp == nil && Owns(csv, crd) {
			owners = append(owners, csv.Name)
		}
	}
	slices.Sort(owners)
	return owners
}

// Owns reports whether a ClusterServiceVersion lists a definition as its own.
func Owns(csv *v1alpha1.ClusterServiceVersion, crd string) bool {
	return slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd })
}

// IsNewer compares the versions of two ClusterServiceVersions of one package, as the
// part of their names before the first dot tells; false for others.
func IsNewer(a, b *v1alpha1.ClusterServiceVersion) bool {
	return packagePrefix(a.Name) == packagePrefix(b.Name) && a.Spec.Version.GT(b.Spec.Version.Version)
}

// packagePrefix is the package that the name of a ClusterServiceVersion tells.
func packagePrefix(name string) string {
	prefix, _, _ := strings.Cut(name, ".")
	return prefix
}

// ReferenceTo returns the owner reference to a ClusterServiceVersion that has no UID yet.
func ReferenceTo(name string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind, Name: name,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

// IsReference reports whether an owner reference names a ClusterServiceVersion.
func IsReference(r metav1.OwnerReference) bool {
	return r.Kind == v1alpha1.ClusterServiceVersionKind && strings.HasPrefix(r.APIVersion, v1alpha1.GroupName+"/")
}

// IsManaged reports whether an object was handed to OLM. What is not may be changed, but
// never owned and never deleted.
func IsManaged(o metav1.Object) bool {
	labels := o.GetLabels()
	return labels[olmcore.LabelManaged] == "true" || labels[olmcore.LabelOwner] != "" ||
		slices.ContainsFunc(o.GetOwnerReferences(), IsReference)
}
