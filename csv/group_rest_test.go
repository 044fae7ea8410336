// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/olmcore"
)

// groupsAtRest are groups of each sort that have nothing to do, gathered from a
// world that came to rest: with an operator, beside other namespaces.
func groupsAtRest(t testing.TB, namespaces int) map[string]operatorgroup.Input {
	t.Helper()
	inputs := map[string]operatorgroup.Input{}
	for name, spec := range map[string]operatorsv1.OperatorGroupSpec{
		"all namespaces":    {},
		"listed":            {TargetNamespaces: []string{"ns"}},
		"listed, unsorted":  {TargetNamespaces: []string{"ns", "a", "ns"}},
		"selected":          {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}},
		"selecting nothing": {Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}},
		"with an account":   {TargetNamespaces: []string{"ns"}, ServiceAccountName: "cool"},
	} {
		cluster, driver := newWorld(csv.Config{})
		objects, err := fromFiles("base.yaml", "v1.yaml")
		require.NoError(t, err)
		for i := range namespaces {
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%05d", i)}}
			if i%2 == 0 {
				n.Labels = map[string]string{"team": "a"}
			}
			require.NoError(t, cluster.Create(n))
		}
		objects[0].(*operatorsv1.OperatorGroup).Spec = spec
		require.NoError(t, cluster.Create(objects...))
		require.NoError(t, driver.Settle(context.Background()))
		in, err := operatorgroup.Gather(context.Background(), cluster, types.NamespacedName{Namespace: "ns", Name: "group"})
		require.NoError(t, err)
		in.Now = cluster.Now()
		inputs[name] = in
	}
	return inputs
}

func TestAGroupAtRestAllocatesNothing(t *testing.T) {
	for name, in := range groupsAtRest(t, 10) {
		t.Run(name, func(t *testing.T) {
			out, err := operatorgroup.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, olmcore.Result{}, out.Result)
			in.Checkpoint = out.Checkpoint
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = operatorgroup.Reconcile(in) }))
		})
	}
}

// TestAGroupIsNotAtRest: whatever is taken from a group at rest, it has work.
func TestAGroupIsNotAtRest(t *testing.T) {
	csvOf := func(in *operatorgroup.Input) *v1alpha1.ClusterServiceVersion {
		c := in.ClusterServiceVersions.Items[0].DeepCopy()
		in.ClusterServiceVersions.Items = []*v1alpha1.ClusterServiceVersion{c}
		return c
	}
	role := func(change func(r *rbacv1.ClusterRole)) func(*operatorgroup.Input) {
		return func(in *operatorgroup.Input) {
			r := in.ClusterRoles.Items[1].DeepCopy()
			change(r)
			in.ClusterRoles.Items = []*rbacv1.ClusterRole{in.ClusterRoles.Items[0], r, in.ClusterRoles.Items[2]}
		}
	}
	selector := func(key, value string) func(*operatorgroup.Input) {
		return role(func(r *rbacv1.ClusterRole) {
			r.AggregationRule.ClusterRoleSelectors[0].MatchLabels = map[string]string{key: value}
		})
	}
	rest := groupsAtRest(t, 3)
	for name, c := range map[string]struct {
		group  string
		change func(in *operatorgroup.Input)
	}{
		"a target is added, unsorted": {"listed, unsorted", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"ns", "b", "a"} }},
		"a target goes, unsorted":     {"listed, unsorted", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"ns", "ns"} }},
		"a target is added":           {"listed", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"ns", "x"} }},
		"another target":              {"listed", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"x"} }},
		"no target":                   {"listed", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = nil }},
		"targets for all":             {"all namespaces", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.TargetNamespaces = []string{"ns"} }},
		"a namespace is chosen": {"selected", func(in *operatorgroup.Input) {
			in.Namespaces.Items[0] = namespace("new", map[string]string{"team": "a"})
		}},
		"one is chosen no more": {"selected", func(in *operatorgroup.Input) {
			for i, n := range in.Namespaces.Items {
				if n.Labels["team"] == "a" {
					in.Namespaces.Items[i] = namespace(n.Name, nil)
				}
			}
		}},
		"one is chosen at last": {"selecting nothing", func(in *operatorgroup.Input) {
			in.Namespaces.Items = append(in.Namespaces.Items, namespace("new", map[string]string{"team": "b"}))
		}},
		"a namespace lost its label": {"listed", func(in *operatorgroup.Input) {
			for i, n := range in.Namespaces.Items {
				in.Namespaces.Items[i] = namespace(n.Name, nil)
			}
		}},
		"a namespace has the label and is no target": {"listed", func(in *operatorgroup.Input) {
			in.Namespaces.Items = append(in.Namespaces.Items, namespace("x", map[string]string{"olm.operatorgroup.uid/" + string(in.OperatorGroup.UID): ""}))
		}},
		"a group for all has marked one": {"all namespaces", func(in *operatorgroup.Input) {
			in.Namespaces.Items = append(in.Namespaces.Items, namespace("x", map[string]string{"olm.operatorgroup.uid/" + string(in.OperatorGroup.UID): ""}))
		}},
		"an operator provides more": {"listed", func(in *operatorgroup.Input) {
			d := &csvOf(in).Spec.CustomResourceDefinitions
			d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "mores.example.com", Kind: "More", Version: "v1"})
		}},
		"nobody provides it":         {"listed", func(in *operatorgroup.Input) { in.ClusterServiceVersions.Items = nil }},
		"only a copy provides it":    {"listed", func(in *operatorgroup.Input) { csvOf(in).Status.Reason = v1alpha1.CSVReasonCopied }},
		"its operator was stopped":   {"listed", func(in *operatorgroup.Input) { hold(csvOf(in), failed, "InterOperatorGroupOwnerConflict", "", 0) }},
		"a role is gone":             {"listed", func(in *operatorgroup.Input) { in.ClusterRoles.Items = in.ClusterRoles.Items[1:] }},
		"a role lost a label":        {"listed", role(func(r *rbacv1.ClusterRole) { delete(r.Labels, "olm.owner") })},
		"a role is not managed":      {"listed", role(func(r *rbacv1.ClusterRole) { delete(r.Labels, "olm.managed") })},
		"a role aggregates nothing":  {"listed", role(func(r *rbacv1.ClusterRole) { r.AggregationRule = nil })},
		"a role aggregates too much": {"listed", role(func(r *rbacv1.ClusterRole) { s := &r.AggregationRule.ClusterRoleSelectors; *s = append(*s, (*s)[0]) })},
		"it selects by expression": {"listed", role(func(r *rbacv1.ClusterRole) {
			r.AggregationRule.ClusterRoleSelectors[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Exists"}}
		})},
		"it selects another API":    {"listed", selector("olm.opgroup.permissions/aggregate-to-1-edit", "true")},
		"it selects by capitals":    {"listed", selector("olm.opgroup.permissions/aggregate-to-C38844A2FA17ABF0-edit", "true")},
		"it selects another suffix": {"listed", selector("olm.opgroup.permissions/aggregate-to-c38844a2fa17abf0-view", "true")},
		"it selects another prefix": {"listed", selector("aggregate-to-c38844a2fa17abf0-edit", "true")},
		"it selects no number":      {"listed", selector("olm.opgroup.permissions/aggregate-to-x-edit", "true")},
		"it selects another value":  {"listed", selector("olm.opgroup.permissions/aggregate-to-c38844a2fa17abf0-edit", "false")},
		"the account is gone":       {"with an account", func(in *operatorgroup.Input) { in.ServiceAccounts.Items = nil }},
		"the account is another one": {"with an account", func(in *operatorgroup.Input) {
			a := in.ServiceAccounts.Items[0].DeepCopy()
			a.UID = "x"
			in.ServiceAccounts = olmcore.Found(a)
		}},
		"no account is prescribed": {"with an account", func(in *operatorgroup.Input) { in.OperatorGroup.Spec.ServiceAccountName = "" }},
		"a second group": {"listed", func(in *operatorgroup.Input) {
			in.Siblings = olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := rest[c.group]
			in.OperatorGroup = in.OperatorGroup.DeepCopy()
			in.Namespaces.Items = append([]*corev1.Namespace(nil), in.Namespaces.Items...)
			c.change(&in)
			res, err := reconcileGroup(in)
			require.NoError(t, err)
			require.NotEmpty(t, res.Actions)
		})
	}
}

func TestAnEmptyTargetIsRefused(t *testing.T) {
	in := groupsAtRest(t, 0)["listed"]
	in.OperatorGroup = in.OperatorGroup.DeepCopy()
	in.OperatorGroup.Spec.TargetNamespaces = []string{"ns", ""}
	res, err := reconcileGroup(in)
	require.NoError(t, err)
	require.Empty(t, res.Actions)
	require.Len(t, res.Diagnostics, 1)
	require.Equal(t, operatorgroup.ReasonInvalidTargets, res.Diagnostics[0].Reason)
	require.Equal(t, "TargetNamespaces cannot contain NamespaceAll: [ns ]", res.Diagnostics[0].Message)
}
