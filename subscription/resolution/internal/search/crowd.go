// SPDX-License-Identifier: Apache-2.0

package search

import "github.com/olmcore/olm/subscription/resolution/internal/model"

// crowdedEach is after how many contradictions the learner looks for a crowd.
const crowdedEach = 64

// crowd is a matching of demands to what only one operator can have. That a hundred
// demands need operators of ninety-nine exclusive APIs is seen at once here, while
// learning would try each way to distribute them.
type crowd struct {
	*learner
	demands []demand
	holder  map[int32]int // the demand that a group is given to, by group
}

// demand is a choice that nothing meets yet.
type demand struct {
	because    []literal // what is false and would have to change
	candidates []literal
	groups     []int32 // of which a candidate that is still possible has one
}

// crowded returns literals of which one would have to be true for demands that need
// more groups than there are; nil when every demand can have one of its own.
func (l *learner) crowded() []literal {
	c := crowd{learner: l, holder: map[int32]int{}}
	taken := map[literal]bool{}
	for _, offer := range l.sorted {
		if l.value[offer.on] <= 0 || !c.free(offer.candidates, taken) {
			continue
		}
		c.demands = append(c.demands, c.demandFor(offer))
	}
	for i := range c.demands {
		visited, groups := map[int]bool{}, map[int32]bool{}
		if len(c.demands[i].groups) == 0 || c.place(i, visited, groups) {
			continue
		}
		var conflict []literal
		for j := range c.demands {
			if visited[j] {
				conflict = append(conflict, c.demands[j].because...)
			}
		}
		for g := range l.groups {
			if groups[int32(g)] {
				conflict = append(conflict, l.groups[g].on.not())
			}
		}
		l.work += len(conflict)
		return conflict
	}
	return nil
}

// free reports whether no candidate is selected, or counts for another demand, and
// takes them.
func (c *crowd) free(candidates []literal, taken map[literal]bool) bool {
	c.work += len(candidates)
	for _, x := range candidates {
		if c.value[x] > 0 || taken[x] {
			return false
		}
	}
	for _, x := range candidates {
		taken[x] = true
	}
	return true
}

// demandFor collects the groups of which a demand needs one. It has none when a
// candidate is in no group that excludes anything.
func (c *crowd) demandFor(offer need) demand {
	d := demand{because: []literal{offer.on.not()}, candidates: offer.candidates}
	seen := map[int32]bool{}
	for _, x := range offer.candidates {
		if c.value[x] < 0 {
			d.because = append(d.because, x)
			continue
		}
		groups := c.exclusive(x)
		if len(groups) == 0 {
			return demand{}
		}
		for _, g := range groups {
			if !seen[g] {
				seen[g] = true
				d.groups = append(d.groups, g)
			}
		}
	}
	return d
}

// exclusive returns the groups in force of an entry: of its APIs, or of its package
// when it has none.
func (c *crowd) exclusive(x literal) (list []int32) {
	n := c.nodes[x.variable()]
	if n.Source == model.ExistingSource {
		return nil // it may stay beside others
	}
	rest := []int32(nil)
	for _, g := range c.memberOf[x.variable()] {
		c.work++
		switch {
		case c.value[c.groups[g].on] <= 0:
		case c.kinds[g] == model.OnePerAPI:
			list = append(list, g)
		default:
			rest = append(rest, g)
		}
	}
	if list == nil {
		return rest
	}
	return list
}

// place gives a demand a group, moving others. On failure visited and groups are the
// crowd.
func (c *crowd) place(i int, visited map[int]bool, groups map[int32]bool) bool {
	visited[i] = true
	for _, g := range c.demands[i].groups {
		if groups[g] {
			continue
		}
		groups[g] = true
		other, held := c.holder[g]
		if !held || c.place(other, visited, groups) {
			c.holder[g] = i
			return true
		}
	}
	return false
}
