// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"slices"
	"strings"
)

// List is the Pods of a catalog, by name. It is read-only.
type List struct {
	Items []Pod
	Tally
	// Content is the content that shall win, empty while none is known.
	Content string
	// Disruption is how much of the cluster fails at once.
	Disruption Disruption
}

// Tally counts own Pods.
type Tally struct {
	// In the serving role: of the present spec, those of them that are ready, those
	// that are not about to be evicted; of another spec, and ready ones of those.
	Current, CurrentReady, Steady, Outdated, OutdatedReady int
	// Candidates of the present spec that may still become something, and ready
	// ones.
	Candidates, CandidatesReady int
	// In the serving role, and of no use any more: because of a Node, or otherwise.
	Lost, Ended int
	// Active are all that run or are expected to, whatever their role.
	Active int
	// Unfinished are all that have not finished.
	Unfinished int
}

// Ready is the number of Pods that serve.
func (t Tally) Ready() int { return t.CurrentReady + t.OutdatedReady }

func (l List) count() (t Tally) {
	for _, p := range l.Items {
		if !p.Owned || p.Role == RoleNone {
			continue // its labels were changed: it neither serves nor takes room
		}
		t.Active += one(p.Active)
		t.Unfinished += one(!p.Finished)
		if p.Role == RoleCandidate {
			t.Candidates += one(p.Usable())
			t.CandidatesReady += one(p.Usable() && p.Ready)
			continue
		}
		t.Current += one(p.Present)
		t.CurrentReady += one(p.Present && p.Ready)
		t.Steady += one(p.Present && !p.Leaves)
		t.Outdated += one(p.Outdated())
		t.OutdatedReady += one(p.Outdated() && p.Ready)
		t.Lost += one(p.LostWithNode())
		t.Ended += one(!p.Live && !p.LostWithNode())
	}
	return t
}

func one(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

// Select returns the Pods that keep accepts.
func (l List) Select(keep func(*Pod) bool) (list []*Pod) {
	for i := range l.Items {
		if keep(&l.Items[i]) {
			list = append(list, &l.Items[i])
		}
	}
	return list
}

// Any reports whether is accepts a Pod.
func (l List) Any(is func(*Pod) bool) bool { return len(l.Select(is)) > 0 }

// Newest returns the newest Pod that keep accepts, nil when there is none.
func (l List) Newest(keep func(*Pod) bool) (newest *Pod) {
	for _, p := range l.Select(keep) {
		if newest == nil || p.Newer(newest) {
			newest = p
		}
	}
	return newest
}

// Newer reports whether a Pod was made later than another.
func (p *Pod) Newer(than *Pod) bool {
	return cmp.Or(p.Object.CreationTimestamp.Compare(than.Object.CreationTimestamp.Time), strings.Compare(p.Name(), than.Name())) > 0
}

// ReadyCandidates returns the candidates that may take over now.
func (l List) ReadyCandidates() []*Pod {
	return l.Select(func(p *Pod) bool { return p.Role == RoleCandidate && p.Ready && p.Usable() })
}

// OldSpec returns the Pods of the serving role that were made from another spec.
func (l List) OldSpec() []*Pod {
	return l.Select(func(p *Pod) bool { return p.Role == RoleServing && p.Outdated() })
}

// Starting reports whether a Pod that was made for a purpose is not ready yet.
func (l List) Starting(purpose string) bool {
	return l.Any(func(p *Pod) bool { return p.Live && !p.Ready && p.MadeFor == purpose })
}

// UniformCandidates reports whether n candidates are ready and have one content.
func (l List) UniformCandidates(n int) bool {
	ready := l.ReadyCandidates()
	for _, p := range ready {
		if p.Content != ready[0].Content {
			return false
		}
	}
	return len(ready) >= n
}

// mostTelling is the order of the Reasons of ConditionDegraded that Pods give; others follow.
var mostTelling = []string{
	ReasonNodeLost, ReasonPodUnschedulable, ReasonImagePullFailed, ReasonCrashLooping, ReasonStuckTerminating, ReasonForeignPod,
}

// Complaints returns the Reasons of ConditionDegraded that Pods give, the most telling
// first, and what each Pod that gives one suffers from.
func (l List) Complaints() (reasons []string, texts map[string][]string) {
	texts = map[string][]string{}
	for i := range l.Items {
		p := &l.Items[i]
		reason, text := p.complain()
		if reason == "" {
			continue
		}
		if texts[reason] == nil {
			reasons = append(reasons, reason)
		}
		item := p.Name()
		if node := p.Object.Spec.NodeName; node != "" {
			item += " on " + node
		}
		texts[reason] = append(texts[reason], item+": "+text)
	}
	rank := func(reason string) int {
		if i := slices.Index(mostTelling, reason); i >= 0 {
			return i
		}
		return len(mostTelling)
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return rank(a) - rank(b) })
	return reasons, texts
}

// newestContent is that of the newest Pod that serves. Pods of the same second leave it
// to the number of those that stay.
func (l List) newestContent() string {
	staying := map[string]int{}
	for _, p := range l.Items {
		staying[p.Content] += one(p.Serves() && p.Stays())
	}
	var best *Pod
	for _, p := range l.Select(func(p *Pod) bool { return p.Serves() && p.Content != "" }) {
		if best == nil {
			best = p
			continue
		}
		order := p.Object.CreationTimestamp.Compare(best.Object.CreationTimestamp.Time)
		if order == 0 && p.Content != best.Content {
			order = staying[p.Content] - staying[best.Content]
		}
		if order >= 0 { // the names rise
			best = p
		}
	}
	if best == nil {
		return ""
	}
	return best.Content
}
