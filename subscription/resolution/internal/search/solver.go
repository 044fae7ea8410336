// SPDX-License-Identifier: Apache-2.0

package search

import "slices"

// literal is a variable or its negation: twice the number of the variable, plus one
// for the negation.
type literal int32

func (l literal) not() literal    { return l ^ 1 }
func (l literal) variable() int32 { return int32(l >> 1) }

// solver decides whether clauses and groups can all hold, by propagation and by
// learning a clause from each contradiction. Which variable to decide next is its
// user's business.
type solver struct {
	value  []int8 // by literal: 1 true, -1 false, 0 open
	levels []int32
	causes []cause // by variable
	trail  []literal
	starts []int // where the levels begin in the trail
	next   int   // of the trail to propagate

	watches  [][]watch // by literal: the clauses that lose a watch when it is true
	groups   []group
	memberOf [][]int32 // by variable: its groups
	switches [][]int32 // by variable: the groups that it switches on
	units    []literal // clauses of one literal
	// apart reports of two variables of a group that both may be true; nil is never.
	apart func(a, b int32) bool

	seen []bool
	work int
}

// clause holds when one of its literals does. The first two are watched.
type clause struct{ literals []literal }

type watch struct {
	*clause
	other literal // of the clause; while it is true nothing is to be done
}

// group holds when at most one of its members is true, as long as its switch is.
type group struct {
	on      literal
	members []literal
}

// cause is why a literal is true: a clause, or member of a group; neither for what
// was decided or assumed.
type cause struct {
	*clause
	member literal // 0: none
	group  int32
}

func (s *solver) newVariable() literal {
	l := literal(len(s.value))
	s.value = append(s.value, 0, 0)
	s.watches = append(s.watches, nil, nil)
	s.levels, s.causes = append(s.levels, 0), append(s.causes, cause{})
	s.memberOf, s.switches = append(s.memberOf, nil), append(s.switches, nil)
	s.seen = append(s.seen, false)
	return l
}

// add takes in a clause while no level is open.
func (s *solver) add(literals ...literal) {
	if len(literals) == 1 {
		s.units = append(s.units, literals[0])
		return
	}
	s.watch(&clause{literals})
}

func (s *solver) watch(c *clause) {
	for i := range 2 {
		l := c.literals[i].not()
		s.watches[l] = append(s.watches[l], watch{c, c.literals[1-i]})
	}
}

// addGroup takes in a group and returns its number.
func (s *solver) addGroup(on literal, members ...literal) int32 {
	id := int32(len(s.groups))
	s.groups = append(s.groups, group{on: on})
	s.switches[on.variable()] = append(s.switches[on.variable()], id)
	for _, m := range members {
		s.join(id, m)
	}
	return id
}

// join adds a member to a group.
func (s *solver) join(id int32, member literal) {
	s.groups[id].members = append(s.groups[id].members, member)
	s.memberOf[member.variable()] = append(s.memberOf[member.variable()], id)
}

func (s *solver) level() int { return len(s.starts) }

func (s *solver) open() { s.starts = append(s.starts, len(s.trail)) }

func (s *solver) set(l literal, why cause) {
	s.value[l], s.value[l.not()] = 1, -1
	s.levels[l.variable()], s.causes[l.variable()] = int32(len(s.starts)), why
	s.trail = append(s.trail, l)
}

// backTo closes all levels above one.
func (s *solver) backTo(level int) {
	if level >= len(s.starts) {
		return
	}
	for _, l := range s.trail[s.starts[level]:] {
		s.value[l], s.value[l.not()] = 0, 0
	}
	s.trail = s.trail[:s.starts[level]]
	s.starts = s.starts[:level]
	s.next = len(s.trail)
}

// propagate draws all conclusions. It returns literals that cannot all be false but
// are, nil when there is no contradiction.
func (s *solver) propagate() []literal {
	for s.next < len(s.trail) {
		l := s.trail[s.next]
		s.next++
		if conflict := s.propagateClauses(l); conflict != nil {
			return conflict
		}
		if l&1 != 0 {
			continue
		}
		for _, g := range s.memberOf[l.variable()] {
			if s.value[s.groups[g].on] > 0 {
				if conflict := s.exclude(g, l); conflict != nil {
					return conflict
				}
			}
		}
		for _, g := range s.switches[l.variable()] {
			for _, m := range s.groups[g].members {
				if s.value[m] > 0 {
					if conflict := s.exclude(g, m); conflict != nil {
						return conflict
					}
				}
			}
		}
	}
	return nil
}

// propagateClauses looks at the clauses that watch the negation of l.
func (s *solver) propagateClauses(l literal) (conflict []literal) {
	kept := s.watches[l][:0]
	list := s.watches[l]
	for i, w := range list {
		s.work++
		if s.value[w.other] > 0 {
			kept = append(kept, w)
			continue
		}
		lits := w.literals
		if lits[0] == l.not() {
			lits[0], lits[1] = lits[1], lits[0]
		}
		first := lits[0]
		if s.value[first] > 0 {
			kept = append(kept, watch{w.clause, first})
			continue
		}
		if at := s.replacement(lits); at > 0 {
			lits[1], lits[at] = lits[at], lits[1]
			s.watches[lits[1].not()] = append(s.watches[lits[1].not()], watch{w.clause, first})
			continue
		}
		kept = append(kept, watch{w.clause, first})
		if s.value[first] < 0 {
			kept = append(kept, list[i+1:]...)
			conflict = lits
			break
		}
		s.set(first, cause{clause: w.clause})
	}
	s.watches[l] = kept
	return conflict
}

// replacement returns the place of a literal that can be watched instead of the
// second, 0 when there is none.
func (s *solver) replacement(lits []literal) int {
	for k := 2; k < len(lits); k++ {
		if s.value[lits[k]] >= 0 {
			s.work += k / 4
			return k
		}
	}
	s.work += len(lits) / 4
	return 0
}

// exclude makes all other members of a group false.
func (s *solver) exclude(id int32, member literal) (conflict []literal) {
	g := &s.groups[id]
	for _, m := range g.members {
		s.work++
		if m == member || s.value[m] < 0 || (s.apart != nil && s.apart(m.variable(), member.variable())) {
			continue
		}
		if s.value[m] > 0 {
			return []literal{g.on.not(), m.not(), member.not()}
		}
		s.set(m.not(), cause{member: member, group: id})
	}
	return nil
}

// because appends the false literals by which a literal had to be true.
func (s *solver) because(l literal, list []literal) []literal {
	why := s.causes[l.variable()]
	switch {
	case why.clause != nil:
		for _, other := range why.literals {
			if other != l {
				list = append(list, other)
			}
		}
	case why.member != 0:
		list = append(list, s.groups[why.group].on.not(), why.member.not())
	}
	return list
}

// learn returns a clause that follows from all others and that the current level
// contradicts, its literal of this level first, and the level at which that one must
// be true.
func (s *solver) learn(conflict []literal) (learned []literal, back int) {
	learned = []literal{0}
	var reasons []literal
	here, at := 0, len(s.trail)-1
	for lits := conflict; ; {
		for _, l := range lits {
			v := l.variable()
			if s.seen[v] || s.levels[v] == 0 {
				continue
			}
			s.seen[v] = true
			if int(s.levels[v]) == s.level() {
				here++
			} else {
				learned = append(learned, l)
			}
		}
		s.work += len(lits)
		for !s.seen[s.trail[at].variable()] {
			at--
		}
		l := s.trail[at]
		s.seen[l.variable()] = false
		if here--; here == 0 {
			learned[0] = l.not()
			break
		}
		reasons = s.because(l, reasons[:0])
		lits = reasons
	}
	all := slices.Clone(learned)
	learned = append(learned[:1], slices.DeleteFunc(learned[1:], s.follows)...)
	for _, l := range all {
		s.seen[l.variable()] = false
	}
	for i := 1; i < len(learned); i++ {
		if level := int(s.levels[learned[i].variable()]); level > back {
			back = level
			learned[1], learned[i] = learned[i], learned[1]
		}
	}
	return learned, back
}

// follows reports whether a literal of a learned clause is false because others of
// it are.
func (s *solver) follows(l literal) bool {
	why := s.because(l.not(), nil)
	return len(why) > 0 && !slices.ContainsFunc(why, func(o literal) bool { return !s.seen[o.variable()] && s.levels[o.variable()] > 0 })
}

// keep adds a learned clause and sets its first literal.
func (s *solver) keep(learned []literal) {
	c := &clause{learned}
	if len(learned) == 1 {
		s.units = append(s.units, learned[0])
	} else {
		s.watch(c)
	}
	s.set(learned[0], cause{clause: c})
}

// assumed returns the literals that were assumed and that a contradiction follows
// from, when nothing was decided.
func (s *solver) assumed(conflict []literal) (list []literal) {
	for _, l := range conflict {
		s.seen[l.variable()] = true
	}
	for _, l := range slices.Backward(s.trail) {
		v := l.variable()
		if !s.seen[v] {
			continue
		}
		s.seen[v] = false
		if s.levels[v] == 0 {
			continue
		}
		why := s.because(l, nil)
		if len(why) == 0 && s.causes[v].clause == nil {
			list = append(list, l)
		}
		for _, o := range why {
			s.seen[o.variable()] = true
		}
	}
	return list
}
