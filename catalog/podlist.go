// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// podList is the Pods of a catalog, by name. It is read-only.
type podList struct {
	Items []registryPod
	tally
	Content    string     // the content that shall win, empty while none is known
	Disruption disruption // how much of the cluster fails at once
}

// tally counts own Pods.
type tally struct {
	Current, CurrentReady, Steady int // in the serving role, of the present spec: all, ready ones, those not about to be evicted
	Outdated, OutdatedReady       int // in the serving role, of another spec: all, ready ones
	Lost, Ended                   int // in the serving role and of no use any more: because of a Node, or otherwise
	Candidates, CandidatesReady   int // of the present spec, which may still become something: all, ready ones
	Active, Unfinished            int // of any role: those that run or are expected to, those that have not finished
	Ready                         int // those that serve
}

func (l podList) count() (t tally) {
	for _, p := range l.Items {
		if !p.Owned || p.Role == roleNone {
			continue // its labels were changed: it neither serves nor takes room
		}
		t.Active += one(p.Active)
		t.Unfinished += one(!p.Finished)
		if p.Role == roleCandidate {
			t.Candidates += one(p.usable())
			t.CandidatesReady += one(p.usable() && p.Ready)
			continue
		}
		t.Current += one(p.Present)
		t.CurrentReady += one(p.Present && p.Ready)
		t.Steady += one(p.Present && !p.Leaves)
		t.Outdated += one(p.outdated())
		t.OutdatedReady += one(p.outdated() && p.Ready)
		t.Lost += one(p.lostWithNode())
		t.Ended += one(!p.Live && !p.lostWithNode())
	}
	t.Ready = t.CurrentReady + t.OutdatedReady
	return t
}

func one(counts bool) int {
	if counts {
		return 1
	}
	return 0
}

// choose returns the Pods that keep accepts.
func (l podList) choose(keep func(*registryPod) bool) (list []*registryPod) {
	for i := range l.Items {
		if keep(&l.Items[i]) {
			list = append(list, &l.Items[i])
		}
	}
	return list
}

func (l podList) any(is func(*registryPod) bool) bool { return len(l.choose(is)) > 0 }

// newest returns the newest Pod that keep accepts, nil when there is none.
func (l podList) newest(keep func(*registryPod) bool) *registryPod {
	if list := l.choose(keep); len(list) > 0 {
		return slices.MaxFunc(list, byAge)
	}
	return nil
}

// byAge sorts the Pods that were made earlier first.
func byAge(a, b *registryPod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// live returns the Pods of a role that may serve now or soon, readyCandidates the candidates that may take over now, oldSpec
// the Pods of the serving role that were made from another spec.
func (l podList) live(r role) []*registryPod {
	return l.choose(func(p *registryPod) bool { return p.Role == r && p.Live })
}
func (l podList) readyCandidates() []*registryPod {
	return l.choose(func(p *registryPod) bool { return p.Role == roleCandidate && p.Ready && p.usable() })
}
func (l podList) oldSpec() []*registryPod {
	return l.choose(func(p *registryPod) bool { return p.Role == roleServing && p.outdated() })
}

// starting reports whether a Pod that was made for a purpose is not ready yet.
func (l podList) starting(purpose string) bool {
	return l.any(func(p *registryPod) bool { return p.Live && !p.Ready && p.MadeFor == purpose })
}

// uniformCandidates reports whether n candidates are ready and have one content.
func (l podList) uniformCandidates(n int) bool {
	ready := l.readyCandidates()
	return len(ready) >= n && !slices.ContainsFunc(ready, func(p *registryPod) bool { return p.Content != ready[0].Content })
}

// mostTelling is the order of the Reasons of ConditionDegraded that Pods give; others follow.
var mostTelling = []string{
	ReasonNodeLost, ReasonPodUnschedulable, ReasonImagePullFailed, ReasonCrashLooping, ReasonStuckTerminating, ReasonForeignPod,
}

// complaint is a Reason of ConditionDegraded that Pods give, and what each of them suffers from.
type complaint struct {
	reason string
	texts  []string
}

func (c complaint) String() string { return listed(c.texts, ", and more") }

// complaints returns what Pods complain of, the most telling first.
func (l podList) complaints() (list []complaint) {
	for i := range l.Items {
		p := &l.Items[i]
		reason, text := p.complain()
		if reason == "" {
			continue
		}
		at := slices.IndexFunc(list, func(c complaint) bool { return c.reason == reason })
		if at < 0 {
			at, list = len(list), append(list, complaint{reason: reason})
		}
		item := p.Name
		if p.node() != "" {
			item += " on " + p.node()
		}
		list[at].texts = append(list[at].texts, item+": "+text)
	}
	slices.SortStableFunc(list, func(a, b complaint) int { // an index of -1 is the largest
		return cmp.Compare(uint(slices.Index(mostTelling, a.reason)), uint(slices.Index(mostTelling, b.reason)))
	})
	return list
}

// newestContent is that of the newest Pod that serves. Pods of the same second leave it to the number of those that stay.
func (l podList) newestContent() string {
	serving := l.choose(func(p *registryPod) bool { return p.serves() && p.Content != "" })
	if len(serving) == 0 {
		return ""
	}
	staying := map[string]int{}
	for _, p := range serving {
		staying[p.Content] += one(p.stays())
	}
	return slices.MaxFunc(serving, func(a, b *registryPod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), staying[a.Content]-staying[b.Content], byAge(a, b))
	}).Content
}
