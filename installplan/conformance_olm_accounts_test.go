// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// TestServiceAccountsAreMerged: what becomes of an account that is there, or not,
// compared whole.
//
// OLM's cases: owners are joined by their UID; OLM keeps one that differs in a flag;
// an account that is not there is Created; one that is there: annotations joined,
// secrets kept, Present; a manifest without annotations takes none away; three equal
// owner references are one; an account of two versions keeps both owners.
func TestServiceAccountsAreMerged(t *testing.T) {
	type account = corev1.ServiceAccount
	owner := func(name string, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: name, UID: csv(name).UID,
			Controller: new(controller), BlockOwnerDeletion: new(false)}
	}
	flagless := func(name string) metav1.OwnerReference {
		r := owner(name, false)
		r.Controller, r.BlockOwnerDeletion = nil, nil
		return r
	}
	have := func(change func(*account)) *account {
		a := &account{ObjectMeta: meta("x"), Secrets: []corev1.ObjectReference{{Name: "token"}}}
		a.Labels = map[string]string{"olm.managed": "true"}
		change(a)
		return a
	}
	owned := func(refs ...metav1.OwnerReference) func(*account) {
		return func(a *account) { a.OwnerReferences = refs }
	}
	reference := func(name, more string) string {
		return `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","name":"` + name + `"` + more + `}`
	}
	again := reference("a.v1", `,"uid":"theirs"`)
	for name, c := range map[string]struct {
		have     *account
		metadata string // of the manifest, after its name
		want     *account
		status   v1alpha1.StepStatus
	}{
		"none there": {want: have(func(a *account) {
			a.UID, a.ResourceVersion, a.CreationTimestamp, a.Secrets = "", "", metav1.Time{}, nil
			owned(owner("a.v1", false))(a)
		}), status: notPresent},
		"annotations are joined, the manifest wins": {
			have:     have(func(a *account) { a.Annotations = map[string]string{"theirs": "kept", "ours": "old"} }),
			metadata: `,"annotations":{"ours":"new"}`,
			want: have(func(a *account) {
				a.Annotations = map[string]string{"theirs": "kept", "ours": "new"}
				owned(owner("a.v1", false))(a)
			}),
		},
		"no annotations in the manifest": {
			have: have(func(a *account) { a.Annotations = map[string]string{"theirs": "kept"} }),
			want: have(func(a *account) {
				a.Annotations = map[string]string{"theirs": "kept"}
				owned(owner("a.v1", false))(a)
			}),
		},
		"no owner so far": {have: have(owned()), want: have(owned(owner("a.v1", false)))},
		"another version owns it": {have: have(owned(owner("a.v0", false))),
			want: have(owned(owner("a.v0", false), owner("a.v1", false)))},
		"another version controls it": {have: have(owned(owner("a.v0", true))),
			want: have(owned(owner("a.v0", true), owner("a.v1", false)))},
		"the same version controls it: it does no more": {have: have(owned(owner("a.v1", true))), want: have(owned(owner("a.v1", false)))},
		"the same owner three times in the manifest": {have: have(owned()), metadata: `,"ownerReferences":[` + strings.Join([]string{again, again, again}, ",") + `]`,
			want: have(owned(flagless("a.v1")))},
		"none there, the same owner three times in the manifest": {metadata: `,"ownerReferences":[` + strings.Join([]string{again, again, again}, ",") + `]`,
			want: have(func(a *account) {
				a.UID, a.ResourceVersion, a.CreationTimestamp, a.Secrets = "", "", metav1.Time{}, nil
				owned(flagless("a.v1"))(a)
			}), status: notPresent},
		"two versions in the manifest, without UIDs": {have: have(owned()), metadata: `,"ownerReferences":[` + reference("a.v0", "") + `,` + reference("a.v1", "") + `]`,
			want: have(owned(flagless("a.v0"), flagless("a.v1")))},
		"a reference without UID is there": {have: have(owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "odd"})),
			want: have(owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "odd"}, owner("a.v1", false)))},
	} {
		t.Run(name, func(t *testing.T) {
			s := step("a.v1", "", "v1", "ServiceAccount", "x", `{"metadata":{"name":"x"`+c.metadata+`}}`)
			versions := []olmcore.Object{csv("a.v0"), csv("a.v1")}
			in := input(plan(installing, []*v1alpha1.Step{s}, started(time.Second)), with(versions...))
			if c.have != nil {
				in = input(in.InstallPlan, with(versions...), with(c.have))
			}
			r := reconcile(t, in)
			var got *account
			for _, a := range r.Actions {
				switch a := a.(type) {
				case olmcore.Create:
					got = a.Object.DeepCopyObject().(*account)
				case olmcore.Update:
					got = a.After.DeepCopyObject().(*account)
				}
			}
			require.NotNil(t, got, "%v", describe(r))
			require.NotEmpty(t, got.Annotations[stepHash])
			delete(got.Annotations, stepHash)
			got.TypeMeta = metav1.TypeMeta{}
			same(t, c.want, got)
			require.Equal(t, or(c.status, unknown), statusOf(in, r).Plan[0].Status)

			// Once it is there the step is done, and nothing more is written.
			after := got.DeepCopy()
			after.UID, after.ResourceVersion, after.CreationTimestamp = "uid-x", "2", born
			for _, a := range r.Actions {
				if u, ok := a.(olmcore.Update); ok {
					after = u.After.(*account)
				} else if made, ok := a.(olmcore.Create); ok {
					after.Annotations = made.Object.GetAnnotations()
				}
			}
			next := input(in.InstallPlan.DeepCopy(), with(versions...), with(after))
			next.InstallPlan.Status = statusOf(in, r)
			r = reconcile(t, next)
			require.Equal(t, []string{status}, describe(r))
			want := present
			if c.have == nil {
				want = created
			}
			require.Equal(t, want, statusOf(next, r).Plan[0].Status)
		})
	}
}

func or(s, otherwise v1alpha1.StepStatus) v1alpha1.StepStatus {
	if s == "" {
		return otherwise
	}
	return s
}

func may(account string, verbs ...string) v1alpha1.StrategyDeploymentPermissions {
	return v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account,
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}

func bound(t require.TestingT, verbs map[string][]string, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) string {
	require.Equal(t, name, ref.Name, "a binding has the name of its role")
	require.Contains(t, verbs, ref.Kind+" "+ref.Name)
	require.Len(t, subjects, 1)
	require.Equal(t, rbacv1.Subject{Kind: "ServiceAccount", Name: subjects[0].Name, Namespace: "ops"}, subjects[0])
	return ref.Kind + " " + subjects[0].Name + " [" + strings.Join(verbs[ref.Kind+" "+ref.Name], " ") + "]"
}
