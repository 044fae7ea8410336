// SPDX-License-Identifier: Apache-2.0

package resolution

import "slices"

// impossible reports whether a node cannot be selected now, and blames who is
// at fault.
func (s *search) impossible(n *node, set *conflictSet) bool {
	if n.blocked != "" && s.enabled(ruleKey{ruleBlocked, n.id, 0}) {
		s.blame(set, -1, ruleKey{ruleBlocked, n.id, 0}, n.owner)
		return true
	}
	s.p.expand(n)
	if n.dead >= 0 && s.dead(n, set) {
		return true
	}
	return s.clash(n, set)
}

// dead finds a requirement in force that nobody can ever meet.
func (s *search) dead(n *node, set *conflictSet) bool {
	for i := n.dead; i < len(n.choices); i++ {
		if key := (ruleKey{ruleBundle, n.id, int32(i)}); n.choices[i].total == 0 && s.enabled(key) {
			s.blame(set, -1, key, n.owner)
			return true
		}
	}
	return false
}

// clash finds the earliest selected node that excludes n.
func (s *search) clash(n *node, set *conflictSet) bool {
	p := s.p
	first, key := int32(-1), ruleKey{}
	claim := func(at int32, k ruleKey) {
		for ; at >= 0; at = s.slots[at].previous {
			if level := s.slots[at].level; !s.sideBySide(n, s.frames[level].selected) {
				if (first < 0 || level < first) && s.enabled(k) {
					first, key = level, k
				}
				return
			}
		}
	}
	for _, id := range n.packages {
		claim(p.packages.head[id], ruleKey{rulePackage, id, 0})
	}
	for _, id := range n.apis {
		claim(p.apis.head[id], ruleKey{ruleAPI, id, 0})
	}
	if n.name >= 0 {
		claim(p.names.head[n.name], ruleKey{ruleName, n.name, 0})
	}
	for _, old := range n.over {
		if k := (ruleKey{ruleReplaces, n.id, old.id}); old.level >= 0 && s.enabled(k) && (first < 0 || old.level < first) {
			first, key = old.level, k
		}
	}
	if n.source == existingSource {
		if m := s.replacement(n); m != nil && (first < 0 || m.level < first) {
			first, key = m.level, ruleKey{ruleReplaces, m.id, n.id}
		}
	}
	if first < 0 {
		return false
	}
	s.blame(set, first, key, n.owner)
	return true
}

// sideBySide reports whether both exist already and at least one of them is only
// kept because its Subscription failed: whatever they have in common, it is no
// reason to stop the others.
func (s *search) sideBySide(a, b *node) bool {
	if a.source != existingSource || b.source != existingSource {
		return false
	}
	return s.p.byName[a.entry.name].kept != nil || s.p.byName[b.entry.name].kept != nil
}

// replacement returns a selected node that an existing one cannot stay beside.
func (s *search) replacement(old *node) *node {
	if s.replacing == 0 {
		return nil
	}
	for i := range s.frames {
		m := s.frames[i].selected
		if m != nil && slices.Contains(m.over, old) && s.enabled(ruleKey{ruleReplaces, m.id, old.id}) {
			return m
		}
	}
	return nil
}

func (s *search) push(n *node, level int) {
	p := s.p
	s.frames[level].selected = n
	n.level = int32(level)
	if len(n.over) > 0 {
		s.replacing++
	}
	for _, id := range n.packages {
		s.slots = append(s.slots, slot{p.packages.head[id], n.level})
		p.packages.head[id] = int32(len(s.slots) - 1)
	}
	for _, id := range n.apis {
		s.slots = append(s.slots, slot{p.apis.head[id], n.level})
		p.apis.head[id] = int32(len(s.slots) - 1)
	}
	if n.name >= 0 {
		s.slots = append(s.slots, slot{p.names.head[n.name], n.level})
		p.names.head[n.name] = int32(len(s.slots) - 1)
	}
	for i := range n.choices {
		if s.enabled(ruleKey{ruleBundle, n.id, int32(i)}) {
			s.queue = append(s.queue, &n.choices[i])
		}
	}
}

func (s *search) pop(level int) {
	p, f := s.p, &s.frames[level]
	n := f.selected
	if n == nil {
		return
	}
	if len(n.over) > 0 {
		s.replacing--
	}
	at := f.occupied
	for _, id := range n.packages {
		p.packages.head[id] = s.slots[at].previous
		at++
	}
	for _, id := range n.apis {
		p.apis.head[id] = s.slots[at].previous
		at++
	}
	if n.name >= 0 {
		p.names.head[n.name] = s.slots[at].previous
	}
	n.level, f.selected = -1, nil
	s.slots, s.queue = s.slots[:f.occupied], s.queue[:f.queued]
}

// hopeless looks ahead: whether a requirement that n brings has no possible
// candidate already.
func (s *search) hopeless(n *node, level int) bool {
	for i := s.frames[level].queued; i < len(s.queue) && (s.track || !s.p.slow.blind); i++ {
		c := s.queue[i]
		if s.met(c) || s.possible(c) {
			continue
		}
		set := &s.frames[level].conflictSet
		s.blame(set, -1, ruleKey{ruleBundle, n.id, int32(c.index)}, n.owner)
		s.scratch.levels.remove(int32(level))
		set.levels.addAll(s.scratch.levels)
		set.rules.addAll(s.scratch.rules)
		return true
	}
	return false
}

// possible reports whether a choice has a candidate that nothing excludes; if
// not, scratch says why.
func (s *search) possible(c *choice) bool {
	s.scratch.levels.clear()
	s.scratch.rules.clear()
	for _, segment := range c.segments {
		for _, e := range segment.entries {
			n := s.p.node(ref{segment.source, e}, c.owner)
			if n.blocked != "" && s.enabled(ruleKey{ruleBlocked, n.id, 0}) {
				s.blame(&s.scratch, -1, ruleKey{ruleBlocked, n.id, 0}, n.owner)
			} else if !s.clash(n, &s.scratch) {
				return true
			}
		}
	}
	return false
}

// met reports whether one of a choice's candidates is selected already.
func (s *search) met(c *choice) bool {
	p := s.p
	if c.parent == nil {
		return s.metRoot(c)
	}
	q := c.parent.entry.requirements[c.index].predicate
	switch q.kind {
	case isGVK:
		id, ok := p.apis.ids[q.api]
		return ok && s.anySlot(p.apis.head[id], q)
	case isPackage:
		id, ok := p.packages.ids[q.name]
		return ok && s.anySlot(p.packages.head[id], q)
	}
	for i := range s.frames {
		if n := s.frames[i].selected; n != nil && eligible(n) && p.satisfies(n.entry, q) {
			return true
		}
	}
	return false
}

func (s *search) anySlot(at int32, q *predicate) bool {
	for ; at >= 0; at = s.slots[at].previous {
		if n := s.frames[s.slots[at].level].selected; eligible(n) && s.p.satisfies(n.entry, q) {
			return true
		}
	}
	return false
}

// eligible reports whether a node can be a candidate for requirements: skipped
// entries cannot.
func eligible(n *node) bool { return n.source == existingSource || n.entry.position >= 0 }

func (s *search) metRoot(c *choice) bool {
	if c.sub == nil {
		n := s.p.nodes[c.first()]
		return n.level >= 0
	}
	if r, ok := s.demanded(c.sub); ok {
		n := s.p.nodes[r]
		return n != nil && n.level >= 0
	}
	if current := c.sub.current; current != nil {
		if n := s.p.nodes[ref{existingSource, current.entry}]; n != nil && n.level >= 0 {
			return true
		}
	}
	if c.sub.pkg == nil {
		return false
	}
	id, ok := s.p.packages.ids[c.sub.pkg.name]
	if !ok {
		return false
	}
	for at := s.p.packages.head[id]; at >= 0; at = s.slots[at].previous {
		if c.contains(s.frames[s.slots[at].level].selected.ref) {
			return true
		}
	}
	return false
}
