// SPDX-License-Identifier: Apache-2.0

package search

import (
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// claims remembers what a walk has selected, and at which level.
type claims struct {
	// level is that of each node, counted from 1; 0 is not selected.
	level []int32
	// heads are the last slot of each group, counted from 1.
	heads []int32
	slots []slot
	// over are the selected nodes that existing ones cannot stay beside.
	over []*model.Node
}

// slot is a selected node's claim on a group.
type slot struct {
	node     *model.Node
	previous int32
}

// grown returns a list with a place for index i.
func grown(list []int32, i int32) []int32 {
	for int(i) >= len(list) {
		list = append(list, make([]int32, int(i)+1-len(list)+len(list)/2)...)
	}
	return list
}

func (c *claims) levelOf(n *model.Node) int32 {
	if int(n.ID) >= len(c.level) {
		return -1
	}
	return c.level[n.ID] - 1
}

func (c *claims) head(group int32) int32 {
	if group < 0 || int(group) >= len(c.heads) {
		return 0
	}
	return c.heads[group]
}

func (c *claims) claim(n *model.Node, level int32) {
	c.level = grown(c.level, n.ID)
	c.level[n.ID] = level + 1
	if len(n.Over) > 0 {
		c.over = append(c.over, n)
	}
	for _, g := range n.Groups {
		c.heads = grown(c.heads, g)
		c.slots = append(c.slots, slot{n, c.heads[g]})
		c.heads[g] = int32(len(c.slots))
	}
}

// release takes back what was claimed last.
func (c *claims) release(n *model.Node) {
	c.level[n.ID] = 0
	if len(n.Over) > 0 {
		c.over = c.over[:len(c.over)-1]
	}
	first := len(c.slots) - len(n.Groups)
	for i, g := range n.Groups {
		c.heads[g] = c.slots[first+i].previous
	}
	c.slots = c.slots[:first]
}

// holds reports whether a selected node of a group passes a test.
func (c *claims) holds(group int32, test func(*model.Node) bool) bool {
	for at := c.head(group); at > 0; at = c.slots[at-1].previous {
		if test(c.slots[at-1].node) {
			return true
		}
	}
	return false
}

// impossible reports whether a node cannot be selected now, and blames who is
// at fault.
func (w *walk) impossible(n *model.Node, set *conflictSet) bool {
	if key := (model.RuleKey{Kind: model.RuleBlocked, A: n.ID}); n.Blocked != "" && w.enabled(key) {
		w.blame(set, -1, key, n.Owner)
		return true
	}
	w.p.Expand(n)
	w.budget.Spent += w.p.TakeWork()
	for i := max(n.Dead, 0); n.Dead >= 0 && i < len(n.Choices); i++ {
		if key := (model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}); n.Choices[i].Total == 0 && w.enabled(key) {
			w.blame(set, -1, key, n.Owner)
			return true
		}
	}
	return w.clash(n, set)
}

// clash finds the earliest selected node that excludes n.
func (w *walk) clash(n *model.Node, set *conflictSet) bool {
	first, rule := int32(-1), model.RuleKey{}
	earliest := func(level int32, key model.RuleKey) {
		if (first < 0 || level < first) && w.enabled(key) {
			first, rule = level, key
		}
	}
	for _, g := range n.Groups {
		for at := w.head(g); at > 0; at = w.slots[at-1].previous {
			if other := w.slots[at-1].node; !w.Scope.SideBySide(n, other) {
				earliest(w.levelOf(other), model.RuleKey{Kind: model.RuleGroup, A: g})
				break
			}
		}
	}
	for _, old := range n.Over {
		if level := w.levelOf(old); level >= 0 {
			earliest(level, model.RuleKey{Kind: model.RuleReplaces, A: n.ID, B: old.ID})
		}
	}
	if n.Source == model.ExistingSource {
		for _, m := range w.over {
			if replaces(m, n) {
				earliest(w.levelOf(m), model.RuleKey{Kind: model.RuleReplaces, A: m.ID, B: n.ID})
			}
		}
	}
	if first < 0 {
		return false
	}
	w.blame(set, first, rule, n.Owner)
	return true
}
