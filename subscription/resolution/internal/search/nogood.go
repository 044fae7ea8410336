// SPDX-License-Identifier: Apache-2.0

package search

import (
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// atom is what can be true while searching: that an entry is selected, or that an offer is needed.
type atom int32

func selected(n *model.Node) atom { return atom(n.ID) << 1 }
func needed(o *model.Offer) atom  { return atom(o.ID)<<1 | 1 }

// nogood is atoms that cannot all be true while some rules are in force. The first two are watched: as long as neither
// is true, nothing follows.
type nogood struct {
	atoms []atom
	rules model.Bitset
}

// state is what is known of an atom.
type state struct {
	level     int32   // at which it became true, counted from 1; 0: it is not
	forbidden *nogood // of which all other atoms are true
}

// atoms is what is known of all of them.
type atoms struct {
	states  []state
	watches [][]*nogood
	trail   []atom   // what is true, in the order in which it became so
	forbids [][]atom // what is forbidden, by the level since when
	work    int      // not paid for yet
}

func (g *nogood) clear() {
	g.atoms = g.atoms[:0]
	g.rules.Clear()
}

// add takes in what forbids an atom.
func (g *nogood) add(other *nogood, forbidden atom) {
	for _, a := range other.atoms {
		if a != forbidden {
			g.atoms = append(g.atoms, a)
		}
	}
	g.rules.AddAll(other.rules)
}

// state returns what is known of an atom.
func (s *atoms) state(a atom) state {
	if int(a) < len(s.states) {
		return s.states[a]
	}
	return state{}
}

// levelOf returns the level at which an atom became true, -1 when it did not.
func (s *atoms) levelOf(a atom) int32 { return s.state(a).level - 1 }

// grown returns a list with a place for an index.
func grown[T any, I ~int32](list []T, a I) []T {
	if missing := int(a) + 1 - len(list); missing > 0 {
		list = append(list, make([]T, max(missing, len(list), 32))...)
	}
	return list
}

// set notes that an atom is true.
func (s *atoms) set(a atom, level int32) {
	s.states = grown(s.states, a)
	s.states[a].level = level + 1
	s.trail = append(s.trail, a)
}

// attach takes a nogood into account while nothing is selected.
func (s *atoms) attach(g *nogood) {
	if len(g.atoms) > 1 {
		s.watch(g, 0)
		s.watch(g, 1)
	} else {
		s.forbid(g.atoms[0], g, -1)
	}
}

func (s *atoms) watch(g *nogood, at int) {
	s.watches = grown(s.watches, g.atoms[at])
	s.watches[g.atoms[at]] = append(s.watches[g.atoms[at]], g)
}

// forbid notes from a level on that an atom cannot become true.
func (s *atoms) forbid(a atom, g *nogood, level int32) {
	s.states = grown(s.states, a)
	s.states[a].forbidden = g
	if level >= 0 {
		s.forbids = grown(s.forbids, level)
		s.forbids[level] = append(s.forbids[level], a)
	}
}

// undo forgets what was found since a level, where the trail had some length.
func (s *atoms) undo(level int32, trail int) {
	for l := int(level); l < len(s.forbids); l++ {
		for _, a := range s.forbids[l] {
			s.states[a].forbidden = nil
		}
		s.forbids[l] = s.forbids[l][:0]
	}
	for _, a := range s.trail[trail:] {
		s.states[a].level = 0
	}
	s.trail = s.trail[:trail]
}

// forget detaches nogoods while nothing is true.
func (s *atoms) forget(list []*nogood) {
	for _, g := range list {
		for _, a := range g.atoms[:min(2, len(g.atoms))] {
			if int(a) < len(s.states) {
				s.states[a].forbidden = nil
			}
			if int(a) < len(s.watches) {
				s.watches[a] = s.watches[a][:0]
			}
		}
	}
}

// propagate forbids what would complete a nogood with an atom that has become true. It returns one that is complete.
func (s *atoms) propagate(a atom, level int32) (complete *nogood) {
	if int(a) >= len(s.watches) {
		return nil
	}
	list := s.watches[a]
	kept := list[:0]
	for i, g := range list {
		s.work += 2
		if g.atoms[0] == a {
			g.atoms[0], g.atoms[1] = g.atoms[1], g.atoms[0]
		}
		other := s.state(g.atoms[0])
		if other.forbidden == nil {
			if at := slices.IndexFunc(g.atoms[2:], func(x atom) bool { return s.levelOf(x) < 0 }); at >= 0 {
				s.work += at / 4
				g.atoms[1], g.atoms[at+2] = g.atoms[at+2], g.atoms[1]
				s.watch(g, 1)
				continue
			}
			s.work += len(g.atoms) / 4
			if other.level > 0 {
				kept, complete = append(kept, list[i:]...), g
				break
			}
			s.forbid(g.atoms[0], g, level)
		}
		kept = append(kept, g)
	}
	s.watches[a] = kept
	return complete
}

// learn makes a nogood of the conflict of which the first atom is the only one of the last level that takes part in it,
// and the second of the level before that. It returns both; -1: there is none.
func (s *Solver) learn() (g *nogood, last, before int32) {
	c := &s.conflict
	slices.Sort(c.atoms)
	c.atoms = slices.Compact(c.atoms)
	s.work += len(c.atoms) + len(c.rules)/8
	last, before = s.latest(c.atoms), -1
	if last >= 0 {
		s.only(last)
	}
	g = &nogood{slices.Clone(c.atoms), slices.Clone(c.rules)}
	s.nogoods = append(s.nogoods, g)
	for i := range g.atoms[min(1, len(g.atoms)):] {
		if level := s.levelOf(g.atoms[i+1]); level > before {
			before = level
			g.atoms[1], g.atoms[i+1] = g.atoms[i+1], g.atoms[1]
		}
	}
	return g, last, before
}

func (s *atoms) latest(atoms []atom) int32 {
	last := int32(-1)
	for _, a := range atoms {
		last = max(last, s.levelOf(a))
	}
	return last
}

// only leaves one atom of a level in the conflict, the first: of several, those of what the entry that was selected
// there needs are there because of it.
func (s *Solver) only(level int32) {
	c, n := &s.conflict, s.frames[level].selected
	of := func(a atom) bool { return s.levelOf(a) == level }
	first := slices.IndexFunc(c.atoms, of)
	if !slices.ContainsFunc(c.atoms[first+1:], of) {
		c.atoms[0], c.atoms[first] = c.atoms[first], c.atoms[0]
		return
	}
	for i := range n.Choices {
		key := model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}
		if a := needed(n.Choices[i].Offer); slices.Contains(c.atoms, a) && of(a) && s.enabled(key) {
			s.blameRule(key, n.Owner)
		}
	}
	c.atoms = slices.Insert(slices.DeleteFunc(c.atoms, of), 0, selected(n))
}

// turnBack learns from the conflict and goes back to the last level that takes part in it; -1: there is none.
func (s *Solver) turnBack() int {
	g, last, before := s.learn()
	if last < 0 {
		return -1
	}
	s.unwind(last)
	if len(g.atoms) > 1 {
		s.attach(g)
	}
	s.forbid(g.atoms[0], g, before)
	return int(last)
}
