// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. Gather fills all fields except Now and
// Checkpoint. Lists may contain more objects than their comments name.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// OperatorGroup is the object to reconcile, with name and namespace. Required.
	OperatorGroup *operatorsv1.OperatorGroup
	// Siblings contains the other OperatorGroups of the namespace.
	Siblings olmcore.Observed[*operatorsv1.OperatorGroup]
	// Namespaces contains the namespaces that the spec selects, those in the status, and those with the label of the
	// OperatorGroup. If the OperatorGroup has a selector and this list is incomplete, Reconcile decides nothing.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// ClusterServiceVersions contains the ClusterServiceVersions of the namespace.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ClusterRoles contains the ClusterRoles with the names of the OperatorGroup's own ClusterRoles.
	ClusterRoles olmcore.Observed[*rbacv1.ClusterRole]
	// ServiceAccounts contains the ServiceAccount that spec.serviceAccountName names, or nothing if it does not exist.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this OperatorGroup. Nil is always correct, but makes the
	// call slower.
	Checkpoint *olmcore.Checkpoint
}

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "Siblings", &in.Siblings, inputs.Optional)
	inputs.VisitList(v, "Namespaces", &in.Namespaces, inputs.Optional)
	inputs.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, inputs.Optional)
	inputs.VisitList(v, "ClusterRoles", &in.ClusterRoles, inputs.Optional)
	inputs.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, inputs.Optional)
}

func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverObject(&c, in.OperatorGroup)
	return c
}

func (in *Input) validate() error {
	g := in.OperatorGroup
	switch {
	case g == nil:
		return &olmcore.InputError{Field: "OperatorGroup", Problem: "is nil"}
	case g.Name == "":
		return &olmcore.InputError{Field: "OperatorGroup.metadata.name", Problem: "is empty"}
	case g.Namespace == "":
		return &olmcore.InputError{Field: "OperatorGroup.metadata.namespace", Problem: "is empty"}
	case in.Now.IsZero():
		return &olmcore.InputError{Field: "Now", Problem: "is zero"}
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
