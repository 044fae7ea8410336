// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// TestBindingIsHandedOverOnlyIfItGrantsToOwner checks that a ClusterRoleBinding that grants only to ServiceAccounts of
// the deleted operator's namespace is not handed over to an operator of another namespace.
func TestBindingIsHandedOverOnlyIfItGrantsToOwner(t *testing.T) {
	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "operator"}
	}
	next := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "b.v1", UID: "2"}}
	for name, c := range map[string]struct {
		subjects []rbacv1.Subject
		want     bool
	}{
		"an account of the deleted operator": {[]rbacv1.Subject{account("a")}, false},
		"accounts of both":                   {[]rbacv1.Subject{account("a"), account("b")}, true},
		"an account of neither":              {[]rbacv1.Subject{account("monitoring")}, true},
		"accounts of others":                 {[]rbacv1.Subject{account("a"), account("monitoring")}, true},
		"a group":                            {[]rbacv1.Subject{account("a"), {Kind: rbacv1.GroupKind, Name: "admins"}}, true},
		"no subject":                         {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.ClusterRoleBinding{
				TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
				ObjectMeta: metav1.ObjectMeta{
					Name:   "shared",
					Labels: olmcore.Owner{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "a", Name: "a.v1"}.Labels(),
					Annotations: olmcore.SetCoOwners(nil, []olmcore.Owner{
						{Kind: v1alpha1.ClusterServiceVersionKind, Namespace: "b", Name: "b.v1", UID: "2"},
					}),
				},
				Subjects: c.subjects,
			}
			x := model.IndexNextOwners(model.OwnerSources{ClusterServiceVersions: []*v1alpha1.ClusterServiceVersion{next}})
			require.Equal(t, c.want, x.NextOwnerOf(binding) == next)
		})
	}
}
