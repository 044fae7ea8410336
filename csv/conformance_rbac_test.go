// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// anyRule draws a rule over a small vocabulary, with every sort of wildcard.
var anyRule = rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
	some := func(label string, values ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 2, rapid.ID[string]).Draw(t, label)
	}
	if rapid.IntRange(0, 3).Draw(t, "url") == 0 {
		return rbacv1.PolicyRule{Verbs: some("verbs", "get", "list", "*"), NonResourceURLs: some("urls", "/a", "/a/*", "/a/b", "*")}
	}
	r := rbacv1.PolicyRule{
		Verbs: some("verbs", "get", "list", "*"), APIGroups: some("groups", "", "apps", "*"), Resources: some("resources", "pods", "pods/exec", "*/exec", "*"),
	}
	if rapid.Bool().Draw(t, "named") {
		r.ResourceNames = some("names", "a", "b")
	}
	return r
})

// dependents says of each rule of the account whether it is satisfied.
func dependents(in csv.Input) (list []string) {
	for _, d := range account(in).Dependents {
		list = append(list, string(d.Status))
	}
	return list
}

// TestMoreRBACNeverTakesAway: a role and its binding that come never make a
// satisfied rule unsatisfied, and going they never satisfy one.
func TestMoreRBACNeverTakesAway(t *testing.T) {
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

// TestTheReportDoesNotDependOnHowRBACWasRead: what Gather selects, everything there
// is, and everything in another order give one report.
func TestTheReportDoesNotDependOnHowRBACWasRead(t *testing.T) {
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
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		gathered, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
		require.NoError(t, err)
		gathered.Now = in.Now
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

// TestWholeReportsOfPermissions: the entry of the account with all its dependents.
func TestWholeReportsOfPermissions(t *testing.T) {
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
		"a URL below the wanted one is not it": {func(in *csv.Input) {
			grantInNamespace(in, pods)
			grantInCluster(in, urlRule("get", "/osbs/*"))
		}, entry("PresentNotSatisfied", unsatisfied, dependent("Satisfied", podsText), dependent("NotSatisfied", osbsText))},
		"nothing is granted":                {func(*csv.Input) {}, entry("PresentNotSatisfied", unsatisfied, dependent("NotSatisfied", podsText), dependent("NotSatisfied", osbsText))},
		"the account is another version's":  {owned(ownerCSV("other")...), entry("PresentNotSatisfied", "Service account is owned by another ClusterServiceVersion")},
		"the account is ours":               {owned(ownerCSV("cool.v1")...), met},
		"the account is ours and another's": {owned(append(ownerCSV("other"), ownerCSV("cool.v1")...)...), met},
		"the account is another kind's":     {owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}), met},
		"another's account, and nothing else there": {func(in *csv.Input) {
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

// TestWhichRolesCount: one rule, get pods, and who grants it.
func TestWhichRolesCount(t *testing.T) {
	pods := rule("get", "", "pods")
	shortVersion := ownerCSV("other")
	shortVersion[0].APIVersion = "v1alpha1"
	role := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) {
			grantInNamespace(in, pods)
			change(in)
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
		"a role of ours and another's": {pods, role(func(in *csv.Input) {
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
		"a URL":                          {urlRule("get", "/a"), func(in *csv.Input) { grantInCluster(in, urlRule("get", "/a")) }, true},
		"another URL":                    {urlRule("get", "/a"), func(in *csv.Input) { grantInCluster(in, urlRule("get", "/b")) }, false},
		"a URL from a binding in ns":     {urlRule("get", "/a"), func(in *csv.Input) { grantInNamespace(in, urlRule("get", "/a")) }, false},
		"the group of all accounts":      {pods, members("system:serviceaccounts"), true},
		"the group of the namespace":     {pods, members("system:serviceaccounts:ns"), true},
		"the group of another namespace": {pods, members("system:serviceaccounts:other"), false},
		"the group of who is known":      {pods, members("system:authenticated"), true},
		"the group of who is not":        {pods, members("system:unauthenticated"), false},
		"the user of the account":        {pods, subject("User", "system:serviceaccount:ns:cool"), true},
		"the user of another account":    {pods, subject("User", "system:serviceaccount:ns:other"), false},
		"a user of the account's name":   {pods, subject("User", "cool"), false},
		"all verbs of all there is":      {rule("*", "*", "*"), func(in *csv.Input) { grantInNamespace(in, rule("*", "*", "*")) }, true},
		"all is more than each by itself": {rule("*", "", "pods"), func(in *csv.Input) {
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
