// SPDX-License-Identifier: Apache-2.0

package search

import (
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Solver answers Questions about one Problem. It remembers the conflicts of one Question to answer the next one faster.
// The zero value is ready to use.
type Solver struct {
	nogoods []*nogood
	scope   *model.Scope // that they were made for
	changes int          // of it

	// The rest is about the question.
	*Question
	p      *model.Problem
	budget *Budget
	queue  []*model.Choice
	frames []frame
	claims claims
	atoms
	conflict nogood
}

// frame is the state of one choice of the queue. Its index is its level.
type frame struct {
	selected *model.Node // nil: the choice was met already
	next     int         // candidate; negative: what comes first in any order
	queued   int         // how long the queue and
	trail    int         // the trail were before
}

// Decide returns an Answer with the first solution of a Question, or with a Conflict if there is no solution.
func (s *Solver) Decide(q Question, budget *Budget) Answer {
	if budget.Left(1) == 0 {
		return Answer{Satisfiability: Exhausted}
	}
	s.reset(&q, budget)
	roots, impossible := q.roots(s.queue[:0])
	for _, key := range impossible {
		s.blameRule(key, key.A)
	}
	s.queue = roots
	s.work += (len(q.Problem.Subs) + len(q.Problem.Existing)) / 2
	if impossible != nil || s.recall() {
		return q.unsatisfiable(s.conflict.rules)
	}
	switch s.run() {
	case Satisfiable:
		picks := make([]Pick, len(s.frames))
		for level := range s.frames {
			picks[level] = Pick{s.queue[level], s.frames[level].selected}
		}
		return Answer{Picks: picks}
	case Exhausted:
		return Answer{Satisfiability: Exhausted}
	}
	return q.unsatisfiable(s.conflict.rules)
}

// reset begins a question.
func (s *Solver) reset(q *Question, budget *Budget) {
	if len(s.frames) > 0 {
		s.unwind(0)
		s.frames = s.frames[:0]
	}
	s.forget(s.nogoods)
	if n := q.Scope.Changes(); n != s.changes || q.Scope != s.scope {
		s.nogoods, s.scope, s.changes = nil, q.Scope, n
	}
	s.Question, s.p, s.budget = q, q.Problem, budget
	s.conflict.clear()
}

// recall takes into account what was learned and is in force. true: that there is no solution.
func (s *Solver) recall() (never bool) {
	if len(s.nogoods) == 0 {
		return false
	}
	force := s.inForce()
	s.work += len(force)
	if s.Only == nil {
		s.work += len(s.p.Rules.Keys) / 4
	}
	for _, g := range s.nogoods {
		s.work += 1 + len(g.rules)/8
		switch {
		case !g.rules.In(force):
		case len(g.atoms) == 0:
			s.conflict.add(g, 0)
			return true
		default:
			s.attach(g)
		}
	}
	return false
}

func (s *Solver) run() Satisfiability {
	conflicts := 0
	for level := 0; level < len(s.queue); {
		if level == len(s.frames) {
			s.enter()
			if s.met(s.queue[level]) {
				level++
				continue
			}
		}
		verdict := s.advance(level)
		if verdict == Satisfiable {
			level++
			continue
		}
		if verdict == Exhausted {
			return Exhausted
		}
		conflicts++
		for again := true; again; again = conflicts%crowdedEach == crowdedFirst && s.crowded() {
			if level = s.turnBack(); level < 0 {
				return Unsatisfiable
			}
		}
	}
	return Satisfiable
}

func (s *Solver) enter() {
	level := len(s.frames)
	s.frames = slices.Grow(s.frames, 1)[:level+1]
	f := &s.frames[level]
	*f = frame{queued: len(s.queue), trail: len(s.trail)}
	if s.AnyOrder && s.sole(s.queue[level]) == nil {
		f.next = -2
	}
}

// unwind goes back to a level and takes its selection back.
func (s *Solver) unwind(level int32) {
	for i := len(s.frames) - 1; i >= int(level); i-- {
		if n := s.frames[i].selected; n != nil {
			s.claims.release(n)
		}
	}
	f := &s.frames[level]
	s.undo(level, f.trail)
	f.selected = nil
	s.queue, s.frames = s.queue[:f.queued], s.frames[:level+1]
}

// candidate returns the one of a choice that is to be looked at now.
func (f *frame) candidate(q *Question, c *model.Choice) *model.Node {
	f.next++
	switch {
	case f.next == -1 && q.Prefer != nil && c.Contains(q.Prefer.Ref):
		return q.Prefer
	case f.next <= 0 && c.Last != nil:
		f.next = 0
		return c.Last
	}
	f.next = max(f.next, 1)
	return q.candidate(c, f.next-1)
}

// advance selects the next possible candidate of a level. Unsatisfiable: conflict says why that does not work.
func (s *Solver) advance(level int) Satisfiability {
	for c := s.queue[level]; ; {
		n := s.frames[level].candidate(s.Question, c)
		if n == nil {
			s.conflict.clear()
			s.blameDemand(c)
			return Unsatisfiable
		}
		s.p.Expand(n)
		s.work += workPerLook
		if !s.pay() {
			return Exhausted
		}
		if s.obstacle(n, true).exists() {
			continue
		}
		if s.push(n, int32(level)) {
			return Satisfiable
		}
		return Unsatisfiable
	}
}

// workPerLook is what looking at a candidate counts, beside what model does the first time.
const workPerLook = 4

// pay counts the work as steps; false when there are not enough left.
func (s *Solver) pay() bool {
	steps := s.p.TakeSteps(s.work)
	s.work = 0
	return s.budget.Pay(steps)
}

// push selects an entry. false: that contradicts something, and conflict says what.
func (s *Solver) push(n *model.Node, level int32) bool {
	s.frames[level].selected, s.queue[level].Last = n, n
	s.claims.claim(n)
	s.set(selected(n), level)
	for i := range n.Choices {
		if s.enabled(model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}) {
			s.queue = append(s.queue, &n.Choices[i])
			if a := needed(n.Choices[i].Offer); s.levelOf(a) < 0 {
				s.set(a, level)
			}
		}
	}
	for _, a := range s.trail[s.frames[level].trail:] {
		if g := s.propagate(a, level); g != nil {
			s.conflict.clear()
			s.conflict.add(g, -1)
			return false
		}
	}
	// A requirement for which each candidate is impossible already is seen before all others come first.
	for _, c := range s.queue[s.frames[level].queued:] {
		if !s.met(c) && !s.possible(c) {
			s.conflict.clear()
			s.blameDemand(c)
			return false
		}
	}
	return true
}

// possible reports whether nothing excludes a candidate of a choice, whatever it requires.
func (s *Solver) possible(c *model.Choice) bool {
	for n := range s.candidates(c) {
		if s.work += workPerLook; !s.obstacle(n, false).exists() {
			return true
		}
	}
	return false
}

// met reports whether one of a choice's candidates is selected already.
func (s *Solver) met(c *model.Choice) bool {
	if n := s.sole(c); n != nil {
		return s.levelOf(selected(n)) >= 0
	}
	is := func(n *model.Node) bool { return n != nil && c.Contains(n.Ref) }
	if c.Group >= 0 {
		return s.claims.holds(c.Group, is)
	}
	s.work += len(s.frames) / 4
	return slices.ContainsFunc(s.frames, func(f frame) bool { return is(f.selected) })
}
