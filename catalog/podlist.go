// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// pods contains the Pods that belong, or claim to belong, to the CatalogSource. It is read-only. Except in all, every
// Pod is owned by the CatalogSource.
type pods struct {
	all        podList // by name
	serving    podList // live Pods that the Service selects: current and outdated
	current    podList // of serving, those of the present spec
	outdated   podList // of serving, those of another spec
	candidates podList // live Pods of the present spec that may still take over
	lost       podList // Pods of the serving role that are lost because of their Nodes
	ended      podList // Pods of the serving role that are not live for other reasons
	active     int     // the number of active Pods, of both roles
	unfinished int     // the number of Pods that have not finished, of both roles
	content    string  // the content that should be served; empty if unknown
	disruption disruption
}

// observePods classifies the Pods of the Input.
func (f *facts) observePods() pods {
	var l pods
	for _, object := range f.in.Pods.Items {
		if object.Namespace != f.source.Namespace {
			continue
		}
		if roleOf(object, f.source.Name) != roleNone || olmcore.OwnedBy(object, f.source.UID) {
			l.all = append(l.all, f.observePod(object))
		}
	}
	slices.SortFunc(l.all, func(a, b *pod) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)),
			strings.Compare(b.ResourceVersion, a.ResourceVersion))
	})

	for _, p := range l.all {
		if p.owned && p.role != roleNone { // the Service does not select a Pod whose labels were removed
			l.add(p)
		}
	}
	l.content = l.serving.newestContent()
	l.disruption = observeDisruption(l.all, f.in.Nodes.Items)
	return l
}

// add adds an owned Pod to the groups that it belongs to.
func (l *pods) add(p *pod) {
	if p.class.Active {
		l.active++
	}
	if !p.finished {
		l.unfinished++
	}
	switch {
	case p.role == roleCandidate:
		if p.isCurrent() && !p.expired() {
			l.candidates = append(l.candidates, p)
		}
	case p.isCurrent():
		l.serving = append(l.serving, p)
		l.current = append(l.current, p)
	case p.isOutdated():
		l.serving = append(l.serving, p)
		l.outdated = append(l.outdated, p)
	case p.lostWithNode():
		l.lost = append(l.lost, p)
	default:
		l.ended = append(l.ended, p)
	}
}

// podList is a list of Pods. Its methods do not change it.
type podList []*pod

// where returns the Pods that match.
func (l podList) where(keep func(*pod) bool) (kept podList) {
	for _, p := range l {
		if keep(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func (l podList) any(is func(*pod) bool) bool { return slices.ContainsFunc(l, is) }

func (l podList) ready() podList { return l.where(func(p *pod) bool { return p.ready }) }

// newest returns the Pod that was created last, or nil if the list is empty.
func (l podList) newest() *pod {
	if len(l) == 0 {
		return nil
	}
	return slices.MaxFunc(l, byAge)
}

func byAge(a, b *pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// best returns the Pods in the order in which they should be kept. The Pod that is recorded as the one that stays is
// the first if it can stay, so that managers whose caches differ keep the same Pod.
func (l podList) best() podList {
	ordered := slices.Clone(l)
	slices.SortFunc(ordered, byPreference)
	i := slices.IndexFunc(ordered, func(p *pod) bool {
		return p.kept && p.isSelected() && !p.class.Leaving && !p.node.mayFail()
	})
	if i <= 0 {
		return ordered
	}
	return slices.Concat(ordered[i:i+1], ordered[:i], ordered[i+1:])
}

func byPreference(a, b *pod) int { return cmp.Or(a.preference()-b.preference(), byAge(a, b)) }

// preference ranks a Pod among those of its role. Lower is better: ready Pods first, then those that stay, then those
// with the better Node.
func (p *pod) preference() int {
	preference := p.node.Preference
	if p.class.Leaving {
		preference += 4
	}
	if !p.ready {
		preference += 10
	}
	return preference
}

// isStarting reports whether a live Pod that was made for a purpose is not ready yet.
func (l podList) isStarting(purpose string) bool {
	return l.any(func(p *pod) bool { return p.class.Live && !p.ready && p.purpose == purpose })
}

// agree reports whether all Pods have the same content.
func (l podList) agree() bool {
	return !l.any(func(p *pod) bool { return p.content != l[0].content })
}

// canReplace reports whether the Pods are enough to replace n Pods with the same content.
func (l podList) canReplace(n int) bool { return len(l) >= n && l.agree() }

// newestContent returns the content of the newest Pod that serves. If several Pods were created in the same second,
// it is the content of most Pods that stay ready.
func (l podList) newestContent() string {
	serving := l.where(func(p *pod) bool { return p.isServing() && p.content != "" })
	if len(serving) == 0 {
		return ""
	}
	staying := map[string]int{}
	for _, p := range serving {
		if p.staysReady() {
			staying[p.content]++
		}
	}
	return slices.MaxFunc(serving, func(a, b *pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), staying[a.content]-staying[b.content], byAge(a, b))
	}).content
}

// complaint is one reason of ConditionDegraded, with a text for each Pod that gives it.
type complaint struct {
	reason string
	texts  []string
}

func (c complaint) String() string { return joinItems(c.texts, ", and more") }

// complaintOrder is the order of the reasons that Pods add to ConditionDegraded. Other reasons come last.
var complaintOrder = []string{
	ReasonNodeLost, ReasonPodUnschedulable, ReasonImagePullFailed, ReasonCrashLooping, ReasonStuckTerminating, ReasonForeignPod,
}

// complaints returns the problems that the Pods add to ConditionDegraded, the most important reason first.
func (l podList) complaints() (list []complaint) {
	for _, p := range l {
		reason, text := p.complaint()
		if reason == "" {
			continue
		}
		i := slices.IndexFunc(list, func(c complaint) bool { return c.reason == reason })
		if i < 0 {
			i = len(list)
			list = append(list, complaint{reason: reason})
		}
		item := p.Name
		if p.Spec.NodeName != "" {
			item += " on " + p.Spec.NodeName
		}
		list[i].texts = append(list[i].texts, item+": "+text)
	}
	slices.SortStableFunc(list, func(a, b complaint) int { return cmp.Compare(complaintRank(a), complaintRank(b)) })
	return list
}

func complaintRank(c complaint) int {
	if i := slices.Index(complaintOrder, c.reason); i >= 0 {
		return i
	}
	return len(complaintOrder)
}
