// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// mayReadSecrets returns the namespaces, "" for all, besides ns in which bindings let ServiceAccount cool read Secrets.
func mayReadSecrets(w *world) (where []string) {
	grants := func(rules []rbacv1.PolicyRule) bool {
		for _, r := range rules {
			for _, resource := range r.Resources {
				if resource == "secrets" || resource == "*" {
					return true
				}
			}
		}
		return false
	}
	for _, o := range w.cluster.Objects() {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			role := fake.Find[*rbacv1.ClusterRole](w.cluster, "", b.RoleRef.Name)
			if strings.HasPrefix(b.Name, "cool.v1-cool") && role != nil && grants(role.Rules) {
				where = append(where, "")
			}
		case *rbacv1.RoleBinding:
			role := fake.Find[*rbacv1.Role](w.cluster, b.Namespace, b.RoleRef.Name)
			if b.Namespace != "ns" && strings.HasPrefix(b.Name, "cool.v1-cool") && role != nil && grants(role.Rules) {
				where = append(where, b.Namespace)
			}
		}
	}
	return where
}

// forgeSecrets is what a tenant of namespace ns writes: a permission to read Secrets into the spec of the CSV, the Role
// and the RoleBinding that a plan would create for it, and a plan, whose status he cannot write.
func forgeSecrets(t *testing.T, w *world) {
	require.NoError(t, fake.Edit(w.cluster, "ns", "cool.v1", func(c *v1alpha1.ClusterServiceVersion) {
		all := &c.Spec.InstallStrategy.StrategySpec.Permissions
		*all = append(*all, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
		}})
	}))
	c := fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "ns", "cool.v1")
	planned, err := olmcore.PermissionObjects(c)
	require.NoError(t, err)
	for _, o := range planned {
		o.SetNamespace("ns")
		o.SetOwnerReferences([]metav1.OwnerReference{olmcore.OwnerReferenceTo(c)})
		if o.GetLabels() != nil {
			o.GetLabels()[olmcore.LabelManaged] = "true"
		}
		_ = w.cluster.Create(o) // most of them exist
	}
	plan := csvtest.Plan(c)
	plan.Name, plan.UID, plan.ResourceVersion = "install-forged", "", ""
	plan.Status = v1alpha1.InstallPlanStatus{}
	require.NoError(t, w.cluster.Create(plan))
}

// TestATenantsForgedRoleIsNotLifted checks the attack through all controllers, what an administrator is told, and that
// the command of the Diagnostic grants the permission.
func TestATenantsForgedRoleIsNotLifted(t *testing.T) {
	for name, targets := range map[string][]string{"all namespaces": nil, "two namespaces": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			calledByAll(t, w, targets)
			require.NoError(t, w.driver.Settle(w.ctx))
			forgeSecrets(t, w)
			seen := len(w.driver.Events)
			require.NoError(t, w.driver.RunFor(w.ctx, time.Hour))
			require.Empty(t, mayReadSecrets(w))
			said := ""
			for _, e := range w.driver.Events[seen:] {
				if e.Diagnostic != nil && e.Diagnostic.Reason == permissions.ReasonPermissionNotApproved {
					said = e.Diagnostic.Message
				}
				require.False(t, e.Controller == "permissions" && e.Action != nil, e.String())
			}
			_, value, found := strings.Cut(said, "kubectl annotate namespace ns "+permissions.AnnotationAllowed+"=")
			require.True(t, found, said)
			require.NoError(t, fake.Edit(w.cluster, "", "ns", func(n *corev1.Namespace) {
				metav1.SetMetaDataAnnotation(&n.ObjectMeta, permissions.AnnotationAllowed, strings.Fields(value)[0])
			}))
			require.NoError(t, w.driver.Settle(w.ctx))
			if targets == nil {
				targets = []string{""}
			}
			require.ElementsMatch(t, targets, mayReadSecrets(w))
		})
	}
}

// TestWhatAnAdoptedOperatorHasExtends checks that the permissions of an operator whose plan was swept reach a namespace
// that the group comes to target, and survive all that is deleted in the targets.
func TestWhatAnAdoptedOperatorHasExtends(t *testing.T) {
	before := newWorld(t)
	calledByAll(t, before, []string{"a", "b"})
	require.NoError(t, before.driver.Settle(before.ctx))
	require.NoError(t, before.cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.InstallPlan](before.cluster, "ns", "install-1")).Unversioned()))
	w := newWorld(t)
	require.NoError(t, w.cluster.Load(madeByOLM(before.cluster)...))
	require.NoError(t, w.driver.Settle(w.ctx))
	holds := func() (where []string) {
		for _, o := range w.cluster.Objects() {
			if b, is := o.(*rbacv1.RoleBinding); is && b.Labels[olmcore.LabelCopiedFrom] == "ns" {
				where = append(where, b.Namespace)
			}
		}
		return where
	}
	for _, name := range []string{"c", "d"} {
		require.NoError(t, w.cluster.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	require.ElementsMatch(t, []string{"a", "b"}, holds())
	for _, targets := range [][]string{{"a", "b", "c"}, {"b", "d"}, {"a", "c"}, {"ns"}, {"a", "b"}} {
		require.NoError(t, fake.Edit(w.cluster, "ns", "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = targets }))
		require.NoError(t, w.driver.Settle(w.ctx))
		if targets[0] != "ns" { // which the operator does not support
			require.ElementsMatch(t, targets, holds())
		}
	}
	require.NoError(t, w.cluster.Delete(olmcore.RefOf(fake.Find[*v1alpha1.ClusterServiceVersion](w.cluster, "a", "cool.v1")).Unversioned()))
	require.NoError(t, w.driver.Settle(w.ctx))
	require.ElementsMatch(t, []string{"a", "b"}, holds(), "the copied CSV was made again")
}
