// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// The steps of a plan run as the ServiceAccount of the OperatorGroup: they are
// refused until they are allowed, and the plan goes on by itself then.
func TestAScopedPlanRunsAsItsServiceAccount(t *testing.T) {
	fake, real := eachWorld(t, func(t *testing.T, w world) {
		if f, ok := w.(*fakeWorld); ok {
			f.Authorize = f.authorize
		}
		publish(t, map[string]int{"alpha": 1, "beta": 1})
		namespaces(t, w, "olm", "ops")
		w.addNode("a")
		w.start(1)
		group := operatorGroup("ops")
		group.Spec.ServiceAccountName = "installer"
		create(t, w, catalogSource(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "installer"}}, group,
			subscribe("ops", "alpha", v1alpha1.ApprovalAutomatic))
		w.until("a step is refused", func() bool {
			return slices.ContainsFunc(w.done(), func(r report) bool { return isForbidden(r.err) })
		})
		require.Nil(t, get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("alpha", 1)))
		create(t, w,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "installer"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "installer"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "installer"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "installer"}}})
		w.until("alpha is installed", subscriptionIs(t, w, "ops", "alpha", v1alpha1.SubscriptionStateAtLatest, csvName("alpha", 1)))
		w.until("it runs", func() bool {
			return get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("alpha", 1)).Status.Phase == v1alpha1.CSVPhaseSucceeded
		})
		if real, ok := w.(*realWorld); ok {
			require.Equal(t, []string{"clusterrolebindings", "clusterroles", "clusterserviceversions", "configmaps", "deployments", "rolebindings", "roles", "secrets", "serviceaccounts", "services"},
				real.createdAs("system:serviceaccount:ops:installer"))
		}
	})
	requireSame(t, fake, real)
}

func isForbidden(err error) bool {
	var failed *olmcore.ActionError
	return errors.As(err, &failed) && apierrors.IsForbidden(failed.Err) || apierrors.IsForbidden(err)
}

// authorize is what the API server does: the ServiceAccount may do nothing, or everything once it is bound.
func (w *fakeWorld) authorize(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
	if as == nil {
		return nil
	}
	if _, err := w.Get(w.t.Context(), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), "", as.Name); err == nil {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: target.GVK().Group, Resource: target.Kind}, target.Name, errors.New(string(verb)))
}

// createdAs returns the resources of which a manager created some as a user.
func (w *realWorld) createdAs(user string) (resources []string) {
	requests, err := w.plane.Requests("")
	require.NoError(w.t, err)
	for _, r := range requests {
		if r.Verb == "create" && r.Status.Code < 300 && r.ImpersonatedUser != nil && r.ImpersonatedUser.Username == user {
			resources = append(resources, r.Object.Resource)
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}
