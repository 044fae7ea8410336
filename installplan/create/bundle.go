// SPDX-License-Identifier: Apache-2.0

package create

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// StepsFromBundle returns the steps that install one operator into a namespace:
// its ClusterServiceVersion, the other objects of its bundle in their order, and
// the permission objects that the ClusterServiceVersion asks for. Every step is
// Unknown and resolves to the operator. A bundle that cannot be installed, or
// whose objects are not known, gives no steps and a Diagnostic that says why, nil
// for others. The operator is not changed. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, NewStepsFromBundle.
func StepsFromBundle(o olmcore.Operator, namespace string) ([]*v1alpha1.Step, *olmcore.Diagnostic, error) {
	switch {
	case o.Name == "":
		return nil, nil, &olmcore.InputError{Field: "Operator.Name", Problem: "is empty"}
	case namespace == "":
		return nil, nil, &olmcore.InputError{Field: "namespace", Problem: "is empty"}
	}
	steps, problem := bundle.Steps(o, namespace, bundle.Literal)
	return steps, problem, nil
}

// PermissionObjects returns the ServiceAccounts, Roles, ClusterRoles and their
// bindings that a ClusterServiceVersion's install strategy asks for, account by
// account in the order of their names. csv's namespace is where they go; owner
// references carry no UID. Names and labels are bit-identical to OLM's. The error is
// an *olmcore.InputError: there is no csv, or its strategy cannot be installed.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver, RBACForClusterServiceVersion.
// Differs: no object for the account "default"; no namespace on ClusterRoleBindings.
func PermissionObjects(csv *v1alpha1.ClusterServiceVersion) ([]olmcore.Object, error) {
	return bundle.PermissionObjects(csv)
}
