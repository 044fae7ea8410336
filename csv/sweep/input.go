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
	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. A list that was not read makes it say so and
// do nothing. Gather fills all but Now and Checkpoint.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// Config is that of the cleanup of a ClusterServiceVersion: SweepDelete and ClusterKinds count here.
	Config cleanup.Config
	// ClusterServiceVersions, OperatorGroups and InstallPlans are those of all namespaces.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	OperatorGroups         olmcore.Observed[*operatorsv1.OperatorGroup]
	InstallPlans           olmcore.Observed[*v1alpha1.InstallPlan]
	// Namespaces are those of the cluster.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// Objects are the cluster-scoped objects, and the RoleBindings of kube-system, that carry the label olm.owner.kind;
	// while a Rest holds, those of kinds that watches deliver.
	Objects olmcore.Observed[olmcore.Object]
	// Unread are the kinds for which Objects is not complete, which what is said names; may be empty.
	Unread []schema.GroupKind

	// Checkpoint is Outcome.Checkpoint of an earlier call; nil is always right.
	Checkpoint *olmcore.Checkpoint
}

// Outcome is a Result and what Reconcile asks its caller to keep.
type Outcome = olmcore.Outcome

// lists names every list of the Input once, except Objects, whose kinds differ. To add a list, add a field and a row.
func (in *Input) lists(v *olmcore.ListVisit) {
	in.owners(v)
	olmcore.VisitList(v, "Namespaces", &in.Namespaces, olmcore.Optional)
}

// owners names the lists of the objects that own others.
func (in *Input) owners(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, olmcore.Optional)
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Optional)
	olmcore.VisitList(v, "InstallPlans", &in.InstallPlans, olmcore.Optional)
}

func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	lists := olmcore.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	in.Config.Cover(&c)
	olmcore.CoverObjects(&c, in.Objects)
	olmcore.CoverValues(&c, in.Unread)
	return c
}

func (in *Input) validate() error {
	if in.Now.IsZero() {
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	lists := olmcore.ValidateLists()
	in.lists(&lists)
	return cmp.Or(in.Config.Validate(), lists.Err(), read.ValidateMixed("Objects", in.Objects))
}
