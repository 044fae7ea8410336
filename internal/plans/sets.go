// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Keys returns the keys of an InstallPlan. Two plans collide if they share a key. If hasAll is true, the plan collides
// with every other plan.
type Keys func(plan *v1alpha1.InstallPlan) (keys []string, hasAll bool)

// OfOneGeneration returns the sets of plans that have the same generation and collide, directly or through other plans
// of the set. The sets and their plans keep the order of the list. Plans without a generation are left out.
func OfOneGeneration(list []*v1alpha1.InstallPlan, keysOf Keys) (sets [][]*v1alpha1.InstallPlan) {
	var generations []int
	byGeneration := map[int][]*v1alpha1.InstallPlan{}
	for _, p := range list {
		generation := p.Spec.Generation
		if generation <= 0 {
			continue
		}
		if len(byGeneration[generation]) == 0 {
			generations = append(generations, generation)
		}
		byGeneration[generation] = append(byGeneration[generation], p)
	}
	for _, generation := range generations {
		sets = append(sets, Colliding(byGeneration[generation], keysOf)...)
	}
	return sets
}

// Colliding returns the sets of plans that collide, directly or through other plans of the set. A plan that collides
// with no other is in no set. The sets and their plans keep the order of the list.
func Colliding(list []*v1alpha1.InstallPlan, keysOf Keys) (sets [][]*v1alpha1.InstallPlan) {
	// parent is a forest of plans by index. Plans of one tree collide.
	parent, firstWith, joinsAll := make([]int, len(list)), map[string]int{}, false
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for i, p := range list {
		parent[i] = i
		keys, hasAll := keysOf(p)
		joinsAll = joinsAll || hasAll
		for _, key := range keys {
			first, known := firstWith[key]
			if !known {
				firstWith[key] = i
				continue
			}
			one, other := root(i), root(first)
			parent[max(one, other)] = min(one, other)
		}
	}
	members := make([][]*v1alpha1.InstallPlan, len(list))
	for i, p := range list {
		of := root(i)
		if joinsAll {
			of = 0
		}
		members[of] = append(members[of], p)
	}
	return slices.DeleteFunc(members, func(set []*v1alpha1.InstallPlan) bool { return len(set) < 2 })
}

// maxNames is the number of plans that Names spells out.
const maxNames = 5

// Names returns the names of plans for a message, with the right form of the verb: "InstallPlan a has" or "InstallPlans
// a and b have".
func Names(list []*v1alpha1.InstallPlan, singular, plural string) string {
	var names []string
	for _, p := range list[:min(len(list), maxNames)] {
		names = append(names, p.Name)
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last == 0 {
		return "InstallPlan " + names[0] + " " + singular
	}
	return "InstallPlans " + strings.Join(names[:last], ", ") + " and " + names[last] + " " + plural
}
