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

// content is what is written to the OperatorCondition itself. That is one write: where the spec changes, the status
// waits for the generation that comes of it.
func content(f *facts) part {
	p := specOf(f)
	if len(p.actions) == 0 {
		p.actions = statusOf(f)
	}
	return p
}

// statusOf copies what the operator says into the status. Who reads the status knows from its generation that nothing
// newer was said. Characters of a message that people do not see are escaped.
func statusOf(f *facts) []olmcore.Action {
	desired := copied(f.condition, f.Now)
	if equality.Semantic.DeepEqual(desired, f.condition.Status.Conditions) {
		return nil
	}
	after := *f.condition // what a status update does not write is shared with what was observed
	after.Status.Conditions = desired
	return []olmcore.Action{olmcore.UpdateStatusOf(f.condition, &after, olmcore.Cause{
		Reason: ReasonStatusChanged, Message: "status.conditions are not those of the spec",
	})}
}

// maxMessage is how many characters the API server takes in the message of a condition.
const maxMessage = 32768

// printed returns a message in which the characters that people do not see are escaped, cut to what the API server
// takes.
func printed(message string) string {
	text := printable.Text(message)
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage])
}

// copied returns the conditions of the status with those of the spec among them. Of two of a type the last counts. One
// that the spec has no more stays: operators of the first version of the API write the status themselves.
func copied(c *operatorsv2.OperatorCondition, now time.Time) []metav1.Condition {
	said := make(map[string]metav1.Condition, len(c.Spec.Conditions))
	for _, s := range c.Spec.Conditions {
		s.ObservedGeneration, s.Message = c.Generation, printed(s.Message)
		if s.LastTransitionTime.IsZero() {
			s.LastTransitionTime = olmcore.Timestamp(now)
		}
		said[s.Type] = s
	}
	copies := slices.Clone(c.Status.Conditions)
	for i := range copies {
		if s, ok := said[copies[i].Type]; ok {
			delete(said, s.Type)
			here := copies[i : i+1]
			if printed(here[0].Message) == s.Message {
				s.Message = here[0].Message // what OLM copied stays
			}
			meta.SetStatusCondition(&here, s)
		}
	}
	for _, s := range c.Spec.Conditions {
		if last, ok := said[s.Type]; ok {
			delete(said, s.Type)
			copies = append(copies, last)
		}
	}
	return copies
}
