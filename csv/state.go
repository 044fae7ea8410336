// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// Edges returns the graph of the phases: what Transitions can report. By is the name of a rule, or Cleanup, which a
// deletion begins with. An edge from a phase to itself is a change of the reason alone. Unknown and phases that the API
// does not have count as none.
func Edges() olmcore.Graph[v1alpha1.ClusterServiceVersionPhase] {
	var g olmcore.Graph[v1alpha1.ClusterServiceVersionPhase]
	for _, from := range everyPhase {
		for _, r := range slices.Concat(gates, rules, []rule{{"Cleanup", everyPhase, deleting, nil}}) {
			for _, to := range r.to {
				if e := (olmcore.Edge[phase]{From: from, To: to, By: r.name}); slices.Contains(r.from, from) && !slices.Contains(g, e) {
					g = append(g, e)
				}
			}
		}
	}
	return g
}

// Assessment is a decision without its objects.
type Assessment struct {
	// Rule names the rule that decided, such as RequirementsNotMet, TooManyOperatorGroups, NotObserved, Cleanup or
	// Copy.
	Rule string
	// Phase, Reason and Message are what the status should say.
	Phase   v1alpha1.ClusterServiceVersionPhase
	Reason  v1alpha1.ConditionReason
	Message string
	// Requirements is the report, nil when it was not needed for the decision.
	Requirements []v1alpha1.RequirementStatus
	// Mode, Stage and Pending describe a cleanup: how much is to be done, how far it got, and how many objects hold it.
	// Empty unless the CSV is being deleted.
	Mode    cleanup.Mode
	Stage   cleanup.Stage
	Pending int
	// Diagnostics are those of Reconcile; they name a list that the decision needs and that was not read.
	Diagnostics []olmcore.Diagnostic
	// RequeueAfter is the time to the next deadline, 0 when there is none.
	RequeueAfter time.Duration
}

// Assess decides as Reconcile does and builds no actions for the CSV itself. The error is the *olmcore.InputError of
// Reconcile.
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
	f := factsOf(&in)
	d := decide(f)
	var report []v1alpha1.RequirementStatus
	if d.reported {
		report = f.report.entries()
	}
	return Assessment{
		Rule: d.rule, Phase: d.phase, Reason: d.reason, Message: d.message,
		Requirements: report, Diagnostics: d.diagnostics, RequeueAfter: d.requeue,
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
