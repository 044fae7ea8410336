// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/versions"
	"github.com/olmcore/olm/olmcore"
)

// ownersOf returns the owner references that a target must have; a Verdict says that they
// cannot be told yet.
func ownersOf(w *world, t *Target) ([]metav1.OwnerReference, *Verdict) {
	refs := Owners(t.desired)
	if t.Kind.Owned {
		for _, name := range t.Versions {
			if !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.Name == name }) {
				refs = append(refs, versions.ReferenceTo(name))
			}
		}
	}
	follows := t.Kind.Labelled && slices.ContainsFunc(t.Versions, w.isToBeMade)
	var owners []metav1.OwnerReference
	for _, r := range refs {
		csv := w.known.Here[r.Name]
		switch {
		case w.isToBeMade(r.Name):
			follows = true
			continue
		case csv == nil || csv.UID == "":
			v := blocked("error generating ownerrefs for %s %s: clusterserviceversions.operators.coreos.com %q not found", t.Kind.Word, t.Key.Name, r.Name)
			return nil, &v
		case csv.DeletionTimestamp != nil:
			v := waiting("%sClusterServiceVersion %s", WaitingPrefix, r.Name)
			return nil, &v
		}
		r.UID = csv.UID
		owners = append(owners, r)
	}
	if follows {
		return nil, &Verdict{}
	}
	return owners, nil
}

// isToBeMade reports whether a ClusterServiceVersion is one that this plan is about to
// create.
func (w *world) isToBeMade(name string) bool {
	csv := w.known.Here[name]
	return w.planned[name] && (csv == nil || csv.UID == "")
}

// Owners reads which ClusterServiceVersions a manifest names as owners, each once and
// with its flags as they are. Other owners are left out: their UID is one of another
// cluster, and garbage collection would remove the object.
func Owners(m manifest.Manifest) []metav1.OwnerReference {
	list, _ := m.Metadata()["ownerReferences"].([]any)
	var refs []metav1.OwnerReference
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		text := func(key string) string { s, _ := fields[key].(string); return s }
		flag := func(key string) *bool {
			if b, ok := fields[key].(bool); ok {
				return &b
			}
			return nil
		}
		r := metav1.OwnerReference{
			APIVersion: text("apiVersion"), Kind: text("kind"), Name: text("name"),
			Controller: flag("controller"), BlockOwnerDeletion: flag("blockOwnerDeletion"),
		}
		if versions.IsReference(r) && r.Name != "" && !slices.ContainsFunc(refs, func(have metav1.OwnerReference) bool { return have.Name == r.Name }) {
			refs = append(refs, r)
		}
	}
	return refs
}

// encodeOwners returns owner references as JSON values.
func encodeOwners(owners []metav1.OwnerReference) []any {
	list := make([]any, len(owners))
	for i := range owners {
		list[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&owners[i]) // strings and bools always convert
	}
	return list
}

func ownedByAll(o olmcore.Object, owners []metav1.OwnerReference) bool {
	return !slices.ContainsFunc(owners, func(r metav1.OwnerReference) bool { return !olmcore.OwnedBy(o, r.UID) })
}

// isOthers reports that the observed object belongs to a ClusterServiceVersion that is
// neither the step's nor one that it takes over from. Deleting it would harm that one.
func isOthers(w *world, t *Target) bool {
	theirs := func(namespace, name string) bool {
		own := namespace == w.Plan.Namespace && slices.Contains(t.Versions, name)
		return !own && !w.known.Precedes(namespace, name, t.Versions)
	}
	if owner, owned := olmcore.OwnerOf(t.Observed.GetLabels()); owned && t.Kind.Labelled {
		return theirs(owner.Namespace, owner.Name)
	}
	return slices.ContainsFunc(t.Observed.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return versions.IsReference(r) && theirs(w.Plan.Namespace, r.Name)
	})
}
