// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// byHand returns a Role and a RoleBinding with the owner labels of a CSV that no InstallPlan created.
func byHand(w *world, name string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "user", ResourceVersion: "1", Labels: csvtest.Ours("x").Labels}
	for key, value := range w.role.Labels {
		metav1.SetMetaDataLabel(&meta, key, value)
	}
	delete(meta.Labels, olmcore.LabelManaged)
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{pods}}
	return role, &rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy(),
		RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}, Subjects: w.binding.Subjects}
}

// TestRolesCreatedByHandAreReported checks that a Role with owner labels that no InstallPlan created is not lifted,
// that Assess reports it, and that the operator is at rest.
func TestRolesCreatedByHandAreReported(t *testing.T) {
	const cluster = " outside namespace ns, although it watches all namespaces: no InstallPlan created "
	const some = " outside namespace ns, although it watches other namespaces: no InstallPlan created "
	const inCluster = ". Create a ClusterRole and a ClusterRoleBinding with the same rules and subjects"
	const inSome = ". Create a Role and a RoleBinding with the same rules and subjects in each namespace that the OperatorGroup targets"
	const both, start = "Role extra, RoleBinding extra", "the operator has no permission from "
	const bothInCluster = start + both + cluster + "them" + inCluster
	owner := olmcore.OwnerReferenceTo(newWorld("").csv)
	own := func(labels map[string]string, objects ...metav1.Object) {
		for _, o := range objects {
			o.SetLabels(labels)
			o.SetOwnerReferences([]metav1.OwnerReference{owner})
		}
	}
	for name, c := range map[string]struct {
		target string
		change func(role *rbacv1.Role, binding *rbacv1.RoleBinding)
		want   string
	}{
		"all namespaces":     {"", nil, bothInCluster},
		"a target namespace": {"a", nil, start + both + some + "them" + inSome},
		"own namespace":      {"ns", nil, ""},
		"only the Role has the labels": {"", func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Labels = nil },
			start + "Role extra" + cluster + "it" + inCluster},
		"only the RoleBinding has the labels": {"", func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Labels = nil },
			start + "RoleBinding extra" + cluster + "it" + inCluster},
		"an owner reference beside the labels": {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) { own(r.Labels, r, b) }, bothInCluster},
		"an owner reference and no labels":     {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) { own(nil, r, b) }, bothInCluster},
		"an owner reference to another CSV": {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			own(nil, r, b)
			r.OwnerReferences[0].UID, b.OwnerReferences[0].UID = "other", "other"
		}, ""},
		"an InstallPlan created them for another permission": {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			own(r.Labels, r, b)
			r.Labels["olm.managed"] = "true"
			b.Labels = r.Labels
		}, ""},
		"an InstallPlan created them as objects of the bundle": {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			own(map[string]string{"olm.managed": "true"}, r, b)
		}, ""},
		"the labels name another owner": {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			r.Labels, b.Labels = map[string]string{"olm.owner": "cool.v0"}, nil
		}, ""},
		"they are being deleted": {"", func(r *rbacv1.Role, b *rbacv1.RoleBinding) {
			r.DeletionTimestamp, b.DeletionTimestamp = ago(0), ago(0)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(c.target)
			w.more = []olmcore.Object{copyIn("a")}
			role, binding := byHand(w, "extra")
			if c.change != nil {
				c.change(role, binding)
			}
			w.more = append(w.more, role, binding)
			in := w.converge(t).input(t)
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			require.Nil(t, find[*rbacv1.ClusterRole](w, "", "extra"))
			var want []olmcore.Diagnostic
			if c.want != "" {
				want = []olmcore.Diagnostic{{
					Severity: olmcore.Info, Reason: permissions.ReasonRoleNotLifted, Message: c.want,
					Target: olmcore.RefOf(w.csv).Unversioned(),
				}}
			}
			got, err := permissions.Assess(in)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}

func TestTheNumberOfReportedRolesIsLimited(t *testing.T) {
	w := newWorld("")
	for i := range 20 {
		role, _ := byHand(w, fmt.Sprintf("extra-%02d", i))
		w.more = append(w.more, role)
	}
	got, err := permissions.Assess(w.converge(t).input(t))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Contains(t, got[0].Message,
		"from Role extra-00, Role extra-01, Role extra-02, Role extra-03, Role extra-04, 15 more outside namespace ns, ")
}

// TestRolesCreatedByHandAreReportedWithoutClusterRoles checks the report for a user who may read Roles of the namespace
// but no cluster-scoped objects. Objects of an unread list are not reported.
func TestRolesCreatedByHandAreReportedWithoutClusterRoles(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *permissions.Input)
		want   string
	}{
		"no cluster-scoped lists were read": {func(in *permissions.Input) {}, "from Role extra, RoleBinding extra outside"},
		"no Roles were read": {func(in *permissions.Input) {
			in.Roles = olmcore.Observed[*rbacv1.Role]{}
		}, "from RoleBinding extra outside"},
		"no RoleBindings were read": {func(in *permissions.Input) {
			in.RoleBindings = olmcore.Observed[*rbacv1.RoleBinding]{}
		}, "from Role extra outside"},
		"no OperatorGroups were read": {func(in *permissions.Input) {
			in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("")
			role, binding := byHand(w, "extra")
			w.more = []olmcore.Object{role, binding}
			in := w.converge(t).input(t)
			in.ClusterRoles, in.ClusterRoleBindings = olmcore.Observed[*rbacv1.ClusterRole]{}, olmcore.Observed[*rbacv1.ClusterRoleBinding]{}
			c.change(&in)
			all, err := permissions.Assess(in)
			require.NoError(t, err)
			got := slices.DeleteFunc(all, func(d olmcore.Diagnostic) bool { return d.Reason != permissions.ReasonRoleNotLifted })
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0].Message, c.want)
		})
	}
}
