// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// For tests: the readers that avoid encoding/json.
var (
	ParseAnnotation = parseAnnotation
	Projects        = projects
)

// CheckCore solves an input again with the rules of its contradiction alone, and
// with each of them but one. It returns the number of rules, 0 for an input that
// has a solution.
func CheckCore(in Input) (rules int, err error) {
	p := newProblem(&in)
	if p.operatorGroup() != "" {
		return 0, nil
	}
	p.subscriptions()
	if p.prepare() != "" {
		return 0, nil
	}
	whole := &search{p: p}
	verdict := whole.run()
	whole.done()
	if verdict != unsatisfiable {
		return 0, nil
	}
	set, _ := p.contradiction(nil)
	only := func(members []int32) bitset {
		some := bitset{0}
		for _, id := range members {
			some.add(id)
		}
		return some
	}
	if v, _ := p.trial(&search{only: only(set.rules)}); v != unsatisfiable {
		return 0, fmt.Errorf("the rules alone have a solution: %v", p.words(set))
	}
	for i := range set.rules {
		if v, _ := p.trial(&search{only: only(slices.Delete(slices.Clone(set.rules), i, i+1))}); v != satisfiable {
			return 0, fmt.Errorf("rule %d of %v is not needed", i, p.words(set))
		}
	}
	return len(set.rules), nil
}

// ResolveSlowly is Resolve without some of what makes it quick.
func ResolveSlowly(in Input, chronological, blind, forgetful, eager bool) Result {
	p := newProblem(&in)
	p.slow = slow{chronological, blind, forgetful, eager}
	return p.answer()
}

// Selection is one entry of a solution. By is the entry whose Requirement it
// meets, -1 for none; Skipped entries meet none.
type Selection struct {
	Name        string
	Properties  []olmcore.Property
	By          int
	Requirement olmcore.Property
	Skipped     bool
}

// Selections returns the solution of an input in the order in which it was
// decided, nil when there is none.
func Selections(in Input) (list []Selection) {
	p := newProblem(&in)
	if p.operatorGroup() != "" {
		return nil
	}
	p.subscriptions()
	s := &search{p: p}
	if p.prepare() != "" || s.run() != satisfiable {
		return nil
	}
	index := map[*node]int{}
	for level := range s.frames {
		n, c := s.frames[level].selected, s.queue[level]
		if n == nil {
			continue
		}
		x := Selection{Name: n.entry.name, Properties: n.entry.properties, By: -1, Skipped: !eligible(n)}
		if c.parent != nil {
			kind, value, _ := strings.Cut(c.parent.entry.requirements[c.index].key, " ")
			x.By, x.Requirement = index[c.parent], olmcore.Property{Type: kind, Value: []byte(value)}
		}
		index[n] = len(list)
		list = append(list, x)
	}
	return list
}
