// SPDX-License-Identifier: Apache-2.0

package search

import "github.com/olmcore/olm/subscription/resolution/internal/model"

// order decides as a walk does: it takes choices from a queue and selects the first
// candidate that nothing excludes. What the solver concluded without a choice that
// leads there is not selected: it meets no choice before its turn.
type order struct {
	asked    *Question
	queue    []*model.Choice
	at       int
	picks    []Pick
	selected []bool // by variable
	// marks are where each level above that of the rules began.
	marks []mark
}

type mark struct{ at, queued, picks int }

// decision returns the next entry to select; false when every demand is met.
func (l *learner) decision() (next literal, ok bool) {
	for ; l.at < len(l.queue); l.at++ {
		c := l.queue[l.at]
		pick := l.pick(c)
		if pick == 0 {
			l.picks = append(l.picks, Pick{Choice: c})
			continue
		}
		if l.value[pick] == 0 {
			l.marks = append(l.marks, mark{l.at, len(l.queue), len(l.picks)})
			return pick, true
		}
		n := l.nodes[pick.variable()]
		l.picks = append(l.picks, Pick{c, n})
		l.selected[pick.variable()] = true
		for i := range n.Choices {
			if l.asked.enabled(model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}) {
				l.queue = append(l.queue, &n.Choices[i])
			}
		}
	}
	return 0, false
}

// pick returns the candidate for a choice, 0 when a selected one meets it.
func (l *learner) pick(c *model.Choice) literal {
	candidates := l.candidates(c)
	l.work += len(candidates)
	first := literal(0)
	for _, x := range candidates {
		switch {
		case l.selected[x.variable()]:
			return 0
		case first == 0 && l.value[x] >= 0:
			first = x
		}
	}
	return first
}

// candidates returns the literals of those who can meet a choice.
func (l *learner) candidates(c *model.Choice) []literal {
	if c.CSV != nil {
		return []literal{l.entry(c.First(), c.Owner)}
	}
	if c.Sub != nil {
		if r, ok := l.asked.demanded(c.Sub); ok {
			return []literal{l.entry(r, c.Owner)}
		}
	}
	return l.offers[c.Offer].candidates
}

// rewind takes back what was decided above a level; the rules in force are level 1.
func (l *learner) rewind(level int) {
	if level > len(l.marks) {
		return
	}
	m := l.marks[level-1]
	for _, p := range l.picks[m.picks:] {
		if p.Node != nil {
			l.selected[l.entries[p.Node.ID].variable()] = false
		}
	}
	l.at, l.queue, l.picks, l.marks = m.at, l.queue[:m.queued], l.picks[:m.picks], l.marks[:level-1]
}
