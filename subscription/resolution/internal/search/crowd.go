// SPDX-License-Identifier: Apache-2.0

package search

import "github.com/olmcore/olm/subscription/resolution/internal/model"

// A search looks for a crowd after some conflicts, and then after each so many.
const crowdedFirst, crowdedEach = 16, 64

// crowd is a matching of demands to what only one operator can have. That a hundred demands need operators of
// ninety-nine exclusive APIs is seen at once here, while conflicts would go through each way to distribute them.
type crowd struct {
	*Solver
	demands []demand
	holder  map[int32]int // the demand that a group is given to, by group
}

// demand is a choice that nothing meets yet, and the groups of which its possible candidates have one.
type demand struct {
	choice *model.Choice
	groups []int32
}

// crowded makes a conflict of demands that need more groups than there are; false when every demand can have one of its
// own.
func (s *Solver) crowded() bool {
	c := crowd{Solver: s, holder: map[int32]int{}}
	taken := map[*model.Node]bool{}
	for level, choice := range s.queue {
		if level < len(s.frames) && s.frames[level].selected != nil || s.met(choice) || !c.take(choice, taken) {
			continue
		}
		if d := (demand{choice, c.groupsFor(choice)}); len(d.groups) > 0 {
			c.demands = append(c.demands, d)
		}
	}
	for i := range c.demands {
		visited, groups := map[int]bool{}, map[int32]bool{}
		if c.place(i, visited, groups) {
			continue
		}
		s.conflict.clear()
		for j := range visited {
			s.blameDemand(c.demands[j].choice)
		}
		for g := range groups {
			s.blameRule(model.RuleKey{Kind: model.RuleGroup, A: g}, 0)
		}
		return true
	}
	return false
}

// take reports whether no candidate of a choice counts for another demand, and takes them.
func (c *crowd) take(choice *model.Choice, taken map[*model.Node]bool) bool {
	for n := range c.candidates(choice) {
		if c.work++; taken[n] {
			return false
		}
	}
	for n := range c.candidates(choice) {
		taken[n] = true
	}
	return true
}

// groupsFor collects the groups of which a demand needs one; none when a candidate is in no group that excludes
// anything.
func (c *crowd) groupsFor(choice *model.Choice) (list []int32) {
	seen := map[int32]bool{}
	for n := range c.candidates(choice) {
		if c.work += workPerLook; c.obstacle(n, true).exists() {
			continue
		}
		groups := c.exclusive(n)
		if len(groups) == 0 {
			return nil
		}
		for _, g := range groups {
			if !seen[g] {
				seen[g], list = true, append(list, g)
			}
		}
	}
	return list
}

// exclusive returns the groups in force of an entry: of its APIs, or of its package when it has none.
func (c *crowd) exclusive(n *model.Node) (apis []int32) {
	if n.Source == model.ExistingSource {
		return nil // it may stay beside others
	}
	var rest []int32
	for _, g := range n.Groups {
		switch {
		case !c.enabled(model.RuleKey{Kind: model.RuleGroup, A: g}):
		case c.p.Groups[g].Kind == model.OnePerAPI:
			apis = append(apis, g)
		default:
			rest = append(rest, g)
		}
	}
	if apis == nil {
		return rest
	}
	return apis
}

// place gives a demand a group, moving others. On failure visited and groups are the crowd.
func (c *crowd) place(i int, visited map[int]bool, groups map[int32]bool) bool {
	visited[i] = true
	for _, g := range c.demands[i].groups {
		if c.work++; groups[g] {
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
