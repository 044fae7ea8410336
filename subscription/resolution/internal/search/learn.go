// SPDX-License-Identifier: Apache-2.0

package search

import (
	"maps"
	"slices"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// learner answers questions about one part of a problem with a solver. A variable
// says that an entry is selected, that an offer is needed, or that a rule is in
// force. What a question leads to becomes clauses once, and serves all questions
// that differ only in the rules in force.
type learner struct {
	solver
	q      Question
	p      *model.Problem
	budget *Budget
	// track makes a variable for each rule; else all rules are facts, but that a
	// Subscription is to be served.
	track bool

	entries     []literal // by the number of the node; 0: none
	nodes       map[int32]*model.Node
	offers      map[*model.Offer]need
	sorted      []need                // the offers, in the order in which they were found
	rules       map[int32]literal     // by the number of the rule
	ruleOf      map[int32]int32       // by variable
	always      literal               // a fact
	sortedRules []int32               // the numbers of the rules that have a variable
	members     map[int32]*membership // by the number of the problem's group
	kinds       []model.RuleKind      // of the solver's groups
	pending     []*model.Node         // to be expanded

	order
	conflicts int
}

// need is the literal that an offer is needed, and those of its candidates.
type need struct {
	on         literal
	candidates []literal
}

// membership is the solver's group for one of the problem's, -1 while it has one member.
type membership struct {
	first literal
	group int32
}

func newLearner(q Question, budget *Budget, track bool) *learner {
	l := &learner{
		q: q, p: q.Problem, budget: budget, track: track,
		nodes: map[int32]*model.Node{}, offers: map[*model.Offer]need{}, members: map[int32]*membership{},
		rules: map[int32]literal{}, ruleOf: map[int32]int32{},
	}
	l.newVariable() // no variable has the number 0
	l.always = l.newVariable()
	l.add(l.always)
	l.apart = func(a, b int32) bool { return q.Scope.SideBySide(l.nodes[a], l.nodes[b]) }
	l.build()
	return l
}

// build turns what the question leads to into clauses and groups.
func (l *learner) build() {
	for _, c := range l.p.Existing {
		if l.q.Scope.Freestanding(c) {
			n := l.entry(c.Choice.First(), c.Choice.Owner)
			l.add(l.rule(model.RuleKey{Kind: model.RuleCSV, A: l.p.Known(c.Choice.First()).ID}, c.Choice.Owner).not(), n)
		}
	}
	for _, sub := range l.p.Subs {
		if l.q.Scope.Failed(sub) {
			continue
		}
		if l.q.serves(sub.Index) {
			l.subscription(sub)
		}
	}
	l.complete()
}

// lead takes in what a question demands and nothing before it did.
func (l *learner) lead(q *Question) {
	if q.Demands == nil {
		return
	}
	for _, sub := range l.p.Subs {
		if r, ok := q.demanded(sub); ok && !q.Scope.Failed(sub) {
			l.entry(r, sub.Index)
		}
	}
	l.complete()
}

// complete takes in all that the entries lead to.
func (l *learner) complete() {
	if len(l.pending) == 0 && len(l.sortedRules) == len(l.rules) {
		return
	}
	for at := 0; at < len(l.pending); at++ {
		l.expand(l.pending[at])
	}
	for _, n := range l.pending {
		l.exclusions(n)
	}
	l.pending = l.pending[:0]
	l.sortedRules = slices.Sorted(maps.Keys(l.rules))
}

// subscription takes in that a Subscription must be served.
func (l *learner) subscription(sub *model.Subscription) {
	exists := l.rule(model.RuleKey{Kind: model.RuleSubscription, A: sub.Index}, sub.Index)
	if sub.Impossible != "" {
		l.add(exists.not(), l.rule(model.RuleKey{Kind: model.RuleImpossible, A: sub.Index}, sub.Index).not())
		return
	}
	l.add(exists.not(), l.rule(model.RuleKey{Kind: model.RuleRequires, A: sub.Index}, sub.Index).not(), l.need(sub.Choice))
}

// rule returns the literal that a rule is in force.
func (l *learner) rule(key model.RuleKey, owner int32) literal {
	if !l.track && key.Kind != model.RuleSubscription {
		return l.always
	}
	id := l.p.Rules.ID(key, owner)
	if known, ok := l.rules[id]; ok {
		return known
	}
	v := l.newVariable()
	l.rules[id] = v
	l.ruleOf[v.variable()] = id
	return v
}

// entry returns the literal that an entry is selected.
func (l *learner) entry(r model.Ref, owner int32) literal {
	n := l.p.Node(r, owner)
	for int(n.ID) >= len(l.entries) {
		l.entries = append(l.entries, make([]literal, int(n.ID)+1-len(l.entries)+len(l.entries)/2)...)
	}
	if known := l.entries[n.ID]; known != 0 {
		return known
	}
	v := l.newVariable()
	l.entries[n.ID] = v
	l.nodes[v.variable()] = n
	l.pending = append(l.pending, n)
	l.work += 4
	return v
}

// need returns the literal that one of a choice's candidates is needed.
func (l *learner) need(c *model.Choice) literal {
	if known, ok := l.offers[c.Offer]; ok {
		return known.on
	}
	v := l.newVariable()
	literals := make([]literal, 1, c.Total+1)
	literals[0] = v.not()
	for r := range c.Refs {
		literals = append(literals, l.entry(r, c.Owner))
	}
	found := need{v, slices.Clone(literals[1:])}
	l.offers[c.Offer], l.sorted = found, append(l.sorted, found)
	l.add(literals...)
	return v
}

// expand takes in what forbids an entry and what it requires.
func (l *learner) expand(n *model.Node) {
	selected := l.entries[n.ID]
	if n.Blocked != "" {
		l.add(selected.not(), l.rule(model.RuleKey{Kind: model.RuleBlocked, A: n.ID}, n.Owner).not())
	}
	l.p.Expand(n)
	l.work += workPerStep * l.p.TakeWork()
	for i := range n.Choices {
		key := model.RuleKey{Kind: model.RuleBundle, A: n.ID, B: int32(i)}
		if !l.q.Scope.Waived(key) {
			l.add(selected.not(), l.need(&n.Choices[i]), l.rule(key, n.Owner).not())
		}
	}
}

// exclusions takes in what cannot stay beside an entry.
func (l *learner) exclusions(n *model.Node) {
	selected := l.entries[n.ID]
	for _, g := range n.Groups {
		m := l.members[g]
		switch {
		case m == nil:
			l.members[g] = &membership{first: selected, group: -1}
		case m.group < 0: // one alone excludes nothing
			m.group = l.addGroup(l.rule(model.RuleKey{Kind: model.RuleGroup, A: g}, n.Owner), m.first, selected)
			l.kinds = append(l.kinds, l.p.GroupOf(g).Kind)
		default:
			l.join(m.group, selected)
		}
	}
	for _, old := range n.Over {
		if int(old.ID) < len(l.entries) && l.entries[old.ID] != 0 {
			l.add(selected.not(), l.entries[old.ID].not(), l.rule(model.RuleKey{Kind: model.RuleReplaces, A: n.ID, B: old.ID}, n.Owner).not())
		}
	}
}

// facts begins anew with what holds in any case. It returns a contradiction.
func (l *learner) facts() []literal {
	l.next = 0 // there may be more clauses since the last time
	for _, u := range l.units {
		if l.value[u] < 0 {
			return []literal{u}
		}
		if l.value[u] == 0 {
			l.set(u, cause{})
		}
	}
	return l.propagate()
}

// assume opens the level of the rules in force and of what is demanded. It returns
// what contradicts itself, or the rule that nothing satisfies.
func (l *learner) assume(q *Question) (conflict []literal, never model.Bitset) {
	l.open()
	for _, id := range l.sortedRules {
		key, on := l.p.Rules.Key(id), l.rules[id]
		switch {
		case !q.enabled(key) || key.Kind == model.RuleSubscription && !q.serves(key.A):
		case l.value[on] < 0:
			return nil, model.SetOf(id)
		case l.value[on] == 0:
			l.set(on, cause{})
		}
	}
	if conflict = l.propagate(); conflict != nil || q.Demands == nil {
		return conflict, nil
	}
	for _, sub := range l.p.Subs {
		r, ok := q.demanded(sub)
		if !ok || q.Scope.Failed(sub) {
			continue
		}
		selected := l.entry(r, sub.Index)
		delete(l.ruleOf, selected.variable()) // of an earlier question
		if q.Demands.Hard != sub {
			l.ruleOf[selected.variable()] = l.p.Rules.ID(model.RuleKey{Kind: model.RuleKeeps, A: sub.Index}, sub.Index)
		}
		switch {
		case l.value[selected] < 0:
			never = l.rulesOf([]literal{selected})
			if id, ok := l.ruleOf[selected.variable()]; ok {
				never.Add(id)
			}
			return nil, never
		case l.value[selected] == 0:
			l.set(selected, cause{})
		}
		if conflict = l.propagate(); conflict != nil {
			return conflict, nil
		}
	}
	return nil, nil
}

// decide answers a question that differs from the learner's only in the rules in
// force.
func (l *learner) decide(q Question) Answer {
	if !l.budget.spend() {
		return Answer{Verdict: Exhausted}
	}
	l.backTo(0)
	l.lead(&q)
	if l.facts() != nil {
		return Answer{Verdict: Unsatisfiable}
	}
	queue, _ := q.roots()
	l.order = order{asked: &q, queue: queue, selected: make([]bool, len(l.levels))}
	conflict, never := l.assume(&q)
	if never != nil {
		return Answer{Verdict: Unsatisfiable, Conflict: never}
	}
	for {
		if !l.budget.pay(&l.work) {
			return Answer{Verdict: Exhausted}
		}
		if conflict != nil {
			if l.level() <= 1 {
				return Answer{Verdict: Unsatisfiable, Conflict: l.rulesOf(conflict)}
			}
			l.conflicts++
			l.turnBack(conflict)
			if conflict = l.propagate(); conflict != nil {
				continue
			}
		}
		if l.conflicts%crowdedEach == 0 {
			l.conflicts++
			if conflict = l.crowded(); conflict != nil {
				l.raise(conflict)
				continue
			}
		}
		if conflict = l.propagate(); conflict != nil {
			continue
		}
		next, ok := l.decision()
		if !ok {
			return Answer{Verdict: Satisfiable, Picks: slices.Clone(l.picks)}
		}
		l.open()
		l.set(next, cause{})
	}
}

// turnBack learns from a contradiction and goes back to where that matters.
func (l *learner) turnBack(conflict []literal) {
	learned, back := l.learn(conflict)
	back = max(back, 1)
	l.backTo(back)
	l.rewind(back)
	l.keep(learned)
}

// raise goes back to the last level that takes part in a contradiction.
func (l *learner) raise(conflict []literal) {
	last := 0
	for _, x := range conflict {
		last = max(last, int(l.levels[x.variable()]))
	}
	if last = max(last, 1); last < l.level() {
		l.backTo(last)
		l.rewind(last)
	}
}

// rulesOf returns the rules that a contradiction follows from.
func (l *learner) rulesOf(conflict []literal) model.Bitset {
	set := model.SetOf()
	for _, a := range l.assumed(conflict) {
		if id, ok := l.ruleOf[a.variable()]; ok {
			set.Add(id)
		}
	}
	return set
}
