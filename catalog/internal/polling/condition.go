// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
)

// Reasons of the condition beside the outcomes; package catalog documents them.
const (
	ReasonNeverPolled         = "NeverPolled"
	ReasonPollingDisabled     = "PollingDisabled"
	ReasonImagePinnedByDigest = "ImagePinnedByDigest"
)

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
	case s.promoted(list):
		c.Reason = ReasonUpdatePromoted
		c.Message = Text(Verdict{Outcome: c.Reason})
	case recorded != nil && isOutcome(recorded.Reason):
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

// isOutcome reports whether a reason stays until the next poll has ended.
func isOutcome(reason string) bool {
	switch reason {
	case ReasonUpToDate, ReasonUpdatePromoted, ReasonCandidateFailed, ReasonCandidateTimedOut:
		return true
	}
	return false
}

// promoted reports whether a Pod of the last poll serves.
func (s Schedule) promoted(list pods.List) bool {
	return list.Any(func(p *pods.Pod) bool {
		created := p.Object.CreationTimestamp
		return p.Serves() && p.MadeToPoll() && !created.IsZero() && created.Time.Equal(s.Last)
	})
}
