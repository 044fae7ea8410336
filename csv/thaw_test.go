// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// TestAFrozenVersionSeesThatPermissionsChanged: from the times of the objects,
// without memory, so that it is tried again after a restart, too.
func TestAFrozenVersionSeesThatPermissionsChanged(t *testing.T) {
	meta := func(name string, created, written time.Duration, subresource string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: *ago(created)}
		if written != 0 {
			m.ManagedFields = []metav1.ManagedFieldsEntry{{}, {Time: ago(written), Subresource: subresource}}
		}
		return m
	}
	const before, after = 2 * time.Hour, time.Minute // the version was frozen an hour ago
	frozen := operator("cool.v1", 1)
	hold(frozen, failed, "InstallComponentFailedNoRetry", "install strategy failed: no", time.Hour)
	changed := frozen.DeepCopy()
	changed.ManagedFields = []metav1.ManagedFieldsEntry{{Time: ago(after)}}
	spoken := frozen.DeepCopy()
	spoken.ManagedFields = []metav1.ManagedFieldsEntry{{Time: ago(after), Subresource: "status"}}
	other := frozen.DeepCopy()
	other.Status.Reason = "InstallCheckFailed"
	for name, c := range map[string]struct {
		version *v1alpha1.ClusterServiceVersion
		object  olmcore.Object
		want    bool
	}{
		"nothing changed":                {frozen, &rbacv1.Role{ObjectMeta: meta("r", before, before, "")}, false},
		"a new Role":                     {frozen, &rbacv1.Role{ObjectMeta: meta("r", after, 0, "")}, true},
		"a Role was written":             {frozen, &rbacv1.Role{ObjectMeta: meta("r", before, after, "")}, true},
		"a new RoleBinding":              {frozen, &rbacv1.RoleBinding{ObjectMeta: meta("r", after, 0, "")}, true},
		"a new ServiceAccount":           {frozen, &corev1.ServiceAccount{ObjectMeta: meta("r", after, 0, "")}, true},
		"one in another namespace":       {frozen, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a", CreationTimestamp: *ago(after)}}, false},
		"the group's status":             {frozen, &operatorsv1.OperatorGroup{ObjectMeta: meta("g", before, after, "status")}, true},
		"the version's spec":             {changed, &rbacv1.Role{ObjectMeta: meta("r", before, 0, "")}, true},
		"the version's status alone":     {spoken, &rbacv1.Role{ObjectMeta: meta("r", before, 0, "")}, false},
		"one that is Failed, not frozen": {other, &rbacv1.Role{ObjectMeta: meta("r", after, 0, "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c.version, c.object}, olmcore.Everything)
			require.NoError(t, err)
			in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, csv.Config{})
			require.NoError(t, err)
			require.Equal(t, c.want, in.RBACChanged)
		})
	}
}
