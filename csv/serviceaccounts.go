// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/rbac"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// serviceAccounts judges the ServiceAccounts of the install strategy and their permissions.
var serviceAccounts = requirement{
	name:   "ServiceAccounts",
	gather: gatherPermissions,
	unread: func(in *Input) []string {
		return slices.Concat(
			read.Missing(in.ServiceAccounts, "ServiceAccounts"), read.Missing(in.Roles, "Roles"), read.Missing(in.RoleBindings, "RoleBindings"),
			read.Missing(in.ClusterRoles, "ClusterRoles"), read.Missing(in.ClusterRoleBindings, "ClusterRoleBindings"),
		)
	},
	judge:     judgeServiceAccounts,
	relations: append(slices.Clone(relatedPermissions), relatedClusterRoles),
	// The InstallPlan of an upgrade changes the owner of the ServiceAccount to the new version.
	takenBy: func(in *Input, successor *version, r v1alpha1.RequirementStatus) bool {
		account, exists := model.Find(in.ServiceAccounts.Items, in.ClusterServiceVersion.Namespace, r.Name)
		return exists && olmcore.OwnedBy(account, successor.UID)
	},
	heal: missingPermissions,
}

// permission is an entry of the install strategy. If cluster is true, it applies to the whole cluster.
type permission struct {
	account string
	rules   []rbacv1.PolicyRule
	cluster bool
}

// permissionsOf returns the permissions of a CSV, sorted by account. For each account, those for the namespace come
// before those for the cluster.
func permissionsOf(c *version) []permission {
	var list []permission
	for _, p := range c.Spec.InstallStrategy.StrategySpec.Permissions {
		list = append(list, permission{p.ServiceAccountName, p.Rules, false})
	}
	for _, p := range c.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
		list = append(list, permission{p.ServiceAccountName, p.Rules, true})
	}
	slices.SortStableFunc(list, func(a, b permission) int { return strings.Compare(a.account, b.account) })
	return list
}

// judgeServiceAccounts returns one entry for each ServiceAccount, with the rules of all its permissions.
func judgeServiceAccounts(in *Input) []v1alpha1.RequirementStatus {
	var report []v1alpha1.RequirementStatus
	grantedTo := rbac.Grants(in.ClusterServiceVersion,
		in.Roles.Items, in.RoleBindings.Items, in.ClusterRoles.Items, in.ClusterRoleBindings.Items)
	for rest := permissionsOf(in.ClusterServiceVersion); len(rest) > 0; {
		name, n := rest[0].account, 1
		for n < len(rest) && rest[n].account == name {
			n++
		}
		r := v1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: name, Status: notPresent}
		account, exists := model.Find(in.ServiceAccounts.Items, in.ClusterServiceVersion.Namespace, name)
		switch {
		case !exists:
			r.Message = "Service account does not exist"
		case model.IsOwnedByAnother(account.OwnerReferences, in.ClusterServiceVersion.UID):
			r.Status, r.Message = notSatisfied, "Service account is owned by another ClusterServiceVersion"
		default:
			r.Status = present
			judgeRules(&r, rest[:n], grantedTo(rbac.Account{Namespace: in.ClusterServiceVersion.Namespace, Name: name}))
		}
		report, rest = append(report, r), rest[n:]
	}
	return report
}

// judgeRules adds each rule as a dependent to the entry of its account.
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

// repair returns the actions that create the missing ServiceAccounts, roles and bindings of the CSV's InstallPlan, if
// the decision reported unmet requirements.
func repair(f *facts, d decision) []olmcore.Action {
	account, confirmed := olmcore.AccountOf(f.group)
	if !d.reports || !confirmed {
		return nil
	}
	var actions []olmcore.Action
	for _, o := range requirements.heal(f.in, f.report) {
		deployment.LabelComponents(o, f.csv)
		target := olmcore.RefOf(o)
		message := fmt.Sprintf("%s %s does not exist any more. The InstallPlan of ClusterServiceVersion %s created it",
			target.Kind, target.Name, f.csv.Name)
		actions = append(actions, olmcore.Create{
			Target: target, Object: o, As: account, Cause: olmcore.Cause{Reason: ReasonRepair, Message: message},
		})
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}

// missingPermissions returns the ServiceAccounts, roles and bindings that an InstallPlan creates for the CSV and that
// do not exist.
func missingPermissions(in *Input) []olmcore.Object {
	planned, _ := olmcore.PermissionObjects(in.ClusterServiceVersion) // none for a strategy that is not installed
	exist := map[olmcore.Key]bool{}
	note(exist, in.ServiceAccounts.Items)
	note(exist, in.Roles.Items)
	note(exist, in.RoleBindings.Items)
	note(exist, in.ClusterRoles.Items)
	note(exist, in.ClusterRoleBindings.Items)
	var missing []olmcore.Object
	for _, object := range planned {
		owner := model.OwnerOf(in.ClusterServiceVersion)
		if len(object.GetOwnerReferences()) > 0 {
			object.SetNamespace(in.ClusterServiceVersion.Namespace)
			object.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(in.ClusterServiceVersion)})
		} else {
			owner = model.OwnerWithUID(in.ClusterServiceVersion)
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

// note adds the keys of objects to a set.
func note[T olmcore.Object](exist map[olmcore.Key]bool, items []T) {
	for _, o := range items {
		exist[olmcore.KeyOf(o)] = true
	}
}

// gatherPermissions reads the ServiceAccounts of the CSV, their bindings, and the roles that these reference. Unless
// the CSV is Succeeded, it also reads the roles and bindings that the InstallPlan created, by name.
func gatherPermissions(r *read.Reads, in *Input) {
	c := in.ClusterServiceVersion
	var accounts []string
	for _, p := range permissionsOf(c) {
		accounts = append(accounts, p.account)
	}
	in.ServiceAccounts = read.Named[*corev1.ServiceAccount](r, c.Namespace, accounts)
	in.Roles, in.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	in.ClusterRoles, in.ClusterRoleBindings = olmcore.Found[*rbacv1.ClusterRole](), olmcore.Found[*rbacv1.ClusterRoleBinding]()
	if len(accounts) == 0 {
		return
	}
	var roles, clusterRoles []string
	if c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
		planned, _ := olmcore.PermissionObjects(c) // none for a strategy that is not installed
		for _, object := range planned {
			switch object.(type) {
			case *rbacv1.Role:
				roles = append(roles, object.GetName())
			case *rbacv1.ClusterRole:
				clusterRoles = append(clusterRoles, object.GetName())
			}
		}
	}
	in.RoleBindings = read.RoleBindings(r, c.Namespace, accounts, roles)
	in.ClusterRoleBindings = read.ClusterRoleBindings(r, c.Namespace, accounts, clusterRoles)
	for _, b := range in.RoleBindings.Items {
		if b.RoleRef.Kind == "ClusterRole" {
			clusterRoles = append(clusterRoles, b.RoleRef.Name)
		} else {
			roles = append(roles, b.RoleRef.Name)
		}
	}
	for _, b := range in.ClusterRoleBindings.Items {
		clusterRoles = append(clusterRoles, b.RoleRef.Name)
	}
	in.Roles = read.Named[*rbacv1.Role](r, c.Namespace, roles)
	in.ClusterRoles = read.ClusterRoles(r, clusterRoles)
}
