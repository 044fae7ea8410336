// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// planSurplus lets one content and the best n Pods win.
func (v *view) planSurplus(pl *plan) {
	t, n := &v.tally, v.set.replicas
	content := v.servedContent()
	mixed := v.mixed(content) && v.contentIsOrdered()
	if t.outdated > 0 || t.current <= n && !mixed {
		return
	}
	ranked := make([]podFacts, 0, t.current)
	for i := range v.pods {
		p := v.pods[i]
		if p.role != roleServing || !p.live() {
			continue
		}
		if id := v.contentOf(p.pod); mixed && p.ready && id != content && id != "" {
			pl.delete(&p, 1, ReasonContentDiffers, "other Pods serve newer content of the same image")
			continue
		}
		ranked = append(ranked, p)
	}
	slices.SortFunc(ranked, byWorth)
	spread(ranked, n)
	trusted := 0
	for i := range ranked {
		if p := &ranked[i]; p.ready && p.class == ClassServing && p.node != NodeRecovering && !p.doubtful() {
			trusted++
		}
	}
	for i := n; i < len(ranked); i++ {
		// A Pod that still starts may be needed when the node of a ready one fails
		// again.
		if p := &ranked[i]; p.ready || trusted >= n {
			pl.delete(p, 1, ReasonPodSurplus, "better Pods serve already")
		}
	}
}

// trimOutdated keeps the best n Pods of another spec: more would leave no room
// for the new ones.
func (v *view) trimOutdated(pl *plan) {
	var outdated []podFacts
	for i := range v.pods {
		if p := v.pods[i]; p.role == roleServing && p.class == ClassOutdated {
			outdated = append(outdated, p)
		}
	}
	slices.SortFunc(outdated, byWorth)
	for i := v.set.replicas; i < len(outdated); i++ {
		pl.delete(&outdated[i], 1, ReasonPodSurplus, "better Pods of the same old spec serve")
	}
}

// mixed reports whether a Pod that serves has other content than the newest.
func (v *view) mixed(content string) bool {
	for i := range v.pods {
		if p := &v.pods[i]; p.serves() && v.contentOf(p.pod) != content && v.contentOf(p.pod) != "" {
			return true
		}
	}
	return false
}

// byWorth sorts the Pods that are best kept first.
func byWorth(a, b podFacts) int {
	return cmp.Or(worth(&a)-worth(&b), a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), strings.Compare(a.pod.Name, b.pod.Name))
}

func worth(p *podFacts) int {
	w := 0
	if !p.ready {
		w = 10
	}
	switch p.node {
	case NodeHealthy, NodeNotObserved:
	case NodeRecovering:
		w++
	case NodeLeaving:
		w += 2
	default:
		w += 3
	}
	if p.class == ClassDisrupted {
		w += 4
	}
	return w
}

// spread moves, among the Pods of equal worth, the first of each host before the
// others.
func spread(ranked []podFacts, n int) {
	if len(ranked) <= n || n < 2 {
		return
	}
	for i := 1; i < n; i++ {
		for j := i; j < len(ranked) && worth(&ranked[j]) == worth(&ranked[i]); j++ {
			if !slices.ContainsFunc(ranked[:i], func(p podFacts) bool { return p.pod.Spec.NodeName == ranked[j].pod.Spec.NodeName }) {
				p := ranked[j]
				copy(ranked[i+1:j+1], ranked[i:j])
				ranked[i] = p
				break
			}
		}
	}
}
