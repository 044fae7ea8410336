// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// AnnotationCoOwnerPrefix starts the annotations in which a cluster-scoped object records the ClusterServiceVersions that
// it was installed for besides the one that its owner labels name. Each value is <namespace>/<name> or
// <namespace>/<name>/<uid>. Only steps of InstallPlans write them, and a bundle cannot bring them.
const AnnotationCoOwnerPrefix = KeyPrefix + "co-owner-"

// MaxCoOwners is how many co-owners an object records. Annotations of an object have a total size limit.
const MaxCoOwners = 50

// CoOwners returns the ClusterServiceVersions that annotations record as co-owners, sorted by namespace and name. The UID
// is empty where none is recorded. Malformed entries are left out.
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

// SetCoOwners returns annotations that record owners, and no other co-owners. More than MaxCoOwners are cut, the first are
// kept. annotations is not written to.
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
