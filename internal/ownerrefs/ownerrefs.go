// SPDX-License-Identifier: Apache-2.0

// Package ownerrefs merges the owner references that an object has with those that it should have.
package ownerrefs

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Repair returns the owner references in have, changed so that they contain each reference of want
// exactly once. It also reports whether it changed anything:
//   - A reference with the UID of a wanted reference, but with other fields, gets the wanted fields.
//   - Of several references with one UID, only the first is kept.
//   - A reference with the kind and name of a wanted reference, but with another UID, is replaced. Its owner was
//     deleted and created again.
//
// All other references stay in their order. New references follow, sorted by name and UID. A reference of want without
// a UID is ignored, because the API server rejects it. have is not modified. If nothing changes, have itself is
// returned.
func Repair(have, want []metav1.OwnerReference) (repaired []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, true)
}

// Add is like Repair, but does not replace references with another UID. It removes only
// duplicates of a UID. Use it if the owners were not read completely.
func Add(have, want []metav1.OwnerReference) (merged []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, false)
}

func mergeOwnerReferences(have, want []metav1.OwnerReference, replaceStale bool) ([]metav1.OwnerReference, bool) {
	want = slices.DeleteFunc(slices.Clone(want), func(r metav1.OwnerReference) bool { return r.UID == "" })
	slices.SortFunc(want, func(a, b metav1.OwnerReference) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	wanted, names := map[types.UID]metav1.OwnerReference{}, map[olmcore.Key]bool{}
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
	if slices.EqualFunc(have, merged, olmcore.SameOwnerReference) {
		return have, false
	}
	return merged, true
}

// ownerKey returns the key of the owner without its namespace.
func ownerKey(ref metav1.OwnerReference) olmcore.Key {
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	return olmcore.Key{Group: group, Kind: ref.Kind, Name: ref.Name}
}
