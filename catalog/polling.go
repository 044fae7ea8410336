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
	// maxPollInterval is the maximum of spec.updateStrategy.registryPoll.interval.
	maxPollInterval = 10 * 365 * 24 * time.Hour
	// permanentWait is how long a container may wait for a reason that does not pass.
	permanentWait = time.Minute
)

// pollSchedule says when the image is polled. To poll it, a candidate pulls it again. The time of a poll is the
// creation time of its Pod, which the status records.
type pollSchedule struct {
	on        bool          // the image is polled
	problem   string        // what is wrong with the interval; empty if nothing is
	last      time.Time     // when the last poll started; zero: never
	left      time.Duration // until the next poll
	changesIn time.Duration // until the schedule may change without an event; 0: never
}

func asksForPolls(spec *v1alpha1.CatalogSourceSpec) bool {
	return spec.UpdateStrategy != nil && spec.UpdateStrategy.RegistryPoll != nil
}

func isPinned(spec *v1alpha1.CatalogSourceSpec) bool { return strings.Contains(spec.Image, "@") }

func isImage(spec *v1alpha1.CatalogSourceSpec) bool {
	return spec.SourceType == v1alpha1.SourceTypeGrpc && spec.Image != ""
}

// observePoll returns the schedule. Config.MinPollInterval is the minimum time between two polls. Input.Jitter delays
// each poll by up to a tenth of the interval.
func (f *facts) observePoll() pollSchedule {
	spec := &f.source.Spec
	interval, problem := pollInterval(spec.UpdateStrategy, f.config.MinPollInterval)
	s := pollSchedule{on: asksForPolls(spec) && isImage(spec) && !isPinned(spec), problem: quoted(problem)}
	if recorded := f.source.Status.LatestImageRegistryPoll; recorded != nil {
		s.last = recorded.Time
	}
	if !s.on {
		return s
	}
	thisSecond := f.now.UTC().Truncate(time.Second)
	if isFuture(s.last, f.now) {
		s.last = thisSecond
	}
	// 1. The last poll starts with the newest Pod that polls.
	createdInFuture := false
	for _, p := range f.pods.all {
		created := p.CreationTimestamp.Time
		switch {
		case !p.owned || !p.madeToPoll():
		case isFuture(created, f.now):
			s.changesIn = olmcore.Nearest(s.changesIn, created.Sub(f.now.Add(olmcore.ClockTolerance)))
			createdInFuture = createdInFuture || p.role == roleCandidate
		case created.After(s.last):
			s.last = created
		}
	}
	// 2. The next poll.
	jitter := time.Duration(f.in.Jitter * float64(interval) / 10).Truncate(time.Second)
	s.left = f.untilPoll(s.last, interval) + jitter
	if !createdInFuture {
		return s
	}
	// 3. If a candidate was created in the future, the poll is recorded with the current time once the recorded interval
	// has ended. So not every reconcile records another time.
	if s.left <= 0 {
		s.last = thisSecond
		s.left = f.untilPoll(s.last, interval) + jitter
	}
	s.changesIn = olmcore.Nearest(s.changesIn, s.left)
	return s
}

// untilPoll returns the time until the next poll after the last one, or after the creation of the CatalogSource.
func (f *facts) untilPoll(last time.Time, interval time.Duration) time.Duration {
	created := f.source.CreationTimestamp.Time
	if last.IsZero() && created.IsZero() {
		return 0 // no other time would make the poll due
	}
	base := cmp.Or(last, created)
	if isFuture(base, f.now) {
		base = f.now
	}
	return base.Add(interval).Sub(f.now)
}

// pollInterval returns the interval of the polls. If the interval in the spec cannot be used, problem says why, in
// OLM's words if it has a message for it. The spec may come from the decoder of the API or from Go code.
//
// Source: operator-framework/api pkg/operators/v1alpha1, UpdateStrategy.UnmarshalJSON.
// Differs: an interval that would poll all the time, or never, is limited.
func pollInterval(strategy *v1alpha1.UpdateStrategy, minimum time.Duration) (interval time.Duration, problem string) {
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
		interval, err = time.ParseDuration(poll.RawInterval)
		if err != nil {
			return standard, "error parsing " + field + ". Using the default value of " + standard.String() + " instead. " +
				"Error: " + err.Error()
		}
	}
	switch {
	case interval <= 0:
		return minimum, field + " must be positive"
	case interval < minimum:
		return minimum, field + " must be at least " + minimum.String() + "; using " + minimum.String()
	case interval > maxPollInterval:
		return maxPollInterval, field + " must be at most 10 years; using 10 years"
	}
	return interval, ""
}

// pollResult is how a poll ended.
type pollResult struct {
	reason string    // of ConditionUpdatePolled; empty: no poll ended
	text   string    // the end of the message for a poll that failed
	failed *pod      // the Pod of a poll that failed
	polled time.Time // the time of a poll that needed no Pod; zero: none
}

var pollTexts = map[string]string{
	ReasonUpToDate:       "the last poll found the content that is served",
	ReasonUpdatePromoted: "the last poll found newer content, which is served now",
}

func (r pollResult) message() string {
	return cmp.Or(pollTexts[r.reason], "the pod of the last poll "+r.text)
}

// pollPods contains what is known about the poll that is under way. It is empty if the image is not polled.
type pollPods struct {
	running       bool          // a candidate polls the image
	failed        pollResult    // the result of a poll whose Pod will not become ready
	same, changed podList       // ready candidates with the content that is served, and with other content
	changesIn     time.Duration // until this may change without an event; 0: never
}

func (f *facts) observePollPods() pollPods {
	if !f.poll.on {
		return pollPods{}
	}
	failed, changesIn := f.failedPoll()
	if failed.reason != "" {
		return pollPods{failed: failed}
	}
	observed := pollPods{changesIn: changesIn}
	observed.running = f.pods.all.any(func(p *pod) bool { return p.polls && p.class.Live })
	if !observed.running {
		return observed
	}
	for _, p := range f.pods.candidates.ready() {
		switch {
		case p.content == "" || f.pods.content == "": // unknown content cannot be compared
			observed.changesIn = olmcore.Nearest(observed.changesIn, p.readyLeft)
		case p.content == f.pods.content:
			observed.same = append(observed.same, p)
		default:
			observed.changed = append(observed.changed, p)
		}
	}
	return observed
}

// failedPoll returns the result of a poll whose Pod will not become ready. If there is none, failsIn is the time until
// there may be one.
func (f *facts) failedPoll() (failed pollResult, failsIn time.Duration) {
	for _, p := range f.pods.all {
		if !p.polls || p.DeletionTimestamp != nil || !p.isCurrent() && !p.class.Fails {
			continue
		}
		failure, left := pollFailure(f, p)
		failsIn = olmcore.Nearest(failsIn, left)
		switch {
		case failure != "":
			failed = pollResult{reason: ReasonCandidateFailed, text: failure, failed: p}
		case p.readyLeft <= 0 && failed.reason == "" && !canCompare(f, p):
			text := "did not become ready in time: " + cmp.Or(p.note(), "its content is not known")
			failed = pollResult{reason: ReasonCandidateTimedOut, text: text}
		}
	}
	return failed, failsIn
}

// pollFailure returns why a Pod that polls has failed. If it has not failed, failsIn is the time until that may be
// certain.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, podFailed.
// Differs: a Pod that waits permanently, or has finished, has failed too.
func pollFailure(f *facts, p *pod) (failure string, failsIn time.Duration) {
	switch {
	case p.finished:
		return "has finished", 0
	case p.Status.Phase == corev1.PodUnknown:
		return "is in an unknown state", 0
	case canCompare(f, p):
		return "", 0
	}
	left := p.CreationTimestamp.Add(permanentWait).Sub(f.now)
	for _, status := range containerStatuses(p.Pod) {
		if status.State.Waiting == nil {
			continue
		}
		switch reason := status.State.Waiting.Reason; reason {
		case "CrashLoopBackOff":
			return "crashes", failsIn
		case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError":
			if left <= 0 {
				return "cannot start: " + reason, failsIn
			}
			failsIn = left
		}
	}
	return "", failsIn
}

// canCompare reports whether a Pod is ready and its content can be compared with the content that is served, if any is.
func canCompare(f *facts, p *pod) bool {
	return p.ready && (p.content != "" && f.pods.content != "" || len(f.pods.serving.ready()) == 0)
}

// pollImage decides while no Pod is missing: it continues the poll that is under way, or starts the next one.
func pollImage(f *facts) decision {
	obsolete := f.pods.all.where(func(p *pod) bool { return p.isLiveCandidate() && (!f.poll.on || !p.polls) })
	d := progressWhileWaiting(f).and(
		remove(1, ReasonCandidateObsolete, "enough Pods serve", obsolete...),
		waitFor(f.pollPods.changesIn))
	candidates := f.pods.candidates.ready()
	switch {
	case !f.poll.on:
		return d
	// A poll is under way.
	case f.pollPods.failed.reason != "":
		return d.and(endPoll(f, f.pollPods.failed, "the Pod that polls the image "+f.pollPods.failed.text))
	case len(f.pollPods.same) > 0:
		return d.and(endPoll(f, pollResult{reason: ReasonUpToDate}, "the image has not changed"))
	case len(f.pollPods.changed) > 0 && candidates.canReplace(f.config.Replicas):
		return d.and(underWay(ReasonContentUpdate), promote(candidates...))
	case len(f.pollPods.changed) > 0:
		return d.and(underWay(ReasonContentUpdate), removeOlderContent(f), createPollCandidates(f))
	case f.pollPods.running:
		return d
	// No poll is under way.
	case pollMustWait(f):
		return d
	case f.poll.left > 0:
		return d.and(waitFor(f.poll.left))
	case f.in.ResolvedDigest != "" && f.in.ResolvedDigest == digestOf(f.pods.content):
		return d.and(decision{poll: pollResult{reason: ReasonUpToDate, polled: f.now.UTC().Truncate(time.Second)}})
	}
	return d.and(create(pollRequest(ReasonPollDue, "a poll of the image is due")))
}

// endPoll removes all candidates.
func endPoll(f *facts, result pollResult, message string) decision {
	candidates := f.pods.all.where((*pod).isLiveCandidate)
	return decision{poll: result}.and(remove(1, result.reason, message, candidates...))
}

// createPollCandidates creates the candidates that are missing to replace all Pods.
func createPollCandidates(f *facts) decision {
	request := pollRequest(ReasonContentUpdate, "the image has newer content")
	missing := allowedCreates(f, f.config.Replicas-len(f.pods.candidates))
	return create(slices.Repeat([]registry.PodRequest{request}, missing)...)
}

// pollMustWait reports whether no poll may start, because Nodes fail or Pods are being replaced, or because no Node
// could run the Pod of a poll.
func pollMustWait(f *facts) bool {
	holds := func(p *pod) bool {
		return p.role != roleNone && (p.class.HoldsPoll || p.problem == ReasonPodUnschedulable)
	}
	return f.pods.disruption != noDisruption || f.pods.active > f.config.Replicas || f.pods.all.any(holds)
}

// digestOf returns the digest in an imageID, which is repo@sha256:1 or sha256:1.
func digestOf(imageID string) string {
	_, digest, found := strings.Cut(imageID, "@")
	if !found {
		return imageID
	}
	return digest
}

func pollRequest(reason, message string) registry.PodRequest {
	return registry.PodRequest{
		Candidate: true, Purpose: registry.PurposePoll, Attempt: 1,
		Cause: olmcore.Cause{Reason: reason, Message: message},
	}
}

// updatePolled returns ConditionUpdatePolled for a spec that asks for polls. recorded is the recorded condition, or
// nil.
func updatePolled(f *facts, result pollResult, recorded *metav1.Condition) metav1.Condition {
	lastPollServes := func(p *pod) bool {
		created := p.CreationTimestamp
		return p.isServing() && p.madeToPoll() && !created.IsZero() && created.Time.Equal(f.poll.last)
	}
	switch {
	case !isImage(&f.source.Spec):
		return conditionFalse(ReasonPollingDisabled, "only images are polled")
	case isPinned(&f.source.Spec):
		return conditionFalse(ReasonImagePinnedByDigest, "the image is pinned by its digest and cannot change")
	case result.reason == "" && f.pods.all.any(lastPollServes):
		result.reason = ReasonUpdatePromoted
	}
	c := conditionFalse(result.reason, result.message())
	if result.reason == "" {
		// The recorded result stays until the next poll has ended.
		results := []string{ReasonUpToDate, ReasonUpdatePromoted, ReasonCandidateFailed, ReasonCandidateTimedOut}
		if recorded == nil || !slices.Contains(results, recorded.Reason) {
			return conditionUnknown(ReasonNeverPolled, "the image has not been polled yet")
		}
		c = conditionFalse(recorded.Reason, clip(recorded.Message, maxRecorded))
	}
	if c.Reason == ReasonUpToDate || c.Reason == ReasonUpdatePromoted {
		c.Status = metav1.ConditionTrue
	}
	return c
}
