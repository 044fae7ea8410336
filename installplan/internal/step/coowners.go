// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"
	"slices"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// recordCoOwners returns the annotations of an object with the co-owners that it should record, and whether that is a
// change. owning: the owner labels name the first of the target's versions, else they stay as they are. The owner that
// an observed object was taken from becomes a co-owner, and so do the target's other versions. A version that one of
// the target's takes over from is none any more.
func recordCoOwners(w *world, t *Target, o olmcore.Object, owning bool) (annotations map[string]string, changed bool) {
	before := o.GetAnnotations()
	if !t.Kind.Labelled || len(t.Versions) == 0 {
		return before, false
	}
	own := t.Versions
	if owning {
		own = own[1:]
	}
	var owners []olmcore.Owner
	for _, name := range own {
		owners = append(owners, w.ownerOf(name))
	}
	others := olmcore.CoOwners(before)
	owner, labelled := olmcore.OwnerOf(o.GetLabels())
	if owning && labelled && owner.Kind == kinds.CSV {
		others = append([]olmcore.Owner{owner}, others...)
	}
	for _, owner := range others {
		isSame := func(have olmcore.Owner) bool { return have.Namespace == owner.Namespace && have.Name == owner.Name }
		isOwn := owner.Namespace == w.Plan.Namespace && slices.Contains(t.Versions, owner.Name)
		if !isOwn && !w.precedes(owner.Namespace, owner.Name, t.Versions) && !slices.ContainsFunc(owners, isSame) {
			owners = append(owners, owner)
		}
	}
	annotations = olmcore.SetCoOwners(before, owners)
	return annotations, !maps.Equal(before, annotations)
}

// ownerOf returns the owner that labels and annotations name for a version of the plan's namespace.
func (w *world) ownerOf(name string) olmcore.Owner {
	owner := olmcore.Owner{Kind: kinds.CSV, Namespace: w.Plan.Namespace, Name: name}
	if csv := w.here(name); csv != nil {
		owner.UID = csv.UID
	}
	return owner
}
