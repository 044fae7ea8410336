// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/permissions"
	"github.com/olmcore/olm/olmcore"
)

// permissionKinds are the kinds that show which permissions an operator lacks. Without them the answer has one line
// less.
var permissionKinds = []schema.GroupVersionKind{
	rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Namespace"),
}

// missingPermissions returns a sentence about the Roles and RoleBindings that do not hold wherever the operator of an
// object watches. Permissions of its spec that were not approved come first. It is empty if there are none, and if the
// kinds were not read.
func (l *lookup) missingPermissions(ctx context.Context, o olmcore.Object) (string, error) {
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o := o.(type) {
	case *v1alpha1.Subscription:
		key.Name = o.Status.InstalledCSV
	case *v1alpha1.ClusterServiceVersion:
	default:
		return "", nil
	}
	if key.Name == "" {
		return "", nil
	}
	in, err := permissions.Gather(ctx, l.world, key)
	if errors.Is(err, olmcore.ErrNotRead) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	in.Now = l.world.Now
	reported, err := permissions.Assess(in)
	if errors.Is(err, olmcore.ErrInvalidInput) {
		return "", nil // the answer says what is invalid
	}
	if err != nil {
		return "", err
	}
	for _, reason := range []string{permissions.ReasonPermissionNotApproved, permissions.ReasonRoleNotLifted} {
		for _, d := range reported {
			if d.Reason == reason {
				return sentence(d.Message), nil
			}
		}
	}
	return "", nil
}

// sentence returns a message with a capital letter and a full stop.
func sentence(message string) string { return strings.ToUpper(message[:1]) + message[1:] + "." }
