// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. Gather fills all but Now and Checkpoint.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// OperatorGroup is the object to reconcile, with name and namespace. Required.
	OperatorGroup *operatorsv1.OperatorGroup
	// Siblings are the other OperatorGroups of its namespace.
	Siblings olmcore.Observed[*operatorsv1.OperatorGroup]
	// Namespaces are those that the group's targets or selector name, those of its status, and those with its label.
	// More of them do no harm. A group with a selector waits for them.
	Namespaces olmcore.Observed[*corev1.Namespace]
	// ClusterServiceVersions are those of the namespace.
	ClusterServiceVersions olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ClusterRoles are those named like the group's own. More of them do no harm.
	ClusterRoles olmcore.Observed[*rbacv1.ClusterRole]
	// ServiceAccounts are those of the namespace that spec.serviceAccountName names: one at most. More of them do no
	// harm.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this group; nil is always right.
	Checkpoint *olmcore.Checkpoint
}

// Outcome is a Result and what Reconcile asks its caller to keep.
type Outcome = olmcore.Outcome

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "Siblings", &in.Siblings, olmcore.Optional)
	olmcore.VisitList(v, "Namespaces", &in.Namespaces, olmcore.Optional)
	olmcore.VisitList(v, "ClusterServiceVersions", &in.ClusterServiceVersions, olmcore.Optional)
	olmcore.VisitList(v, "ClusterRoles", &in.ClusterRoles, olmcore.Optional)
	olmcore.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, olmcore.Optional)
}

func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	lists := olmcore.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	olmcore.CoverObject(&c, in.OperatorGroup)
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
	lists := olmcore.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
