// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

type permissions = []v1alpha1.StrategyDeploymentPermissions

// permissionLists returns the permissions by scope: those for the CSV's
// namespace, then those for the cluster.
func permissionLists(c *version) [2]permissions {
	spec := &c.Spec.InstallStrategy.StrategySpec
	return [2]permissions{spec.Permissions, spec.ClusterPermissions}
}

var scopeNames = [2]string{"permissions", "clusterPermissions"}

// strategyError says why the install strategy cannot be used at all; empty when
// it can.
func strategyError(c *version) string {
	if c.Spec.InstallStrategy.StrategyName != v1alpha1.InstallStrategyNameDeployment {
		return "unrecognized install strategy"
	}
	for _, list := range permissionLists(c) {
		for i := range list {
			for j := range list[i].Rules {
				if problem := ruleError(&list[i].Rules[j]); problem != "" {
					return "rule invalid: " + problem
				}
			}
		}
	}
	return ""
}

func ruleError(r *rbacv1.PolicyRule) string {
	switch {
	case len(r.Verbs) == 0:
		return "policy rule must have at least one verb"
	case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
		return "rule cannot apply to both regular resources and non-resource URLs"
	}
	return ""
}

// permissionRequirements has one entry for each ServiceAccount.
func permissionRequirements(in *Input) []v1alpha1.RequirementStatus {
	c := in.ClusterServiceVersion
	var all []v1alpha1.RequirementStatus
	granted := map[string]grants{} // by account: many permissions have one
	for scope, list := range permissionLists(c) {
		for i := range list {
			name := list[i].ServiceAccountName
			at := slices.IndexFunc(all, func(r v1alpha1.RequirementStatus) bool { return r.Name == name })
			if at < 0 {
				at = len(all)
				all = append(all, v1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: name, Status: reqPresent})
			}
			if _, known := granted[name]; !known {
				granted[name] = rbac{in}.collect(account{c.Namespace, name}, grants{})
			}
			judgePermission(in, scope, &list[i], &all[at], granted[name])
		}
	}
	slices.SortFunc(all, byName)
	return all
}

func judgePermission(in *Input, scope int, p *v1alpha1.StrategyDeploymentPermissions, r *v1alpha1.RequirementStatus, all grants) {
	if status, message := judgeAccount(in, p.ServiceAccountName); status != reqPresent {
		r.Status, r.Message = status, message
		return
	}
	granted := inScope(all, scope)
	for i := range p.Rules {
		rule := &p.Rules[i]
		d := v1alpha1.DependentStatus{
			Group: rbacv1.GroupName, Version: "v1", Kind: "PolicyRule",
			Status: v1alpha1.DependentStatusReasonSatisfied, Message: describeRule(scope, rule),
		}
		if !granted.allows(rule, i) {
			d.Status = v1alpha1.DependentStatusReasonNotSatisfied
			r.Status, r.Message = reqNotSatisfied, "Policy rule not satisfied for service account"
		}
		r.Dependents = append(r.Dependents, d)
	}
}

func inScope(g grants, scope int) grants {
	if scope == 1 {
		g.namespaced = nil
	}
	return g
}

func describeRule(scope int, rule *rbacv1.PolicyRule) string {
	text, _ := json.Marshal(rule) // lists of strings always have a form
	return [2]string{"namespaced", "cluster"}[scope] + " rule:" + string(text)
}

func judgeAccount(in *Input, name string) (v1alpha1.StatusReason, string) {
	i := indexNamed(in.ServiceAccounts.Items, in.ClusterServiceVersion.Namespace, name)
	switch {
	case i < 0:
		return reqNotPresent, "Service account does not exist"
	case ownedByOtherCSV(in.ServiceAccounts.Items[i].OwnerReferences, in.ClusterServiceVersion.UID):
		return reqNotSatisfied, "Service account is owned by another ClusterServiceVersion"
	}
	return reqPresent, ""
}

// permissionsMet is permissionRequirements for the converged case: the same
// verdict, nothing to show, no allocation as long as a ServiceAccount has at
// most eight bindings of either sort.
func permissionsMet(in *Input) bool {
	c := in.ClusterServiceVersion
	var cluster, namespaced [8][]rbacv1.PolicyRule
	var all grants
	last := "" // whose grants all are: most CSVs have one account, or list theirs in one order for both scopes
	lists := permissionLists(c)
	for i := range max(len(lists[0]), len(lists[1])) {
		for scope, list := range lists {
			if i >= len(list) {
				continue
			}
			p := &list[i]
			if last == "" || p.ServiceAccountName != last {
				last = p.ServiceAccountName
				if status, _ := judgeAccount(in, last); status != reqPresent {
					return false
				}
				all = rbac{in}.collect(account{c.Namespace, last}, grants{cluster[:0], namespaced[:0]})
			}
			granted := inScope(all, scope)
			for j := range p.Rules {
				if !granted.allows(&p.Rules[j], j) {
					return false
				}
			}
		}
	}
	return true
}

// emptyAccount names the first permission without a ServiceAccount.
func emptyAccount(c *version) string {
	for scope, list := range permissionLists(c) {
		for i := range list {
			if list[i].ServiceAccountName == "" {
				return fmt.Sprintf("%s[%d]: serviceAccountName is empty", scopeNames[scope], i)
			}
		}
	}
	return ""
}
