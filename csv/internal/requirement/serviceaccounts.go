// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/olmcore"
)

// serviceAccounts are the ServiceAccounts of the install strategy and what they may do.
var serviceAccounts = Requirement{
	Name:   "ServiceAccounts",
	Gather: gatherPermissions,
	Unread: func(o *Observed) string {
		switch {
		case !o.ServiceAccounts.Complete:
			return "ServiceAccounts"
		case !o.Roles.Complete:
			return "Roles"
		case !o.RoleBindings.Complete:
			return "RoleBindings"
		case !o.ClusterRoles.Complete:
			return "ClusterRoles"
		case !o.ClusterRoleBindings.Complete:
			return "ClusterRoleBindings"
		}
		return ""
	},
	Judge:    judgeServiceAccounts,
	Concerns: concernedByPermissions,
	// A plan gives the account of an upgrade to the new version.
	TakenBy: func(o *Observed, successor *owned.CSV, r v1alpha1.RequirementStatus) bool {
		account, exists := owned.Find(o.ServiceAccounts.Items, o.CSV.Namespace, r.Name)
		return exists && olmcore.OwnedBy(account, successor.UID)
	},
	Heal: missingPermissions,
}

// permission is an entry of the install strategy and where it is to hold.
type permission struct {
	rules   []rbacv1.PolicyRule
	cluster bool
}

// accountsOf returns the names of the ServiceAccounts of a CSV, and their permissions: those for its namespace, then
// those for the cluster.
func accountsOf(c *owned.CSV) (names []string, permissions map[string][]permission) {
	permissions = map[string][]permission{}
	for _, p := range c.Spec.InstallStrategy.StrategySpec.Permissions {
		permissions[p.ServiceAccountName] = append(permissions[p.ServiceAccountName], permission{p.Rules, false})
	}
	for _, p := range c.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
		permissions[p.ServiceAccountName] = append(permissions[p.ServiceAccountName], permission{p.Rules, true})
	}
	return slices.Sorted(maps.Keys(permissions)), permissions
}

// judgeServiceAccounts has one entry for each ServiceAccount, with the rules of all its permissions.
func judgeServiceAccounts(o *Observed) []v1alpha1.RequirementStatus {
	var report []v1alpha1.RequirementStatus
	names, permissions := accountsOf(o.CSV)
	grantedTo := rbac.Grants(o.CSV, rbac.Objects{
		Roles: o.Roles.Items, RoleBindings: o.RoleBindings.Items,
		ClusterRoles: o.ClusterRoles.Items, ClusterRoleBindings: o.ClusterRoleBindings.Items,
	})
	for _, name := range names {
		r := v1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: name, Status: notPresent}
		account, exists := owned.Find(o.ServiceAccounts.Items, o.CSV.Namespace, name)
		switch {
		case !exists:
			r.Message = "Service account does not exist"
		case owned.ByAnother(account.OwnerReferences, o.CSV.UID):
			r.Status, r.Message = notSatisfied, "Service account is owned by another ClusterServiceVersion"
		default:
			r.Status = present
			judgeRules(&r, permissions[name], grantedTo(rbac.Account{Namespace: o.CSV.Namespace, Name: name}))
		}
		report = append(report, r)
	}
	return report
}

// judgeRules adds each rule to the entry of its account.
func judgeRules(r *v1alpha1.RequirementStatus, permissions []permission, granted rbac.Granted) {
	for _, p := range permissions {
		scope, allows := "namespaced", granted.InNamespace
		if p.cluster {
			scope, allows = "cluster", granted.InCluster
		}
		for _, rule := range p.rules {
			text, _ := json.Marshal(rule) // lists of strings always have a form
			d := v1alpha1.DependentStatus{
				Group: rbacv1.GroupName, Version: "v1", Kind: "PolicyRule",
				Status: v1alpha1.DependentStatusReasonSatisfied, Message: scope + " rule:" + string(text),
			}
			if !allows(rule) {
				d.Status = v1alpha1.DependentStatusReasonNotSatisfied
				r.Status, r.Message = notSatisfied, "Policy rule not satisfied for service account"
			}
			r.Dependents = append(r.Dependents, d)
		}
	}
}

func concernedByPermissions(o olmcore.Object) []types.NamespacedName {
	switch o := o.(type) {
	case *rbacv1.Role, *rbacv1.RoleBinding, *corev1.ServiceAccount:
		return []types.NamespacedName{{Namespace: o.GetNamespace()}}
	case *rbacv1.ClusterRole:
		return everyCSV
	case *rbacv1.ClusterRoleBinding:
		namespaces, all := rbac.SubjectNamespaces(o.Subjects)
		if all {
			return everyCSV
		}
		var keys []types.NamespacedName
		for _, n := range namespaces {
			keys = append(keys, types.NamespacedName{Namespace: n})
		}
		return keys
	}
	return nil
}

// missingPermissions returns the ServiceAccounts, roles and bindings that an InstallPlan makes for the CSV and that do
// not exist, as it makes them.
func missingPermissions(o *Observed) []olmcore.Object {
	planned, _ := olmcore.PermissionObjects(o.CSV) // none for a strategy that is not installed
	exist := map[olmcore.Key]bool{}
	note(exist, o.ServiceAccounts.Items)
	note(exist, o.Roles.Items)
	note(exist, o.RoleBindings.Items)
	note(exist, o.ClusterRoles.Items)
	note(exist, o.ClusterRoleBindings.Items)
	var missing []olmcore.Object
	for _, object := range planned {
		owner := owned.By(o.CSV)
		if len(object.GetOwnerReferences()) > 0 {
			object.SetNamespace(o.CSV.Namespace)
			object.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(o.CSV)})
		} else {
			owner = owned.ByIncarnation(o.CSV)
		}
		if labels := object.GetLabels(); labels != nil {
			maps.Copy(labels, owner.Labels())
			labels[olmcore.LabelManaged] = "true"
		}
		if !exist[olmcore.KeyOf(object)] {
			missing = append(missing, object)
		}
	}
	return missing
}

func note[T olmcore.Object](exist map[olmcore.Key]bool, items []T) {
	for _, o := range items {
		exist[olmcore.KeyOf(o)] = true
	}
}
