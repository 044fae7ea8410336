// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/installer"
)

type (
	version = v1alpha1.ClusterServiceVersion
	phase   = v1alpha1.ClusterServiceVersionPhase
)

// facts contains the classified data of an Input, for a CSV that is not being deleted. observe fills it once.
// Afterwards it is read-only.
type facts struct {
	in  *Input // as the caller passed it
	now time.Time
	csv *version
	// phase is the recorded phase. It is empty if the API does not have the recorded phase.
	phase phase
	chain model.Chain
	// group is the only OperatorGroup of the namespace. It is nil unless groupCount is 1.
	group      *operatorsv1.OperatorGroup
	groupCount int
	// targets contains the target namespaces of the group. hasTargets reports whether the status of the group contains
	// them.
	targets    model.Targets
	hasTargets bool
	// claim compares the APIs that the CSV provides with those that OperatorGroups list. It is empty if a later version
	// replaces the CSV, or if there is no group.
	claim model.Claim
	// report contains the requirements, and isMet reports whether all of them are met. They are set only in the phases
	// that depend on requirements.
	report requirementStatuses
	isMet  bool
	// operator contains the data that installing the operator depends on.
	operator model.Operator
	// services contains the webhooks and APIServices of the operator, which the API server calls, and the certificates of
	// the Deployments that serve them. It is set only in the phases that depend on them.
	services internalserving.Plan
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	c := in.ClusterServiceVersion
	f := &facts{in: in, now: in.Now, csv: c, phase: c.Status.Phase, chain: model.ChainOf(c, in.Neighbours.Items)}
	if !slices.Contains(everyPhase, f.phase) {
		f.phase = v1alpha1.CSVPhaseNone
	}
	f.group, f.groupCount = model.OnlyGroup(in.OperatorGroups.Items, c.Namespace)
	if f.group != nil && !f.isLeaving() {
		f.targets, f.hasTargets = model.TargetsOf(f.group)
		f.claim = model.ClaimOf(c, f.group, in.OtherGroups.Items, in.OtherProviders.Items, in.Neighbours.Items)
	}
	switch f.phase {
	case v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed:
		f.report = requirements.judge(in)
		f.isMet = f.report.isMet()
	}
	f.operator = observeOperator(f)
	f.services = observeServices(f)
	return f
}

// observeOperator returns the data that installing the operator depends on. It is the only place that fills
// model.Operator.
func observeOperator(f *facts) model.Operator {
	account, _ := installer.AccountOf(f.group)
	return model.Operator{
		Now:                     f.now,
		CSV:                     f.csv,
		Group:                   f.group,
		Account:                 account,
		IsConfined:              f.group != nil && f.group.Spec.ServiceAccountName != "",
		Neighbours:              f.in.Neighbours.Items,
		Relatives:               f.chain.Relatives,
		Deployments:             f.in.Deployments.Items,
		ServiceAccounts:         f.in.ServiceAccounts.Items,
		APIServices:             f.in.APIServices.Items,
		Definitions:             f.in.GroupDefinitions.Items,
		CRDs:                    f.in.CustomResourceDefinitions.Items,
		UnreadCRDs:              read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions"),
		ServedAPIs:              f.in.ServedAPIs,
		Objects:                 &f.in.Serving,
		Config:                  deployment.ConfigOf(f.csv, f.in.Subscriptions.Items),
		ProxyEnv:                f.in.Config.ProxyEnv,
		ExcludedAnnotations:     f.in.Config.ExcludedAnnotations,
		PackageServerNamespaces: f.in.Config.packageServerNamespaces(),
		Issued:                  f.in.Issued,
		Memory:                  f.in.Inspected,
	}
}

// isLeaving reports whether a later version replaces the CSV.
func (f *facts) isLeaving() bool {
	return f.phase == v1alpha1.CSVPhaseReplacing || f.phase == v1alpha1.CSVPhaseDeleting
}

// hasRun reports whether the operator ran before: the status records it, or a Deployment is available. Deployments are
// checked because the history in the status is limited and may have lost the record.
func (f *facts) hasRun() bool {
	isRecorded := slices.ContainsFunc(f.csv.Status.Conditions, func(c v1alpha1.ClusterServiceVersionCondition) bool {
		return c.Phase == v1alpha1.CSVPhaseSucceeded
	})
	return isRecorded || slices.ContainsFunc(f.in.Deployments.Items, func(d *appsv1.Deployment) bool {
		return model.OwnsDeployment(f.csv, d) && deployment.IsAvailable(d)
	})
}

// sinceTransition returns the time since the recorded phase began.
func (f *facts) sinceTransition() time.Duration {
	return model.Since(f.csv.Status.LastTransitionTime, f.now)
}

// retryIn returns the wait before the next check of a problem that may end without an event. The wait grows with the
// time that the phase has lasted. If next is another phase than the recorded one, that time is 0.
func (f *facts) retryIn(next phase) time.Duration {
	lasted := time.Duration(0)
	if next == f.csv.Status.Phase {
		lasted = f.sinceTransition()
	}
	return model.NextCheck(lasted, retryLimit)
}

// retryLimit is the longest wait between two checks of a problem that may end without an event.
const retryLimit = 5 * time.Minute
