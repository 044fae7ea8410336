// SPDX-License-Identifier: Apache-2.0

package create

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// PermissionObjects returns the ServiceAccounts, Roles, ClusterRoles and their bindings that a ClusterServiceVersion's
// install strategy asks for, account by account in the order of their names. csv's namespace is where they go; owner
// references carry no UID. Names and labels are bit-identical to OLM's. The error is an *olmcore.InputError: there is
// no csv, or its strategy cannot be installed.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, RBACForClusterServiceVersion.
// Differs: no object for the account "default"; no namespace on ClusterRoleBindings.
func PermissionObjects(csv *v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	return bundle.PermissionObjects(csv)
}
