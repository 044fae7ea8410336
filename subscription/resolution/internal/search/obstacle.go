// SPDX-License-Identifier: Apache-2.0

package search

import "github.com/olmcore/olm/subscription/resolution/internal/model"

// claims remembers what has what only one operator can have.
type claims struct {
	heads []int32 // the last slot of each group, counted from 1
	slots []slot
}

// slot is a selected node's claim on a group.
type slot struct {
	node     *model.Node
	previous int32
}

func (c *claims) claim(n *model.Node) {
	for _, g := range n.Groups {
		for int(g) >= len(c.heads) {
			c.heads = append(c.heads, make([]int32, int(g)+1-len(c.heads)+len(c.heads)/2)...)
		}
		c.slots = append(c.slots, slot{n, c.heads[g]})
		c.heads[g] = int32(len(c.slots))
	}
}

// release takes back what was claimed last.
func (c *claims) release(n *model.Node) {
	first := len(c.slots) - len(n.Groups)
	for i, g := range n.Groups {
		c.heads[g] = c.slots[first+i].previous
	}
	c.slots = c.slots[:first]
}

// holds reports whether a selected node of a group passes a test.
func (c *claims) holds(group int32, test func(*model.Node) bool) bool {
	if int(group) >= len(c.heads) {
		return false
	}
	for at := c.heads[group]; at > 0; at = c.slots[at-1].previous {
		if test(c.slots[at-1].node) {
			return true
		}
	}
	return false
}

// obstacle is why an entry cannot be selected: a rule, by itself or with an entry that is selected, or what was
// learned.
type obstacle struct {
	rule   model.RuleKey
	holder *model.Node
	nogood *nogood
	atom   atom // that the nogood forbids
}

func (o obstacle) exists() bool { return o.rule.Kind != 0 || o.nogood != nil }

// obstacle returns why a node cannot be selected now; when deep, what it requires counts.
func (s *Solver) obstacle(n *model.Node, deep bool) obstacle {
	if n.Blocked != "" {
		if key := (model.RuleKey{Kind: model.RuleBlocked, A: n.ID}); s.enabled(key) {
			return obstacle{rule: key}
		}
	}
	if g := s.state(selected(n)).forbidden; g != nil {
		return obstacle{nogood: g, atom: selected(n)}
	}
	for i := range n.Choices {
		if !deep {
			break
		}
		a, g := atom(-1), (*nogood)(nil)
		if c := &n.Choices[i]; c.Total > 0 {
			if a = needed(c.Offer); s.state(a).forbidden == nil {
				continue
			}
			g = s.state(a).forbidden
		}
		if key := (model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}); s.enabled(key) {
			return obstacle{key, nil, g, a}
		}
	}
	return s.clash(n)
}

// clash finds the earliest selected node that excludes n.
func (s *Solver) clash(n *model.Node) (o obstacle) {
	first := int32(-1)
	earliest := func(other *model.Node, key model.RuleKey) {
		if level := s.levelOf(selected(other)); level >= 0 && (first < 0 || level < first) && s.enabled(key) {
			first, o = level, obstacle{rule: key, holder: other}
		}
	}
	for _, g := range n.Groups {
		s.claims.holds(g, func(other *model.Node) bool {
			if s.Scope.SideBySide(n, other) {
				return false
			}
			earliest(other, model.RuleKey{Kind: model.RuleGroup, A: g})
			return true
		})
	}
	for _, other := range n.Over {
		key := model.RuleKey{Kind: model.RuleReplaces, A: n.ID, B: other.ID}
		if n.Source == model.ExistingSource {
			key.A, key.B = key.B, key.A
		}
		earliest(other, key)
	}
	return o
}

// blameDemand adds to the conflict why a choice has to be met, and what is in the way of its candidates.
func (s *Solver) blameDemand(c *model.Choice) {
	demanded, key := (*model.Node)(nil), model.RuleKey{}
	if c.Sub != nil {
		demanded, key = s.demanded(c.Sub)
	}
	switch {
	case c.Parent != nil:
		s.conflict.atoms = append(s.conflict.atoms, needed(c.Offer))
	case c.CSV != nil:
		s.blameRule(model.RuleKey{Kind: model.RuleCSV, A: s.p.Candidate(c, 0).ID}, c.Owner)
	case demanded != nil:
		s.blameRule(key, c.Owner)
	default:
		s.blameRule(model.RuleKey{Kind: model.RuleSubscription, A: c.Owner}, c.Owner)
		s.blameRule(model.RuleKey{Kind: model.RuleRequires, A: c.Owner}, c.Owner)
	}
	for n := range s.candidates(c) {
		s.work += workPerLook
		o := s.obstacle(n, true)
		if o.rule.Kind != 0 {
			s.blameRule(o.rule, n.Owner)
		}
		if o.holder != nil {
			s.conflict.atoms = append(s.conflict.atoms, selected(o.holder))
		}
		if o.nogood != nil {
			s.conflict.add(o.nogood, o.atom)
			s.work += len(o.nogood.atoms)/4 + len(o.nogood.rules)/8
		}
	}
}

func (s *Solver) blameRule(key model.RuleKey, owner int32) {
	s.conflict.rules.Add(s.p.Rules.ID(key, owner))
}
