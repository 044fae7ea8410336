// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/olmcore/olm/catalog/internal/pods"
)

// dropOlderContent deletes the ready candidates that have other content than the
// newest: the image changed while they started, and they would wait for each other
// for ever.
func (pl *planner) dropOlderContent() {
	ordered, left := contentIsOrdered(pl.pods, pl.now)
	if pl.waitFor(left); !ordered {
		return
	}
	compared := func(p *pods.Pod) bool {
		return p.Role == pods.RoleCandidate && p.Ready && p.Usable() && p.Content != ""
	}
	newest := pl.pods.Newest(compared)
	for _, p := range pl.pods.Select(compared) {
		if p.Content != newest.Content {
			pl.delete(p, 1, ReasonContentDiffers, "a newer candidate has newer content of the same image")
		}
	}
}

// contentIsOrdered reports whether it shows which content is newer, and else how long it
// is until it does. In the second in which Pods with several contents were made it does
// not: what is deleted for its content might be made again with the same.
func contentIsOrdered(l pods.List, now time.Time) (ordered bool, left time.Duration) {
	second := now.Truncate(time.Second)
	young := l.Select(func(p *pods.Pod) bool {
		return p.Ready && p.Content != "" && p.Object.CreationTimestamp.Truncate(time.Second).Equal(second)
	})
	for _, p := range young {
		if p.Content != young[0].Content {
			return false, second.Add(time.Second).Sub(now)
		}
	}
	return true, 0
}

// planSurplus lets one content and the best n Pods win.
func (pl *planner) planSurplus() {
	l, n := &pl.pods, pl.set.replicas
	mixed := l.Any(func(p *pods.Pod) bool { return p.Serves() && p.Content != l.Content && p.Content != "" })
	if mixed {
		ordered, left := contentIsOrdered(*l, pl.now)
		pl.waitFor(left)
		mixed = ordered
	}
	if l.Outdated > 0 || l.Current <= n && !mixed {
		return
	}
	var ranked []*pods.Pod
	for _, p := range l.Select(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Live }) {
		if mixed && p.Ready && p.Content != l.Content && p.Content != "" {
			pl.delete(p, 1, ReasonContentDiffers, "other Pods serve newer content of the same image")
			continue
		}
		ranked = append(ranked, p)
	}
	slices.SortFunc(ranked, byWorth)
	spreadHosts(ranked, n)
	steady := 0
	for _, p := range ranked {
		if p.Stays() && p.Node != NodeRecovering && !p.Node.Doubtful() {
			steady++
		}
	}
	for i := n; i < len(ranked); i++ {
		// A Pod that still starts may be needed when the node of a ready one fails
		// again.
		if p := ranked[i]; p.Ready || steady >= n {
			pl.delete(p, 1, ReasonPodSurplus, "better Pods serve already")
		}
	}
}

// trimOutdated keeps the best n Pods of another spec: more would leave no room
// for the new ones.
func (pl *planner) trimOutdated() {
	outdated := pl.pods.OldSpec()
	slices.SortFunc(outdated, byWorth)
	for i := pl.set.replicas; i < len(outdated); i++ {
		pl.delete(outdated[i], 1, ReasonPodSurplus, "better Pods of the same old spec serve")
	}
}

// byWorth sorts the Pods that are best kept first.
func byWorth(a, b *pods.Pod) int {
	return cmp.Or(worth(a)-worth(b), a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time), strings.Compare(a.Name(), b.Name()))
}

func worth(p *pods.Pod) (w int) {
	if !p.Ready {
		w += 10
	}
	switch p.Node {
	case NodeHealthy, NodeNotObserved:
	case NodeRecovering:
		w++
	case NodeLeaving:
		w += 2
	default:
		w += 3
	}
	if p.Leaves {
		w += 4
	}
	return w
}

// spreadHosts moves, among the Pods of equal worth, the first of each host before the
// others.
func spreadHosts(ranked []*pods.Pod, n int) {
	if len(ranked) <= n || n < 2 {
		return
	}
	for i := 1; i < n; i++ {
		for j := i; j < len(ranked) && worth(ranked[j]) == worth(ranked[i]); j++ {
			p := ranked[j]
			if !slices.ContainsFunc(ranked[:i], func(q *pods.Pod) bool { return q.Object.Spec.NodeName == p.Object.Spec.NodeName }) {
				copy(ranked[i+1:j+1], ranked[i:j])
				ranked[i] = p
				break
			}
		}
	}
}
