// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Input is everything Reconcile looks at. Reconcile writes to none of it. Gather fills all but Now, LastRun and
// Checkpoint. Lists may hold more than the objects that their comments name.
type Input struct {
	// Now is the instant of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object to reconcile, with name, namespace and UID. Required. For a copy nothing is
	// done.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	// LastRun is the adapter's memory of its last Run; optional. Without it a write that the API server refuses is
	// repeated at once.
	LastRun olmcore.LastResults

	// OperatorGroups are those of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Copies are the copies of the ClusterServiceVersion in the namespaces that its group targets. Their metadata is
	// enough.
	Copies olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ServiceAccounts are those of the namespace that spec.install.spec.permissions name. They are looked at where the
	// group targets other namespaces, as are Roles and RoleBindings.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// Roles and RoleBindings are those that an InstallPlan makes for spec.install.spec.permissions, those in the
	// operator's namespace with the owner labels of the ClusterServiceVersion or an owner reference to it, and in the
	// target namespaces those of the same names and those that were copied there.
	Roles        olmcore.Observed[*rbacv1.Role]
	RoleBindings olmcore.Observed[*rbacv1.RoleBinding]
	// ClusterRoles and ClusterRoleBindings are those with the names of these Roles, those with the owner labels of the
	// ClusterServiceVersion, the bindings of the ServiceAccounts with the ClusterRoles that they reference, and the
	// ClusterRoles with the names of those for the APIs that it provides. Where a permission would be granted that was
	// not granted before, also those with the owner labels of the version that it replaces.
	ClusterRoles        olmcore.Observed[*rbacv1.ClusterRole]
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// CustomResourceDefinitions are those that the ClusterServiceVersion owns. They are looked at when it is Succeeded,
	// as are APIServices.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices are those of the groups of which it owns one.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// InstallPlans are those of the namespace with a step for the ClusterServiceVersion, Namespaces holds the namespace
	// itself. They are looked at only where a permission would be granted that was not granted before.
	InstallPlans olmcore.Observed[*v1alpha1.InstallPlan]
	Namespaces   olmcore.Observed[*corev1.Namespace]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this ClusterServiceVersion; nil is always right.
	Checkpoint *olmcore.Checkpoint
}

// Outcome is a Result and what Reconcile asks its caller to keep.
type Outcome = olmcore.Outcome

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *olmcore.ListVisit) {
	olmcore.VisitList(v, "OperatorGroups", &in.OperatorGroups, olmcore.Optional)
	olmcore.VisitList(v, "Copies", &in.Copies, olmcore.Optional)
	olmcore.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, olmcore.Optional)
	olmcore.VisitList(v, "Roles", &in.Roles, olmcore.Optional)
	olmcore.VisitList(v, "RoleBindings", &in.RoleBindings, olmcore.Optional)
	olmcore.VisitList(v, "ClusterRoles", &in.ClusterRoles, olmcore.Optional)
	olmcore.VisitList(v, "ClusterRoleBindings", &in.ClusterRoleBindings, olmcore.Optional)
	olmcore.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, olmcore.Optional)
	olmcore.VisitList(v, "APIServices", &in.APIServices, olmcore.Optional)
	olmcore.VisitList(v, "InstallPlans", &in.InstallPlans, olmcore.Optional)
	olmcore.VisitList(v, "Namespaces", &in.Namespaces, olmcore.Optional)
}

func (in *Input) cover(c olmcore.Coverage) olmcore.Coverage {
	lists := olmcore.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	olmcore.CoverObject(&c, in.ClusterServiceVersion)
	olmcore.CoverMap(&c, in.LastRun)
	return c
}

func (in *Input) validate() error {
	if err := owned.Validate(in.ClusterServiceVersion, in.Now); err != nil {
		return err
	}
	lists := olmcore.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
