// SPDX-License-Identifier: Apache-2.0

package permissions

// Reasons of this package's Causes.
const (
	// ReasonPermissions means that a role or binding is created or updated where the operator watches, as the spec of
	// the ClusterServiceVersion describes it. Nothing to do.
	ReasonPermissions = "Permissions"
	// ReasonPermissionRecorded means that a ClusterRole without rules is created. It grants nothing, and records that
	// the operator has a permission in the namespaces that it watches. Nothing to do.
	ReasonPermissionRecorded = "PermissionRecorded"
	// ReasonWithdrawn means that a role or binding is deleted or emptied, because the OperatorGroup has other targets
	// or the spec does not have the permission any more. Nothing to do.
	ReasonWithdrawn = "Withdrawn"
	// ReasonProvidedAPI means that a ClusterRole for an API that the ClusterServiceVersion provides is created or
	// updated. Nothing to do.
	ReasonProvidedAPI = "ProvidedAPI"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read. The objects that depend on it stay as they are. Give the caller
	// access to the kind in the message.
	ReasonNotObserved = "NotObserved"
	// ReasonNameConflict means that an object of another owner has a name that the library needs. It is not changed,
	// and the operator or its users lack the permissions. Rename or delete the object.
	ReasonNameConflict = "NameConflict"
	// ReasonRoleChanged means that the Role or RoleBinding that an InstallPlan created does not grant what the spec
	// says, so nothing is granted in other namespaces. Restore its rules and subjects.
	ReasonRoleChanged = "RoleChanged"
	// ReasonPermissionNotApproved means that a permission of the ClusterServiceVersion is granted in its own namespace
	// only, because no InstallPlan of that namespace lists the Role with these rules, and nothing shows that it was
	// granted before. Have an InstallPlan install the version, or let a cluster administrator run the command of the
	// message.
	ReasonPermissionNotApproved = "PermissionNotApproved"
	// ReasonAdoptedPermission means that an operator has a permission outside its namespace that no InstallPlan and no
	// annotation of the Namespace proves. OLM usually granted it. It stays, but would not be granted now. A manager
	// reports it once after a start, and again together with writes. Assess always reports it. Remove the permission
	// from the spec, or run the command of the message.
	ReasonAdoptedPermission = "AdoptedPermission"
	// ReasonInvalidApproval means that the annotation olmcore/allowed-permissions of the Namespace has values that are
	// no digests, which allow nothing. Correct or remove them.
	ReasonInvalidApproval = "InvalidApproval"
	// ReasonRefused means that the API server rejected a write. The write is retried with backoff. If the OperatorGroup
	// names a ServiceAccount, give that account the right to write roles and bindings, and all rights that they grant.
	ReasonRefused = "Refused"
	// ReasonAPINotRecorded means that no ClusterRoles are created for an API, because nothing proves that it belongs to
	// this ClusterServiceVersion. No InstallPlan recorded the ClusterServiceVersion on the CustomResourceDefinition,
	// the API group has APIServices of other operators, or the group is one of Kubernetes. A manager reports it once
	// after a start, and again together with writes. Assess always reports it. Have an InstallPlan install the
	// CustomResourceDefinition, or create the ClusterRoles.
	ReasonAPINotRecorded = "APINotRecorded"
	// ReasonRoleNotLifted means that a Role or RoleBinding in the operator's namespace has the owner labels of the
	// ClusterServiceVersion or an owner reference to it, but no InstallPlan created it. It grants nothing outside that
	// namespace, although the operator watches others. A manager reports it once after a start, and again together with
	// writes. Assess always reports it. Declare the rules under spec.install.spec.permissions or clusterPermissions of
	// the bundle, or create a ClusterRole and a ClusterRoleBinding for the operator's ServiceAccount.
	ReasonRoleNotLifted = "RoleNotLifted"
)
