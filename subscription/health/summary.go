// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"maps"
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// Summary is what the answers for many Subscriptions come to: of a namespace, or of a fleet. Its zero value is that of
// none. Its JSON has stable names.
type Summary struct {
	// Subscriptions is how many there are, Phases how many in each phase; a phase without one is left out.
	Subscriptions int           `json:"subscriptions"`
	Phases        map[Phase]int `json:"phases,omitempty"`
	// Worst is the worst phase of all, empty for none.
	Worst Phase `json:"worst,omitempty"`
	// Act are the answers with an advice: the worst phase first, in it what has lasted longest, then by Subscription.
	Act []Health `json:"act,omitempty"`
}

// Summarize returns the Summary of answers, such as those of Of for one namespace; their keys do not matter.
func Summarize(answers map[string]Health) Summary {
	var s Summary
	for _, h := range answers {
		s = s.with(h)
	}
	slices.SortFunc(s.Act, urgency)
	return s
}

// with counts one more answer; Act is not sorted.
func (s Summary) with(h Health) Summary {
	if s.Phases == nil {
		s.Phases = map[Phase]int{}
	}
	s.Subscriptions++
	s.Phases[h.Phase]++
	s.Worst = worse(s.Worst, h.Phase)
	if h.Advice != "" {
		s.Act = append(s.Act, h)
	}
	return s
}

// Merge returns the Summary of the answers of both, whatever the order in which they are merged. Neither is changed.
func (s Summary) Merge(t Summary) Summary {
	m := Summary{
		Subscriptions: s.Subscriptions + t.Subscriptions, Worst: worse(s.Worst, t.Worst),
		Phases: maps.Clone(s.Phases), Act: slices.Concat(s.Act, t.Act),
	}
	if m.Phases == nil {
		m.Phases = maps.Clone(t.Phases)
	} else {
		for phase, count := range t.Phases {
			m.Phases[phase] += count
		}
	}
	slices.SortFunc(m.Act, urgency)
	return m
}

// worse returns the worse of two phases; an empty one is none.
func worse(a, b Phase) Phase {
	if a == "" || b != "" && cmp.Or(cmp.Compare(b.Badness(), a.Badness()), cmp.Compare(b, a)) > 0 {
		return b
	}
	return a
}

// urgency orders answers: no two that differ are equal.
func urgency(a, b Health) int {
	return cmp.Or(
		cmp.Compare(b.Phase.Badness(), a.Phase.Badness()), cmp.Compare(a.Phase, b.Phase), sinceOrder(a, b),
		byNamespace(a.Subscription, b.Subscription), a.Object.Compare(b.Object),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Advice, b.Advice),
	)
}

// sinceOrder puts what has no time last.
func sinceOrder(a, b Health) int {
	if a.Since.IsZero() != b.Since.IsZero() {
		if a.Since.IsZero() {
			return 1
		}
		return -1
	}
	return a.Since.Compare(b.Since)
}

func byNamespace(a, b olmcore.Ref) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.Compare(b))
}
