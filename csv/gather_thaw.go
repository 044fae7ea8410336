// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isFrozen reports whether a CSV failed for want of permissions, and is not tried
// again before somebody changed something.
func isFrozen(c *version) bool {
	return c.Status.Phase == v1alpha1.CSVPhaseFailed && c.Status.Reason == v1alpha1.CSVReasonComponentFailedNoRetry
}

// thaw looks for a permission, an account, a group or a spec that changed after
// the CSV was frozen. The times are those that the API server keeps; where a
// cache leaves them out, only what is new is seen.
func (g *gatherer) thaw() {
	c := g.in.ClusterServiceVersion
	frozen := c.Status.LastTransitionTime
	if !isFrozen(c) || frozen == nil {
		return
	}
	g.in.RBACChanged = changedAt(c, false).After(frozen.Time) ||
		anyAfter(g.in.OperatorGroups.Items, frozen) ||
		anyAfter(list[*rbacv1.Role](g, c.Namespace, nil).Items, frozen) ||
		anyAfter(list[*rbacv1.RoleBinding](g, c.Namespace, nil).Items, frozen) ||
		anyAfter(list[*corev1.ServiceAccount](g, c.Namespace, nil).Items, frozen)
}

func anyAfter[T metav1.Object](items []T, at *metav1.Time) bool {
	for _, o := range items {
		_, isGroup := any(o).(*operatorsv1.OperatorGroup)
		if changedAt(o, isGroup).After(at.Time) {
			return true
		}
	}
	return false
}

// changedAt is when an object was last written, as far as it tells. status says
// whether its status counts: that of a group names the account that installs.
func changedAt(o metav1.Object, status bool) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Time != nil && (status || f.Subresource == "") && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}
