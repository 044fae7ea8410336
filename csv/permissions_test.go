// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// permissionInput is a Pending CSV whose only requirement is its permissions.
func permissionInput(namespaced, cluster []rbacv1.PolicyRule) csv.Input {
	in := input(pending, "RequirementsUnknown", "requirements not yet checked")
	c := in.ClusterServiceVersion
	c.Spec.CustomResourceDefinitions, c.Labels = v1alpha1.CustomResourceDefinitions{}, nil
	s := &c.Spec.InstallStrategy.StrategySpec
	s.Permissions, s.ClusterPermissions = nil, nil
	if namespaced != nil {
		s.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: namespaced}}
	}
	if cluster != nil {
		s.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: cluster}}
	}
	in.Roles, in.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	return in
}

func grantInNamespace(in *csv.Input, rules ...rbacv1.PolicyRule) {
	name := fmt.Sprintf("role-%d", len(in.Roles.Items))
	in.Roles.Items = append(in.Roles.Items, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Rules: rules})
	in.RoleBindings.Items = append(in.RoleBindings.Items, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}},
	})
}

func grantInCluster(in *csv.Input, rules ...rbacv1.PolicyRule) {
	name := fmt.Sprintf("cluster-role-%d", len(in.ClusterRoles.Items))
	in.ClusterRoles.Items = append(in.ClusterRoles.Items, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	in.ClusterRoleBindings.Items = append(in.ClusterRoleBindings.Items, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}},
	})
}

func rule(verbs, groups, resources string, more ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: words(verbs), APIGroups: strings.Split(groups, " "), Resources: words(resources), ResourceNames: more}
	return r
}

func urlRule(verbs, urls string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: words(verbs), NonResourceURLs: words(urls)}
}

func words(s string) []string { return strings.Fields(s) }

func account(in csv.Input) v1alpha1.RequirementStatus {
	a, _ := csv.Assess(in)
	for _, r := range a.Requirements {
		if r.Kind == "ServiceAccount" {
			return r
		}
	}
	return v1alpha1.RequirementStatus{}
}

func TestPermissions(t *testing.T) {
	pods := rule("get", "", "pods")
	for name, c := range map[string]struct {
		namespaced, cluster []rbacv1.PolicyRule
		change              func(in *csv.Input)
		status, message     string
	}{
		"a Role grants it":                   {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) { grantInNamespace(in, pods) }, "Present", ""},
		"a ClusterRole grants it":            {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) { grantInCluster(in, pods) }, "Present", ""},
		"a Role grants nothing cluster-wide": {nil, []rbacv1.PolicyRule{pods}, func(in *csv.Input) { grantInNamespace(in, pods) }, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"two Roles grant it together": {[]rbacv1.PolicyRule{rule("get list", "", "pods")}, nil, func(in *csv.Input) {
			grantInNamespace(in, pods)
			grantInNamespace(in, rule("list", "", "pods"))
		}, "Present", ""},
		"wildcards grant it":                      {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) { grantInNamespace(in, rule("*", "*", "*")) }, "Present", ""},
		"a wildcard is wanted and not granted":    {[]rbacv1.PolicyRule{rule("*", "", "pods")}, nil, func(in *csv.Input) { grantInNamespace(in, rule("get list watch create", "", "pods")) }, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"a subresource is granted by */sub":       {[]rbacv1.PolicyRule{rule("get", "", "pods/exec")}, nil, func(in *csv.Input) { grantInNamespace(in, rule("get", "", "*/exec")) }, "Present", ""},
		"a named resource is granted by all":      {[]rbacv1.PolicyRule{rule("get", "", "pods", "a")}, nil, func(in *csv.Input) { grantInNamespace(in, pods) }, "Present", ""},
		"all resources are not granted by a name": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) { grantInNamespace(in, rule("get", "", "pods", "a")) }, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"a URL is granted":                        {nil, []rbacv1.PolicyRule{urlRule("get", "/osbs")}, func(in *csv.Input) { grantInCluster(in, urlRule("get", "/osbs")) }, "Present", ""},
		"a URL is granted by a prefix":            {nil, []rbacv1.PolicyRule{urlRule("get", "/osbs/x")}, func(in *csv.Input) { grantInCluster(in, urlRule("get", "/osbs/*")) }, "Present", ""},
		"a prefix needs the slash":                {nil, []rbacv1.PolicyRule{urlRule("get", "/osbs")}, func(in *csv.Input) { grantInCluster(in, urlRule("get", "/osbs/*")) }, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"a RoleBinding grants no URL":             {[]rbacv1.PolicyRule{urlRule("get", "/osbs")}, nil, func(in *csv.Input) { grantInNamespace(in, urlRule("get", "/osbs")) }, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"a group of all accounts grants it": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) {
			grantInNamespace(in, pods)
			in.RoleBindings.Items[0].Subjects = []rbacv1.Subject{{Kind: "Group", Name: "system:serviceaccounts:ns"}}
		}, "Present", ""},
		"the account's user name grants it": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) {
			grantInNamespace(in, pods)
			in.RoleBindings.Items[0].Subjects = []rbacv1.Subject{{Kind: "User", Name: "system:serviceaccount:ns:cool"}}
		}, "Present", ""},
		"an aggregated ClusterRole without rules": {nil, []rbacv1.PolicyRule{pods}, func(in *csv.Input) {
			grantInCluster(in)
			in.ClusterRoles.Items[0].AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
			in.ClusterRoles.Items = append(in.ClusterRoles.Items, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"a": "b"}}, Rules: []rbacv1.PolicyRule{pods}})
		}, "Present", ""},
		"an aggregated ClusterRole takes in another one": {nil, []rbacv1.PolicyRule{pods}, func(in *csv.Input) {
			grantInCluster(in)
			all := &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
			in.ClusterRoles.Items[0].AggregationRule, in.ClusterRoles.Items[0].Labels = all, map[string]string{"a": "b"}
			part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"a": "b"}}, Rules: []rbacv1.PolicyRule{pods}, AggregationRule: all}
			in.ClusterRoles.Items = append(in.ClusterRoles.Items, part)
		}, "Present", ""},
		"an aggregated ClusterRole with rules has those": {nil, []rbacv1.PolicyRule{pods}, func(in *csv.Input) {
			grantInCluster(in, rule("list", "", "pods"))
			in.ClusterRoles.Items[0].AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
			in.ClusterRoles.Items = append(in.ClusterRoles.Items, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"a": "b"}}, Rules: []rbacv1.PolicyRule{pods}})
		}, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"a Role that goes with another CSV does not count": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) {
			grantInNamespace(in, pods)
			in.Roles.Items[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", UID: "other"}}
		}, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"a Role with both owners counts": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) {
			grantInNamespace(in, pods)
			in.Roles.Items[0].OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", UID: "other"},
				{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", UID: "uid-cool.v1"},
			}
		}, "Present", ""},
		"a ClusterRole labelled for the predecessor does not count": {nil, []rbacv1.PolicyRule{pods}, func(in *csv.Input) {
			grantInCluster(in, pods)
			in.ClusterRoles.Items[0].Labels = map[string]string{"olm.owner": "cool.v0", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion"}
		}, "PresentNotSatisfied", "Policy rule not satisfied for service account"},
		"the account is missing": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) { in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]() }, "NotPresent", "Service account does not exist"},
		"the account is another CSV's": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) {
			in.ServiceAccounts.Items[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", UID: "other"}}
		}, "PresentNotSatisfied", "Service account is owned by another ClusterServiceVersion"},
		"the account is a ConfigMap's": {[]rbacv1.PolicyRule{pods}, nil, func(in *csv.Input) {
			grantInNamespace(in, pods)
			in.ServiceAccounts.Items[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", UID: "other"}}
		}, "Present", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := permissionInput(c.namespaced, c.cluster)
			c.change(&in)
			r := account(in)
			require.Equal(t, c.status, string(r.Status))
			require.Equal(t, c.message, r.Message)
		})
	}
}

// reviews is a SubjectAccessReview for every part of a rule, one by one.
func reviews(want rbacv1.PolicyRule, cluster, namespaced []rbacv1.PolicyRule) bool {
	or := func(list []string) []string {
		if len(list) == 0 {
			return []string{""}
		}
		return list
	}
	for _, verb := range want.Verbs {
		for _, url := range or(want.NonResourceURLs) {
			for _, group := range or(want.APIGroups) {
				for _, resource := range or(want.Resources) {
					for _, name := range or(want.ResourceNames) {
						candidates := append(append([]rbacv1.PolicyRule(nil), cluster...), namespaced...)
						if url != "" {
							candidates = cluster
						}
						if !review(candidates, verb, url, group, resource, name) {
							return false
						}
					}
				}
			}
		}
	}
	return true
}

func review(rules []rbacv1.PolicyRule, verb, url, group, resource, name string) bool {
	has := func(list []string, value string) bool {
		for _, x := range list {
			if x == value || x == "*" {
				return true
			}
		}
		return false
	}
	for _, r := range rules {
		if !has(r.Verbs, verb) {
			continue
		}
		if url != "" {
			for _, u := range r.NonResourceURLs {
				if u == url || strings.HasSuffix(u, "*") && strings.HasPrefix(url, strings.TrimSuffix(u, "*")) {
					return true
				}
			}
			continue
		}
		resourceOK := has(r.Resources, resource)
		if i := strings.Index(resource, "/"); i >= 0 {
			resourceOK = resourceOK || contains(r.Resources, "*"+resource[i:])
		}
		if has(r.APIGroups, group) && resourceOK && (len(r.ResourceNames) == 0 || name != "" && contains(r.ResourceNames, name)) {
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestARuleIsSatisfiedJustWhenEveryPartOfItIsAllowed(t *testing.T) {
	some := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, 2, rapid.ID[string])
	}
	rules := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{Verbs: some("get", "list", "*").Draw(t, "verbs")}
		if rapid.IntRange(0, 3).Draw(t, "url") == 0 {
			r.NonResourceURLs = some("/a", "/a/*", "*").Draw(t, "urls")
			return r
		}
		r.APIGroups = some("", "apps", "*").Draw(t, "groups")
		r.Resources = some("pods", "pods/exec", "*/exec", "*").Draw(t, "resources")
		r.ResourceNames = some("a", "b").Draw(t, "names")
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rules.Filter(func(r rbacv1.PolicyRule) bool { return len(r.Verbs) > 0 }).Draw(t, "want")
		cluster := rapid.SliceOfN(rules, 0, 3).Draw(t, "cluster")
		namespaced := rapid.SliceOfN(rules, 0, 3).Draw(t, "namespaced")
		in := permissionInput([]rbacv1.PolicyRule{want}, nil)
		grantInCluster(&in, cluster...)
		grantInNamespace(&in, namespaced...)
		met := reviews(want, cluster, namespaced)
		require.Equal(t, met, account(in).Status == "Present", "%+v", want)
		// A Succeeded CSV is judged by a shorter way, which must agree.
		hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "", 0)
		require.Equal(t, !met, assess(t, in).Reason == "RequirementsNotMet")
	})
}
