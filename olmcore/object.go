// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/nilcheck"
)

// Object is any Kubernetes API object: metadata plus the runtime methods. It is the method set of controller-runtime's
// client.Object, so values of either interface can be assigned to the other.
type Object interface {
	metav1.Object
	runtime.Object
}

// Ref names one object. APIVersion, Kind and Name are always set; Namespace is empty for cluster-scoped kinds. UID and
// ResourceVersion are preconditions: when set, an executor must refuse to act on any other incarnation (UID) or any
// other version (ResourceVersion) of the object.
type Ref struct {
	APIVersion      string    `json:"apiVersion"`
	Kind            string    `json:"kind"`
	Namespace       string    `json:"namespace,omitempty"`
	Name            string    `json:"name"`
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

// RefOf returns the reference of an observed object, with its UID and resourceVersion. The kind is taken from the
// object's Go type where Scheme knows it, else from its TypeMeta; for a nil object the zero Ref is returned. It does
// not allocate for known types.
func RefOf(o Object) Ref {
	if nilcheck.IsNil(o) {
		return Ref{}
	}
	names := namesOf(o)
	return Ref{
		APIVersion: names.apiVersion, Kind: names.gvk.Kind,
		Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
	}
}

// GVK returns the reference's group, version and kind.
func (r Ref) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// Key returns what identifies the object through all its versions and incarnations.
func (r Ref) Key() Key {
	return Key{Group: groupOf(r.APIVersion), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// Unversioned returns r without its resourceVersion, for deletes and references that mean the object whatever its
// version.
func (r Ref) Unversioned() Ref {
	r.ResourceVersion = ""
	return r
}

// String returns "Kind namespace/name", or "Kind name" without a namespace.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Compare orders references by kind, group, namespace, name and UID.
func (r Ref) Compare(s Ref) int {
	return cmp.Or(
		strings.Compare(r.Kind, s.Kind),
		strings.Compare(groupOf(r.APIVersion), groupOf(s.APIVersion)),
		strings.Compare(r.Namespace, s.Namespace),
		strings.Compare(r.Name, s.Name),
		strings.Compare(string(r.UID), string(s.UID)),
	)
}

// Key identifies an object independently of API version and incarnation. It is comparable, so it can be a map key.
type Key struct {
	Group, Kind, Namespace, Name string
}

// KeyOf returns the Key of an object; the zero Key for nil.
func KeyOf(o Object) Key {
	if nilcheck.IsNil(o) {
		return Key{}
	}
	gvk := GVKOf(o)
	return Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// String returns "Kind namespace/name", or "Kind name" without a namespace.
func (k Key) String() string {
	return Ref{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}.String()
}

// Compare orders keys by kind, group, namespace and name.
func (k Key) Compare(l Key) int {
	return cmp.Or(
		strings.Compare(k.Kind, l.Kind),
		strings.Compare(k.Group, l.Group),
		strings.Compare(k.Namespace, l.Namespace),
		strings.Compare(k.Name, l.Name),
	)
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// ExpandKeys replaces the wildcards in the keys that a package's Affected returned by the keys that exist: an empty
// Name stands for every known key of that Namespace, the zero key for every known key. The result is sorted and holds
// each key once; keys without wildcard stay, known or not.
func ExpandKeys(affected, known []types.NamespacedName) []types.NamespacedName {
	var out []types.NamespacedName
	for _, key := range affected {
		if key.Name != "" {
			out = append(out, key)
			continue
		}
		for _, k := range known {
			if key.Namespace == "" || key.Namespace == k.Namespace {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
