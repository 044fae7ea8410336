// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"maps"
	"slices"

	"github.com/olmcore/olm/olmcore"
)

// Summary counts the Health of many Subscriptions, for example of a namespace or a fleet. The zero value is the
// summary of no Subscriptions. Its JSON field names are stable.
type Summary struct {
	// Subscriptions is the number of Subscriptions. Phases contains the number of Subscriptions in each phase. It does not
	// contain phases without Subscriptions.
	Subscriptions int           `json:"subscriptions"`
	Phases        map[Phase]int `json:"phases,omitempty"`
	// Worst is the worst phase of all Subscriptions. It is empty if there are no Subscriptions.
	Worst Phase `json:"worst,omitempty"`
	// Act contains every Health that has an Advice. It is sorted by phase (the worst first), then by Since (the
	// earliest first), then by Subscription.
	Act []Health `json:"act,omitempty"`
}

// Summarize returns the Summary of the given Healths, for example the result of Of. It ignores the keys of the map.
func Summarize(answers map[string]Health) Summary {
	var s Summary
	for _, h := range answers {
		s = s.with(h)
	}
	slices.SortFunc(s.Act, urgency)
	return s
}

// with adds a Health to the Summary. It does not sort Act.
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

// Merge returns the Summary of the Subscriptions of both s and t. The result does not depend on the order of merging.
// Neither s nor t is modified.
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

// worse returns the worse of two phases. An empty phase is the best.
func worse(a, b Phase) Phase {
	if a == "" || b != "" && cmp.Or(cmp.Compare(b.Badness(), a.Badness()), cmp.Compare(b, a)) > 0 {
		return b
	}
	return a
}

// urgency compares two Health for the order of Summary.Act. Only equal ones compare as equal.
func urgency(a, b Health) int {
	return cmp.Or(
		cmp.Compare(b.Phase.Badness(), a.Phase.Badness()), cmp.Compare(a.Phase, b.Phase), sinceOrder(a, b),
		byNamespace(a.Subscription, b.Subscription), a.Object.Compare(b.Object),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Advice, b.Advice),
	)
}

// sinceOrder compares the times of two Health. A zero time is last.
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
