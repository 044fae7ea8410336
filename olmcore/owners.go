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

// SameOwnerReference compares two owner references by value. Absent and false are the same for controller and
// blockOwnerDeletion, as they are for the API server.
func SameOwnerReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		isTrue(a.Controller) == isTrue(b.Controller) && isTrue(a.BlockOwnerDeletion) == isTrue(b.BlockOwnerDeletion)
}

// RepairOwnerReferences returns have so that it holds every reference of want exactly once and in want's form, and
// whether that changed anything. Entries with the UID of a wanted reference but another form are rewritten; duplicates
// of a UID are dropped; entries with a wanted reference's kind and name but another UID (an owner that was created
// anew) are replaced. Everything else stays, in its order; new entries follow, sorted by name and UID. References in
// want without a UID are left out: the API server refuses them. have is not written to; when nothing changes it is
// returned itself.
func RepairOwnerReferences(have, want []metav1.OwnerReference) (repaired []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, true)
}

// AddOwnerReferences is RepairOwnerReferences without the replacement of stale UIDs: nothing that is there is ever
// dropped but duplicates of one UID. Use it when the owners were not read completely.
func AddOwnerReferences(have, want []metav1.OwnerReference) (merged []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, false)
}

func mergeOwnerReferences(have, want []metav1.OwnerReference, replaceStale bool) ([]metav1.OwnerReference, bool) {
	want = slices.DeleteFunc(slices.Clone(want), func(r metav1.OwnerReference) bool { return r.UID == "" })
	slices.SortFunc(want, func(a, b metav1.OwnerReference) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	wanted, names := map[types.UID]metav1.OwnerReference{}, map[Key]bool{}
	for _, ref := range slices.Backward(want) { // the first of a UID counts
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
			continue // an owner that was created anew
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

// AccountOf returns the ServiceAccount that an OperatorGroup prescribes for what is installed in its namespace, nil
// when it prescribes none. confirmed is false when it prescribes one and its status does not name that account of its
// own namespace: nothing may be installed then, under any identity. A nil group prescribes none.
//
// Differs: OLM takes whatever account the status names.
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

// AnnotationCoOwnerPrefix starts the annotations in which a cluster-scoped object records the ClusterServiceVersions
// that it was installed for besides the one that its owner labels name. Each value is <namespace>/<name> or
// <namespace>/<name>/<uid>. Only steps of InstallPlans write them, and a bundle cannot bring them.
const AnnotationCoOwnerPrefix = KeyPrefix + "co-owner-"

// MaxCoOwners is how many co-owners an object records. Annotations of an object have a total size limit.
const MaxCoOwners = 50

// CoOwners returns the ClusterServiceVersions that annotations record as co-owners, sorted by namespace and name. The
// UID is empty where none is recorded. Malformed entries are left out.
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

// SetCoOwners returns annotations that record owners, and no other co-owners. More than MaxCoOwners are cut, the first
// are kept. annotations is not written to.
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
