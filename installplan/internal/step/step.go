// SPDX-License-Identifier: Apache-2.0

// Package step judges the steps of an InstallPlan: what each describes, whether its object is as it should be, and what
// is to be written for it. Everything is a value: an [Input] gives an [Evaluation], with a [Verdict] for every step.
package step

import (
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is what is found about a step.
type Outcome int

const (
	// Pending: an action is asked for, or another step must come first.
	Pending Outcome = iota
	// Done: the object exists as the step describes it.
	Done
	// Waiting: the cluster must do something first.
	Waiting
	// Blocked: it cannot be applied as things are.
	Blocked
	// Invalid: it can never be applied.
	Invalid
)

// Verdict is what a round decides about one step.
type Verdict struct {
	Outcome Outcome
	Message string
	// Status is what is recorded for the step, while nothing is created for it.
	Status v1alpha1.StepStatus
	// Deadline is when Waiting becomes Blocked, or did; zero means never.
	Deadline time.Time
	// NotServed: it is refused because the API of its kind is not served. Follows: it waits for nothing but another
	// step of the plan.
	NotServed, Follows bool
	// Action writes the object; nil when nothing is to be written.
	Action olmcore.Action
	// Said is what there is to say about the step.
	Said []olmcore.Diagnostic
	// Change is a change of schemas that custom resources must be judged for.
	Change *SchemaChange
}

// Refused reports whether nothing of the plan may be applied because of the step.
func (v Verdict) Refused() bool { return v.Outcome == Blocked || v.Outcome == Invalid }

func (v Verdict) saying(said ...olmcore.Diagnostic) Verdict {
	v.Said = append(v.Said, said...)
	return v
}

func blocked(format string, args ...any) Verdict {
	return Verdict{Outcome: Blocked, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) Verdict {
	return Verdict{Outcome: Invalid, Message: fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) Verdict {
	return Verdict{Outcome: Waiting, Message: fmt.Sprintf(format, args...)}
}

// Target is one object that one or more steps describe.
type Target struct {
	Key  olmcore.Key
	Kind kinds.Kind
	// Versions are the names of the ClusterServiceVersions that it is made for.
	Versions []string
	// Steps are positions in the plan, ascending; Recorded is the status of the first.
	Steps    []int
	Recorded v1alpha1.StepStatus
	Verdict  Verdict
	// Observed is the object as it exists, nil when it does not.
	Observed olmcore.Object

	rule    rule
	desired manifest.Manifest
}

// Explain returns the message for a write of the target that failed with an error text.
func (t *Target) Explain(text string) string {
	return printable.Text(t.Kind.Explain(t.Key.Name, t.Observed != nil, text))
}

// InvalidPlan is the message of OLM about a step that no plan can contain.
const InvalidPlan = "the InstallPlan contains invalid data"

// unmanaged says that an unmanaged object is in the way, in which field it differs, and what to do about it.
func unmanaged(t *Target, field string) Verdict {
	return blocked("%s %s exists, is not managed by OLM, and differs from the step in %s; label it %s=true to hand it over, or remove it",
		t.Key.Kind, t.Key.Name, field, olmcore.LabelManaged)
}
