// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"slices"
	"time"
	"unicode/utf8"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// content returns the write to the OperatorCondition itself. There is at most one write: if the spec changes, the
// status is written by the next call, for the new generation.
func content(f *facts) olmcore.Result {
	spec := updateSpec(f)
	if len(spec.Actions) > 0 {
		return spec
	}
	return spec.And(updateStatus(f))
}

// updateStatus copies the conditions that the operator reports from the spec to the status. Their observedGeneration
// shows that they are current. Invisible characters in a message are escaped.
func updateStatus(f *facts) olmcore.Result {
	desired := copied(f.condition, f.in.Now)
	if equality.Semantic.DeepEqual(desired, f.condition.Status.Conditions) {
		return olmcore.Result{}
	}
	after := *f.condition // a status update writes nothing else, so the rest is shared with the observed object
	after.Status.Conditions = desired
	return write(olmcore.UpdateStatusOf(f.condition, &after, olmcore.Cause{
		Reason: ReasonStatusChanged, Message: "status.conditions differ from spec.conditions",
	}))
}

// maxMessage is the number of characters that the API server accepts in the message of a condition.
const maxMessage = 32768

// printed returns a message with invisible characters escaped, cut to the length that the API server accepts.
func printed(message string) string {
	text := printable.Text(message)
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage])
}

// keepUnescaped returns the recorded message if it differs from the new one only because OLM, which copied it, escapes
// no characters. Otherwise it returns the new message. No write is needed for the difference.
func keepUnescaped(recorded, escaped string) string {
	if printed(recorded) == escaped {
		return recorded
	}
	return escaped
}

// copied returns the conditions of the status, updated with those of the spec. If the spec contains two conditions of a
// type, the last one counts. A condition that the spec no longer contains stays, because operators that use the first
// version of the API write the status themselves.
func copied(c *operatorsv2.OperatorCondition, now time.Time) []metav1.Condition {
	reported := make(map[string]metav1.Condition, len(c.Spec.Conditions))
	for _, s := range c.Spec.Conditions {
		s.ObservedGeneration = c.Generation
		if s.LastTransitionTime.IsZero() {
			s.LastTransitionTime = olmcore.Timestamp(now)
		}
		reported[s.Type] = s
	}
	copies := slices.Clone(c.Status.Conditions)
	for i := range copies {
		if s, ok := reported[copies[i].Type]; ok {
			delete(reported, s.Type)
			here := copies[i : i+1]
			s.Message = keepUnescaped(here[0].Message, printed(s.Message))
			meta.SetStatusCondition(&here, s)
		}
	}
	for _, s := range c.Spec.Conditions {
		if last, ok := reported[s.Type]; ok {
			delete(reported, s.Type)
			last.Message = printed(last.Message)
			copies = append(copies, last)
		}
	}
	return copies
}
