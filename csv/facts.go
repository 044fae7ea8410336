// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/olmcore/olm/csv/internal/chain"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
)

type (
	version = v1alpha1.ClusterServiceVersion
	phase   = v1alpha1.ClusterServiceVersionPhase
)

// facts are what an Input says about a CSV that is not being deleted. Rules read them.
type facts struct {
	*Input
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
	// source is what the Deployments are made from.
	source deployment.Source
}

func factsOf(in *Input) *facts {
	c := in.ClusterServiceVersion
	f := &facts{
		Input: in, csv: c, phase: c.Status.Phase, Chain: chain.Of(c, in.Neighbours.Items), refused: isRefused(c),
		source: deployment.Source{
			CSV: c, Config: deployment.ConfigOf(c, in.Subscriptions.Items),
			ProxyEnv: in.Config.ProxyEnv, ExcludedAnnotations: in.Config.ExcludedAnnotations,
		},
	}
	if !slices.Contains(everyPhase, f.phase) {
		f.phase = v1alpha1.CSVPhaseNone
	}
	f.group, f.groupCount = group.Alone(in.OperatorGroups.Items, c.Namespace)
	if f.group != nil {
		f.targets, f.computed = group.TargetsOf(f.group)
		if !f.isLeaving() {
			f.claim = group.ClaimOf(c, f.group, in.OtherGroups.Items, in.OtherProviders.Items, in.Neighbours.Items)
		}
	}
	switch f.phase {
	case v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseSucceeded, v1alpha1.CSVPhaseFailed:
		f.report = requirements.judge(in)
		f.met = f.report.met()
	}
	return f
}

// isLeaving reports whether the CSV gives way to a later version.
func (f *facts) isLeaving() bool {
	return f.phase == v1alpha1.CSVPhaseReplacing || f.phase == v1alpha1.CSVPhaseDeleting
}

// hasRun reports whether the operator ran before: the history says so, which forgets after twenty entries, or it runs
// still.
func (f *facts) hasRun() bool {
	return owned.HasSucceeded(&f.csv.Status) || slices.ContainsFunc(f.Deployments.Items, func(d *appsv1.Deployment) bool {
		return owned.Deployment(f.csv, d) && deployment.IsAvailable(d)
	})
}

// conflict says what of another the CSV would take although its requirements are met, or what is wrong with its
// webhooks; empty when nothing is in the way.
func (f *facts) conflict() (v1alpha1.ConditionReason, string) {
	if problem := webhookError(f.csv); problem != "" {
		return v1alpha1.CSVReasonInvalidWebhookDescription, problem
	}
	crds := owned.OwnedCRDs(f.csv)
	for _, other := range f.Neighbours.Items {
		if chain.IsNeighbour(f.csv, other) && owned.DescribesAny(other.Spec.CustomResourceDefinitions.Owned, crds) && !f.Relatives.Has(other) {
			return v1alpha1.CSVReasonOwnerConflict, "conflicting CRD owner in namespace"
		}
	}
	if problem := deployment.Conflict(f.csv, f.Relatives, f.Neighbours.Items, f.Deployments.Items, f.Config.AdoptForeignDeployments); problem != "" {
		return v1alpha1.CSVReasonOwnerConflict, problem
	}
	return "", ""
}
