// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is a Result and what Reconcile asks its caller for.
type Outcome struct {
	olmcore.Result
	// Operands are kinds whose instances the cleanup must know before it can go on: list them and answer in
	// Deletion.Operands of the next Input. Gather does so by itself.
	Operands []schema.GroupVersionKind
	// Repair would create the ServiceAccounts, roles and bindings that the CSV's InstallPlan made and that are missing,
	// for display: Reconcile does not ask for it. None while the account that the OperatorGroup prescribes is missing.
	Repair []olmcore.Action
	// Judged is memory for the next Input, nil when there is nothing to remember.
	Judged *Judged
	// Checkpoint is memory for the next Input, nil when there is something to do.
	Checkpoint *olmcore.Checkpoint
}

// Reconcile decides about one ClusterServiceVersion: its metadata, its phase, the Deployments of its install strategy,
// its replacement by a newer version, and, once it is being deleted, its cleanup. An Outcome with nothing but a
// Checkpoint, or a time, means that nothing is to be done. The error is an *olmcore.InputError; whatever is wrong with
// the CSV or the cluster goes into status and Diagnostics.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go, syncClusterServiceVersion and
// transitionCSVState.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	compared := in.Checkpoint.Compare(in.Now)
	in.cover(&compared)
	if wait, same := compared.Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	return reconcile(in)
}

func reconcile(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	c := in.ClusterServiceVersion
	if c.IsCopied() || c.DeletionTimestamp != nil {
		done, err := cleanup.Reconcile(in.ofCleanup())
		return Outcome{Result: done.Result, Operands: done.Operands}, err
	}
	f := factsOf(&in)
	d := decide(f)
	out := Outcome{Result: f.result(d), Judged: f.remembered(&d), Repair: f.repair(d)}
	if out.Judged == nil && out.Repair == nil {
		made := olmcore.NewCoverage(in.Now, out.Result)
		in.cover(&made)
		out.Checkpoint = made.Checkpoint()
	}
	return out, nil
}

// repair returns what creates again what the InstallPlan made for requirements that a decision found unmet.
func (f *facts) repair(d decision) []olmcore.Action {
	account, confirmed := olmcore.AccountOf(f.group)
	if !d.reported || !confirmed || !owned.IsLabelValue(f.csv.Name) {
		return nil
	}
	var actions []olmcore.Action
	for _, o := range requirements.heal(f.Input, f.report) {
		deployment.LabelComponents(o, f.csv)
		actions = append(actions, olmcore.Create{Target: olmcore.RefOf(o), Object: o, As: account, Cause: olmcore.Cause{
			Reason: ReasonRepair, Message: "the InstallPlan of ClusterServiceVersion " + f.csv.Name + " created it, and it is gone",
		}})
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}

// result turns a decision into actions, and the status into the last of them.
func (f *facts) result(d decision) olmcore.Result {
	res := olmcore.Result{Actions: d.actions, Diagnostics: d.diagnostics, RequeueAfter: d.requeue}
	s := &f.csv.Status
	moved := s.Phase != d.phase || s.Reason != d.reason
	said := moved || s.Message != d.message
	var report []v1alpha1.RequirementStatus
	if d.reported {
		report = f.report.entries()
	}
	reported := d.reported && !equality.Semantic.DeepEqual(s.RequirementStatus, report)
	// The timeout of an installation needs a time to count from.
	timeless := s.Phase == v1alpha1.CSVPhaseInstalling && s.LastTransitionTime == nil && d.rule != ruleMetadata
	if !said && !reported && !timeless {
		return res
	}
	after := *f.csv // what a status update does not write is shared with what was observed
	after.Status = *s.DeepCopy()
	if d.refresh && !said {
		after.Status.LastUpdateTime = new(olmcore.Timestamp(f.Now))
	} else {
		owned.SetPhase(&after.Status, d.phase, d.reason, d.message, f.Now)
	}
	if reported {
		after.Status.RequirementStatus = report
	}
	res.Actions = append(res.Actions, olmcore.UpdateStatusOf(f.csv, &after, olmcore.Cause{Reason: ReasonStatusChanged, Message: d.message}))
	if moved {
		res.Transitions = []olmcore.Transition{owned.Moved(f.csv, &after.Status)}
		if f.InCycle {
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonReplacesCycle, olmcore.RefOf(f.csv), "spec.replaces",
				"following spec.replaces from %s leads back to it; the newest version counts as the head", f.csv.Name))
		}
	}
	return res
}
