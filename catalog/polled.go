// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// polls reports whether the spec asks for an image to be polled that can change.
func (v *view) polls() bool {
	spec := &v.cs.Spec
	s := spec.UpdateStrategy
	return s != nil && s.RegistryPoll != nil && spec.SourceType == v1alpha1.SourceTypeGrpc && spec.Image != "" &&
		(v.in.Config.StrictUpstreamPolling || !strings.Contains(spec.Image, "@"))
}

// pollInterval returns the interval to poll at and what is wrong with the one of
// the spec, in OLM's words where it has some; empty when nothing is, or nothing is
// polled. It takes what the API's decoder leaves, and what was written in Go.
//
// Source: operator-framework/api pkg/operators/v1alpha1, UpdateStrategy.UnmarshalJSON.
// Differs: an interval that would poll all the time, or never, is bounded.
func pollInterval(cs *v1alpha1.CatalogSource, least time.Duration) (time.Duration, string) {
	strategy := cs.Spec.UpdateStrategy
	if strategy == nil || strategy.RegistryPoll == nil {
		return v1alpha1.DefaultRegistryPollDuration, ""
	}
	poll := strategy.RegistryPoll
	var interval time.Duration
	switch {
	case poll.ParsingError != "":
		return v1alpha1.DefaultRegistryPollDuration, poll.ParsingError
	case poll.Interval != nil:
		interval = poll.Interval.Duration
	case poll.RawInterval == "":
		return v1alpha1.DefaultRegistryPollDuration, "empty polling interval; cannot requeue registry server sync without a provided polling interval"
	default:
		var err error
		if interval, err = time.ParseDuration(poll.RawInterval); err != nil {
			return v1alpha1.DefaultRegistryPollDuration, "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of " +
				v1alpha1.DefaultRegistryPollDuration.String() + " instead. Error: " + err.Error()
		}
	}
	const field = "spec.updateStrategy.registryPoll.interval must be "
	switch {
	case interval <= 0:
		return least, field + "positive"
	case interval < least:
		return least, field + "at least " + least.String() + "; using " + least.String()
	case interval > maxPollInterval:
		return maxPollInterval, field + "at most 10 years; using 10 years"
	}
	return interval, ""
}

// isOutcome reports whether a reason of ConditionUpdatePolled stays until the next
// poll has ended.
func isOutcome(reason string) bool {
	switch reason {
	case ReasonUpToDate, ReasonUpdatePromoted, ReasonCandidateFailed, ReasonCandidateTimedOut:
		return true
	}
	return false
}

// updatePolled is what became of the last poll.
func (v *view) updatePolled(b []byte) condition {
	c := condition{kind: ConditionUpdatePolled, status: metav1.ConditionFalse}
	s := v.cs.Spec.UpdateStrategy
	have := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionUpdatePolled)
	switch {
	case s == nil || s.RegistryPoll == nil || v.mode == modeDeleting || v.mode == modeInvalid && have == nil:
		return condition{kind: ConditionUpdatePolled}
	case v.mode == modeInvalid: // it ended as it did, whatever the spec says now
		c.status, c.reason, c.message = have.Status, have.Reason, append(b, have.Message...)
		return c
	case v.cs.Spec.SourceType != v1alpha1.SourceTypeGrpc || v.cs.Spec.Image == "":
		c.reason, c.message = ReasonPollingDisabled, append(b, "only images are polled"...)
		return c
	case !v.polls():
		c.reason, c.message = ReasonImagePinnedByDigest, append(b, "the image is pinned by its digest and cannot change"...)
		return c
	}
	promoted := v.promotedProbe()
	switch {
	case v.poll.outcome != "":
		c.reason = v.poll.outcome
		c.message = append(append(b, pollText(c.reason)...), v.poll.text...)
	case promoted:
		c.reason = ReasonUpdatePromoted
		c.message = append(b, pollText(c.reason)...)
	case have != nil && isOutcome(have.Reason):
		c.reason, c.message = have.Reason, append(b, have.Message...)
	default:
		c.status, c.reason, c.message = metav1.ConditionUnknown, ReasonNeverPolled, append(b, "the image has not been polled yet"...)
		return c
	}
	if c.reason == ReasonUpToDate || c.reason == ReasonUpdatePromoted {
		c.status = metav1.ConditionTrue
	}
	return c
}

func pollText(reason string) string {
	switch reason {
	case ReasonUpToDate:
		return "the last poll found the content that is served"
	case ReasonUpdatePromoted:
		return "the last poll found newer content, which is served now"
	}
	return "the pod of the last poll "
}

// promotedProbe reports whether a Pod of the last poll serves.
func (v *view) promotedProbe() bool {
	for i := range v.pods {
		p := &v.pods[i]
		if p.serves() && v.isProbe(p.pod) && !p.pod.CreationTimestamp.IsZero() && p.pod.CreationTimestamp.Time.Equal(v.poll.last) {
			return true
		}
	}
	return false
}

// wantedPoll is status.latestImageRegistryPoll; the recorded one itself when it is
// right.
//
// Differs: it is written once the Pod that polls is observed, and is the time at
// which that was created.
func (v *view) wantedPoll() *metav1.Time {
	have := v.cs.Status.LatestImageRegistryPoll
	if !v.poll.on || v.poll.last.IsZero() || have != nil && have.Time.Equal(v.poll.last) {
		return have
	}
	return new(olmcore.Timestamp(v.poll.last))
}
