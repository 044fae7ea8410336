// SPDX-License-Identifier: Apache-2.0

package search

import (
	"github.com/olmcore/olm/subscription/resolution/internal/content"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// walk takes choices from a queue; each selects its first candidate that is
// possible, whose requirements go to the back of the queue. A choice without a
// possible candidate names the levels that stand in the way, and the walk goes back
// to the last of them. What lies between cannot help, so no solution is missed.
type walk struct {
	*Question
	p      *model.Problem
	budget *Budget
	// track records in conflict the rules that a failure is made of.
	track    bool
	conflict model.Bitset

	queue  []*model.Choice
	frames []frame
	claims
	scratch conflictSet
}

// frame is the state of one choice of the queue. Its index is its level.
type frame struct {
	selected *model.Node // nil: the choice was met already
	// segment and next are the cursor; queued what to go back to.
	segment, next int
	queued        int
	conflictSet
}

// conflictSet says why candidates are impossible: what was selected at these
// levels, and these rules.
type conflictSet struct{ levels, rules model.Bitset }

// walkThrough answers a question by a walk alone.
func walkThrough(q Question, budget *Budget, track bool) Answer {
	w := &walk{Question: &q, p: q.Problem, budget: budget, track: track}
	answer := Answer{Verdict: w.run()}
	switch answer.Verdict {
	case Satisfiable:
		answer.Picks = make([]Pick, len(w.frames))
		for level := range w.frames {
			answer.Picks[level] = Pick{w.queue[level], w.frames[level].selected}
		}
	case Unsatisfiable:
		answer.Conflict = w.conflict
	}
	return answer
}

func (w *walk) run() Verdict {
	list, impossible := w.roots()
	for _, key := range impossible {
		if w.track {
			w.conflict.Add(w.p.Rules.ID(key, key.A))
		}
	}
	if impossible != nil {
		return Unsatisfiable
	}
	w.queue = list
	for level := 0; level < len(w.queue); {
		if level == len(w.frames) {
			w.enter(level)
			if w.met(w.queue[level]) {
				level++
				continue
			}
			w.introduce(level)
		}
		switch w.advance(level) {
		case Satisfiable:
			level++
		case Exhausted:
			return Exhausted
		case Unsatisfiable:
			f := &w.frames[level]
			back := f.levels.Max()
			if back < 0 {
				w.conflict = f.rules
				return Unsatisfiable
			}
			f.levels.Remove(back)
			w.unwind(int(back))
			target := &w.frames[back]
			target.levels.AddAll(f.levels) // f is behind the end now, and untouched
			target.rules.AddAll(f.rules)
			level = int(back)
		}
	}
	return Satisfiable
}

func (w *walk) blame(set *conflictSet, level int32, key model.RuleKey, owner int32) {
	if level >= 0 {
		set.levels.Add(level)
	}
	if w.track {
		set.rules.Add(w.p.Rules.ID(key, owner))
	}
}

func (w *walk) enter(level int) {
	if level < cap(w.frames) {
		w.frames = w.frames[:level+1]
	} else {
		w.frames = append(w.frames, frame{})
	}
	f := &w.frames[level]
	f.selected, f.segment, f.next, f.queued = nil, 0, 0, len(w.queue)
	f.levels.Clear()
	f.rules.Clear()
}

// introduce begins the conflict of a choice with who demands it.
func (w *walk) introduce(level int) {
	f, c := &w.frames[level], w.queue[level]
	switch {
	case c.Parent != nil:
		w.blame(&f.conflictSet, w.levelOf(c.Parent), model.RuleKey{Kind: model.RuleBundle, A: c.Parent.ID, B: int32(c.Index)}, c.Owner)
	case c.CSV != nil:
		w.blame(&f.conflictSet, -1, model.RuleKey{Kind: model.RuleCSV, A: w.p.Known(c.First()).ID}, c.Owner)
	default:
		if _, ok := w.demanded(c.Sub); !ok {
			w.blame(&f.conflictSet, -1, model.RuleKey{Kind: model.RuleSubscription, A: c.Owner}, c.Owner)
			w.blame(&f.conflictSet, -1, model.RuleKey{Kind: model.RuleRequires, A: c.Owner}, c.Owner)
		} else if w.Demands.Hard != c.Sub {
			w.blame(&f.conflictSet, -1, model.RuleKey{Kind: model.RuleKeeps, A: c.Owner}, c.Owner)
		}
	}
}

// candidate moves the cursor of a level.
func (w *walk) candidate(level int) (r model.Ref, ok bool) {
	f, c := &w.frames[level], w.queue[level]
	if c.Sub != nil && w.Demands != nil {
		if r, ok := w.demanded(c.Sub); ok {
			f.next++
			return r, f.next == 1
		}
	}
	for f.segment < len(c.Segments) {
		segment := &c.Segments[f.segment]
		if f.next < len(segment.Entries) {
			f.next++
			return model.Ref{Source: segment.Source, Entry: segment.Entries[f.next-1]}, true
		}
		f.segment, f.next = f.segment+1, 0
	}
	return model.Ref{}, false
}

// advance selects the next possible candidate of a level.
func (w *walk) advance(level int) Verdict {
	for {
		r, ok := w.candidate(level)
		if !ok {
			return Unsatisfiable
		}
		if !w.budget.spend() {
			return Exhausted
		}
		n := w.p.Node(r, w.queue[level].Owner)
		if w.impossible(n, &w.frames[level].conflictSet) {
			continue
		}
		w.push(n, level)
		switch w.lookAhead(n, level) {
		case Exhausted:
			return Exhausted
		case Unsatisfiable:
			w.pop(level)
		default:
			return Satisfiable
		}
	}
}

func (w *walk) push(n *model.Node, level int) {
	w.frames[level].selected = n
	w.claim(n, int32(level))
	for i := range n.Choices {
		if w.enabled(model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}) {
			w.queue = append(w.queue, &n.Choices[i])
		}
	}
}

func (w *walk) pop(level int) {
	f := &w.frames[level]
	if f.selected == nil {
		return
	}
	w.release(f.selected)
	f.selected = nil
	w.queue = w.queue[:f.queued]
}

// unwind goes back to a level and takes its selection back.
func (w *walk) unwind(level int) {
	for l := len(w.frames) - 1; l >= level; l-- {
		w.pop(l)
	}
	w.frames = w.frames[:level+1]
}

// lookAhead looks for a requirement that n brings and for which each candidate is
// impossible already.
func (w *walk) lookAhead(n *model.Node, level int) Verdict {
	for i := w.frames[level].queued; i < len(w.queue); i++ {
		c := w.queue[i]
		if w.met(c) {
			continue
		}
		switch w.possible(c) {
		case Exhausted:
			return Exhausted
		case Unsatisfiable:
			set := &w.frames[level].conflictSet
			w.blame(set, -1, model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(c.Index)}, n.Owner)
			w.scratch.levels.Remove(int32(level))
			set.levels.AddAll(w.scratch.levels)
			set.rules.AddAll(w.scratch.rules)
			return Unsatisfiable
		}
	}
	return Satisfiable
}

// possible looks for a candidate of a choice that nothing excludes; if there is
// none, scratch says why.
func (w *walk) possible(c *model.Choice) Verdict {
	w.scratch.levels.Clear()
	w.scratch.rules.Clear()
	for r := range c.Refs {
		n := w.p.Node(r, c.Owner)
		if n.Blocked != "" && w.enabled(model.RuleKey{Kind: model.RuleBlocked, A: n.ID}) {
			w.blame(&w.scratch, -1, model.RuleKey{Kind: model.RuleBlocked, A: n.ID}, n.Owner)
		} else if !w.clash(n, &w.scratch) {
			return Satisfiable
		}
		if !w.budget.spend() { // a look that found nothing
			return Exhausted
		}
	}
	return Unsatisfiable
}

// met reports whether one of a choice's candidates is selected already.
func (w *walk) met(c *model.Choice) bool {
	if c.Parent == nil {
		return w.metRoot(c)
	}
	q := c.Parent.Entry.Requirements[c.Index].Predicate
	meets := func(n *model.Node) bool { return Eligible(n) && w.p.Satisfies(n.Entry, q) }
	switch q.Kind {
	case content.IsGVK:
		return w.holds(w.p.APIGroup(q.API), meets)
	case content.IsPackage:
		return w.holds(w.p.PackageGroup(q.Name), meets)
	}
	for i := range w.frames {
		if n := w.frames[i].selected; n != nil && meets(n) {
			return true
		}
	}
	return false
}

// Eligible reports whether a node can be a candidate for requirements: skipped
// entries cannot.
func Eligible(n *model.Node) bool { return n.Source == model.ExistingSource || n.Entry.Position >= 0 }

func (w *walk) metRoot(c *model.Choice) bool {
	isSelected := func(r model.Ref) bool {
		n := w.p.Known(r)
		return n != nil && w.levelOf(n) >= 0
	}
	if c.Sub == nil {
		return isSelected(c.First())
	}
	if r, ok := w.demanded(c.Sub); ok {
		return isSelected(r)
	}
	if current := c.Sub.Current; current != nil && isSelected(model.Ref{Source: model.ExistingSource, Entry: current.Entry}) {
		return true
	}
	if c.Sub.Pkg == nil {
		return false
	}
	group := w.p.PackageGroup(c.Sub.Pkg.Name)
	return w.holds(group, func(n *model.Node) bool { return c.Contains(n.Ref) })
}
