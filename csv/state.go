// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// edges is the graph of the phases. Self edges are changes of the reason alone. Unknown
// and phases that the API does not have count as none.
var edges = slices.Concat(
	from(v1alpha1.CSVPhaseNone, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhasePending, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseFailed,
		v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseFailed,
		v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstallReady,
		v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstallReady,
		v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstallReady,
		v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseDeleting),
	from(v1alpha1.CSVPhaseDeleting, v1alpha1.CSVPhaseDeleting),
)

func from(phase v1alpha1.ClusterServiceVersionPhase, to ...v1alpha1.ClusterServiceVersionPhase) (g olmcore.Graph[v1alpha1.ClusterServiceVersionPhase]) {
	for _, next := range to {
		g = append(g, olmcore.Edge[v1alpha1.ClusterServiceVersionPhase]{From: phase, To: next})
	}
	return g
}

// Edges returns the graph of the phases: what Transitions can report. An edge to
// Deleting is also the beginning of a cleanup.
func Edges() olmcore.Graph[v1alpha1.ClusterServiceVersionPhase] { return slices.Clone(edges) }

// Assessment is a decision without its objects.
type Assessment struct {
	// Rule names the rule that decided, such as RequirementsNotMet, TooManyOperatorGroups,
	// NotObserved, Cleanup or Copy.
	Rule string
	// Phase, Reason and Message are what the status should say.
	Phase   v1alpha1.ClusterServiceVersionPhase
	Reason  v1alpha1.ConditionReason
	Message string
	// Requirements is the report, nil when it was not needed for the decision.
	Requirements []v1alpha1.RequirementStatus
	// Mode, Stage and Pending describe a cleanup: how much is to be done, how far
	// it got, and how many objects hold it. Empty unless the CSV is being deleted.
	Mode    cleanup.Mode
	Stage   cleanup.Stage
	Pending int
	// Diagnostics are those of Reconcile; they name a list that the decision needs
	// and that was not read.
	Diagnostics []olmcore.Diagnostic
	// RequeueAfter is the time to the next deadline, 0 when there is none.
	RequeueAfter time.Duration
}

// Assess decides as Reconcile does and builds no actions for the CSV itself. The
// error is the *olmcore.InputError of Reconcile.
func Assess(in Input) (Assessment, error) {
	if err := in.validate(); err != nil {
		return Assessment{}, err
	}
	c := in.ClusterServiceVersion
	s := &c.Status
	a := Assessment{Phase: s.Phase, Reason: s.Reason, Message: s.Message}
	switch {
	case c.IsCopied():
		a.Rule = "Copy"
		return a, nil
	case c.DeletionTimestamp != nil:
		return a.ofCleanup(&in)
	}
	d := decide(factsOf(&in))
	return Assessment{
		Rule: d.rule, Phase: d.phase, Reason: d.reason, Message: d.message,
		Requirements: d.report, Diagnostics: d.diagnostics, RequeueAfter: d.requeue,
	}, nil
}

func (a Assessment) ofCleanup(in *Input) (Assessment, error) {
	out, err := cleanup.Reconcile(in.ofCleanup())
	a.Rule, a.Mode, a.Stage, a.Pending = "Cleanup", out.Mode, out.Stage, out.Pending
	a.Diagnostics, a.RequeueAfter = out.Diagnostics, out.RequeueAfter
	if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
		a.Phase, a.Reason, a.Message = after.Status.Phase, after.Status.Reason, after.Status.Message
	}
	return a, err
}
