// SPDX-License-Identifier: Apache-2.0

package resolution

// verdict is how a search ended.
type verdict uint8

const (
	satisfiable verdict = iota
	unsatisfiable
	exhausted // the step budget ran out
)

// search finds the first solution in the order of preference: choices are taken
// from a queue, each selects its first candidate that is possible, whose
// requirements go to the back of the queue. A choice without a possible
// candidate names the levels that stand in the way, and the search goes back to
// the last of them. What lies between cannot help, so no solution is missed.
type search struct {
	p *problem
	// only are the rules in force; nil is all. track records in conflict the rules
	// that a failure is made of.
	only  bitset
	track bool
	// subs are the numbers of the Subscriptions that take part; nil is all.
	subs bitset
	// demands are more than the problem itself asks for; nil is no more.
	demands *demands

	queue  []*choice
	frames []frame
	slots  []slot
	// replacing counts the selected nodes that existing ones cannot stay beside.
	replacing int
	conflict  bitset
	scratch   conflictSet
}

// demands restrict Subscriptions to one candidate each: hard without a rule that
// could be given up, keep by the rule that each keeps its candidate.
type demands struct {
	hard      *subscription
	candidate ref
	keep      map[int32]ref
}

// frame is the state of one choice of the queue. Its index is its level.
type frame struct {
	selected *node // nil: the choice was met already
	// segment and next are the cursor; queued and occupied what to go back to.
	segment, next    int
	queued, occupied int
	conflictSet
}

// conflictSet says why candidates are impossible: what was selected at these
// levels, and these rules.
type conflictSet struct{ levels, rules bitset }

// slot is a selected node's claim on a package, an API or its name.
type slot struct{ previous, level int32 }

func (s *search) enabled(key ruleKey) bool {
	if len(s.p.waived) > 0 && s.p.waived[key] {
		return false
	}
	if s.only == nil {
		return true
	}
	id, ok := s.p.rules.ids[key]
	return ok && s.only.has(id)
}

func (s *search) blame(set *conflictSet, level int32, key ruleKey, owner int32) {
	if level >= 0 {
		set.levels.add(level)
	}
	if s.track {
		set.rules.add(s.p.rules.id(key, owner))
	}
}

// run searches. On satisfiable, frames hold the solution; done must be called
// when it was read.
func (s *search) run() verdict {
	if !s.roots() {
		return unsatisfiable
	}
	for level := 0; level < len(s.queue); {
		if level == len(s.frames) {
			s.enter(level)
			if s.met(s.queue[level]) {
				level++
				continue
			}
			s.introduce(level)
		}
		switch s.advance(level) {
		case satisfiable:
			level++
		case exhausted:
			return exhausted
		case unsatisfiable:
			f := &s.frames[level]
			back := f.levels.max()
			if back < 0 {
				s.conflict = append(s.conflict[:0], f.rules...)
				return unsatisfiable
			}
			if s.p.slow.chronological && !s.track {
				back = s.latest(level)
			}
			f.levels.remove(back)
			s.unwind(int(back))
			target := &s.frames[back]
			target.levels.addAll(f.levels) // f is behind the end now, and untouched
			target.rules.addAll(f.rules)
			level = int(back)
		}
	}
	return satisfiable
}

// latest returns the last level before another that selected something.
func (s *search) latest(level int) int32 {
	for level--; s.frames[level].selected == nil; level-- {
	}
	return int32(level)
}

// roots queues what must be satisfied: existing operators that must stay, then
// the Subscriptions. false: one of them is impossible by itself.
func (s *search) roots() bool {
	p := s.p
	for i, c := range p.existing {
		if !c.freestanding() {
			continue
		}
		if n := p.node(ref{existingSource, c.entry}, int32(len(p.subs)+i)); s.enabled(ruleKey{ruleCSV, n.id, 0}) {
			if c.choice.total == 0 {
				c.choice = choice{csv: c, owner: n.owner}
				c.choice.add(segment{existingSource, []*entry{c.entry}})
			}
			s.queue = append(s.queue, &c.choice)
		}
	}
	for _, sub := range p.subs {
		if sub.failed {
			continue
		}
		if _, ok := s.demanded(sub); ok {
			s.queue = append(s.queue, sub.choice)
			continue
		}
		if (s.subs != nil && !s.subs.has(sub.index)) || !s.enabled(ruleKey{ruleSubscription, sub.index, 0}) {
			continue
		}
		if sub.impossible != "" {
			if s.enabled(ruleKey{ruleImpossible, sub.index, 0}) {
				s.conflict.clear()
				if s.track {
					s.conflict.add(p.rules.id(ruleKey{ruleSubscription, sub.index, 0}, sub.index))
					s.conflict.add(p.rules.id(ruleKey{ruleImpossible, sub.index, 0}, sub.index))
				}
				return false
			}
			continue
		}
		if s.enabled(ruleKey{ruleRequires, sub.index, 0}) {
			s.queue = append(s.queue, sub.choice)
		}
	}
	return true
}

// demanded returns the only candidate that counts for a Subscription.
func (s *search) demanded(sub *subscription) (candidate ref, ok bool) {
	if s.demands == nil {
		return ref{}, false
	}
	if s.demands.hard == sub {
		return s.demands.candidate, true
	}
	candidate, ok = s.demands.keep[sub.index]
	return candidate, ok && s.enabled(ruleKey{ruleKeeps, sub.index, 0})
}

func (s *search) enter(level int) {
	if level < cap(s.frames) {
		s.frames = s.frames[:level+1]
	} else {
		s.frames = append(s.frames, frame{})
	}
	f := &s.frames[level]
	f.selected, f.segment, f.next = nil, 0, 0
	f.queued, f.occupied = len(s.queue), len(s.slots)
	f.levels.clear()
	f.rules.clear()
}

// introduce begins the conflict of a choice with who demands it.
func (s *search) introduce(level int) {
	f, c := &s.frames[level], s.queue[level]
	switch {
	case c.parent != nil:
		s.blame(&f.conflictSet, c.parent.level, ruleKey{ruleBundle, c.parent.id, int32(c.index)}, c.owner)
	case c.csv != nil:
		s.blame(&f.conflictSet, -1, ruleKey{ruleCSV, s.p.nodes[c.first()].id, 0}, c.owner)
	default:
		if _, ok := s.demanded(c.sub); !ok {
			s.blame(&f.conflictSet, -1, ruleKey{ruleSubscription, c.owner, 0}, c.owner)
			s.blame(&f.conflictSet, -1, ruleKey{ruleRequires, c.owner, 0}, c.owner)
		} else if s.demands.hard != c.sub {
			s.blame(&f.conflictSet, -1, ruleKey{ruleKeeps, c.owner, 0}, c.owner)
		}
	}
}

// candidate moves the cursor of a level.
func (s *search) candidate(level int) (r ref, ok bool) {
	f, c := &s.frames[level], s.queue[level]
	if c.sub != nil && s.demands != nil {
		if r, ok := s.demanded(c.sub); ok {
			f.next++
			return r, f.next == 1
		}
	}
	for f.segment < len(c.segments) {
		segment := &c.segments[f.segment]
		if f.next < len(segment.entries) {
			f.next++
			return ref{segment.source, segment.entries[f.next-1]}, true
		}
		f.segment, f.next = f.segment+1, 0
	}
	return ref{}, false
}

// advance selects the next possible candidate of a level.
func (s *search) advance(level int) verdict {
	for {
		r, ok := s.candidate(level)
		if !ok {
			return unsatisfiable
		}
		if !s.step() {
			return exhausted
		}
		n := s.p.node(r, s.queue[level].owner)
		if s.impossible(n, &s.frames[level].conflictSet) {
			continue
		}
		s.push(n, level)
		if s.hopeless(n, level) {
			s.pop(level)
			continue
		}
		return satisfiable
	}
}

func (s *search) step() bool {
	limit := s.p.policy.maxSteps()
	if limit >= 0 && s.p.stats.Steps >= limit {
		return false
	}
	s.p.stats.Steps++
	return true
}

// unwind goes back to a level and takes its selection back.
func (s *search) unwind(level int) {
	for l := len(s.frames) - 1; l >= level; l-- {
		s.pop(l)
	}
	s.frames = s.frames[:level+1]
}

// done takes everything back, so that the next search starts clean.
func (s *search) done() {
	if len(s.frames) > 0 {
		s.unwind(0)
	}
}
