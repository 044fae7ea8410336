// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

type phase = v1alpha1.InstallPlanPhase

// Sets of phases. A phase that the API does not have counts as none.
var (
	none       = []phase{v1alpha1.InstallPlanPhaseNone}
	requires   = []phase{v1alpha1.InstallPlanPhaseRequiresApproval}
	installing = []phase{v1alpha1.InstallPlanPhaseInstalling}
	complete   = []phase{v1alpha1.InstallPlanPhaseComplete}
	failed     = []phase{v1alpha1.InstallPlanPhaseFailed}

	unfinished = slices.Concat(none, requires, installing)
	everyPhase = slices.Concat(unfinished, complete, failed)
)

// stays is the target of a row that keeps the recorded phase.
var stays []phase

// rule is a row of the table: in a phase of From, the first row whose situation holds decides.
type rule = olmcore.Rule[phase, *facts, decision]

// rules contains all that can happen to a plan, in the order in which the rows are tried. The table sets the phase.
// Each part of the table stands beside the situations of its rows.
var rules = slices.Concat(everyPhaseRules, withoutStepsRules, failedRules, checkRules, approvalRules, installingRules)

// row returns the rule that takes a plan from the phases of from to the phase to if the situation when holds. then
// returns the rest of the decision.
func row(state State, from, to []phase, when func(*facts) bool, then func(*facts) decision) rule {
	return rule{Name: string(state), From: from, To: to, Decide: func(f *facts) (decision, bool) {
		if !when(f) {
			return decision{}, false
		}
		d := then(f)
		if len(to) > 0 {
			d.status.Phase = to[0]
		}
		return d, true
	}}
}

func always(*facts) bool { return true }

// decide returns the decision of the first row that applies.
func decide(f *facts) decision {
	d, name := olmcore.FirstDecision(rules, f.phase, f)
	d.state = State(name)
	return d
}

// decision is what one row makes of the facts. Functions never change a decision that their caller holds; they return a
// new one.
type decision struct {
	state State
	// status is the new status of the plan, except for the statuses of its steps.
	status v1alpha1.InstallPlanStatus
	// steps are the new statuses of the steps, nil if they do not change.
	steps []v1alpha1.StepStatus
	// reason is the reason of the phase Failed, "" if the plan failed of a step.
	reason string
	// result contains everything but the write of the status, which comes first.
	result olmcore.Result
	// found is set if the decision reports what was found about the steps.
	found *findings
}

// stay returns the decision that keeps the recorded status.
func (f *facts) stay() decision {
	return decision{status: f.plan.Status}
}

// withFindings returns the decision with the diagnostics and requests that result from the steps.
func (d decision) withFindings(found *findings) decision {
	d.found = found
	return d.report(found.Diagnostics...)
}

// report returns the decision with further diagnostics.
func (d decision) report(diagnostics ...olmcore.Diagnostic) decision {
	d.result.Diagnostics = slices.Concat(d.result.Diagnostics, diagnostics)
	return d
}

// requeue returns the decision with a deadline. Values of 0 and below are no deadline.
func (d decision) requeue(left time.Duration) decision {
	d.result.Requeue(left)
	return d
}

// diagnose returns a Diagnostic about the plan.
func (f *facts) diagnose(severity olmcore.Severity, reason, path, format string, args ...any) olmcore.Diagnostic {
	return olmcore.Diagnose(severity, reason, olmcore.RefOf(f.plan), path, format, args...)
}
