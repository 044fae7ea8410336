// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// permissionInput returns a Pending CSV whose only requirement is its permissions.
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

// reviews reports whether a SubjectAccessReview allows each part of a rule.
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
		return slices.Contains(list, value) || slices.Contains(list, "*")
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
			resourceOK = resourceOK || slices.Contains(r.Resources, "*"+resource[i:])
		}
		if has(r.APIGroups, group) && resourceOK && (len(r.ResourceNames) == 0 || name != "" && slices.Contains(r.ResourceNames, name)) {
			return true
		}
	}
	return false
}

// OLM's cases: a rule is satisfied if all combinations of its parts are; the same for URLs.
func TestPolicyRuleIsMetIfAllItsPartsAreAllowed(t *testing.T) {
	rules := ruleOf(0)
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

// anyRule draws a rule from a small vocabulary, with all kinds of wildcards. ruleOf draws one whose parts have at least
// the given number of values.
var anyRule = ruleOf(1)

func ruleOf(least int) *rapid.Generator[rbacv1.PolicyRule] {
	return rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		some := func(label string, values ...string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(values), least, 2, rapid.ID[string]).Draw(t, label)
		}
		r := rbacv1.PolicyRule{Verbs: some("verbs", "get", "list", "*")}
		if rapid.IntRange(0, 3).Draw(t, "url") == 0 {
			r.NonResourceURLs = some("urls", "/a", "/a/*", "/a/b", "*")
			return r
		}
		r.APIGroups, r.Resources = some("groups", "", "apps", "*"), some("resources", "pods", "pods/exec", "*/exec", "*")
		if rapid.Bool().Draw(t, "named") {
			r.ResourceNames = some("names", "a", "b")
		}
		return r
	})
}

// dependents lists the rules of the account, and whether each is satisfied.
func dependents(in csv.Input) (list []string) {
	for _, d := range account(in).Dependents {
		list = append(list, string(d.Status))
	}
	return list
}

// TestAdditionalRBACNeverRemovesPermissions checks that adding a role and its binding never makes a satisfied rule
// unsatisfied, and that removing them never satisfies a rule.
func TestAdditionalRBACNeverRemovesPermissions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOfN(anyRule, 1, 3).Draw(t, "wanted")
		in := permissionInput(wanted[:1], wanted[1:])
		var before []string
		for range rapid.IntRange(1, 4).Draw(t, "grants") {
			if rapid.Bool().Draw(t, "cluster") {
				grantInCluster(&in, anyRule.Draw(t, "rule"))
			} else {
				grantInNamespace(&in, anyRule.Draw(t, "rule"))
			}
			after := dependents(in)
			require.Len(t, after, len(wanted))
			for i := range before {
				require.False(t, before[i] == "Satisfied" && after[i] != "Satisfied", "%+v", wanted[i])
			}
			before = after
		}
	})
}

// TestPermissionReportIsTheSameForLargerLists checks that the lists of Gather, lists of all objects, and lists in
// another order give the same report.
func TestPermissionReportIsTheSameForLargerLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOfN(anyRule, 1, 3).Draw(t, "wanted")
		in := permissionInput(wanted[:1], wanted[1:])
		for i := range rapid.IntRange(0, 6).Draw(t, "grants") {
			grantInCluster(&in, anyRule.Draw(t, "rule"))
			grantInNamespace(&in, anyRule.Draw(t, "rule"))
			if rapid.Bool().Draw(t, "another's") {
				in.ClusterRoleBindings.Items[i].Subjects[0].Name, in.RoleBindings.Items[i].Subjects[0].Name = "other", "other"
			}
		}
		want := assess(t, in).Requirements
		require.Equal(t, want, assess(t, shuffled(in, func(n int) []int { return rapid.Permutation(indices(n)).Draw(t, "order") })).Requirements)

		objects := []olmcore.Object{in.ClusterServiceVersion, in.OperatorGroups.Items[0]}
		addTo(&objects, in.ServiceAccounts.Items)
		addTo(&objects, in.Roles.Items)
		addTo(&objects, in.RoleBindings.Items)
		addTo(&objects, in.ClusterRoles.Items)
		addTo(&objects, in.ClusterRoleBindings.Items)
		gathered := gathered(t, objects...)
		if diff := cmp.Diff(want, assess(t, gathered).Requirements); diff != "" {
			t.Fatalf("(-all +gathered):\n%s", diff)
		}
	})
}

func addTo[T olmcore.Object](all *[]olmcore.Object, items []T) {
	for _, o := range items {
		*all = append(*all, o)
	}
}

// TestPermissionReports checks the entry of a ServiceAccount with all its dependents.
// OLM's cases: all permissions met: Present, with each rule; a URL below the requested one does not satisfy a rule;
// another version's ServiceAccount: PresentNotSatisfied, without rules; the same when nothing else exists; a
// ServiceAccount of another kind of owner, or of none, is fine.
func TestPermissionReports(t *testing.T) {
	pods, osbs := rule("get", "", "pods"), urlRule("get", "/osbs")
	const podsText, osbsText = `namespaced rule:{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`, `cluster rule:{"verbs":["get"],"nonResourceURLs":["/osbs"]}`
	entry := func(status, message string, dependents ...v1alpha1.DependentStatus) []requirement {
		return []requirement{{Version: "v1", Kind: "ServiceAccount", Name: "cool", Status: v1alpha1.StatusReason(status), Message: message, Dependents: dependents}}
	}
	dependent := func(status, message string) v1alpha1.DependentStatus {
		return v1alpha1.DependentStatus{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "PolicyRule", Status: v1alpha1.StatusReason(status), Message: message}
	}
	owned := func(owners ...metav1.OwnerReference) func(in *csv.Input) {
		return func(in *csv.Input) {
			grantInNamespace(in, pods)
			grantInCluster(in, osbs)
			in.ServiceAccounts.Items[0].OwnerReferences = owners
		}
	}
	met := entry("Present", "", dependent("Satisfied", podsText), dependent("Satisfied", osbsText))
	const unsatisfied = "Policy rule not satisfied for service account"
	for name, c := range map[string]struct {
		change func(in *csv.Input)
		want   []requirement
	}{
		"a Role and a ClusterRole grant all": {owned(), met},
		"a URL below the requested one does not satisfy the rule": {func(in *csv.Input) {
			grantInNamespace(in, pods)
			grantInCluster(in, urlRule("get", "/osbs/*"))
		}, entry("PresentNotSatisfied", unsatisfied, dependent("Satisfied", podsText), dependent("NotSatisfied", osbsText))},
		"nothing is granted":                             {func(*csv.Input) {}, entry("PresentNotSatisfied", unsatisfied, dependent("NotSatisfied", podsText), dependent("NotSatisfied", osbsText))},
		"the account is another version's":               {owned(ownerCSV("other")...), entry("PresentNotSatisfied", "Service account is owned by another ClusterServiceVersion")},
		"the account belongs to the CSV":                 {owned(ownerCSV("cool.v1")...), met},
		"the account belongs to the CSV and another one": {owned(append(ownerCSV("other"), ownerCSV("cool.v1")...)...), met},
		"the account belongs to another kind of owner": {
			owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}), met},
		"an account of another version, and nothing else": {func(in *csv.Input) {
			in.ServiceAccounts.Items[0].OwnerReferences = ownerCSV("other")
		}, entry("PresentNotSatisfied", "Service account is owned by another ClusterServiceVersion")},
		"no account": {func(in *csv.Input) {
			owned()(in)
			in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]()
		}, entry("NotPresent", "Service account does not exist")},
	} {
		t.Run(name, func(t *testing.T) {
			in := permissionInput([]rbacv1.PolicyRule{pods}, []rbacv1.PolicyRule{osbs})
			c.change(&in)
			if diff := cmp.Diff(c.want, assess(t, in).Requirements); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRolesThatGrantARule checks which roles and bindings grant the rule "get pods".
// OLM's cases: no role: no; one Role: yes; a Role of another version: no; a Role of both versions: yes; several Roles
// together: yes; a URL by a ClusterRole: yes; another URL: no; a rule is satisfied if all combinations of its parts
// are.
func TestRolesThatGrantARule(t *testing.T) {
	pods := rule("get", "", "pods")
	shortVersion := ownerCSV("other")
	shortVersion[0].APIVersion = "v1alpha1"
	role := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) {
			grantInNamespace(in, pods)
			change(in)
		}
	}
	aggregated := func(rules ...rbacv1.PolicyRule) func(in *csv.Input) {
		return func(in *csv.Input) {
			grantInCluster(in, rules...)
			in.ClusterRoles.Items[0].AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
			part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"a": "b"}}, Rules: []rbacv1.PolicyRule{pods}}
			in.ClusterRoles.Items = append(in.ClusterRoles.Items, part)
		}
	}
	for name, c := range map[string]struct {
		wanted rbacv1.PolicyRule
		change func(in *csv.Input)
		met    bool
	}{
		"no role":                         {pods, func(*csv.Input) {}, false},
		"one Role":                        {pods, role(func(*csv.Input) {}), true},
		"a binding without its role":      {pods, role(func(in *csv.Input) { in.Roles.Items = nil }), false},
		"a role without its binding":      {pods, role(func(in *csv.Input) { in.RoleBindings.Items = nil }), false},
		"a role of another version":       {pods, role(func(in *csv.Input) { in.Roles.Items[0].OwnerReferences = ownerCSV("other") }), false},
		"its owner's apiVersion is short": {pods, role(func(in *csv.Input) { in.Roles.Items[0].OwnerReferences = shortVersion }), true},
		"a binding of another version":    {pods, role(func(in *csv.Input) { in.RoleBindings.Items[0].OwnerReferences = ownerCSV("other") }), false},
		"a role of the predecessor": {pods, role(func(in *csv.Input) {
			predecessorOf(in, replacing)
			in.Roles.Items[0].OwnerReferences = ownerCSV("cool.v0")
		}), false},
		"a role of the CSV and another one": {pods, role(func(in *csv.Input) {
			in.Roles.Items[0].OwnerReferences = append(ownerCSV("other"), ownerCSV("cool.v1")...)
		}), true},
		"a binding in another namespace":    {pods, role(func(in *csv.Input) { in.RoleBindings.Items[0].Namespace = "other" }), false},
		"a subject without namespace":       {pods, role(func(in *csv.Input) { in.RoleBindings.Items[0].Subjects[0].Namespace = "" }), true},
		"an account of that name elsewhere": {pods, role(func(in *csv.Input) { in.RoleBindings.Items[0].Subjects[0].Namespace = "other" }), false},
		"a ClusterRoleBinding without its namespace": {pods, func(in *csv.Input) {
			grantInCluster(in, pods)
			in.ClusterRoleBindings.Items[0].Subjects[0].Namespace = ""
		}, false},
		"a RoleBinding to a ClusterRole": {pods, func(in *csv.Input) {
			grantInNamespace(in, pods)
			grantInCluster(in, pods)
			in.RoleBindings.Items[0].RoleRef, in.Roles.Items, in.ClusterRoleBindings.Items = in.ClusterRoleBindings.Items[0].RoleRef, nil, nil
		}, true},
		"another verb":                   {rule("get list", "", "pods"), role(func(*csv.Input) {}), false},
		"another group":                  {rule("get", "apps", "pods"), role(func(*csv.Input) {}), false},
		"another resource":               {rule("get", "", "pods secrets"), role(func(*csv.Input) {}), false},
		"a subresource":                  {rule("get", "", "pods/exec"), role(func(*csv.Input) {}), false},
		"a subresource of all resources": {rule("get", "", "pods/exec"), func(in *csv.Input) { grantInNamespace(in, rule("get", "", "*/exec")) }, true},
		"another subresource of all":     {rule("get", "", "pods/log"), func(in *csv.Input) { grantInNamespace(in, rule("get", "", "*/exec")) }, false},
		"a named one":                    {rule("get", "", "pods", "a"), role(func(*csv.Input) {}), true},
		"one of two names":               {rule("get", "", "pods", "a", "b"), func(in *csv.Input) { grantInNamespace(in, rule("get", "", "pods", "a")) }, false},
		"the names one by one":           {rule("get", "", "pods", "a", "b"), func(in *csv.Input) { grantInNamespace(in, rule("get", "", "pods", "a"), rule("get", "", "pods", "b")) }, true},
		"the parts from several roles": {rule("get list", "", "pods secrets"), func(in *csv.Input) {
			grantInNamespace(in, rule("*", "", "pods"))
			grantInNamespace(in, rule("*", "", "secrets"))
		}, true},
		"a URL":                              {urlRule("get", "/a"), func(in *csv.Input) { grantInCluster(in, urlRule("get", "/a")) }, true},
		"another URL":                        {urlRule("get", "/a"), func(in *csv.Input) { grantInCluster(in, urlRule("get", "/b")) }, false},
		"a URL from a binding in ns":         {urlRule("get", "/a"), func(in *csv.Input) { grantInNamespace(in, urlRule("get", "/a")) }, false},
		"the group of all accounts":          {pods, members("system:serviceaccounts"), true},
		"the group of the namespace":         {pods, members("system:serviceaccounts:ns"), true},
		"the group of another namespace":     {pods, members("system:serviceaccounts:other"), false},
		"the group of authenticated users":   {pods, members("system:authenticated"), true},
		"the group of unauthenticated users": {pods, members("system:unauthenticated"), false},
		"the user of the account":            {pods, subject("User", "system:serviceaccount:ns:cool"), true},
		"the user of another account":        {pods, subject("User", "system:serviceaccount:ns:other"), false},
		"a user of the account's name":       {pods, subject("User", "cool"), false},
		"a ClusterRole":                      {pods, func(in *csv.Input) { grantInCluster(in, pods) }, true},
		"everything":                         {pods, func(in *csv.Input) { grantInNamespace(in, rule("*", "*", "*")) }, true},
		"one of them by its name":            {pods, func(in *csv.Input) { grantInNamespace(in, rule("get", "", "pods", "a")) }, false},
		"a URL by a prefix":                  {urlRule("get", "/osbs/x"), func(in *csv.Input) { grantInCluster(in, urlRule("get", "/osbs/*")) }, true},
		"a Role for all namespaces": {pods, role(func(in *csv.Input) {
			s := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
			s.ClusterPermissions, s.Permissions = s.Permissions, nil
		}), false},
		"an aggregated role that has its rules":   {pods, aggregated(pods), true},
		"an aggregated ClusterRole without rules": {pods, aggregated(), true},
		"an aggregated ClusterRole with rules":    {pods, aggregated(rule("list", "", "pods")), false},
		"an aggregated ClusterRole takes in another one": {pods, func(in *csv.Input) {
			aggregated()(in)
			whole, part := in.ClusterRoles.Items[0], in.ClusterRoles.Items[1]
			whole.Labels, part.AggregationRule = part.Labels, whole.AggregationRule
		}, true},
		"a ClusterRole labelled for the predecessor": {pods, func(in *csv.Input) {
			grantInCluster(in, pods)
			in.ClusterRoles.Items[0].Labels = olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v0"}.Labels()
		}, false},
		"all verbs of all resources": {rule("*", "*", "*"), func(in *csv.Input) { grantInNamespace(in, rule("*", "*", "*")) }, true},
		"all verbs are more than each verb": {rule("*", "", "pods"), func(in *csv.Input) {
			grantInNamespace(in, rule("get list watch create update patch delete", "", "pods"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := permissionInput([]rbacv1.PolicyRule{c.wanted}, nil)
			c.change(&in)
			want := map[bool]string{true: "[Satisfied]", false: "[NotSatisfied]"}[c.met]
			require.Equal(t, want, fmt.Sprint(dependents(in)))
		})
	}
}

func subject(kind, name string) func(in *csv.Input) {
	return func(in *csv.Input) {
		grantInNamespace(in, rule("get", "", "pods"))
		in.RoleBindings.Items[0].Subjects = []rbacv1.Subject{{Kind: kind, Name: name}}
	}
}

func members(name string) func(in *csv.Input) { return subject("Group", name) }

type requirement = v1alpha1.RequirementStatus

// OLM's cases: a CRD version that does not exist or is not served: NotPresent; NamesAccepted or Established False:
// PresentNotAvailable.
func TestRequirementReports(t *testing.T) {
	crd := func(status, message, uid string) []requirement {
		return []requirement{{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "cools.example.com",
			Status: v1alpha1.StatusReason(status), Message: message, UUID: uid,
		}}
	}
	apiService := func(status, message, uid string) []requirement {
		return []requirement{{
			Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: "v1.api.example.com",
			Status: v1alpha1.StatusReason(status), Message: message, UUID: uid,
		}}
	}
	native := func(status, message string) []requirement {
		return []requirement{{Group: "policy", Version: "v1", Kind: "Eviction", Name: "v1.policy", Status: v1alpha1.StatusReason(status), Message: message}}
	}
	established := func(i int, to apiextensionsv1.ConditionStatus) func(*csv.Input) {
		return func(in *csv.Input) { in.CustomResourceDefinitions.Items[0].Status.Conditions[i].Status = to }
	}
	requires := func(in *csv.Input) {
		in.ClusterServiceVersion.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{
			{Name: "things", Group: "api.example.com", Version: "v1", Kind: "Thing"},
		}
		in.APIServices = olmcore.Found[*apiregistrationv1.APIService]()
	}
	offers := func(in *csv.Input, status apiregistrationv1.ConditionStatus) {
		requires(in)
		in.APIServices.Items = []*apiregistrationv1.APIService{{
			ObjectMeta: metav1.ObjectMeta{Name: "v1.api.example.com", UID: "api"},
			Status:     apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status}}},
		}}
	}
	const present = "CRD is present and Established condition is true"
	for name, c := range map[string]struct {
		kind   string
		change func(in *csv.Input)
		want   []requirement
	}{
		"a CRD is there":                 {"CustomResourceDefinition", func(*csv.Input) {}, crd("Present", present, "crd")},
		"a CRD is absent":                {"CustomResourceDefinition", func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }, crd("NotPresent", "CRD is not present", "")},
		"a CRD is not established":       {"CustomResourceDefinition", established(1, "False"), crd("PresentNotAvailable", "CRD is present but the Established condition is False (not available)", "")},
		"a CRD's names are not accepted": {"CustomResourceDefinition", established(0, "False"), crd("PresentNotAvailable", "CRD is present but the Established condition is False (not available)", "")},
		"a CRD is being deleted": {"CustomResourceDefinition", func(in *csv.Input) {
			in.CustomResourceDefinitions.Items[0].DeletionTimestamp = ago(0)
		}, crd("PresentNotAvailable", "CRD is being deleted", "")},
		"a version is not served": {"CustomResourceDefinition", func(in *csv.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Versions[0].Served = false
		}, crd("NotPresent", "CRD version not served", "")},
		"one of two described versions is not served": {"CustomResourceDefinition", func(in *csv.Input) {
			d := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "cools.example.com", Version: "v1alpha1", Kind: "Cool"})
			in.ClusterServiceVersion.Labels["olm.api.8a4df0d1b0cf5f4a"] = "provided"
		}, crd("NotPresent", "CRD version not served: v1alpha1", "")},
		"the kind is another": {"CustomResourceDefinition", func(in *csv.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Names.Kind = "Hot"
		}, crd("Present", present, "crd")},
		"a required APIService is not found":   {"APIService", requires, apiService("NotPresent", "APIService v1.api.example.com not found", "")},
		"a required APIService is unavailable": {"APIService", func(in *csv.Input) { offers(in, "False") }, apiService("NotPresent", "APIService v1.api.example.com is not available", "")},
		"a required APIService is available":   {"APIService", func(in *csv.Input) { offers(in, "True") }, apiService("Present", "", "api")},
		"a required APIService's kind is not served": {"APIService", func(in *csv.Input) {
			offers(in, "True")
			in.ServedAPIs = olmcore.Found[schema.GroupVersionKind]()
		}, apiService("NotPresent", "kind Thing is not served by v1.api.example.com", "")},
		"an owned APIService has its Deployment": {"APIService", func(in *csv.Input) {
			requires(in)
			d := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
			d.Owned, d.Required = d.Required, nil
			d.Owned[0].DeploymentName = "cool"
		}, apiService("DeploymentFound", "", "")},
		"an owned APIService has no Deployment": {"APIService", func(in *csv.Input) {
			requires(in)
			d := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
			d.Owned, d.Required = d.Required, nil
		}, apiService("DeploymentNotFound", "", "")},
		"a native API is served": {"Eviction", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v1", Kind: "Eviction"}}
			in.ServedAPIs = olmcore.Found(schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"})
		}, native("Present", "Native API exists")},
		"a native API is not served": {"Eviction", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v1", Kind: "Eviction"}}
			in.ServedAPIs = olmcore.Found[schema.GroupVersionKind]()
		}, native("NotPresent", "Native API does not exist")},
		"API discovery was not done": {"Eviction", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v1", Kind: "Eviction"}}
		}, native("NotPresent", "API discovery for policy/v1 failed")},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsUnknown", "requirements not yet checked")
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions = nil
			c.change(&in)
			in = labelled(t, in)
			var got []requirement
			for _, r := range assess(t, in).Requirements {
				if r.Kind == c.kind {
					got = append(got, r)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
			met := c.want[0].Status == "Present" || c.want[0].Status == "DeploymentFound"
			hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "", 0)
			require.Equal(t, !met, assess(t, in).Reason == "RequirementsNotMet", "a Succeeded CSV is judged the same")
		})
	}
}

// labelled runs Reconcile until the API labels of a changed spec, and the annotation of the OperatorGroup, are written.
func labelled(t *testing.T, in csv.Input) csv.Input {
	t.Helper()
	for range 2 {
		out := reconciled(t, in)
		for _, a := range out.Actions {
			if u, ok := metadataOf(a); ok {
				in.ClusterServiceVersion = u
			}
			if u, ok := a.(olmcore.Update); ok && u.Target.Kind == "OperatorGroup" {
				in.OperatorGroups = olmcore.Found(u.After.(*operatorsv1.OperatorGroup))
			}
		}
	}
	return in
}

// OLM's cases: minimum 999.999.999: PresentNotSatisfied; an invalid minimum version: parsing error.
func TestMinimumKubernetesVersion(t *testing.T) {
	for name, c := range map[string]struct{ minimum, server, status, message string }{
		"older is fine":        {"1.20.0", "v1.36.2", "Present", "CSV minKubeVersion (1.20.0) less than server version (v1.36.2)"},
		"equal is fine":        {"1.36.2", "v1.36.2", "Present", "CSV minKubeVersion (1.36.2) less than server version (v1.36.2)"},
		"newer is not":         {"999.999.999", "v1.36.2", "PresentNotSatisfied", "CSV version requirement not met: minKubeVersion (999.999.999) > server version (1.36.2)"},
		"a vendor's server":    {"1.20.0", "v1.27.10+k3s2", "Present", "CSV minKubeVersion (1.20.0) less than server version (v1.27.10+k3s2)"},
		"a pre-release server": {"1.27.0", "v1.27.0-gke.100", "Present", "CSV minKubeVersion (1.27.0) less than server version (v1.27.0-gke.100)"},
		"a minimum with -0":    {"1.19.0-0", "v1.19.0", "Present", "CSV minKubeVersion (1.19.0-0) less than server version (v1.19.0)"},
		"two parts":            {"1.16", "v1.36.2", "Present", "CSV minKubeVersion (1.16) less than server version (v1.36.2)"},
		"no version at all":    {"a.b.c", "v1.36.2", "PresentNotSatisfied", "CSV version parsing error"},
		"an unknown server":    {"1.20.0", "", "PresentNotSatisfied", "Server version discovery error"},
		"an unreadable server": {"1.20.0", "main", "PresentNotSatisfied", "Server version parsing error"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsUnknown", "")
			in.ClusterServiceVersion.Spec.MinKubeVersion, in.KubernetesVersion = c.minimum, c.server
			r := assess(t, in).Requirements[0]
			require.Equal(t, requirement{
				Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v1",
				Status: v1alpha1.StatusReason(c.status), Message: c.message,
			}, r)
			hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "", 0)
			require.Equal(t, c.status != "Present", assess(t, in).Reason == "RequirementsNotMet")
		})
	}
}

// TestCRDKindMismatchIsReportedOnce checks that a different kind is reported when the CSV is installed. It does not
// prevent the installation, because OLM compares only the name and the version.
func TestCRDKindMismatchIsReportedOnce(t *testing.T) {
	in := input(installReady, "AllRequirementsMet", "all requirements found, attempting install")
	deploy(t, &in)
	in.CustomResourceDefinitions.Items[0].Spec.Names.Kind = "Hot"
	out := reconciled(t, in)
	require.Equal(t, []olmcore.Diagnostic{{
		Severity: olmcore.Warning, Reason: csv.ReasonCRDKindMismatch, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(),
		Path: "spec.customresourcedefinitions.owned[0].kind", Message: "the kind of CRD cools.example.com is Hot, not Cool",
	}}, out.Diagnostics)
	require.Len(t, out.Transitions, 1)
	require.Equal(t, "Installing", out.Transitions[0].To)

	hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "install strategy completed with no errors", time.Hour)
	check(t, in, olmcore.Result{})
}

func TestRepairContainsMissingObjectsOfInstallPlan(t *testing.T) {
	in := input(pending, "RequirementsUnknown", "")
	out := reconciled(t, in)
	require.Empty(t, out.Repair, "nothing is missing")

	strategy := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}}}}
	in.ServiceAccounts = olmcore.Found[*corev1.ServiceAccount]()
	out = reconciled(t, in)
	var got []string
	for _, a := range out.Repair {
		verb, target, _ := a.Describe()
		require.Equal(t, olmcore.VerbCreate, verb)
		got = append(got, target.Kind)
		o := a.(olmcore.Create).Object
		require.Equal(t, target.Namespace == "", len(o.GetOwnerReferences()) == 0)
		require.Equal(t, target.Kind == "ServiceAccount", o.GetLabels()["olm.owner"] == "")
	}
	require.Equal(t, []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}, got)
	for _, a := range out.Actions {
		verb, _, _ := a.Describe()
		require.Equal(t, olmcore.VerbUpdateStatus, verb, "no write of it is returned")
	}

	strategy.Permissions, strategy.ClusterPermissions[0].ServiceAccountName = nil, "default"
	out = reconciled(t, in)
	for _, a := range out.Repair {
		_, target, _ := a.Describe()
		require.NotEqual(t, "ServiceAccount", target.Kind, "default is Kubernetes' own")
	}
}

// TestLostServiceAccountIsCreatedAgain checks that a CSV whose permissions were lost is Succeeded in the end, and that
// nothing is created twice.
func TestLostServiceAccountIsCreatedAgain(t *testing.T) {
	ctx := context.Background()
	cluster, driver := newWorld(csv.Config{})
	base := fromFiles("base.yaml", "v1.yaml")
	require.NoError(t, cluster.Create(base[0], base[1], base[len(base)-1]))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Minute))
	v := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	require.Equal(t, reason("RequirementsNotMet"), v.Status.Reason)
	in, err := csv.Gather(ctx, cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	out := reconciled(t, in)
	require.Len(t, out.Repair, 3)
	require.NoError(t, olmcore.Run(ctx, cluster, out.Repair[:2]))
	in, err = csv.Gather(ctx, cluster, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = cluster.Now(), kubernetesVersion
	require.Len(t, reconciled(t, in).Repair, 1, "what exists is not made again")

	require.NoError(t, olmcore.Run(ctx, cluster, out.Repair[2:]))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.Equal(t, succeeded, fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1").Status.Phase)
}

// The csv package repeats two facts that others own: what an InstallPlan creates for the permissions of a version, and
// which Subscription's configuration counts. These tests hold the two sides together.

// lacking returns an Input without any object for the permissions of a CSV.
func lacking(c *v1alpha1.ClusterServiceVersion) csv.Input {
	in := input(pending, "RequirementsUnknown", "")
	c = c.DeepCopy()
	c.Namespace, c.UID, c.ResourceVersion = "ns", "uid", "10"
	c.Spec.CustomResourceDefinitions, c.Spec.APIServiceDefinitions = v1alpha1.CustomResourceDefinitions{}, v1alpha1.APIServiceDefinitions{}
	hold(c, pending, "RequirementsUnknown", "", time.Hour)
	in.ClusterServiceVersion = c
	in.ServiceAccounts, in.Roles, in.RoleBindings = olmcore.Found[*corev1.ServiceAccount](), olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	return in
}

// sameAsThePlans checks that csv would create exactly the objects that an InstallPlan creates, with the labels that a
// step adds when it runs.
func sameAsThePlans(t require.TestingT, c *v1alpha1.ClusterServiceVersion) int {
	in := lacking(c)
	out := reconciled(t, in)
	if len(out.Repair) == 0 { // the metadata comes first
		after, ok := metadataOf(out.Actions[0])
		require.True(t, ok)
		in.ClusterServiceVersion = after
		out = reconciled(t, in)
	}
	got := map[olmcore.Key]olmcore.Object{}
	for _, a := range out.Repair {
		o := a.(olmcore.Create).Object.DeepCopyObject().(olmcore.Object)
		labels := o.GetLabels()
		if _, isAccount := o.(*corev1.ServiceAccount); !isAccount {
			require.Equal(t, "true", labels[olmcore.LabelManaged])
			require.Equal(t, o.GetNamespace() == "", labels[olmcore.LabelOwnerUID] == "uid")
		}
		delete(labels, olmcore.LabelManaged)
		delete(labels, olmcore.LabelOwnerUID)
		owners := o.GetOwnerReferences()
		for i := range owners {
			require.EqualValues(t, "uid", owners[i].UID)
			owners[i].UID = ""
		}
		o.SetOwnerReferences(owners)
		got[olmcore.KeyOf(o)] = o
	}
	want := map[olmcore.Key]olmcore.Object{}
	planned, err := olmcore.PermissionObjects(in.ClusterServiceVersion)
	require.NoError(t, err)
	for _, o := range planned {
		if _, isAccount := o.(*corev1.ServiceAccount); isAccount {
			o.SetNamespace("ns") // a step without a namespace gets the plan's
		}
		want[olmcore.KeyOf(o)] = o
	}
	require.Empty(t, cmp.Diff(want, got))
	return len(got)
}

func TestRepairMatchesInstallPlan(t *testing.T) {
	rule := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		word := func(label string) []string {
			return rapid.SliceOfN(rapid.SampledFrom([]string{"", "*", "pods", "get", "apps", "a/b"}), 1, 3).Draw(t, label)
		}
		return rbacv1.PolicyRule{Verbs: word("verbs"), APIGroups: word("groups"), Resources: word("resources")}
	})
	rapid.Check(t, func(t *rapid.T) {
		c := operator(rapid.StringMatching(`[a-z]([a-z0-9.-]{0,50}[a-z0-9])?`).Draw(t, "name"), 1)
		permission := rapid.Custom(func(t *rapid.T) v1alpha1.StrategyDeploymentPermissions {
			return v1alpha1.StrategyDeploymentPermissions{
				ServiceAccountName: rapid.SampledFrom([]string{"cool", "default", "a-very-long-service-account-name-that-has-to-be-cut"}).Draw(t, "account"),
				Rules:              rapid.SliceOfN(rule, 1, 3).Draw(t, "rules"),
			}
		})
		s := &c.Spec.InstallStrategy.StrategySpec
		s.Permissions = rapid.SliceOfN(permission, 1, 3).Draw(t, "permissions")
		s.ClusterPermissions = rapid.SliceOfN(permission, 0, 3).Draw(t, "clusterPermissions")
		require.NotZero(t, sameAsThePlans(t, c))
	})
}

func TestRepairMatchesInstallPlansOfPublishedOperators(t *testing.T) {
	all := realCSVs(t) // skips without them
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := all[name]
			c.Spec.InstallModes = operator("x", 1).Spec.InstallModes
			require.NotZero(t, sameAsThePlans(t, c))
		})
	}
}

// TestConfigurationOfTheSubscriptionIsUsed checks that of several Subscriptions, Deployments use the one that
// subscription.EffectiveConfig returns.
func TestConfigurationOfTheSubscriptionIsUsed(t *testing.T) {
	names := rapid.SampledFrom([]string{"cool.v1", "cool.v2", ""})
	rapid.Check(t, func(t *rapid.T) {
		in := input(installReady, "AllRequirementsMet", "")
		for i := range rapid.IntRange(0, 4).Draw(t, "subscriptions") {
			s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: rapid.SampledFrom([]string{"ns", "ns", "other"}).Draw(t, "namespace"), Name: fmt.Sprintf("s%d", i)}}
			s.CreationTimestamp = *ago(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second)
			s.Status.InstalledCSV, s.Status.CurrentCSV = names.Draw(t, "installed"), names.Draw(t, "current")
			switch rapid.IntRange(0, 4).Draw(t, "config") {
			case 0:
			case 1:
				s.Spec = &v1alpha1.SubscriptionSpec{}
			default:
				s.Spec = &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"of": s.Name}}}
			}
			in.Subscriptions.Items = append(in.Subscriptions.Items, s)
		}
		want := map[string]string(nil)
		if config, _ := subscription.EffectiveConfig(in.Subscriptions.Items, "ns", "cool.v1"); config != nil {
			want = config.NodeSelector
		}
		out := reconciled(t, in)
		require.Len(t, out.Actions, 1)
		d := out.Actions[0].(olmcore.Create).Object.(*appsv1.Deployment)
		require.Equal(t, want, d.Spec.Template.Spec.NodeSelector)
	})
}
