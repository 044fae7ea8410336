// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// State is what a plan is doing, finer than its phase: which rule decides this round.
type State string

// States, in the order in which the rules are asked.
const (
	StateDeleting              State = "Deleting"              // the plan is being deleted; what it leaves behind is cleaned up
	StateNamespaceTerminating  State = "NamespaceTerminating"  // its namespace is being deleted
	StateRepairing             State = "Repairing"             // its approval is corrected first, as a Subscription that owns it wants to be asked
	StateComplete              State = "Complete"              // every step was applied. Final
	StateWithoutStatus         State = "WithoutStatus"         // it never got its steps
	StateFailed                State = "Failed"                // a step was refused or failed for too long
	StateTryingAgain           State = "TryingAgain"           // it failed, and its open steps are tried again. Its phase stays Failed
	StateRetried               State = "Retried"               // it failed, and the cause is gone
	StateSuperseded            State = "Superseded"            // a later plan replaces it, or no Subscription waits for it, just now
	StateCheckFailed           State = "CheckFailed"           // the namespace's OperatorGroup stands in the way
	StateServiceAccountChanged State = "ServiceAccountChanged" // the account it runs under is recorded first
	StatePhaseUnknown          State = "PhaseUnknown"          // its phase is empty or none that exists
	StateRequiresApproval      State = "RequiresApproval"      // it waits for approval
	StateApproved              State = "Approved"              // it was approved, and starts
	StateWithdrawn             State = "Withdrawn"             // approval was taken back before anything was applied
	StateStarting              State = "Starting"              // the time of its start is recorded first
	StateFailing               State = "Failing"               // a step was refused or failed for too long, just now
	StateRetrying              State = "Retrying"              // a step was refused or failed, and there is time left
	StateWaiting               State = "Waiting"               // a step waits for the cluster
	StateApplying              State = "Applying"              // steps are applied
	StateCompleting            State = "Completing"            // every step was observed, just now
)

// Phases returns the phase graph. By is the State in which a plan takes an edge, empty for the two that package create
// takes.
func Phases() olmcore.Graph[v1alpha1.InstallPlanPhase] {
	created := olmcore.GraphOf(everyPhase, []rule{{From: none, To: slices.Concat(requires, installing)}})
	return slices.Concat(created, olmcore.GraphOf(everyPhase, rules))
}

// Assessment is the decision about a plan without the objects it needs.
type Assessment struct {
	State State
	// Phase is the phase after this round.
	Phase v1alpha1.InstallPlanPhase
	// Message says what the plan waits for or fails of, as status.message does.
	Message string
	// RequeueAfter is as in olmcore.Result.
	RequeueAfter time.Duration
}

// Assess returns what a plan is doing: what Reconcile decides about it once its owner references, labels and finalizer
// are in order, as they need not be on plans that OLM made. The error is an *olmcore.InputError.
func Assess(in Input) (Assessment, error) {
	if err := in.validate(); err != nil {
		return Assessment{}, err
	}
	d := decide(observe(&in, true))
	return Assessment{State: d.state, Phase: d.status.Phase, Message: d.status.Message, RequeueAfter: d.result.RequeueAfter}, nil
}
