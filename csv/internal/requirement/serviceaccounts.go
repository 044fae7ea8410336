// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"encoding/json"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
		for _, list := range []struct {
			complete bool
			name     string
		}{
			{o.ServiceAccounts.Complete, "ServiceAccounts"},
			{o.Roles.Complete, "Roles"},
			{o.RoleBindings.Complete, "RoleBindings"},
			{o.ClusterRoles.Complete, "ClusterRoles"},
			{o.ClusterRoleBindings.Complete, "ClusterRoleBindings"},
		} {
			if !list.complete && len(permissionsOf(o.CSV)) > 0 {
				return list.name
			}
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
	v1alpha1.StrategyDeploymentPermissions
	cluster bool
}

// permissionsOf returns the permissions for the CSV's namespace, then those for the
// cluster.
func permissionsOf(c *owned.CSV) []permission {
	var all []permission
	for _, p := range c.Spec.InstallStrategy.StrategySpec.Permissions {
		all = append(all, permission{p, false})
	}
	for _, p := range c.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
		all = append(all, permission{p, true})
	}
	return all
}

// judgeServiceAccounts has one entry for each ServiceAccount, with the rules of all its
// permissions.
func judgeServiceAccounts(o *Observed) []v1alpha1.RequirementStatus {
	var names []string
	byAccount := map[string][]permission{}
	for _, p := range permissionsOf(o.CSV) {
		names = append(names, p.ServiceAccountName)
		byAccount[p.ServiceAccountName] = append(byAccount[p.ServiceAccountName], p)
	}
	objects := rbac.Objects{
		Roles: o.Roles.Items, RoleBindings: o.RoleBindings.Items,
		ClusterRoles: o.ClusterRoles.Items, ClusterRoleBindings: o.ClusterRoleBindings.Items,
	}
	slices.Sort(names)
	var report []v1alpha1.RequirementStatus
	for _, name := range slices.Compact(names) {
		r := v1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: name}
		if r.Status, r.Message = judgeAccount(o, name); r.Status == present {
			granted := rbac.GrantedTo(o.CSV, rbac.Account{Namespace: o.CSV.Namespace, Name: name}, objects)
			judgeRules(&r, byAccount[name], granted)
		}
		report = append(report, r)
	}
	return report
}

func judgeAccount(o *Observed, name string) (v1alpha1.StatusReason, string) {
	account, exists := owned.Find(o.ServiceAccounts.Items, o.CSV.Namespace, name)
	switch {
	case !exists:
		return notPresent, "Service account does not exist"
	case owned.ByAnother(account.OwnerReferences, o.CSV.UID):
		return notSatisfied, "Service account is owned by another ClusterServiceVersion"
	}
	return present, ""
}

// judgeRules adds each rule to the entry of its account.
func judgeRules(r *v1alpha1.RequirementStatus, permissions []permission, granted rbac.Granted) {
	for _, p := range permissions {
		scope, allows := "namespaced", granted.InNamespace
		if p.cluster {
			scope, allows = "cluster", granted.InCluster
		}
		for _, rule := range p.Rules {
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
