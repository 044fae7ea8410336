// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
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
