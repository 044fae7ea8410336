// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// State is what a plan is doing, finer than its phase: which rule decides this round.
type State string

// States, in the order in which the rules are asked.
const (
	// StateDeleting: the plan is being deleted; what it leaves behind is cleaned up.
	StateDeleting State = "Deleting"
	// StateNamespaceTerminating: its namespace is being deleted.
	StateNamespaceTerminating State = "NamespaceTerminating"
	// StateRepairing: its approval is corrected first, as a Subscription that owns it wants to be asked.
	StateRepairing State = "Repairing"
	// StateComplete: every step was applied. Final.
	StateComplete State = "Complete"
	// StateWithoutStatus: it never got its steps.
	StateWithoutStatus State = "WithoutStatus"
	// StateFailed: a step was refused or failed for too long.
	StateFailed State = "Failed"
	// StateRetried: it failed, and the cause is gone.
	StateRetried State = "Retried"
	// StateSuperseded: no Subscription refers to it, and another plan took its place, just now.
	StateSuperseded State = "Superseded"
	// StateCheckFailed: the namespace's OperatorGroup stands in the way.
	StateCheckFailed State = "CheckFailed"
	// StateServiceAccountChanged: the account it runs under is recorded first.
	StateServiceAccountChanged State = "ServiceAccountChanged"
	// StatePhaseUnknown: its phase is empty or none that exists.
	StatePhaseUnknown State = "PhaseUnknown"
	// StateRequiresApproval: it waits for approval.
	StateRequiresApproval State = "RequiresApproval"
	// StateApproved: it was approved, and starts.
	StateApproved State = "Approved"
	// StateWithdrawn: approval was taken back before anything was applied.
	StateWithdrawn State = "Withdrawn"
	// StateStarting: the time of its start is recorded first.
	StateStarting State = "Starting"
	// StateFailing: a step was refused or failed for too long, just now.
	StateFailing State = "Failing"
	// StateRetrying: a step was refused or failed, and there is time left.
	StateRetrying State = "Retrying"
	// StateWaiting: a step waits for the cluster.
	StateWaiting State = "Waiting"
	// StateApplying: steps are applied.
	StateApplying State = "Applying"
	// StateCompleting: every step was observed, just now.
	StateCompleting State = "Completing"
)

// Phases returns the phase graph. By is the State in which a plan takes an edge, empty for the two that package create
// takes.
func Phases() olmcore.Graph[v1alpha1.InstallPlanPhase] {
	const (
		none       = v1alpha1.InstallPlanPhaseNone
		waiting    = v1alpha1.InstallPlanPhaseRequiresApproval
		installing = v1alpha1.InstallPlanPhaseInstalling
		complete   = v1alpha1.InstallPlanPhaseComplete
		failed     = v1alpha1.InstallPlanPhaseFailed
	)
	return olmcore.Graph[v1alpha1.InstallPlanPhase]{
		{From: none, To: waiting},
		{From: none, To: installing},
		{From: waiting, To: installing, By: string(StateApproved)},
		{From: waiting, To: failed, By: string(StateSuperseded)},
		{From: installing, To: waiting, By: string(StateWithdrawn)},
		{From: installing, To: complete, By: string(StateCompleting)},
		{From: installing, To: failed, By: string(StateFailing)},
		{From: installing, To: failed, By: string(StateSuperseded)},
		{From: failed, To: installing, By: string(StateRetried)},
	}
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
	d := decide(&in, true)
	return Assessment{State: d.state, Phase: d.status.Phase, Message: d.status.Message, RequeueAfter: d.result.RequeueAfter}, nil
}
