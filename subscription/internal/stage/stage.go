// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Stage is a Subscription's view of its InstallPlan's phase.
type Stage string

// Stages. The first eight are the states of the Graph; the last two are what an
// observation may be instead of a state.
const (
	NoPlan           Stage = "NoPlan"
	NotYetReconciled Stage = "NotYetReconciled"
	Planning         Stage = "Planning"
	RequiresApproval Stage = "RequiresApproval"
	Installing       Stage = "Installing"
	Complete         Stage = "Complete"
	Failed           Stage = "Failed"
	Missing          Stage = "Missing"
	Unverified       Stage = "Unverified"
	Unknown          Stage = "Unknown"
)

// Graph has the edges that a controller takes. Every stage can also go to Missing
// (the plan is deleted) and to NoPlan (the reference is cleared or moves on). All else
// is out of band: the status was edited.
var Graph = olmcore.Graph[Stage]{
	{From: NoPlan, To: NotYetReconciled, By: "created"},
	{From: NotYetReconciled, To: Planning, By: "old releases only"},
	{From: NotYetReconciled, To: RequiresApproval, By: "approval Manual"},
	{From: NotYetReconciled, To: Installing, By: "approval Automatic"},
	{From: NotYetReconciled, To: Failed, By: "superseded"},
	{From: Planning, To: RequiresApproval, By: "approval Manual"},
	{From: Planning, To: Installing, By: "approval Automatic"},
	{From: Planning, To: Failed, By: "superseded"},
	{From: RequiresApproval, To: Installing, By: "approved"},
	{From: RequiresApproval, To: Failed, By: "superseded"},
	{From: Installing, To: Complete, By: "all steps are done"},
	{From: Installing, To: Failed, By: "a step failed"},
	{From: Failed, To: Installing, By: "retry"},
}

// Reachable reports whether a controller can take a plan from one stage to another,
// in any number of steps. A failed plan is followed to Installing and what comes next,
// not through another failure.
func Reachable(from, to Stage) bool {
	if to == Missing || to == NoPlan {
		return true
	}
	for _, e := range Graph {
		switch {
		case e.From != from:
		case e.To == to, from != Failed && Reachable(e.To, to), from == Failed && Graph.Allows(e.To, to):
			return true
		}
	}
	return false
}

var byPhase = map[v1alpha1.InstallPlanPhase]Stage{
	v1alpha1.InstallPlanPhaseNone:             NotYetReconciled,
	v1alpha1.InstallPlanPhasePlanning:         Planning,
	v1alpha1.InstallPlanPhaseRequiresApproval: RequiresApproval,
	v1alpha1.InstallPlanPhaseInstalling:       Installing,
	v1alpha1.InstallPlanPhaseComplete:         Complete,
	v1alpha1.InstallPlanPhaseFailed:           Failed,
}

// Of returns the stage of a plan that exists; Unknown for a phase that is not known.
func Of(p *v1alpha1.InstallPlan) Stage {
	if s, known := byPhase[p.Status.Phase]; known {
		return s
	}
	return Unknown
}

// recordable reports whether a stage may stand in a History.
func recordable(s Stage) bool {
	return s == NoPlan || s == Missing || s == Unknown || slices.ContainsFunc(Graph, func(e olmcore.Edge[Stage]) bool { return e.To == s })
}
