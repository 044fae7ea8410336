// SPDX-License-Identifier: Apache-2.0

package operatorcondition

import (
	"context"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Gather reads the Input of Reconcile. The caller sets Now and Checkpoint. If neither a ClusterServiceVersion nor an
// OperatorCondition with the key exists, apierrors.IsNotFound reports true for the error. If the Reader does not read a
// kind (olmcore.ErrNotRead), the list of that kind is incomplete in the Input. Gather returns the error of any other
// failed read.
func Gather(ctx context.Context, r olmcore.Reader, key types.NamespacedName) (Input, error) {
	reads, names := read.From(ctx, r), []string{key.Name}
	in := Input{
		Key:                    key,
		ClusterServiceVersions: read.Named[*v1alpha1.ClusterServiceVersion](reads, key.Namespace, names),
		OperatorConditions:     read.Named[*operatorsv2.OperatorCondition](reads, key.Namespace, names),
	}
	if len(in.OperatorConditions.Items) == 0 {
		names = nil // a Role or RoleBinding is created after it
	}
	in.Roles = read.Named[*rbacv1.Role](reads, key.Namespace, names)
	in.RoleBindings = read.Named[*rbacv1.RoleBinding](reads, key.Namespace, names)
	var listed []string
	for _, c := range in.OperatorConditions.Items {
		listed = c.Spec.Deployments
	}
	in.Deployments = read.Named[*appsv1.Deployment](reads, key.Namespace, listed)
	if err := reads.Err(); err != nil {
		return Input{}, err
	}
	if in.isGone() {
		resource := schema.GroupResource{Group: operatorsv2.GroupVersion.Group, Resource: "operatorconditions"}
		return Input{}, apierrors.NewNotFound(resource, key.Name)
	}
	return in, nil
}

// isGone reports whether neither of the two objects exists.
func (in *Input) isGone() bool {
	return in.ClusterServiceVersions.Complete && in.OperatorConditions.Complete &&
		len(in.ClusterServiceVersions.Items)+len(in.OperatorConditions.Items) == 0
}
