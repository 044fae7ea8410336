// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is the result of Reconcile: the actions to run, requests that only the caller can fulfil, and memory for the
// next Input.
type Outcome struct {
	olmcore.Result
	// Operands contains the kinds of custom resources that must be listed for the cleanup. The caller sets the listed
	// objects in Deletion.Operands of the next Input. Gather does so itself.
	Operands []schema.GroupVersionKind
	// Certificates contains requests for certificates. Nothing is installed or renewed until Input.Issued answers them.
	Certificates []serving.Request
	// Repair contains actions that create the missing ServiceAccounts, roles and bindings of the CSV's InstallPlan. These
	// actions are not part of Actions, so that a user can decide whether to run them. Repair is empty while the
	// ServiceAccount that the OperatorGroup names is missing.
	Repair []olmcore.Action
	// Judged is the memory of an installation. Pass it in the next Input. It is nil if there is nothing to remember.
	Judged *Judged
	// Inspected is the memory of verified certificates. Pass it in the next Input, so that certificates that did not
	// change are not verified again. It is nil if no certificate was verified.
	Inspected *serving.Memory
	// Checkpoint makes the next call fast if nothing has changed. Pass it in the next Input for this CSV. It is nil while
	// there is something to do.
	Checkpoint *olmcore.Checkpoint
}

// Reconcile returns the actions for one ClusterServiceVersion. The actions update the metadata and the status, install
// the operator, and keep the operator installed. They also let a newer version replace the operator, and run the
// cleanup of a CSV that is being deleted. There is nothing to do if the Outcome contains only memory or a deadline. The
// error is an *olmcore.InputError. A problem of the CSV or the cluster is not an error: the status and the Diagnostics
// report it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go, syncClusterServiceVersion and
// transitionCSVState. Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	if in.Checkpoint != nil && in.Issued == nil {
		if wait, same := in.cover(in.Checkpoint.Compare(in.Now)).Holds(); same {
			rest := olmcore.Result{RequeueAfter: wait}
			return Outcome{Result: rest, Judged: in.Judged, Inspected: in.Inspected, Checkpoint: in.Checkpoint}, nil
		}
	}
	return reconcileChanged(in)
}

// reconcileChanged is a function of its own because facts reference the Input, which would be allocated in Reconcile
// even if the Checkpoint holds.
func reconcileChanged(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	c := in.ClusterServiceVersion
	if c.IsCopied() || c.DeletionTimestamp != nil {
		done, err := cleanup.Reconcile(in.ofCleanup())
		return Outcome{Result: done.Result, Operands: done.Operands}, err
	}
	f := observe(&in)
	d := decide(f)
	out := outcome(f, d)
	isAtRest := out.Empty() && out.Certificates == nil && out.Repair == nil && out.Judged == in.Judged
	if isAtRest && in.Issued == nil {
		out.Checkpoint = in.cover(inputs.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// outcome turns a decision into an Outcome. The last action writes the status.
func outcome(f *facts, d decision) Outcome {
	out := Outcome{
		Result:       olmcore.Result{Actions: slices.Clip(d.actions), Diagnostics: slices.Clip(d.diagnostics), RequeueAfter: d.requeueAfter},
		Certificates: d.requests,
		Repair:       repair(f, d),
		Judged:       rememberInstallation(f, d),
		Inspected:    f.services.Certificates.Memory,
	}
	if after := statusAfter(f, d); after != nil {
		cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: d.message}
		out.Actions = append(out.Actions, olmcore.UpdateStatusOf(f.csv, after, cause))
		if f.csv.Status.Phase != d.phase || f.csv.Status.Reason != d.reason {
			out.Transitions = []olmcore.Transition{model.PhaseTransition(f.csv, &after.Status)}
			out.Diagnostics = append(out.Diagnostics, replacesCycle(f)...)
		}
	}
	if len(out.Actions) > 0 {
		out.Diagnostics = slices.Concat(out.Diagnostics, keptDiagnostics(f))
	}
	return out
}

// statusAfter returns the CSV with the status that a decision leads to, or nil if the recorded status does not change.
func statusAfter(f *facts, d decision) *version {
	s := &f.csv.Status
	isRecorded := s.Phase == d.phase && s.Reason == d.reason && s.Message == d.message
	report, isNewReport := newReport(f, d)
	// The timeout of an installation needs a time to count from.
	lacksTime := s.Phase == v1alpha1.CSVPhaseInstalling && s.LastTransitionTime == nil && d.rule != ruleMetadata
	if isRecorded && !isNewReport && !lacksTime && d.renewAt == nil {
		return nil
	}
	after := *f.csv // a status update writes nothing else, so the rest is shared with the observed CSV
	if isRecorded && (d.refreshes || d.renewAt != nil) {
		after.Status.LastUpdateTime = new(olmcore.Timestamp(f.now))
	} else {
		model.SetPhase(&after.Status, d.phase, d.reason, d.message, f.now)
	}
	if isNewReport {
		after.Status.RequirementStatus = report
	}
	if d.renewAt != nil {
		after.Status.CertsLastUpdated, after.Status.CertsRotateAt = certificateTimes(*d.renewAt, f.now)
	}
	return &after
}

// certificateTimes returns status.certsLastUpdated and status.certsRotateAt. They are nil if no certificate must be
// renewed.
func certificateTimes(renewAt, now time.Time) (lastUpdated, rotateAt *metav1.Time) {
	if renewAt.IsZero() {
		return nil, nil
	}
	return new(olmcore.Timestamp(now)), new(olmcore.Timestamp(renewAt))
}

// replacesCycle returns the Diagnostic about a cycle of spec.replaces, if the CSV is part of one.
func replacesCycle(f *facts) []olmcore.Diagnostic {
	if !f.chain.InCycle {
		return nil
	}
	return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonReplacesCycle, olmcore.RefOf(f.csv), "spec.replaces",
		"spec.replaces leads from %s back to itself, so the newest version of the cycle counts as the latest; correct spec.replaces", f.csv.Name)}
}
