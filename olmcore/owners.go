// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerReferenceTo returns OLM's owner reference to an observed object:
// controller and blockOwnerDeletion are false.
func OwnerReferenceTo(owner Object) metav1.OwnerReference {
	ref := RefOf(owner)
	return metav1.OwnerReference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID,
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}

// OwnedBy reports whether o has an owner reference with that UID. An empty UID
// owns nothing.
func OwnedBy(o metav1.Object, uid types.UID) bool {
	if uid == "" || o == nil {
		return false
	}
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// SameOwnerReference compares two owner references by value. Absent and false
// are the same for controller and blockOwnerDeletion, as they are for the API
// server.
func SameOwnerReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		isTrue(a.Controller) == isTrue(b.Controller) && isTrue(a.BlockOwnerDeletion) == isTrue(b.BlockOwnerDeletion)
}

// RepairOwnerReferences returns have so that it holds every reference of want
// exactly once and in want's form, and whether that changed anything. Entries
// with the UID of a wanted reference but another form are rewritten; duplicates
// of a UID are dropped; entries with a wanted reference's kind and name but
// another UID (an owner that was created anew) are replaced. Everything else
// stays, in its order; new entries follow, sorted by name and UID. References in
// want without a UID are left out: the API server refuses them. have is not
// written to; when nothing changes it is returned itself.
func RepairOwnerReferences(have, want []metav1.OwnerReference) (repaired []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, true)
}

// AddOwnerReferences is RepairOwnerReferences without the replacement of stale
// UIDs: nothing that is there is ever dropped but duplicates of one UID. Use it
// when the owners were not read completely.
func AddOwnerReferences(have, want []metav1.OwnerReference) (merged []metav1.OwnerReference, changed bool) {
	return mergeOwnerReferences(have, want, false)
}

func mergeOwnerReferences(have, want []metav1.OwnerReference, replaceStale bool) ([]metav1.OwnerReference, bool) {
	want = sortedOwners(want)
	wanted := indexOwners(want)
	if !needsMerge(have, wanted, replaceStale) {
		return have, false
	}
	out := make([]metav1.OwnerReference, 0, len(have)+len(want))
	seen := make(map[types.UID]bool, len(have)+len(want))
	for _, ref := range have {
		if i := wanted.withUID(ref.UID); i >= 0 {
			ref = want[i]
		} else if replaceStale && wanted.hasName(ref) {
			continue // an owner that was created anew
		}
		if !seen[ref.UID] {
			seen[ref.UID] = true
			out = append(out, ref)
		}
	}
	for _, ref := range want {
		if !seen[ref.UID] {
			seen[ref.UID] = true
			out = append(out, ref)
		}
	}
	return out, true
}

// needsMerge answers without allocating for short lists, for the converged case.
func needsMerge(have []metav1.OwnerReference, wanted owners, replaceStale bool) bool {
	present := indexOwners(have)
	for i, ref := range have {
		if present.withUID(ref.UID) < i || replaceStale && wanted.withUID(ref.UID) < 0 && wanted.hasName(ref) {
			return true
		}
	}
	for _, ref := range wanted.refs {
		if i := present.withUID(ref.UID); i < 0 || !SameOwnerReference(have[i], ref) {
			return true
		}
	}
	return false
}

func sortedOwners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	order := func(a, b metav1.OwnerReference) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	}
	usable := func(refs []metav1.OwnerReference) bool {
		return !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == "" })
	}
	if slices.IsSortedFunc(refs, order) && usable(refs) {
		return refs
	}
	refs = slices.DeleteFunc(slices.Clone(refs), func(r metav1.OwnerReference) bool { return r.UID == "" })
	slices.SortFunc(refs, order)
	return refs
}

// owners is a list of references to look things up in. The maps are nil for a
// short list, in which it is cheaper to look.
type owners struct {
	refs  []metav1.OwnerReference
	byUID map[types.UID]int // the first position
	names map[Key]bool
}

func indexOwners(refs []metav1.OwnerReference) owners {
	const short = 16
	o := owners{refs: refs}
	if len(refs) <= short {
		return o
	}
	o.byUID, o.names = make(map[types.UID]int, len(refs)), make(map[Key]bool, len(refs))
	for i, ref := range refs {
		if _, known := o.byUID[ref.UID]; !known {
			o.byUID[ref.UID] = i
		}
		o.names[ownerKey(ref)] = true
	}
	return o
}

// withUID returns the first position of a UID, -1 when there is none.
func (o owners) withUID(uid types.UID) int {
	if o.byUID != nil {
		if i, ok := o.byUID[uid]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.refs, func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// hasName reports whether a reference has the kind and name of ref.
func (o owners) hasName(ref metav1.OwnerReference) bool {
	key := ownerKey(ref)
	return o.names[key] || o.names == nil && slices.ContainsFunc(o.refs, func(r metav1.OwnerReference) bool { return ownerKey(r) == key })
}

func ownerKey(ref metav1.OwnerReference) Key {
	return Key{Group: groupOf(ref.APIVersion), Kind: ref.Kind, Name: ref.Name}
}

func isTrue(b *bool) bool { return b != nil && *b }
