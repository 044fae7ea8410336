// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

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

func isTrue(b *bool) bool { return b != nil && *b }

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
