// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. If a list was not read, Reconcile reports
// it and does nothing else. Gather fills all fields except Now and Checkpoint.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// Config contains the options of package cleanup. Only SweepDelete and ClusterKinds have an effect here.
	Config cleanup.Config
	// ClusterServiceVersions, OperatorGroups and InstallPlans contain the objects of all namespaces.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	OperatorGroups         olmcore.Observed[*operatorsv1.OperatorGroup]
	InstallPlans           olmcore.Observed[*v1alpha1.InstallPlan]
	// Namespaces contains all namespaces of the cluster.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// Objects contains the cluster-scoped objects, and the RoleBindings of kube-system, that have the label
	// olm.owner.kind. During a Rest it contains only the kinds that are watched.
	Objects olmcore.Observed[olmcore.Object]
	// Unread contains the kinds for which Objects is incomplete. A Diagnostic names them.
	Unread []schema.GroupKind

	// Checkpoint is Outcome.Checkpoint of an earlier call. Nil is always correct, but makes the call slower.
	Checkpoint *olmcore.Checkpoint
}

// lists names every list of the Input once, except Objects, which contains several kinds. To add a list, add a field
// and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	in.owners(v)
	inputs.VisitList(v, "Namespaces", &in.Namespaces, inputs.Optional)
}

// owners names the lists of the objects that own others.
func (in *Input) owners(v *inputs.ListVisit) {
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Optional)
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional)
	inputs.VisitList(v, "InstallPlans", &in.InstallPlans, inputs.Optional)
}

func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	in.Config.Cover(&c)
	checkpoint.CoverObjects(&c, in.Objects.Items, in.Objects.Complete)
	checkpoint.CoverValues(&c, in.Unread)
	return c
}

func (in *Input) validate() error {
	if in.Now.IsZero() {
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	return cmp.Or(in.Config.Validate(), lists.Err(), read.ValidateMixed("Objects", in.Objects))
}
