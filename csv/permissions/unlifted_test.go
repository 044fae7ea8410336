// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{pods}}
	return role, &rbacv1.RoleBinding{ObjectMeta: *meta.DeepCopy(),
		RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name}, Subjects: w.binding.Subjects}
}

// TestRolesCreatedByHandAreReported checks that a Role with owner labels that no InstallPlan created is lifted nowhere,
// that Assess reports it, and that the operator is at rest.
func TestRolesCreatedByHandAreReported(t *testing.T) {
	const cluster = "granted in namespace ns only, and not in all namespaces, " +
		"because the InstallPlan of this ClusterServiceVersion did not create them"
	const some = "granted in namespace ns only, and not in the namespaces that its OperatorGroup targets, " +
		"because the InstallPlan of this ClusterServiceVersion did not create them"
	for name, c := range map[string]struct {
		target string
		change func(role *rbacv1.Role, binding *rbacv1.RoleBinding)
		want   string
	}{
		"all namespaces":     {"", nil, "Role extra, RoleBinding extra: " + cluster},
		"a target namespace": {"a", nil, "Role extra, RoleBinding extra: " + some},
		"own namespace":      {"ns", nil, ""},
		"only the Role has the labels": {"", func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { b.Labels = nil },
			"Role extra: " + cluster},
		"only the RoleBinding has the labels": {"", func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { r.Labels = nil },
			"RoleBinding extra: " + cluster},
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
			in := w.settle(t).input(t)
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

// TestManyRolesCreatedByHand checks that the Diagnostic names a limited number of objects.
func TestManyRolesCreatedByHand(t *testing.T) {
	w := newWorld("")
	for i := range 20 {
		role, _ := byHand(w, fmt.Sprintf("extra-%02d", i))
		w.more = append(w.more, role)
	}
	got, err := permissions.Assess(w.settle(t).input(t))
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Contains(t, got[0].Message, "Role extra-00, Role extra-01, Role extra-02, Role extra-03, Role extra-04, 15 more: granted")
}
