// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery is the discovery API of a Cluster: the kinds that it serves.
type Discovery struct{ cluster *Cluster }

// Discovery returns the discovery API.
func (c *Cluster) Discovery() Discovery { return Discovery{c} }

// ServedKind is a kind that the API server serves in one version.
type ServedKind struct {
	schema.GroupVersionKind
	// Resource is the plural name in URLs.
	Resource   string
	Namespaced bool
	// Status reports whether the kind has a status subresource.
	Status bool
}

// Kinds returns the served kinds, one entry for each version, sorted by group, kind and version: the kinds of
// Kubernetes and of OLM, always, and those of established CRDs.
func (d Discovery) Kinds() []ServedKind {
	var served []ServedKind
	for _, t := range d.cluster.store.All() {
		for _, version := range t.Kind.Versions {
			served = append(served, ServedKind{
				GroupVersionKind: t.Kind.GroupKind().WithVersion(version),
				Resource:         t.Kind.Resource, Namespaced: t.Kind.Namespaced, Status: t.Kind.HasStatus,
			})
		}
	}
	slices.SortFunc(served, func(a, b ServedKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Version, b.Version))
	})
	return served
}

// Serves reports whether the API server serves a kind in its version.
func (d Discovery) Serves(gvk schema.GroupVersionKind) bool {
	_, err := d.cluster.store.Served(gvk)
	return err == nil
}

// Serve makes the API server serve a custom kind without a CRD object, with a status subresource.
func (d Discovery) Serve(gvk schema.GroupVersionKind, namespaced bool) {
	d.cluster.store.Serve(gvk, namespaced)
}
