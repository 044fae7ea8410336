// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Stage is a Subscription's view of its InstallPlan's phase.
type Stage string

// Stages. The first eight are the states of the graph in the package comment;
// the last two are what an observation may be instead of a state.
const (
	// StageNoPlan: the Subscription refers to no plan.
	StageNoPlan Stage = "NoPlan"
	// StageNotYetReconciled: the plan has no phase yet.
	StageNotYetReconciled Stage = "NotYetReconciled"
	// StagePlanning: a phase of old plans, not produced any more.
	StagePlanning Stage = "Planning"
	// StageRequiresApproval: the plan waits for its approval.
	StageRequiresApproval Stage = "RequiresApproval"
	// StageInstalling: the plan's steps are being applied.
	StageInstalling Stage = "Installing"
	// StageComplete: the plan is done.
	StageComplete Stage = "Complete"
	// StageFailed: the plan gave up.
	StageFailed Stage = "Failed"
	// StageMissing: the plan was deleted.
	StageMissing Stage = "Missing"
	// StageUnverified: the plan is out of sight or looks out of date; it is not
	// known yet whether that is so.
	StageUnverified Stage = "Unverified"
	// StageUnknown: the plan's phase is none that is known.
	StageUnknown Stage = "Unknown"
)

// edges are the steps that a controller can take from each stage. Every stage
// can also go to Missing (the plan is deleted) and to NoPlan (the reference is
// cleared or moves on). Everything else is out of band: somebody edited a
// status.
var edges = map[Stage][]Stage{
	StageNoPlan:           {StageNotYetReconciled},
	StageNotYetReconciled: {StagePlanning, StageRequiresApproval, StageInstalling, StageFailed},
	StagePlanning:         {StageRequiresApproval, StageInstalling, StageFailed},
	StageRequiresApproval: {StageInstalling, StageFailed}, // superseded
	StageInstalling:       {StageComplete, StageFailed},
	StageFailed:           {StageInstalling},
}

// reachable reports whether a controller can take a plan from one stage to
// another, in any number of steps.
func reachable(from, to Stage) bool {
	if to == StageMissing || to == StageNoPlan {
		return true
	}
	for _, next := range edges[from] {
		// The one cycle, Failed and Installing, is cut at Failed.
		if next == to || from != StageFailed && reachable(next, to) ||
			from == StageFailed && slices.Contains(edges[next], to) {
			return true
		}
	}
	return false
}

func stageOf(p *v1alpha1.InstallPlan) Stage {
	switch p.Status.Phase {
	case v1alpha1.InstallPlanPhaseNone:
		return StageNotYetReconciled
	case v1alpha1.InstallPlanPhasePlanning:
		return StagePlanning
	case v1alpha1.InstallPlanPhaseRequiresApproval:
		return StageRequiresApproval
	case v1alpha1.InstallPlanPhaseInstalling:
		return StageInstalling
	case v1alpha1.InstallPlanPhaseComplete:
		return StageComplete
	case v1alpha1.InstallPlanPhaseFailed:
		return StageFailed
	}
	return StageUnknown
}

// isStage reports whether s may stand in a History.
func isStage(s Stage) bool {
	switch s {
	case StageNoPlan, StageNotYetReconciled, StagePlanning, StageRequiresApproval,
		StageInstalling, StageComplete, StageFailed, StageMissing, StageUnknown:
		return true
	}
	return false
}

// isStatusless reports whether a plan was created but never given its content,
// so that nobody will run it.
func isStatusless(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0 && len(p.Status.BundleLookups) == 0
}

// judgeState sets the state that follows from the CSV (subscription states
// UpgradePending, UpgradeFailed and AtLatestKnown).
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// ensureSubscriptionCSVState. Differs: installedCSV is set whenever the CSV is
// there, not only when the state changes; a copied CSV does not count; a plan
// that cannot be judged leaves the state alone.
func (v *view) judgeState(d *verdict) {
	if d.currentCSV == "" {
		return
	}
	c := v.csv(d.currentCSV)
	if c != nil && isCopied(c) {
		d.report(warning, ReasonCopiedCSVReferenced, "status.currentCSV", "CSV ", c.Name, " is a copy and satisfies nothing in this namespace")
		c = nil
	}
	if c != nil {
		d.csvPresent = true
		d.state, d.installedCSV = v1alpha1.SubscriptionStateAtLatest, d.currentCSV
		if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
			d.report(info, ReasonCSVNotSucceeded, "status.currentCSV", "CSV ", c.Name, " exists but its phase is ", phaseText(c.Status.Phase))
		}
		return
	}
	if v.failForward {
		switch d.seen.stage {
		case StageUnverified:
			return
		case StageFailed:
			d.state = v1alpha1.SubscriptionStateFailed
			return
		}
	}
	d.state = v1alpha1.SubscriptionStateUpgradePending
}

func phaseText(phase v1alpha1.ClusterServiceVersionPhase) string {
	if phase == v1alpha1.CSVPhaseNone {
		return "not set"
	}
	return string(phase)
}

// judgeWedge looks at Subscriptions without their CSV that wait for something that
// cannot come.
func (v *view) judgeWedge(d *verdict) {
	if d.state != v1alpha1.SubscriptionStateUpgradePending || d.ref == nil || d.changedReference() {
		return
	}
	switch {
	case d.seen.stage == StageFailed && isRetried(d.seen.plan): // it holds nothing for ever
	case d.seen.stage == StageFailed:
		d.report(warning, ReasonFailedPlanWedge, "status.installPlanRef", "InstallPlan ", d.seen.plan.Name,
			" failed and holds this Subscription until it is deleted")
	case d.seen.stage == StageComplete && d.currentCSV != "":
		v.judgeRemoved(d, "InstallPlan "+d.seen.plan.Name+" is complete but CSV "+d.currentCSV+" is gone; delete the plan to install it again")
	case d.seen.stage == StageMissing && d.outlivedPlan():
		v.judgeRemoved(d, "CSV "+d.currentCSV+" and its InstallPlan are gone; create the Subscription again to install it")
	}
}

// judgeRemoved is about a version that was installed and then removed: it stays removed
// unless Config.ReinstallMissingCSV says otherwise.
func (v *view) judgeRemoved(d *verdict, message string) {
	start := d.sub.Status.LastUpdated.Time
	if d.sub.Status.State != d.state {
		start = v.now // it was there until now
	}
	if at := installedAt(d.seen.plan); at.After(start) {
		start = at
	}
	if left := v.config.AuditGrace - since(start, v.now); left > 0 {
		d.requeue(left)
		return
	}
	if v.config.ReinstallMissingCSV {
		d.clearReference()
		return
	}
	d.report(warning, ReasonWedgedUpgradePending, "status.currentCSV", message)
}
