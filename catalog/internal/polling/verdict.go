// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
)

// Outcomes of a poll; package catalog documents them.
const (
	ReasonUpToDate          = "UpToDate"
	ReasonUpdatePromoted    = "UpdatePromoted"
	ReasonCandidateFailed   = "CandidateFailed"
	ReasonCandidateTimedOut = "CandidateTimedOut"
)

// hopeless is how long a container may wait for a reason that does not pass.
const hopeless = time.Minute

// Step is what is to be done about a poll.
type Step int

// Steps.
const (
	// StepNone: nothing now.
	StepNone Step = iota
	// StepStart: a candidate is to pull the image.
	StepStart
	// StepAgain: the image has newer content, which too few candidates have.
	StepAgain
	// StepPromote: the ready candidates take over.
	StepPromote
	// StepEnd: all candidates go; Outcome says why.
	StepEnd
)

// Verdict is what a poll came to.
type Verdict struct {
	Step Step
	// Outcome is the Reason of ConditionUpdatePolled once a poll has ended, Text the
	// rest of its message; Failed is the Pod of a poll that failed.
	Outcome, Text string
	Failed        *pods.Pod
	// Polled is when a poll was made that needed no Pod; zero: none was.
	Polled time.Time
	// Wait is the time until the verdict may change by the clock alone; 0: never.
	Wait time.Duration
}

// Decide goes on with a poll, or starts the next one. It is asked only while no Pod is
// missing. calm: nothing else is under way. resolved is the digest that the image
// registry gives now, empty when it is unknown.
func (s Schedule) Decide(list pods.List, replicas int, calm bool, resolved string, now time.Time) Verdict {
	if !s.On {
		return Verdict{}
	}
	failed, wait := failure(list, now)
	switch {
	case failed.Step == StepEnd:
		return failed
	case list.Any(func(p *pods.Pod) bool { return p.Probe && p.Live }):
		v := compare(list, replicas)
		v.Wait = pods.Nearest(v.Wait, wait)
		return v
	}
	v := s.start(list, replicas, calm, resolved, now)
	v.Wait = pods.Nearest(v.Wait, wait)
	return v
}

// compare decides what the Pods that poll are good for once they are ready.
func compare(list pods.List, replicas int) (v Verdict) {
	same, other := 0, 0
	for _, p := range list.ReadyCandidates() {
		switch {
		case p.Content == "" || list.Content == "": // nothing follows from what is not known
			v.Wait = pods.Nearest(v.Wait, p.Left)
		case p.Content != list.Content:
			other++
		default:
			same++
		}
	}
	switch {
	case same > 0:
		v.Step, v.Outcome = StepEnd, ReasonUpToDate
	case other > 0 && list.UniformCandidates(replicas):
		v.Step = StepPromote
	case other > 0:
		v.Step = StepAgain
	}
	return v
}

// start has the image pulled anew when it is time and nothing else is under way.
func (s Schedule) start(list pods.List, replicas int, calm bool, resolved string, now time.Time) Verdict {
	if !calm || list.Disruption != pods.NoDisruption || list.Active > replicas {
		return Verdict{}
	}
	if list.Any(func(p *pods.Pod) bool {
		// Where no node takes a Pod, a second one would not find a place either.
		return p.Role != pods.RoleNone && (p.HoldsPoll || p.Trouble == pods.ReasonPodUnschedulable)
	}) {
		return Verdict{}
	}
	switch {
	case s.Left > 0:
		return Verdict{Wait: s.Left}
	case resolved != "" && digestOf(list.Content) == resolved:
		return Verdict{Outcome: ReasonUpToDate, Polled: now.UTC().Truncate(time.Second)}
	}
	return Verdict{Step: StepStart}
}

// digestOf returns the digest of an imageID such as repo@sha256:1 or sha256:1.
func digestOf(imageID string) string {
	if _, digest, found := strings.Cut(imageID, "@"); found {
		return digest
	}
	return imageID
}

// failure returns the verdict on Pods that poll and will not become ready, and how long
// it is until that may be said of one.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, podFailed.
// Differs: one that waits for ever, or has finished, has failed too.
func failure(list pods.List, now time.Time) (v Verdict, wait time.Duration) {
	for _, p := range list.Select(func(p *pods.Pod) bool {
		return p.Probe && (p.Present || p.Fails) && p.Object.DeletionTimestamp == nil
	}) {
		known := p.Ready && (p.Content != "" && list.Content != "" || list.Ready() == 0)
		why := ""
		switch {
		case p.Finished:
			why = "has finished"
		case p.Object.Status.Phase == corev1.PodUnknown:
			why = "is in an unknown state"
		case known:
			continue
		default:
			var left time.Duration
			why, left = hopelessWait(p, now)
			wait = pods.Nearest(wait, left)
		}
		switch {
		case why != "":
			v = Verdict{Step: StepEnd, Outcome: ReasonCandidateFailed, Text: why, Failed: p}
		case p.Left <= 0 && v.Outcome == "":
			v = Verdict{Step: StepEnd, Outcome: ReasonCandidateTimedOut, Text: "did not become ready in time: " + cmp.Or(p.Describe(), "its content is not known")}
		}
	}
	return v, wait
}

// hopelessWait returns what a container waits for in vain, and how long it is until that
// is certain.
func hopelessWait(p *pods.Pod, now time.Time) (why string, wait time.Duration) {
	left := p.Object.CreationTimestamp.Add(hopeless).Sub(now)
	for _, status := range p.Containers() {
		reason := ""
		if w := status.State.Waiting; w != nil {
			reason = w.Reason
		}
		switch reason {
		case "CrashLoopBackOff":
			return "crashes", wait
		case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError":
			if left <= 0 {
				return "cannot start: " + reason, wait
			}
			wait = left
		}
	}
	return "", wait
}
