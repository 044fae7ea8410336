// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
)

// Outcomes of a poll; package catalog documents them.
const (
	ReasonUpToDate          = "UpToDate"
	ReasonUpdatePromoted    = "UpdatePromoted"
	ReasonCandidateFailed   = "CandidateFailed"
	ReasonCandidateTimedOut = "CandidateTimedOut"

	// Reasons without an outcome.
	ReasonNeverPolled         = "NeverPolled"
	ReasonPollingDisabled     = "PollingDisabled"
	ReasonImagePinnedByDigest = "ImagePinnedByDigest"
)

var outcomes = []string{ReasonUpToDate, ReasonUpdatePromoted, ReasonCandidateFailed, ReasonCandidateTimedOut}

// lastingWait is how long a container may wait for a reason that does not pass.
const lastingWait = time.Minute

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
			why, left = waitsInVain(p, now)
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

// waitsInVain returns what a container waits for in vain, and how long it is until that
// is certain.
func waitsInVain(p *pods.Pod, now time.Time) (why string, wait time.Duration) {
	left := p.Object.CreationTimestamp.Add(lastingWait).Sub(now)
	for _, status := range pods.Containers(p.Object) {
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

// Condition returns what became of the last poll, without its type; nil when none is
// asked for. recorded is the one in the status, or nil.
func (s Schedule) Condition(spec *v1alpha1.CatalogSourceSpec, v Verdict, list pods.List, recorded *metav1.Condition) *metav1.Condition {
	switch {
	case !hasStrategy(spec):
		return nil
	case !isImage(spec):
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonPollingDisabled, Message: "only images are polled"}
	case !Wanted(spec):
		return &metav1.Condition{
			Status: metav1.ConditionFalse, Reason: ReasonImagePinnedByDigest, Message: "the image is pinned by its digest and cannot change",
		}
	}
	c := &metav1.Condition{Status: metav1.ConditionFalse}
	switch {
	case v.Outcome != "":
		c.Reason, c.Message = v.Outcome, Text(v)
	case list.Any(func(p *pods.Pod) bool {
		created := p.Object.CreationTimestamp
		return p.Serves() && p.MadeToPoll() && !created.IsZero() && created.Time.Equal(s.Last)
	}):
		c.Reason = ReasonUpdatePromoted
		c.Message = Text(Verdict{Outcome: c.Reason})
	case recorded != nil && slices.Contains(outcomes, recorded.Reason): // it stays until the next poll has ended
		c.Reason, c.Message = recorded.Reason, recorded.Message
	default:
		return &metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonNeverPolled, Message: "the image has not been polled yet"}
	}
	if c.Reason == ReasonUpToDate || c.Reason == ReasonUpdatePromoted {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// Text says what a poll came to.
func Text(v Verdict) string {
	switch v.Outcome {
	case ReasonUpToDate:
		return "the last poll found the content that is served" + v.Text
	case ReasonUpdatePromoted:
		return "the last poll found newer content, which is served now" + v.Text
	}
	return "the pod of the last poll " + v.Text
}
