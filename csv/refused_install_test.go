// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"errors"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// frozenWorld is a CSV that failed ten seconds ago as the account "weak" may not install it, and all that the rights of
// that account depend on. No time tells anything.
func frozenWorld() map[string]olmcore.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: *ago(time.Hour)}
	}
	weak := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}}
	c := operator("cool.v1", 1)
	hold(c, failed, "InstallComponentFailedNoRetry", "install strategy failed: no", 10*time.Second)
	g := group()
	g.Spec.ServiceAccountName = "weak"
	g.Status.ServiceAccountRef = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}
	return map[string]olmcore.Object{
		"csv": c, "group": g,
		"account": &corev1.ServiceAccount{ObjectMeta: meta("ns", "weak")},
		"role":    &rbacv1.Role{ObjectMeta: meta("ns", "installer")},
		"binding": &rbacv1.RoleBinding{ObjectMeta: meta("ns", "installer"), Subjects: weak, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "installer"}},
		"edit":    &rbacv1.RoleBinding{ObjectMeta: meta("ns", "edit"), Subjects: weak, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}},
		"editor":  &rbacv1.ClusterRole{ObjectMeta: meta("", "edit")},
		"global":  &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "global"), Subjects: weak, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"}},
		"all":     &rbacv1.ClusterRole{ObjectMeta: meta("", "all")},
		"bystander": &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta("", "bystander"), Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "cool"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"},
		},
		"elsewhere": &rbacv1.Role{ObjectMeta: meta("other", "r")},
	}
}

// judge reconciles the CSV of a world with what a caller remembers.
func judge(t *testing.T, world map[string]olmcore.Object, judged *csv.Judged) csv.Outcome {
	t.Helper()
	objects := make([]olmcore.Object, 0, len(world))
	for _, o := range world {
		objects = append(objects, o)
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion, in.Judged = now, kubernetesVersion, judged
	out := reconciled(t, in)
	return out
}

// TestAFrozenVersionSeesWhatChanged: by content, whatever times the objects have.
// OLM's case: a group's ServiceAccount without permission: frozen until RBAC changes.
func TestAFrozenVersionSeesWhatChanged(t *testing.T) {
	newer := func(name string) func(w map[string]olmcore.Object) {
		return func(w map[string]olmcore.Object) { w[name].SetResourceVersion("2") }
	}
	without := func(name string) func(w map[string]olmcore.Object) {
		return func(w map[string]olmcore.Object) { delete(w, name) }
	}
	for name, c := range map[string]struct {
		change func(w map[string]olmcore.Object)
		want   bool
	}{
		"nothing":                        {func(map[string]olmcore.Object) {}, false},
		"a Role was written":             {newer("role"), true},
		"a Role went":                    {without("role"), true},
		"a Role was made anew":           {func(w map[string]olmcore.Object) { w["role"].SetUID("another") }, true},
		"a RoleBinding was written":      {newer("binding"), true},
		"a RoleBinding went":             {without("binding"), true},
		"a ClusterRole of the namespace": {newer("editor"), true},
		"a ClusterRoleBinding of it":     {newer("global"), true},
		"a ClusterRole of that":          {newer("all"), true},
		"the account was made anew":      {func(w map[string]olmcore.Object) { w["account"].SetUID("another") }, true},
		"another account's binding":      {newer("bystander"), false},
		"a Role of another namespace":    {newer("elsewhere"), false},
		"the group's annotations":        {newer("group"), false},
		"the group names another account": {func(w map[string]olmcore.Object) {
			w["group"].(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = "strong"
		}, true},
		"the group names no account any more": {func(w map[string]olmcore.Object) {
			g := w["group"].(*operatorsv1.OperatorGroup)
			g.Spec.ServiceAccountName, g.Status.ServiceAccountRef = "", nil
		}, true},
		"the version's spec":   {func(w map[string]olmcore.Object) { w["csv"].SetGeneration(2) }, true},
		"the version's status": {newer("csv"), false},
	} {
		t.Run(name, func(t *testing.T) {
			before := judge(t, frozenWorld(), nil)
			require.Empty(t, before.Actions)
			require.Equal(t, 50*time.Second, before.RequeueAfter)
			require.NotNil(t, before.Judged)
			world := frozenWorld()
			c.change(world)
			out := judge(t, world, before.Judged)
			require.Equal(t, c.want, len(out.Transitions) == 1, "%v", out.Transitions)
			require.Equal(t, c.want, out.Judged == nil, "a CSV that is tried again is judged anew")
		})
	}
}

// TestAFrozenVersionIsTriedAgain: with growing pauses, so that a restart, a grant that no Role shows or a change in the
// same second does not leave it Failed for ever. The histories of its status count the tries.
// OLM's case: a group's ServiceAccount without permission: frozen until RBAC changes.
func TestAFrozenVersionIsTriedAgain(t *testing.T) {
	for tries, pause := range map[int]time.Duration{1: time.Minute, 2: 2 * time.Minute, 4: 8 * time.Minute, 5: 10 * time.Minute, 12: 10 * time.Minute} {
		in := input(failed, "InstallComponentFailedNoRetry", "install strategy failed: no")
		s := &in.ClusterServiceVersion.Status
		for range tries - 1 {
			s.Conditions = append(s.Conditions, s.Conditions[0])
		}
		in.Now = s.LastTransitionTime.Add(pause - time.Second)
		out := reconciled(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, time.Second, out.RequeueAfter, tries)
		in.Now = s.LastTransitionTime.Add(pause)
		out = reconciled(t, in)
		require.Len(t, out.Transitions, 1, tries)
		require.Equal(t, string(pending), out.Transitions[0].To)
	}
}

// TestPermissionsGrantedInTheSameSecond, by one apply, and an account taken off the group: the CSV installs soon after,
// for a caller with memory and one without.
func TestPermissionsGrantedInTheSameSecond(t *testing.T) {
	ctx := context.Background()
	for name, grant := range map[string]func(t *testing.T, cluster *fake.Cluster, allow func()){
		"a Role and its binding": func(t *testing.T, cluster *fake.Cluster, allow func()) {
			require.NoError(t, cluster.Create(
				&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "installer"}},
				&rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "installer"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "installer"},
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ns", Name: "weak"}},
				}))
			allow()
		},
		"the group names no account any more": func(t *testing.T, cluster *fake.Cluster, _ func()) {
			require.NoError(t, cluster.Edit(olmcore.Key{Group: "operators.coreos.com", Kind: "OperatorGroup", Namespace: "ns", Name: "group"}, func(o olmcore.Object) {
				o.(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = ""
			}))
		},
	} {
		for _, forgets := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				cluster, driver := newWorld(csv.Config{})
				driver.Controllers = controllersWith(csv.Config{}, func(in *csv.Input) {
					if forgets {
						in.Judged = nil
					}
				})
				objects, err := fromFiles("base.yaml", "v1.yaml")
				require.NoError(t, err)
				objects[0].(*operatorsv1.OperatorGroup).Spec.ServiceAccountName = "weak"
				require.NoError(t, cluster.Create(append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "weak"}})...))
				allowed := false
				cluster.Authorize = func(as *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
					if as != nil && target.Kind == "Deployment" && !allowed {
						return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, target.Name, errors.New("weak"))
					}
					return nil
				}
				isFrozen := func() bool { return csvs(cluster)[0].Status.Reason == "InstallComponentFailedNoRetry" }
				for !isFrozen() {
					require.NoError(t, driver.RunFor(ctx, time.Second))
				}
				grant(t, cluster, func() { allowed = true })
				wait := 10 * time.Second
				if forgets {
					wait = 2 * time.Minute
				}
				require.NoError(t, driver.RunFor(ctx, wait))
				require.Equal(t, v1alpha1.CSVPhaseSucceeded, csvs(cluster)[0].Status.Phase, csvs(cluster)[0].Status.Message)
			})
		}
	}
}
