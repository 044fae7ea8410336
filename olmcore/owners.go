// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerReferenceTo returns OLM's owner reference to an observed object: controller and blockOwnerDeletion are false.
func OwnerReferenceTo(owner Object) metav1.OwnerReference {
	ref := RefOf(owner)
	return metav1.OwnerReference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

// OwnedBy reports whether o has an owner reference with that UID. An empty UID owns nothing.
func OwnedBy(o metav1.Object, uid types.UID) bool {
	if uid == "" || o == nil {
		return false
	}
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// SameOwnerReference reports whether two owner references have the same fields. Nil and false are equal for controller
// and blockOwnerDeletion, as in the API server.
func SameOwnerReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		isTrue(a.Controller) == isTrue(b.Controller) && isTrue(a.BlockOwnerDeletion) == isTrue(b.BlockOwnerDeletion)
}

// RepairOwnerReferences returns the owner references in have, changed so that they contain each reference of want
// exactly once. It also reports whether it changed anything:
//   - A reference with the UID of a wanted reference, but with other fields, gets the wanted fields.
//   - Of several references with one UID, only the first is kept.
//   - A reference with the kind and name of a wanted reference, but with another UID, is replaced. Its owner was
//     deleted and created again.
//
// All other references stay in their order. New references follow, sorted by name and UID. A reference of want without
// a UID is ignored, because the API server rejects it. have is not modified. If nothing changes, have itself is
// returned.
func RepairOwnerReferences(have, want []metav1.OwnerReference) (repaired []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, true)
}

// AddOwnerReferences is like RepairOwnerReferences, but does not replace references with another UID. It removes only
// duplicates of a UID. Use it if the owners were not read completely.
func AddOwnerReferences(have, want []metav1.OwnerReference) (merged []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, false)
}

func mergeOwnerReferences(have, want []metav1.OwnerReference, replaceStale bool) ([]metav1.OwnerReference, bool) {
	want = slices.DeleteFunc(slices.Clone(want), func(r metav1.OwnerReference) bool { return r.UID == "" })
	slices.SortFunc(want, func(a, b metav1.OwnerReference) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	wanted, names := map[types.UID]metav1.OwnerReference{}, map[Key]bool{}
	for _, ref := range slices.Backward(want) { // the first reference with a UID counts
		wanted[ref.UID], names[ownerKey(ref)] = ref, true
	}
	merged, seen := make([]metav1.OwnerReference, 0, len(have)+len(want)), map[types.UID]bool{}
	add := func(ref metav1.OwnerReference) {
		if !seen[ref.UID] {
			seen[ref.UID] = true
			merged = append(merged, ref)
		}
	}
	for _, ref := range have {
		form, ok := wanted[ref.UID]
		if ok {
			ref = form
		} else if replaceStale && names[ownerKey(ref)] {
			continue // its owner was deleted and created again
		}
		add(ref)
	}
	for _, ref := range want {
		add(ref)
	}
	if slices.EqualFunc(have, merged, SameOwnerReference) {
		return have, false
	}
	return merged, true
}

func ownerKey(ref metav1.OwnerReference) Key {
	return Key{Group: groupOf(ref.APIVersion), Kind: ref.Kind, Name: ref.Name}
}

func isTrue(b *bool) bool { return b != nil && *b }

// AccountOf returns the ServiceAccount that installs operators in the namespace of an OperatorGroup, or nil if the
// group names none. A nil group names none. confirmed is false if the spec names a ServiceAccount, but the status does
// not contain it or contains one of another namespace. Then nothing may be installed, with any identity.
//
// Differs: OLM uses any account that the status names.
func AccountOf(g *operatorsv1.OperatorGroup) (account *corev1.ObjectReference, confirmed bool) {
	if g == nil || g.Spec.ServiceAccountName == "" {
		return nil, true
	}
	ref := g.Status.ServiceAccountRef
	if ref == nil || ref.Name != g.Spec.ServiceAccountName || ref.Namespace != "" && ref.Namespace != g.Namespace {
		return nil, false
	}
	return ref.DeepCopy(), true
}

// AnnotationCoOwnerPrefix is the prefix of annotations of a cluster-scoped object. They record the
// ClusterServiceVersions that the object was installed for, in addition to the owner in its labels. Each value is
// <namespace>/<name> or <namespace>/<name>/<uid>. Only steps of InstallPlans write them. A bundle cannot set them.
const AnnotationCoOwnerPrefix = KeyPrefix + "co-owner-"

// MaxCoOwners is the maximum number of co-owners that an object records. The total size of annotations is limited.
const MaxCoOwners = 50

// CoOwners returns the ClusterServiceVersions that annotations record as co-owners, sorted by namespace and name. The
// UID is empty if none is recorded. Malformed entries are omitted.
func CoOwners(annotations map[string]string) (owners []Owner) {
	for key, value := range annotations {
		parts := strings.Split(value, "/")
		if !strings.HasPrefix(key, AnnotationCoOwnerPrefix) || len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
			continue
		}
		owner := Owner{Kind: "ClusterServiceVersion", Namespace: parts[0], Name: parts[1]}
		if len(parts) == 3 {
			owner.UID = types.UID(parts[2])
		}
		if key == coOwnerKey(owner) {
			owners = append(owners, owner)
		}
	}
	slices.SortFunc(owners, func(a, b Owner) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return owners
}

// SetCoOwners returns a copy of annotations that records owners as the only co-owners. Owners beyond the first
// MaxCoOwners are omitted.
func SetCoOwners(annotations map[string]string, owners []Owner) map[string]string {
	after := maps.Clone(annotations)
	maps.DeleteFunc(after, func(key, _ string) bool { return strings.HasPrefix(key, AnnotationCoOwnerPrefix) })
	for _, owner := range owners[:min(len(owners), MaxCoOwners)] {
		if after == nil {
			after = map[string]string{}
		}
		value := owner.Namespace + "/" + owner.Name
		if owner.UID != "" {
			value += "/" + string(owner.UID)
		}
		after[coOwnerKey(owner)] = value
	}
	return after
}

func coOwnerKey(owner Owner) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner.Namespace + "/" + owner.Name))
	return fmt.Sprintf("%s%016x", AnnotationCoOwnerPrefix, h.Sum64())
}
