// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is a Result and what Reconcile asks its caller for.
type Outcome struct {
	olmcore.Result
	// Operands are kinds whose instances the clean-up must know before it can go
	// on: list them and answer in Deletion.Operands of the next Input. Gather does
	// so by itself.
	Operands []schema.GroupVersionKind
	// Repair would create the ServiceAccounts, roles and bindings that the CSV's
	// InstallPlan made and that are missing, for display. With
	// Config.RepairPermissions they are among the Actions instead.
	Repair []olmcore.Action
	// Judged is memory for the next Input, nil when there is nothing to remember.
	Judged *Judged
}

// Reconcile decides about one ClusterServiceVersion: its metadata, its phase,
// the Deployments of its install strategy, its replacement by a newer version,
// and, once it is being deleted, its clean-up. The zero Outcome means that
// nothing is to be done. The error is an *olmcore.InputError; whatever is wrong
// with the CSV or the cluster goes into status and Diagnostics.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go,
// syncClusterServiceVersion and transitionCSVState.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	if in.Checkpoint.holds(&in) {
		return Outcome{}, nil
	}
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	c := in.ClusterServiceVersion
	if c.IsCopied() || c.DeletionTimestamp != nil {
		done, err := cleanup.Reconcile(in.ofCleanup())
		return Outcome{Result: done.Result, Operands: done.Operands}, err
	}
	m := machine{&in}
	d := m.decide()
	out := Outcome{Result: m.build(&d), Judged: m.remembered(&d)}
	if len(d.report) > 0 {
		out.Repair = repairs(m.in, d.report)
	}
	if _, missing := m.accountMissing(); in.Config.RepairPermissions && !missing {
		out.Actions, out.Repair = append(out.Actions, out.Repair...), nil
	}
	return out, nil
}

// build turns a decision into objects.
func (m *machine) build(d *decision) olmcore.Result {
	res := olmcore.Result{Actions: d.actions, Diagnostics: d.diagnostics, RequeueAfter: d.requeue}
	s := &m.c().Status
	moved := s.Phase != d.phase || s.Reason != d.reason
	said := moved || s.Message != d.message
	reported := d.reported && !sameRequirements(s.RequirementStatus, d.report)
	unstamped := s.Phase == v1alpha1.CSVPhaseInstalling && s.LastTransitionTime == nil && d.rule != ruleMetadata
	if !said && !reported && !unstamped {
		return res
	}
	after := m.c().DeepCopy()
	if d.touch && !said {
		at := olmcore.Timestamp(m.in.Now)
		after.Status.LastUpdateTime = &at
	} else {
		setPhase(&after.Status, d.phase, d.reason, d.message, m.in.Now)
	}
	if reported {
		after.Status.RequirementStatus = d.report
	}
	res.Actions = append(res.Actions, olmcore.UpdateStatusOf(m.c(), after, olmcore.Cause{Reason: ReasonStatusChanged, Message: d.message}))
	if moved {
		res.Transitions = []olmcore.Transition{transition(m.c(), &after.Status)}
		if m.line().inCycle() {
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnostic{
				Severity: olmcore.Warning, Reason: ReasonReplacesCycle, Target: olmcore.RefOf(m.c()), Path: "spec.replaces",
				Message: "following spec.replaces from " + m.c().Name + " leads back to it; the newest version counts as the head",
			})
		}
	}
	return res
}

func transition(before *version, after *v1alpha1.ClusterServiceVersionStatus) olmcore.Transition {
	return olmcore.Transition{
		Target: olmcore.RefOf(before), Type: "Phase", From: string(before.Status.Phase), To: string(after.Phase),
		Reason: string(after.Reason), Message: after.Message, At: *after.LastUpdateTime,
		Bound: olmcore.NotAfter, Certainty: olmcore.CertaintyObserved,
	}
}
