// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// servedContent is the content that shall win: that of the newest Pod that
// serves. Pods of the same second leave it to the number of those that stay.
// Empty while no content is known.
func (v *view) servedContent() string {
	if !v.contentKnown {
		v.content, v.contentKnown = v.newestContent(), true
	}
	return v.content
}

func (v *view) newestContent() string {
	var best *podFacts
	var staying map[string]int
	for i := range v.pods {
		p := &v.pods[i]
		if !p.serves() || v.contentOf(p.pod) == "" {
			continue
		}
		if best == nil {
			best = p
			continue
		}
		order := p.pod.CreationTimestamp.Compare(best.pod.CreationTimestamp.Time)
		if order == 0 && v.contentOf(p.pod) != v.contentOf(best.pod) {
			if staying == nil {
				staying = v.staying()
			}
			order = staying[v.contentOf(p.pod)] - staying[v.contentOf(best.pod)]
		}
		if order >= 0 { // the names rise
			best = p
		}
	}
	if best == nil {
		return ""
	}
	return v.contentOf(best.pod)
}

// staying counts, for each content, the Pods that serve it and are not about to be
// evicted.
func (v *view) staying() map[string]int {
	pods := map[string]int{}
	for i := range v.pods {
		if p := &v.pods[i]; p.serves() && p.class == ClassServing {
			pods[v.contentOf(p.pod)]++
		}
	}
	return pods
}

func newer(a, b *corev1.Pod) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) > 0
}

// candidatesWith counts the ready candidates with the content that is served,
// and with other content. What is unknown on both sides is taken for the same.
func (v *view) candidatesWith(content string) (same, other int) {
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleCandidate || !p.ready || !v.usable(p) {
			continue
		}
		if id := v.contentOf(p.pod); id == content || content == "" || id == "" {
			same++
		} else {
			other++
		}
	}
	return same, other
}

func (v *view) promoteWith(pl *plan, content string, need int) {
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleCandidate || !p.ready || !v.usable(p) || need <= 0 {
			continue
		}
		if id := v.contentOf(p.pod); id == content || content == "" || id == "" {
			pl.promote(p)
			need--
		}
	}
}

// uniformCandidates reports whether n candidates are ready and have one content.
func (v *view) uniformCandidates(n int) bool {
	count, content := 0, ""
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleCandidate || !p.ready || !v.usable(p) {
			continue
		}
		id := v.contentOf(p.pod)
		if count > 0 && id != content {
			return false
		}
		content = id
		count++
	}
	return count >= n
}

// contentIsOrdered reports whether it shows which content is newer. In the second in
// which Pods with several contents were made it does not: what is deleted for its content
// might be made again with the same.
func (v *view) contentIsOrdered() bool {
	second, content := v.in.Now.Truncate(time.Second), ""
	for i := range v.pods {
		p := &v.pods[i]
		id := v.contentOf(p.pod)
		if !p.ready || id == "" || !p.pod.CreationTimestamp.Truncate(time.Second).Equal(second) {
			continue
		}
		if content != "" && id != content {
			v.waitFor(second.Add(time.Second).Sub(v.in.Now))
			return false
		}
		content = id
	}
	return true
}

// dropOlderContent deletes the ready candidates that have other content than the
// newest: the image moved on while they started, and they would wait for each other
// for ever.
func (v *view) dropOlderContent(pl *plan) {
	if !v.contentIsOrdered() {
		return
	}
	compared := func(p *podFacts) bool {
		return p.role == roleCandidate && p.ready && v.usable(p) && v.contentOf(p.pod) != ""
	}
	var newest *podFacts
	for i := range v.pods {
		if p := &v.pods[i]; compared(p) && (newest == nil || newer(p.pod, newest.pod)) {
			newest = p
		}
	}
	for i := range v.pods {
		if p := &v.pods[i]; compared(p) && v.contentOf(p.pod) != v.contentOf(newest.pod) {
			pl.delete(p, 1, ReasonContentDiffers, "a newer candidate has newer content of the same image")
		}
	}
}

// contentOf returns the digest that a Pod's catalog comes from, empty while it is
// unknown, and for ConfigMaps: there the Pods of one spec have one content.
func (v *view) contentOf(pod *corev1.Pod) string {
	if v.mode == modeConfigMap {
		return ""
	}
	return imageID(pod)
}

// imageID returns the digest that a Pod's image has, empty while it is unknown.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, imageID.
func imageID(pod *corev1.Pod) string {
	inits, containers := pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses
	switch {
	case len(inits) == 0 && len(containers) == 1:
		return containers[0].ImageID
	case len(inits) == 2 && len(containers) == 1:
		return inits[1].ImageID
	}
	return ""
}
