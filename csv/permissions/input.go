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

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/checkpoint"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Input contains all data that Reconcile uses. Reconcile does not change it. Gather fills all fields except Now,
// LastRun and Checkpoint. Lists may contain more objects than their comments name.
type Input struct {
	// Now is the time of this call. Required.
	Now time.Time
	// ClusterServiceVersion is the object to reconcile, with name, namespace and UID. Required. If it is a copied CSV,
	// Reconcile does nothing.
	ClusterServiceVersion *v1alpha1.ClusterServiceVersion
	// LastRun contains the results of the caller's last olmcore.Run. Optional. If LastRun is nil, a write that the API
	// server rejected is retried without backoff.
	LastRun olmcore.LastResults

	// OperatorGroups contains the OperatorGroups of the namespace.
	OperatorGroups olmcore.Observed[*operatorsv1.OperatorGroup]
	// Copies contains the copies of the ClusterServiceVersion in the target namespaces of its OperatorGroup. Only the
	// metadata of the copies is used.
	Copies olmcore.Observed[*v1alpha1.ClusterServiceVersion]
	// ServiceAccounts contains the ServiceAccounts of the namespace that spec.install.spec.permissions names.
	// ServiceAccounts, Roles and RoleBindings are used only if the OperatorGroup targets other namespaces.
	ServiceAccounts olmcore.Observed[*corev1.ServiceAccount]
	// Roles and RoleBindings contain the objects that an InstallPlan creates for spec.install.spec.permissions. They also
	// contain objects of the operator's namespace with the owner labels of the ClusterServiceVersion or an owner reference
	// to it. For target namespaces, the lists contain the objects with the same names, and the objects that were copied
	// there.
	Roles        olmcore.Observed[*rbacv1.Role]
	RoleBindings olmcore.Observed[*rbacv1.RoleBinding]
	// ClusterRoles and ClusterRoleBindings contain:
	//  - the objects with the names of the objects in Roles, and those with the owner labels of the ClusterServiceVersion
	//  - the bindings of the ServiceAccounts, and the ClusterRoles that these bindings reference
	//  - the ClusterRoles for the APIs that the ClusterServiceVersion provides
	//  - before a permission is granted for the first time: the ClusterRoles with the owner labels of the
	//    version that it replaces
	ClusterRoles        olmcore.Observed[*rbacv1.ClusterRole]
	ClusterRoleBindings olmcore.Observed[*rbacv1.ClusterRoleBinding]
	// CustomResourceDefinitions contains the CRDs that the ClusterServiceVersion owns. CustomResourceDefinitions and
	// APIServices are used only if the ClusterServiceVersion is Succeeded.
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	// APIServices contains all APIServices of each API group in which the ClusterServiceVersion owns an APIService.
	APIServices olmcore.Observed[*apiregistrationv1.APIService]
	// InstallPlans contains the InstallPlans of the namespace with a step for the ClusterServiceVersion. Namespaces
	// contains the namespace. Both lists are used only before a permission is granted for the first time, and for
	// permissions that OLM granted.
	InstallPlans olmcore.Observed[*v1alpha1.InstallPlan]
	Namespaces   olmcore.Observed[*corev1.Namespace]

	// Checkpoint is Outcome.Checkpoint of an earlier call for this ClusterServiceVersion. Nil is always correct, but
	// makes the call slower.
	Checkpoint *olmcore.Checkpoint
}

// lists names every list of the Input once. To add a list, add a field and a row.
func (in *Input) lists(v *inputs.ListVisit) {
	inputs.VisitList(v, "OperatorGroups", &in.OperatorGroups, inputs.Optional)
	inputs.VisitList(v, "Copies", &in.Copies, inputs.Optional)
	inputs.VisitList(v, "ServiceAccounts", &in.ServiceAccounts, inputs.Optional)
	inputs.VisitList(v, "Roles", &in.Roles, inputs.Optional)
	inputs.VisitList(v, "RoleBindings", &in.RoleBindings, inputs.Optional)
	inputs.VisitList(v, "ClusterRoles", &in.ClusterRoles, inputs.Optional)
	inputs.VisitList(v, "ClusterRoleBindings", &in.ClusterRoleBindings, inputs.Optional)
	inputs.VisitList(v, "CustomResourceDefinitions", &in.CustomResourceDefinitions, inputs.Optional)
	inputs.VisitList(v, "APIServices", &in.APIServices, inputs.Optional)
	inputs.VisitList(v, "InstallPlans", &in.InstallPlans, inputs.Optional)
	inputs.VisitList(v, "Namespaces", &in.Namespaces, inputs.Optional)
}

func (in *Input) cover(c checkpoint.Coverage) checkpoint.Coverage {
	lists := inputs.CoverLists(c)
	in.lists(&lists)
	c = lists.Coverage()
	checkpoint.CoverObject(&c, in.ClusterServiceVersion)
	checkpoint.CoverMap(&c, in.LastRun)
	return c
}

func (in *Input) validate() error {
	if err := model.ValidateCSV(in.ClusterServiceVersion, in.Now); err != nil {
		return err
	}
	lists := inputs.ValidateLists()
	in.lists(&lists)
	return lists.Err()
}
