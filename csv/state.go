// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/internal/ruletable"
	"github.com/olmcore/olm/olmcore"
)

// Edges returns the graph of the phases, with every edge that Transitions can report. The field By of an edge is the
// name of a rule, or Cleanup for the edge to Deleting when a deletion begins. An edge from a phase to itself changes
// only the reason. The phase Unknown, and phases that the API does not have, are treated as the empty phase.
func Edges() olmcore.Graph[v1alpha1.ClusterServiceVersionPhase] {
	cleanup := rule{Name: "Cleanup", From: everyPhase, To: deleting}
	return ruletable.GraphOf(everyPhase, slices.Concat(gates, rules, []rule{cleanup}))
}

// Assessment is the decision of Reconcile without actions, for example for command lines, metrics and tests.
type Assessment struct {
	// Rule is the name of the rule that decided, for example RequirementsNotMet, TooManyOperatorGroups, NotObserved,
	// Cleanup or Copy.
	Rule string
	// Phase, Reason and Message are the values of the status that Reconcile would write.
	Phase   v1alpha1.ClusterServiceVersionPhase
	Reason  v1alpha1.ConditionReason
	Message string
	// Requirements contains all requirements, met and unmet. It is nil if the decision does not depend on them.
	Requirements []v1alpha1.RequirementStatus
	// Mode is the extent of the cleanup, Stage is its current stage, and Pending is the number of objects that the cleanup
	// waits for. All three are zero if the CSV is not being deleted.
	Mode    cleanup.Mode
	Stage   cleanup.Stage
	Pending int
	// Diagnostics contains all Diagnostics about the CSV. They include those that Reconcile returns only together with
	// writes, such as ReasonWebhookRulesKept and ReasonAPIGroupShared.
	Diagnostics []olmcore.Diagnostic
	// RequeueAfter is the time until the next deadline. 0 means that no deadline is pending.
	RequeueAfter time.Duration
}

// Assess returns the decision of Reconcile, without actions. The error is an *olmcore.InputError.
func Assess(in Input) (Assessment, error) {
	if err := in.validate(); err != nil {
		return Assessment{}, err
	}
	switch c := in.ClusterServiceVersion; {
	case c.IsCopied():
		return Assessment{Rule: "Copy", Phase: c.Status.Phase, Reason: c.Status.Reason, Message: c.Status.Message}, nil
	case c.DeletionTimestamp != nil:
		return assessCleanup(&in)
	}
	f := observe(&in)
	d := decide(f)
	a := Assessment{
		Rule: d.rule, Phase: d.phase, Reason: d.reason, Message: d.message,
		Diagnostics: slices.Concat(d.diagnostics, keptDiagnostics(f)), RequeueAfter: d.requeueAfter,
	}
	if d.reports {
		a.Requirements = f.report.entries()
	}
	return a, nil
}

func assessCleanup(in *Input) (Assessment, error) {
	out, err := cleanup.Reconcile(in.ofCleanup())
	status := in.ClusterServiceVersion.Status
	if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
		status = after.Status
	}
	return Assessment{
		Rule: "Cleanup", Phase: status.Phase, Reason: status.Reason, Message: status.Message,
		Mode: out.Mode, Stage: out.Stage, Pending: out.Pending,
		Diagnostics: out.Diagnostics, RequeueAfter: out.RequeueAfter,
	}, err
}

// rule is one row of the phase machine. From contains the phases in which the row applies. To contains the phases that
// the row can lead to. It contains the same phase if the row changes only the reason, and is empty if the row changes
// neither.
type rule = ruletable.Rule[phase, *facts, decision]

// Sets of phases.
var (
	none         = []phase{v1alpha1.CSVPhaseNone}
	pending      = []phase{v1alpha1.CSVPhasePending}
	installReady = []phase{v1alpha1.CSVPhaseInstallReady}
	installing   = []phase{v1alpha1.CSVPhaseInstalling}
	succeeded    = []phase{v1alpha1.CSVPhaseSucceeded}
	failed       = []phase{v1alpha1.CSVPhaseFailed}
	replacing    = []phase{v1alpha1.CSVPhaseReplacing}
	deleting     = []phase{v1alpha1.CSVPhaseDeleting}

	running    = slices.Concat(installReady, installing, succeeded, failed)
	alive      = slices.Concat(pending, running)
	notLeaving = slices.Concat(none, alive)
	everyPhase = slices.Concat(notLeaving, replacing, deleting)
)

// ruleNotObserved is the name of the rows that wait for a list that was not read.
const ruleNotObserved = "NotObserved"

// decide returns the decision of the first row that applies. If none applies, the recorded status stays.
func decide(f *facts) decision {
	d, isGate := decideByRow(f)
	if !isGate {
		// 1. Renew certificates although the CSV is not installed.
		d = d.and(renewCertificates(f, d))
		// 2. Check again whether the group with the weaker claim to an API stopped listing it.
		if f.claim.Conflict != nil {
			d = d.requeue(contestedPace)
		}
	}
	d.message = printable.Keep(f.csv.Status.Message, d.message)
	return d
}

func decideByRow(f *facts) (d decision, isGate bool) {
	d, row := ruletable.FirstDecision(gates, f.phase, f)
	isGate = row != ""
	if !isGate {
		d, row = ruletable.FirstDecision(rules, f.phase, f)
	}
	if row == "" {
		d = f.stay()
	}
	d.rule = cmp.Or(d.rule, row)
	return d, isGate
}

// decision is what should happen to a CSV, before the status is built. Rows return decisions, and methods of a decision
// return changed copies. If the status does not change, phase, reason and message are the recorded ones.
type decision struct {
	rule    string // the name of the row, or a more exact one
	phase   phase
	reason  v1alpha1.ConditionReason
	message string

	actions     []olmcore.Action
	diagnostics []olmcore.Diagnostic
	// requests contains requests for certificates.
	requests []serving.Request
	// requeueAfter is the time until the decision may change without an event. 0 means never.
	requeueAfter time.Duration
	// attempts contains the writes of the installation, which the next call needs.
	attempts deployment.Attempts
	// renewAt is the new status.certsRotateAt. The zero time clears it. Nil keeps the recorded time.
	renewAt *time.Time
	// reports means that status.requirementStatus is set to the report of the facts.
	reports bool
	// refreshes means that the status is written without an entry in its history.
	refreshes bool
}

// requeue returns d with a deadline, unless an earlier one is pending. All deadlines pass through this function. A
// value of 0 or less sets none.
func (d decision) requeue(after time.Duration) decision {
	d.requeueAfter = olmcore.Nearest(d.requeueAfter, after)
	return d
}

// named returns d with the name of a rule that is more exact than the name of the row.
func (d decision) named(rule string) decision {
	d.rule = rule
	return d
}

// write returns d with more actions.
func (d decision) write(actions ...olmcore.Action) decision {
	d.actions = slices.Concat(d.actions, actions)
	return d
}

// diagnose returns d with more Diagnostics.
func (d decision) diagnose(diagnostics ...olmcore.Diagnostic) decision {
	d.diagnostics = slices.Concat(d.diagnostics, diagnostics)
	return d
}

// reporting returns d, which also writes the report on the requirements.
func (d decision) reporting() decision {
	d.reports = true
	return d
}

// and returns d with the actions and requests that keep the certificates of the operator valid.
func (d decision) and(r renewal) decision {
	d = d.write(r.actions...).diagnose(r.diagnostics...).requeue(r.requeueAfter)
	d.requests = slices.Concat(d.requests, r.requests)
	d.renewAt = cmp.Or(r.renewAt, d.renewAt)
	return d
}

// move returns a decision that changes the status.
func move(to phase, reason v1alpha1.ConditionReason, message string) decision {
	return decision{phase: to, reason: reason, message: message}
}

// fail returns a decision that makes the CSV Failed.
func fail(reason v1alpha1.ConditionReason, message string) decision {
	return move(v1alpha1.CSVPhaseFailed, reason, message)
}

// stay returns a decision that keeps the recorded status.
func (f *facts) stay() decision {
	return move(f.csv.Status.Phase, f.csv.Status.Reason, f.csv.Status.Message)
}
