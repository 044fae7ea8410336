// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

// TestConcernedSelectsCSVsOfAClusterRole checks that a changed ClusterRole affects only the ClusterServiceVersions that
// may depend on it. Each installed operator writes about twelve ClusterRoles.
func TestConcernedSelectsCSVsOfAClusterRole(t *testing.T) {
	leases := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}
	with := func(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		r := clusterRole(name, nil)
		r.Rules = rules
		return r
	}
	next := func(r *rbacv1.ClusterRole, change func(r *rbacv1.ClusterRole)) *rbacv1.ClusterRole {
		r = r.DeepCopy()
		r.ResourceVersion += "0"
		change(r)
		return r
	}
	kept := func(*rbacv1.ClusterRole) {}
	aggregates := next(with("x"), func(r *rbacv1.ClusterRole) {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	})
	everybody := anywhere()[1].(*rbacv1.ClusterRoleBinding).DeepCopy()
	everybody.Subjects = []rbacv1.Subject{{Kind: "Group", Name: "system:authenticated"}}
	own := everybody.DeepCopy()
	own.Labels = newWorld().role.Labels
	plain := func(*v1alpha1.ClusterServiceVersion) {}
	needsNothing := func(c *v1alpha1.ClusterServiceVersion) { c.Spec.InstallStrategy.StrategySpec.Permissions = nil }
	serves := func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice"}}
	}
	for name, tt := range map[string]struct {
		csv       func(*v1alpha1.ClusterServiceVersion)
		old, next olmcore.Object
		want      bool
	}{
		"rules that it needs":       {plain, nil, with("x", pods), true},
		"rules of other API groups": {plain, nil, with("x", leases), false},
		"rules of all API groups": {
			plain, nil, with("x", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}), true,
		},
		"the CSV needs no rules": {needsNothing, nil, with("x", pods), false},
		"it is deleted":          {plain, with("x", pods), with("x", pods), true},
		"it grants more":         {plain, with("x", pods), next(with("x", leases, pods), kept), false},
		"it grants less":         {plain, with("x", pods, leases), next(with("x", leases), kept), true},
		"new, of other groups": {
			plain, with("x", pods), next(with("x", pods), func(r *rbacv1.ClusterRole) { r.Labels = map[string]string{"a": "b"} }), true,
		},
		"deleted, of other groups": {plain, with("x", pods), next(with("x", pods), func(r *rbacv1.ClusterRole) {
			r.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(newWorld().csv)}
		}), true},
		"annotations change": {
			plain, with("x", pods), next(with("x", pods), func(r *rbacv1.ClusterRole) { r.Annotations = map[string]string{"a": "b"} }), false,
		},
		"it aggregates any role": {plain, nil, aggregates, true},
		"with aggregated rules": {
			plain, aggregates, next(aggregates, func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{leases} }), true,
		},
		"with more aggregated rules": {
			plain, with("x", leases), next(aggregates, func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{leases, {APIGroups: []string{"a"}}} }), false,
		},
		"it belongs to the CSV":    {plain, nil, clusterRole("x", newWorld().role.Labels), true},
		"it belonged to the CSV":   {needsNothing, clusterRole("x", newWorld().role.Labels), clusterRole("x", nil), true},
		"the name of a permission": {plain, nil, with(newWorld().role.Name), true},
		"the name for an API":      {needsNothing, nil, with("cools.example.com-v1-edit"), true},
		"for an API of another": {
			plain, nil, with("hots.example.com-v1-edit", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"example.com"}, Resources: []string{"hots"}}), false,
		},
		"the CSV is being deleted":      {func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(0) }, nil, with("x", pods), false},
		"the CSV is a copy":             {func(c *v1alpha1.ClusterServiceVersion) { *c = *copyIn("a") }, nil, with("x", pods), false},
		"no role: a binding":            {plain, nil, everybody, true},
		"no role: a binding of nothing": {needsNothing, nil, everybody, false},
		"no role: a binding of its own": {needsNothing, nil, own, true},
		"no role: its APIService":       {serves, nil, service("v2", "ice.example.com"), true},
		"no role: one of another group": {serves, nil, service("v1", "fire.example.com"), false},
		"no role: an APIService":        {plain, nil, service("v1", "example.com"), false},
		"no role: its group":            {plain, nil, newWorld().group, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tt.csv(w.csv)
			require.Equal(t, tt.want, isConcerned(tt.old, tt.next, w.csv))
		})
	}
}

// TestConcernedSelectsCSVsWhoseResultChanges changes a ClusterRole, a ClusterRoleBinding or an APIService of a random
// world. If the Result changes, Concerned must select the ClusterServiceVersion.
func TestConcernedSelectsCSVsWhoseResultChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.SampledFrom([]string{"", "a", "ns"}).Draw(t, "target"))
		w.more = []olmcore.Object{copyIn("a")}
		w.csv.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice"}}
		if rapid.Bool().Draw(t, "swept") {
			w.deletePlan()
		}
		w.csv.Spec.Replaces = rapid.SampledFrom([]string{"", "cool.v0"}).Draw(t, "replaces")
		if rapid.Bool().Draw(t, "none") {
			w.csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
		}
		if rapid.Bool().Draw(t, "settled") {
			for range 3 {
				w.apply(reconciled(t, w.input(t)).Actions)
			}
		}
		aggregate := clusterRole("umbrella", nil)
		aggregate.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "true"}}}}
		w.more = append(w.more, aggregate, bound("generous", rapid.Bool().Draw(t, "bound")), bound("umbrella", rapid.Bool().Draw(t, "aggregated")))
		old, next := drawWatched(t, w, "1"), olmcore.Object(nil)
		if next = drawWatched(t, w, "2"); olmcore.KeyOf(old) != olmcore.KeyOf(next) {
			old = nil
		}
		result := func(o olmcore.Object) olmcore.Result {
			var objects []olmcore.Object
			for _, have := range w.objects() {
				if olmcore.KeyOf(have) != olmcore.KeyOf(next) {
					objects = append(objects, have)
				}
			}
			if o != nil {
				objects = append(objects, o)
			}
			return reconciled(t, inputOf(t, objects)).Result
		}
		if diff := cmp.Diff(result(old), result(next)); diff != "" {
			require.True(t, isConcerned(old, next, w.csv), diff)
		}
	})
}

// bound returns a ClusterRoleBinding of a role to the ServiceAccount of the operator, or to another one.
func bound(role string, really bool) *rbacv1.ClusterRoleBinding {
	b := anywhere()[1].(*rbacv1.ClusterRoleBinding).DeepCopy()
	b.Name, b.RoleRef.Name = role, role
	if !really {
		b.Subjects[0].Name = "another"
	}
	return b
}

// drawWatched returns a random object for which Affected returns a wildcard.
func drawWatched(t *rapid.T, w *world, version string) olmcore.Object {
	owner, replaced := newWorld().role.Labels, liftedOf("cool.v0", rapid.SampledFrom([]string{"", "uid-cool.v0"}).Draw(t, "uid"))[0]
	other := map[string]string{"olm.owner": "other", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "ns"}
	labels := rapid.SampledFrom([]map[string]string{nil, {"part": "true"}, owner, replaced.GetLabels(), other}).Draw(t, "labels")
	rule := rapid.SampledFrom([]rbacv1.PolicyRule{
		pods, namespaces, {Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"get"}, APIGroups: []string{"", "apps"}, Resources: []string{"pods"}}, {Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"*"}},
		{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"cools"}},
	})
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 2:
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "ns", ResourceVersion: version, Labels: labels}}
		if rapid.Bool().Draw(t, "annotated") {
			fresh := withoutAPIs("")
			fresh.deletePlan()
			value := rapid.SampledFrom([]string{"", "x", approvalOf(fresh)}).Draw(t, "allowed")
			n.Annotations = map[string]string{permissions.AnnotationAllowed: value}
		}
		return n
	case 0:
		s := service("v1", rapid.SampledFrom([]string{"ice.example.com", "fire.example.com"}).Draw(t, "group"))
		s.ResourceVersion = version
		if rapid.Bool().Draw(t, "unmanaged") {
			s.Labels = nil
		}
		return s
	case 1:
		b := bound(rapid.SampledFrom([]string{"generous", w.role.Name}).Draw(t, "name"), true)
		b.ResourceVersion, b.Labels, b.Subjects = version, labels, []rbacv1.Subject{{Kind: "Group", Name: rapid.SampledFrom([]string{"system:authenticated", "others"}).Draw(t, "subject")}}
		return b
	}
	name := rapid.SampledFrom([]string{
		"generous", "generous", "umbrella", "part", w.role.Name, replaced.GetName(), "cools.example.com-v1-edit", "other",
	}).Draw(t, "name")
	r := clusterRole(name, labels)
	r.ResourceVersion, r.Rules = version, rapid.SliceOfN(rule, 0, 3).Draw(t, "rules")
	if rapid.Bool().Draw(t, "aggregated") {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"part": "true"}}}}
	}
	if rapid.Bool().Draw(t, "owned") {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "other", UID: "other"}}
	}
	return r
}
