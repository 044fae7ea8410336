// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

const (
	// maxPollInterval bounds spec.updateStrategy.registryPoll.interval.
	maxPollInterval = 10 * 365 * 24 * time.Hour
	// lastingWait is how long a container may wait for a reason that does not pass.
	lastingWait = time.Minute
)

// pollSchedule is when an image is polled: a candidate pulls it anew. A poll starts with the creation of its Pod; the
// status remembers it.
type pollSchedule struct {
	On      bool          // the image is to be polled
	Problem string        // what is wrong with the interval, empty when nothing is
	Last    time.Time     // when the last poll started; zero: never
	Left    time.Duration // until the next one
	Wait    time.Duration // until the schedule may change by the clock alone; 0: never
}

func asksForPolls(spec *v1alpha1.CatalogSourceSpec) bool {
	return spec.UpdateStrategy != nil && spec.UpdateStrategy.RegistryPoll != nil
}

func isPinned(spec *v1alpha1.CatalogSourceSpec) bool { return strings.Contains(spec.Image, "@") }

func isImage(spec *v1alpha1.CatalogSourceSpec) bool {
	return spec.SourceType == v1alpha1.SourceTypeGrpc && spec.Image != ""
}

// observePoll returns when the image of a CatalogSource is polled: no two polls within Config.MinPollInterval, and each
// delayed by up to a tenth of the interval, as Input.Jitter says.
func (f *facts) observePoll() pollSchedule {
	cs, now := f.CatalogSource, f.Now
	interval, problem := pollInterval(cs.Spec.UpdateStrategy, f.Config.MinPollInterval)
	s := pollSchedule{On: asksForPolls(&cs.Spec) && isImage(&cs.Spec) && !isPinned(&cs.Spec), Problem: quoted(problem)}
	if recorded := cs.Status.LatestImageRegistryPoll; recorded != nil {
		s.Last = recorded.Time
	}
	if !s.On {
		return s
	}
	today := now.UTC().Truncate(time.Second)
	if isFuture(s.Last, now) {
		s.Last = today
	}
	delay := time.Duration(f.Jitter * float64(interval) / 10).Truncate(time.Second)
	// A poll by a Pod that was made in the future counts as one of now, once the recorded one is over, so that it is
	// not written anew with each look.
	ahead := false
	for _, p := range f.pods.choose(func(p *registryPod) bool { return p.Owned && p.madeToPoll() }) {
		switch created := p.CreationTimestamp.Time; {
		case isFuture(created, now):
			s.Wait = olmcore.Nearest(s.Wait, created.Sub(now.Add(olmcore.ClockTolerance)))
			ahead = ahead || p.Role == roleCandidate
		case created.After(s.Last):
			s.Last = created
		}
	}
	s.Left = f.untilPoll(s.Last, interval) + delay
	if ahead && s.Left <= 0 {
		s.Last = today
		s.Left = f.untilPoll(s.Last, interval) + delay
	}
	if ahead {
		s.Wait = olmcore.Nearest(s.Wait, s.Left)
	}
	return s
}

func (f *facts) untilPoll(last time.Time, interval time.Duration) time.Duration {
	base := cmp.Or(last, f.CatalogSource.CreationTimestamp.Time)
	switch {
	case last.IsZero() && f.CatalogSource.CreationTimestamp.IsZero():
		return 0 // nothing else would ever make it due
	case isFuture(base, f.Now):
		base = f.Now
	}
	return base.Add(interval).Sub(f.Now)
}

// pollInterval returns the interval to poll at and what is wrong with the one of the spec, in OLM's words where it has
// some; empty when nothing is, or nothing is polled. It takes what the API's decoder leaves, and what was written in Go.
//
// Source: operator-framework/api pkg/operators/v1alpha1, UpdateStrategy.UnmarshalJSON.
// Differs: an interval that would poll all the time, or never, is bounded.
func pollInterval(strategy *v1alpha1.UpdateStrategy, least time.Duration) (interval time.Duration, problem string) {
	const standard, field = v1alpha1.DefaultRegistryPollDuration, "spec.updateStrategy.registryPoll.interval"
	if strategy == nil || strategy.RegistryPoll == nil {
		return standard, ""
	}
	poll := strategy.RegistryPoll
	switch {
	case poll.ParsingError != "":
		return standard, poll.ParsingError
	case poll.Interval != nil:
		interval = poll.Interval.Duration
	case poll.RawInterval == "":
		return standard, "empty polling interval; cannot requeue registry server sync without a provided polling interval"
	default:
		var err error
		if interval, err = time.ParseDuration(poll.RawInterval); err != nil {
			return standard, "error parsing " + field + ". Using the default value of " + standard.String() + " instead. Error: " + err.Error()
		}
	}
	switch {
	case interval <= 0:
		return least, field + " must be positive"
	case interval < least:
		return least, field + " must be at least " + least.String() + "; using " + least.String()
	case interval > maxPollInterval:
		return maxPollInterval, field + " must be at most 10 years; using 10 years"
	}
	return interval, ""
}

type pollStep int

const (
	pollNothing pollStep = iota
	pollStart            // a candidate is to pull the image
	pollAgain            // the image has newer content, which too few candidates have
	pollPromote          // the ready candidates take over
	pollEnd              // all candidates go; Outcome says why
)

type pollVerdict struct {
	Step    pollStep
	Outcome string        // the Reason of ConditionUpdatePolled once a poll has ended
	Text    string        // the rest of its message
	Failed  *registryPod  // the Pod of a poll that failed
	Polled  time.Time     // when a poll was made that needed no Pod; zero: none was
	Wait    time.Duration // until the verdict may change by the clock alone; 0: never
}

// judgePoll goes on with a poll, or starts the next one. It is asked only while no Pod is missing. calm: nothing else is
// under way.
func (f *facts) judgePoll(calm bool) pollVerdict {
	if !f.poll.On {
		return pollVerdict{}
	}
	v, wait := f.failedPoll()
	switch {
	case v.Step == pollEnd:
		return v
	case slices.ContainsFunc(f.pods.Items, func(p *registryPod) bool { return p.Probe && p.Live }):
		v = f.comparePoll()
	default:
		v = f.startPoll(calm)
	}
	v.Wait = olmcore.Nearest(v.Wait, wait)
	return v
}

// comparePoll decides what the Pods that poll are good for once they are ready.
func (f *facts) comparePoll() (v pollVerdict) {
	same, other := 0, 0
	for _, p := range f.pods.readyCandidates() {
		switch {
		case p.Content == "" || f.pods.Content == "": // nothing follows from what is not known
			v.Wait = olmcore.Nearest(v.Wait, p.Left)
		case p.Content != f.pods.Content:
			other++
		default:
			same++
		}
	}
	switch {
	case same > 0:
		v.Step, v.Outcome = pollEnd, ReasonUpToDate
	case other > 0 && f.pods.uniformCandidates(f.Config.Replicas):
		v.Step = pollPromote
	case other > 0:
		v.Step = pollAgain
	}
	return v
}

// startPoll has the image pulled anew when it is time and nothing else is under way.
func (f *facts) startPoll(calm bool) pollVerdict {
	// Where no node takes a Pod, a second one would not find a place either.
	held := func(p *registryPod) bool {
		return p.Role != roleNone && (p.HoldsPoll || p.Trouble == ReasonPodUnschedulable)
	}
	_, digest, found := strings.Cut(f.pods.Content, "@") // an imageID is repo@sha256:1 or sha256:1
	if !found {
		digest = f.pods.Content
	}
	switch {
	case !calm, f.pods.Disruption != noDisruption, f.pods.Active > f.Config.Replicas, slices.ContainsFunc(f.pods.Items, held):
		return pollVerdict{}
	case f.poll.Left > 0:
		return pollVerdict{Wait: f.poll.Left}
	case f.ResolvedDigest != "" && digest == f.ResolvedDigest:
		return pollVerdict{Outcome: ReasonUpToDate, Polled: f.Now.UTC().Truncate(time.Second)}
	}
	return pollVerdict{Step: pollStart}
}

// failedPoll returns the verdict on Pods that poll and will not become ready, and how long it is until that may be said
// of one.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, podFailed.
// Differs: one that waits for ever, or has finished, has failed too.
func (f *facts) failedPoll() (v pollVerdict, wait time.Duration) {
	for _, p := range f.pods.choose(func(p *registryPod) bool {
		return p.Probe && (p.Present || p.Fails) && p.DeletionTimestamp == nil
	}) {
		why := ""
		switch {
		case p.Finished:
			why = "has finished"
		case p.Status.Phase == corev1.PodUnknown:
			why = "is in an unknown state"
		case p.Ready && (p.Content != "" && f.pods.Content != "" || f.pods.Ready == 0):
			continue
		default:
			var left time.Duration
			why, left = f.waitsInVain(p)
			wait = olmcore.Nearest(wait, left)
		}
		switch {
		case why != "":
			v = pollVerdict{Step: pollEnd, Outcome: ReasonCandidateFailed, Text: why, Failed: p}
		case p.Left <= 0 && v.Outcome == "":
			text := "did not become ready in time: " + cmp.Or(p.describe(), "its content is not known")
			v = pollVerdict{Step: pollEnd, Outcome: ReasonCandidateTimedOut, Text: text}
		}
	}
	return v, wait
}

// waitsInVain returns what a container waits for in vain, and how long it is until that is certain.
func (f *facts) waitsInVain(p *registryPod) (why string, wait time.Duration) {
	left := p.CreationTimestamp.Add(lastingWait).Sub(f.Now)
	for _, status := range allContainers(p.Pod) {
		if status.State.Waiting == nil {
			continue
		}
		switch reason := status.State.Waiting.Reason; reason {
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

// polled returns what became of the last poll, of a spec that asks for polls. recorded is the condition that says so, or nil.
func (s pollSchedule) polled(spec *v1alpha1.CatalogSourceSpec, list podList, v pollVerdict, recorded *metav1.Condition) metav1.Condition {
	lastServes := func(p *registryPod) bool {
		created := p.CreationTimestamp
		return p.serves() && p.madeToPoll() && !created.IsZero() && created.Time.Equal(s.Last)
	}
	switch {
	case !isImage(spec):
		return isFalse(ReasonPollingDisabled, "only images are polled")
	case isPinned(spec):
		return isFalse(ReasonImagePinnedByDigest, "the image is pinned by its digest and cannot change")
	case v.Outcome == "" && slices.ContainsFunc(list.Items, lastServes):
		v.Outcome = ReasonUpdatePromoted
	}
	c := isFalse(v.Outcome, v.message())
	if v.Outcome == "" {
		if recorded == nil || !slices.Contains([]string{ReasonUpToDate, ReasonUpdatePromoted, ReasonCandidateFailed, ReasonCandidateTimedOut}, recorded.Reason) {
			return isUnknown(ReasonNeverPolled, "the image has not been polled yet")
		}
		c = isFalse(recorded.Reason, recorded.Message) // it stays until the next poll has ended
	}
	if c.Reason == ReasonUpToDate || c.Reason == ReasonUpdatePromoted {
		c.Status = metav1.ConditionTrue
	}
	return c
}

var pollTexts = map[string]string{
	ReasonUpToDate:       "the last poll found the content that is served",
	ReasonUpdatePromoted: "the last poll found newer content, which is served now",
}

func (v pollVerdict) message() string {
	return cmp.Or(pollTexts[v.Outcome], "the pod of the last poll "+v.Text)
}

// madeToPoll reports whether the Pod was made to poll the image. OLM makes candidates for nothing else, and does not
// write that on them.
func (p *registryPod) madeToPoll() bool {
	return p.MadeFor == registry.PurposePoll || p.MadeFor == "" && p.Role == roleCandidate
}
