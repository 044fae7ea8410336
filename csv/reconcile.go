// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Outcome is a Result and what Reconcile asks its caller for.
type Outcome struct {
	olmcore.Result
	// Operands are kinds whose instances the cleanup must know before it can go on: list them and answer in
	// Deletion.Operands of the next Input. Gather does so by itself.
	Operands []schema.GroupVersionKind
	// Certificates are asked for: nothing is installed until they are answered in Input.Issued.
	Certificates []certificate.Request
	// Repair would create the ServiceAccounts, roles and bindings that the CSV's InstallPlan made and that are missing,
	// for display: Reconcile does not ask for it. None while the account that the OperatorGroup prescribes is missing.
	Repair []olmcore.Action
	// Judged is memory for the next Input, nil when there is nothing to remember.
	Judged *Judged
	// Inspected is memory for the next Input, nil when no certificate was looked at.
	Inspected *certificate.Memory
	// Checkpoint is memory for the next Input, nil when there is something to do.
	Checkpoint *olmcore.Checkpoint
}

// Reconcile decides about one ClusterServiceVersion: its metadata, its phase, the Deployments of its install strategy,
// its replacement by a newer version, and, once it is being deleted, its cleanup. An Outcome with nothing but
// memory, or a time, means that nothing is to be done. The error is an *olmcore.InputError; whatever is wrong with
// the CSV or the cluster goes into status and Diagnostics.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go, syncClusterServiceVersion and
// transitionCSVState.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	if in.Checkpoint != nil && in.Issued == nil {
		if wait, same := in.cover(in.Checkpoint.Compare(in.Now)).Holds(); same {
			return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Judged: in.Judged, Inspected: in.Inspected, Checkpoint: in.Checkpoint}, nil
		}
	}
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
	out := Outcome{Result: f.result(d), Certificates: d.certificates, Judged: f.remembered(&d), Repair: f.repair(d), Inspected: f.certificates.Memory}
	if len(out.Actions) > 0 {
		out.Diagnostics = slices.Concat(out.Diagnostics, keptDiagnostics(f))
	}
	if out.Empty() && out.Certificates == nil && in.Issued == nil && out.Judged == in.Judged && out.Repair == nil {
		out.Checkpoint = in.cover(olmcore.NewCoverage(in.Now, out.Result)).Checkpoint()
	}
	return out, nil
}

// repair returns what creates again what the InstallPlan made for requirements that a decision found unmet.
func (f *facts) repair(d decision) []olmcore.Action {
	account, confirmed := olmcore.AccountOf(f.group)
	if !d.reported || !confirmed {
		return nil
	}
	var actions []olmcore.Action
	for _, o := range requirements.heal(&f.Input, f.report) {
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
	res := olmcore.Result{Actions: d.actions, Diagnostics: d.Diagnostics, RequeueAfter: d.RequeueAfter}
	s := &f.csv.Status
	moved := s.Phase != d.Phase || s.Reason != d.Reason
	said := moved || s.Message != d.Message
	var report []v1alpha1.RequirementStatus
	if d.reported {
		report = f.report.entries()
	}
	reported := d.reported && !sameRequirements(s.RequirementStatus, report)
	// The timeout of an installation needs a time to count from.
	timeless := s.Phase == v1alpha1.CSVPhaseInstalling && s.LastTransitionTime == nil && d.Rule != ruleMetadata
	renewed := d.renewAt != nil && d.Rule != ruleMetadata
	if !said && !reported && !timeless && !renewed {
		return res
	}
	after := *f.csv // what a status update does not write is shared with what was observed
	if (d.refresh || renewed) && !said {
		after.Status.LastUpdateTime = new(olmcore.Timestamp(f.Now))
	} else {
		owned.SetPhase(&after.Status, d.Phase, d.Reason, d.Message, f.Now)
	}
	if reported {
		after.Status.RequirementStatus = report
	}
	switch at := d.renewAt; {
	case at == nil:
	case at.IsZero():
		after.Status.CertsLastUpdated, after.Status.CertsRotateAt = nil, nil
	default:
		after.Status.CertsLastUpdated, after.Status.CertsRotateAt = new(olmcore.Timestamp(f.Now)), new(olmcore.Timestamp(*at))
	}
	res.Actions = append(res.Actions, olmcore.UpdateStatusOf(f.csv, &after, olmcore.Cause{Reason: ReasonStatusChanged, Message: d.Message}))
	if moved {
		res.Transitions = []olmcore.Transition{owned.Moved(f.csv, &after.Status)}
		if f.InCycle {
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonReplacesCycle, olmcore.RefOf(f.csv), "spec.replaces",
				"following spec.replaces from %s leads back to it; the newest version counts as the head", f.csv.Name))
		}
	}
	return res
}

// sameRequirements reports whether a recorded requirement report has the entries of a new one. Their order does not
// count, because OLM lists ServiceAccounts in random order. Neither do escaped characters, because OLM escapes none.
func sameRequirements(recorded, report []v1alpha1.RequirementStatus) bool {
	return equality.Semantic.DeepEqual(recorded, report) ||
		equality.Semantic.DeepEqual(sortedRequirements(printedRequirements(recorded)), sortedRequirements(report))
}

func sortedRequirements(entries []v1alpha1.RequirementStatus) []v1alpha1.RequirementStatus {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b v1alpha1.RequirementStatus) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name))
	})
}

type (
	version = v1alpha1.ClusterServiceVersion
	phase   = v1alpha1.ClusterServiceVersionPhase
)

// facts are what an Input says about a CSV that is not being deleted. Rules read them.
type facts struct {
	Input
	csv *version
	// phase is the recorded one; what the API does not know counts as none.
	phase phase
	chain.Chain
	// refused: the CSV failed for want of permissions.
	refused bool
	// group is the only OperatorGroup of the namespace, nil unless there is just one of groupCount.
	group      *operatorsv1.OperatorGroup
	groupCount int
	// targets are those of the group, once they are computed.
	targets  group.Targets
	computed bool
	// claim is how the APIs that the CSV provides compare with those that groups list; without a conflict for one that
	// is leaving or whose group is not known.
	claim group.Claim
	// report is what the requirements are judged to be, in the phases that depend on them.
	report report
	met    bool
	// services are what the operator serves, in the phases that depend on it.
	services
}

func factsOf(in *Input) *facts {
	c := in.ClusterServiceVersion
	f := &facts{Input: *in, csv: c, phase: c.Status.Phase, Chain: chain.Of(c, in.Neighbours.Items), refused: isRefused(c)}
	if !slices.Contains(everyPhase, f.phase) {
		f.phase = v1alpha1.CSVPhaseNone
	}
	f.group, f.groupCount = group.Alone(in.OperatorGroups.Items, c.Namespace)
	if f.group != nil && !f.isLeaving() {
		f.targets, f.computed = group.TargetsOf(f.group)
		f.claim = group.ClaimOf(c, f.group, in.OtherGroups.Items, in.OtherProviders.Items, in.Neighbours.Items)
	}
	switch f.phase {
	case v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed:
		f.report = requirements.judge(&f.Input)
		f.met = f.report.met()
	}
	f.services = servicesOf(f)
	return f
}

// source is what the Deployments are made from.
func (f *facts) source() deployment.Source {
	return deployment.Source{
		CSV: f.csv, Config: deployment.ConfigOf(f.csv, f.Subscriptions.Items),
		ProxyEnv: f.Config.ProxyEnv, ExcludedAnnotations: f.Config.ExcludedAnnotations, Mount: f.mount,
	}
}

// isLeaving reports whether the CSV gives way to a later version.
func (f *facts) isLeaving() bool {
	return f.phase == v1alpha1.CSVPhaseReplacing || f.phase == v1alpha1.CSVPhaseDeleting
}

// hasRun reports whether the operator ran before: the history, which forgets, says so, or it runs still.
func (f *facts) hasRun() bool {
	return owned.HasSucceeded(&f.csv.Status) || slices.ContainsFunc(f.Deployments.Items, func(d *appsv1.Deployment) bool {
		return owned.Deployment(f.csv, d) && deployment.IsAvailable(d)
	})
}

// conflict says what of another the CSV would take although its requirements are met, or what is wrong with its
// webhooks; empty when nothing is in the way.
func (f *facts) conflict() (v1alpha1.ConditionReason, string) {
	if problem := f.webhooks.Problem(); problem != "" {
		return v1alpha1.CSVReasonInvalidWebhookDescription, problem
	}
	crds := owned.OwnedCRDs(f.csv)
	for _, other := range f.Neighbours.Items {
		if chain.IsNeighbour(f.csv, other) && owned.DescribesAny(other.Spec.CustomResourceDefinitions.Owned, crds) && !f.Relatives.Has(other) {
			return v1alpha1.CSVReasonOwnerConflict, "conflicting CRD owner in namespace"
		}
	}
	if problem, _ := f.apiServiceConflict(); problem != "" {
		return v1alpha1.CSVReasonOwnerConflict, problem
	}
	if problem := deployment.Conflict(f.csv, f.Relatives, f.Neighbours.Items, f.Deployments.Items, f.Config.AdoptForeignDeployments); problem != "" {
		return v1alpha1.CSVReasonOwnerConflict, problem
	}
	return "", ""
}
