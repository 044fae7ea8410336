// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// maxPollInterval bounds spec.updateStrategy.registryPoll.interval.
	maxPollInterval = 10 * 365 * 24 * time.Hour
	// maxWait is how long anything is waited for before somebody looks again, as in
	// OLM.
	maxWait = 15 * time.Minute
	// hopeless is how long a container may wait for a reason that does not pass.
	hopeless = time.Minute
)

// polling is what is known and decided about polling.
type polling struct {
	// on: the image is to be polled.
	on bool
	// problem is what is wrong with the interval.
	problem string
	// last is when the last poll started; zero: never.
	last time.Time
	// left is the time until the next one.
	left time.Duration
	// outcome and text are what became of a poll, when that is decided now.
	outcome, text string
	// failed is what became of the Pod of a poll that failed, in OLM's words.
	failed string
}

// observePolling finds out what is polled and when. That a poll started is told by
// its Pod; the status remembers it.
func (v *view) observePolling() {
	p := &v.poll
	var interval time.Duration
	if !v.runsPods() && v.mode != modeAddress {
		return
	}
	interval, p.problem = pollInterval(v.cs, v.set.pollLeast)
	p.problem = quoted(p.problem)
	p.on = v.polls()
	if have := v.cs.Status.LatestImageRegistryPoll; have != nil {
		p.last = have.Time
	}
	if !p.on {
		return
	}
	if p.last.After(v.in.Now) {
		p.last = v.in.Now.UTC().Truncate(time.Second)
	}
	ahead := v.countProbes()
	p.left = v.untilPoll(interval)
	if ahead && p.left <= 0 {
		p.last = v.in.Now.UTC().Truncate(time.Second)
		p.left = v.untilPoll(interval)
	}
	if ahead {
		v.waitFor(p.left)
	}
}

// countProbes finds the last poll that a Pod tells. It reports whether one polls
// that was made in the future: its poll counts as one of now, once the recorded one
// is over, so that it is not written anew with each look. A Pod of the future is
// counted once its time has come.
func (v *view) countProbes() (ahead bool) {
	for i := range v.pods {
		p := &v.pods[i]
		switch created := p.pod.CreationTimestamp.Time; {
		case p.class == ClassForeign || !created.After(v.poll.last) || !v.isProbe(p.pod):
		case !created.After(v.in.Now):
			v.poll.last = created
		default:
			v.waitFor(created.Sub(v.in.Now))
			ahead = ahead || p.role == roleCandidate
		}
	}
	return ahead
}

// untilPoll is the time until the next poll.
func (v *view) untilPoll(interval time.Duration) time.Duration {
	base := cmp.Or(v.poll.last, v.cs.CreationTimestamp.Time)
	if base.IsZero() || base.After(v.in.Now) {
		base = v.in.Now
		if v.cs.CreationTimestamp.IsZero() {
			base = base.Add(-interval) // nothing else would ever make it due
		}
	}
	return v.left(base, interval+time.Duration(v.in.Jitter*float64(interval)/10).Truncate(time.Second))
}

// isProbe reports whether a Pod was made to poll. OLM makes candidates for nothing
// else, and does not write that on them.
func (v *view) isProbe(pod *corev1.Pod) bool {
	purpose := pod.Annotations[v.set.prefix+keyPurpose]
	return purpose == purposePoll || purpose == "" && roleOf(pod, v.cs.Name) == roleCandidate
}

// planPolling goes on with a poll, or starts the next one. It is asked only while
// no Pod is missing.
func (v *view) planPolling(pl *plan) {
	v.dropCandidates(pl, "as many Pods serve as asked for")
	switch {
	case !v.poll.on:
		return
	case v.in.Config.StrictUpstreamPolling:
		v.planStrictPolling(pl)
		return
	}
	failed, probes := false, 0
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleCandidate || !v.isProbe(p.pod) {
			continue
		}
		if v.probeFailed(p) {
			failed = true
		}
		if p.live() {
			probes++
		}
	}
	switch {
	case failed:
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleCandidate && p.live() {
				pl.delete(p, 1, v.poll.outcome, "the Pod that polls the image "+v.poll.text)
			}
		}
	case probes > 0:
		v.compareContent(pl)
	default:
		v.startPoll(pl)
	}
}

// compareContent decides what the Pods that poll are good for once they are ready.
func (v *view) compareContent(pl *plan) {
	content, n := v.servedContent(), v.set.replicas
	same, other := 0, 0
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleCandidate || !p.ready || !v.usable(p) {
			continue
		}
		switch id := imageID(p.pod); {
		case id == "" || content == "": // nothing follows from what is not known
			v.waitFor(v.left(p.pod.CreationTimestamp.Time, v.set.candidate))
		case id != content:
			other++
		default:
			same++
		}
	}
	switch {
	case same > 0:
		v.poll.outcome, v.poll.text = ReasonUpToDate, ""
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleCandidate && p.live() {
				pl.delete(p, 1, ReasonUpToDate, "the image has not changed")
			}
		}
	case other > 0 && v.uniformCandidates(n):
		pl.phase, pl.halt = ReasonContentUpdate, ""
		for i := range v.pods {
			if p := &v.pods[i]; p.role == roleCandidate && p.ready && v.usable(p) {
				pl.promote(p)
			}
		}
	case other > 0:
		pl.phase, pl.halt = ReasonContentUpdate, ""
		v.dropOlderContent(pl)
		for range v.allowed(n - v.tally.candidates) {
			pl.creates = append(pl.creates, newProbe(ReasonContentUpdate, "the image has newer content"))
		}
	}
}

// startPoll makes the Pod that pulls the image anew, when it is time and nothing
// else is under way.
func (v *view) startPoll(pl *plan) {
	p := &v.poll
	if len(pl.creates)+len(pl.promotes) > 0 || v.disruption != noDisruption || v.tally.active > v.set.replicas {
		return
	}
	for i := range v.pods {
		pod := &v.pods[i]
		if pod.role == roleNone {
			continue
		}
		switch pod.class {
		case ClassServing, ClassForeign, ClassTerminated, ClassTerminating:
		case ClassUnhealthy, ClassStuck:
			if pod.trouble == ReasonPodUnschedulable {
				return // a second one would not find a place either
			}
		default:
			return
		}
	}
	if p.left > 0 {
		v.waitFor(p.left)
		return
	}
	if content := v.servedContent(); v.in.ResolvedDigest != "" && digestOf(content) == v.in.ResolvedDigest {
		p.outcome, p.last = ReasonUpToDate, v.in.Now.UTC().Truncate(time.Second)
		return
	}
	pl.creates = append(pl.creates, newProbe(ReasonPollDue, "it is time to look for newer content of the image"))
}

func newProbe(reason, message string) creation {
	return creation{role: roleCandidate, purpose: purposePoll, attempt: 1, cause: olmcore.Cause{Reason: reason, Message: message}}
}

// digestOf returns the digest of an imageID such as repo@sha256:1 or sha256:1.
func digestOf(imageID string) string {
	if _, digest, found := strings.Cut(imageID, "@"); found {
		return digest
	}
	return imageID
}

// probeFailed reports whether a Pod that polls will not become ready, and says so.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, podFailed.
// Differs: one that waits for ever, or has finished, has failed too.
func (v *view) probeFailed(p *podFacts) bool {
	why := ""
	switch {
	case p.class == ClassForeign, p.class == ClassLost, p.class == ClassTerminating, p.class == ClassOutdated, p.pod.DeletionTimestamp != nil:
		return false
	case p.class == ClassTerminated:
		why = "has finished"
	case p.pod.Status.Phase == corev1.PodUnknown:
		why = "is in an unknown state"
	case p.ready && imageID(p.pod) != "" && v.servedContent() != "", p.ready && v.tally.ready() == 0:
		return false
	default:
		why = v.hopelessWait(p)
	}
	if why != "" {
		v.poll.outcome, v.poll.text = ReasonCandidateFailed, why
		v.poll.failed = v.failedProbe(p.pod)
		return true
	}
	if v.left(p.pod.CreationTimestamp.Time, v.set.candidate) > 0 {
		return false
	}
	if v.poll.outcome == "" {
		v.poll.outcome, v.poll.text = ReasonCandidateTimedOut, "did not become ready in time: "+cmp.Or(p.note(), "its content is not known")
	}
	return true
}

// failedProbe says in OLM's words what became of a Pod that polled.
func (v *view) failedProbe(pod *corev1.Pod) string {
	return "couldn't ensure registry server - error ensuring update pod for catalog source " + v.cs.Name + ": update pod " +
		pod.Name + " in a " + clip(string(pod.Status.Phase), 20) + " state: deleted update pod"
}

// hopelessWait returns what a container waits for in vain.
func (v *view) hopelessWait(p *podFacts) string {
	for _, statuses := range [...][]corev1.ContainerStatus{p.pod.Status.InitContainerStatuses, p.pod.Status.ContainerStatuses} {
		for i := range statuses {
			w := statuses[i].State.Waiting
			if w == nil {
				continue
			}
			switch w.Reason {
			case "CrashLoopBackOff":
				return "crashes"
			case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError":
				left := v.left(p.pod.CreationTimestamp.Time, hopeless)
				v.waitFor(left)
				if left <= 0 {
					return "cannot start: " + w.Reason
				}
			}
		}
	}
	return ""
}
