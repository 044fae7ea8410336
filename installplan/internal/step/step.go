// SPDX-License-Identifier: Apache-2.0

// Package step evaluates the steps of an InstallPlan. For each step it decides which object the step describes, whether
// the object exists as described, and which action writes it. [Evaluate] takes an [Input] and returns an [Evaluation],
// which contains a [Decision] for every step. It reads and writes nothing in the cluster.
package step

import (
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is the result of evaluating a step.
type Outcome int

const (
	// Pending means that the Decision contains an action, or that the plan must create a ClusterServiceVersion first.
	Pending Outcome = iota
	// Done means that the object exists as the step describes it.
	Done
	// Waiting means that the step waits for the cluster, for example until a CustomResourceDefinition is established.
	Waiting
	// Blocked means that the step cannot be applied until something in the cluster changes.
	Blocked
	// Invalid means that the step can never be applied.
	Invalid
)

// Decision is the decision about one step in one call.
type Decision struct {
	Outcome Outcome
	// Message explains why the step is not applied. Message may be empty for Pending and Done.
	Message string
	// Status is the new status of the step. If an action creates the object of the step, NotPresent is recorded instead.
	// If Status is empty, a Done step becomes Present or Created, and any other step keeps its recorded status.
	Status v1alpha1.StepStatus
	// Deadline is the time at which a Waiting step becomes Blocked, or at which a Blocked step became Blocked. The zero
	// time means never.
	Deadline time.Time
	// NotServed is true if the step is refused because its kind is not served or not supported. Follows is true if the
	// step waits only until a CustomResourceDefinition of the plan is established.
	NotServed, Follows bool
	// Action is the write of the step's object, or nil.
	Action olmcore.Action
	// Diagnostics contains the diagnostics about the step.
	Diagnostics []olmcore.Diagnostic
	// Change is the schema change for which custom resources must be validated, or nil.
	Change *SchemaChange
}

// Refused reports whether the step prevents the whole plan from being applied.
func (v Decision) Refused() bool { return v.Outcome == Blocked || v.Outcome == Invalid }

// with returns the Decision with further diagnostics.
func (v Decision) with(more ...olmcore.Diagnostic) Decision {
	v.Diagnostics = slices.Concat(v.Diagnostics, more)
	return v
}

func blocked(format string, args ...any) Decision {
	return Decision{Outcome: Blocked, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) Decision {
	return Decision{Outcome: Invalid, Message: fmt.Sprintf(format, args...)}
}

func waiting(format string, args ...any) Decision {
	return Decision{Outcome: Waiting, Message: fmt.Sprintf(format, args...)}
}

// Target is an object that one or more steps describe.
type Target struct {
	Key  olmcore.Key
	Kind kinds.Kind
	// Versions contains the names of the ClusterServiceVersions that need the object.
	Versions []string
	// Steps contains the positions of the steps in the plan, in ascending order. Recorded is the status of the first of
	// these steps according to the plan.
	Steps    []int
	Recorded v1alpha1.StepStatus
	Decision Decision
	// Observed is the existing object, or nil if it does not exist.
	Observed olmcore.Object

	rule    rule
	desired bundle.Manifest
}

// Explain returns the message that OLM would report for a failed write of the target. text is the error of the API
// server.
func (t *Target) Explain(text string) string {
	return printable.Text(t.Kind.Explain(t.Key.Name, t.Observed != nil, text))
}

// InvalidPlan is the message of OLM about a step that no plan can contain.
const InvalidPlan = "the InstallPlan contains invalid data"

// unmanaged returns the Blocked Decision for an unmanaged object that differs from the step in a field. The message says
// how to hand the object over to OLM.
func unmanaged(t *Target, field string) Decision {
	return blocked("%s %s exists, is not managed by OLM, and differs from the step in %s; label it %s=true to hand it over, or remove it",
		t.Key.Kind, t.Key.Name, field, olmcore.LabelManaged)
}
