// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/internal/ruletable"
	"github.com/olmcore/olm/olmcore"
)

// State is the state of a plan, in more detail than its phase. A State is the name of a row in the table that decides
// about plans.
type State string

// States, in the order in which their rows are tried.
const (
	// StateDeleting means that the plan is being deleted. Its unpacked bundles and its annotations on Subscriptions are
	// cleaned up.
	StateDeleting State = "Deleting"
	// StateNamespaceTerminating means that the namespace of the plan is being deleted.
	StateNamespaceTerminating State = "NamespaceTerminating"
	// StateRepairing means that the owners, labels, approval or finalizer of the plan are corrected before anything
	// else.
	StateRepairing State = "Repairing"
	// StateComplete means that every step was applied. The plan stays in this state.
	StateComplete State = "Complete"
	// StateWithoutStatus means that the plan has no steps.
	StateWithoutStatus State = "WithoutStatus"
	// StateFailed means that a step was refused or failed for too long.
	StateFailed State = "Failed"
	// StateTryingAgain means that the plan failed and its open steps are tried again. The phase stays Failed.
	StateTryingAgain State = "TryingAgain"
	// StateRetried means that the plan failed, the cause is gone, and the plan starts again.
	StateRetried State = "Retried"
	// StateSuperseded means that the plan ends, because a later plan replaces it or no Subscription waits for it.
	StateSuperseded State = "Superseded"
	// StateCheckFailed means that the OperatorGroup of the namespace does not allow the plan to continue.
	StateCheckFailed State = "CheckFailed"
	// StateServiceAccountChanged means that the status of the plan must be updated with its current ServiceAccount before
	// the plan continues.
	StateServiceAccountChanged State = "ServiceAccountChanged"
	// StatePhaseUnknown means that the phase of the plan is empty or unknown.
	StatePhaseUnknown State = "PhaseUnknown"
	// StateRequiresApproval means that the plan waits for approval.
	StateRequiresApproval State = "RequiresApproval"
	// StateApproved means that the plan was approved. Its phase becomes Installing.
	StateApproved State = "Approved"
	// StateWithdrawn means that the approval was withdrawn before anything was applied.
	StateWithdrawn State = "Withdrawn"
	// StateStarting means that the start time of the plan is recorded before its first step is applied.
	StateStarting State = "Starting"
	// StateFailing means that the plan fails, because a step was refused or failed for too long.
	StateFailing State = "Failing"
	// StateRetrying means that a step was refused or failed. The step is retried until its timeout.
	StateRetrying State = "Retrying"
	// StateWaiting means that a step waits for the cluster, or the plan waits for an earlier plan.
	StateWaiting State = "Waiting"
	// StateApplying means that steps are applied.
	StateApplying State = "Applying"
	// StateCompleting means that every step was observed and the plan becomes Complete.
	StateCompleting State = "Completing"
)

// Phases returns the graph of InstallPlan phases. The field By of an edge is the State in which a plan changes its
// phase. By is empty for the two edges of package create, which sets the first phase.
func Phases() olmcore.Graph[v1alpha1.InstallPlanPhase] {
	created := ruletable.GraphOf(everyPhase, []rule{{From: none, To: slices.Concat(requires, installing)}})
	return slices.Concat(created, ruletable.GraphOf(everyPhase, rules))
}

// Assessment contains the decision about a plan, without the actions.
type Assessment struct {
	// State is the state of the plan.
	State State
	// Phase is the new phase of the plan.
	Phase v1alpha1.InstallPlanPhase
	// Message is the new status.message. The message explains what the plan waits for or why it failed. Message may be
	// empty.
	Message string
	// RequeueAfter is the time until the next call, as in olmcore.Result. 0 means no deadline.
	RequeueAfter time.Duration
}

// Assess returns the decision of Reconcile about a plan. Assess assumes that the owner references, labels and finalizer
// of the plan are correct, because plans that OLM created may lack them. The error is an *olmcore.InputError.
func Assess(in Input) (Assessment, error) {
	if err := in.validate(); err != nil {
		return Assessment{}, err
	}
	d := decide(observe(&in, true))
	return Assessment{State: d.state, Phase: d.status.Phase, Message: d.status.Message, RequeueAfter: d.result.RequeueAfter}, nil
}
