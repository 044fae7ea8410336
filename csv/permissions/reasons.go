// SPDX-License-Identifier: Apache-2.0

package permissions

import "github.com/olmcore/olm/csv/internal/read"

// Reasons of this package's Causes.
const (
	// ReasonPermissions means that a role or binding is created or updated where the operator watches. The object gets the
	// rules or subjects that the spec of the ClusterServiceVersion contains. Nothing to do.
	ReasonPermissions = "Permissions"
	// ReasonPermissionRecorded means that a ClusterRole without rules is created. It grants nothing, and records that
	// the operator has a permission in the namespaces that it watches. Nothing to do.
	ReasonPermissionRecorded = "PermissionRecorded"
	// ReasonWithdrawn means that a role or binding is deleted, or its rules are removed. The OperatorGroup has other
	// targets, or the spec no longer has the permission. Nothing to do.
	ReasonWithdrawn = "Withdrawn"
	// ReasonProvidedAPI means that a ClusterRole for an API that the ClusterServiceVersion provides is created or
	// updated. Nothing to do.
	ReasonProvidedAPI = "ProvidedAPI"
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read, so the objects that depend on it stay as they are. Give the
	// caller access to the kind in the message.
	ReasonNotObserved = read.ReasonNotObserved
	// ReasonNameConflict means that an object of another owner has a name that the library needs. The object is not
	// changed, and the operator or its users lack the permissions. Rename or delete the object.
	ReasonNameConflict = "NameConflict"
	// ReasonRoleChanged means that the Role or RoleBinding that an InstallPlan created does not grant the permissions of
	// the spec. So nothing is granted in other namespaces. Restore the rules and subjects of the object.
	ReasonRoleChanged = "RoleChanged"
	// ReasonPermissionNotApproved means that an operator has a permission only in the namespace of its
	// ClusterServiceVersion, and not in the other namespaces that it watches. The cause is that no InstallPlan proves the
	// permission, it was not granted before, and no annotation of the Namespace allows it. Install the version with an
	// InstallPlan, or let a cluster administrator run the command in the message.
	ReasonPermissionNotApproved = "PermissionNotApproved"
	// ReasonAdoptedPermission means that an operator has a permission outside its namespace that neither an InstallPlan
	// nor an annotation of the Namespace allows. Usually OLM granted the permission. The permission is kept, but would not
	// be granted now. A manager reports this reason once after it starts, and again whenever Reconcile returns writes.
	// Assess always reports it. Remove the permission from the spec, or run the command in the message.
	ReasonAdoptedPermission = "AdoptedPermission"
	// ReasonInvalidApproval means that the annotation olmcore/allowed-permissions of the Namespace contains values that
	// are not digests. Such values allow nothing. Correct or remove them.
	ReasonInvalidApproval = "InvalidApproval"
	// ReasonRefused means that the API server rejected a write. The write is retried with backoff. If the OperatorGroup
	// names a ServiceAccount, allow that account to write roles and bindings, and give it all rights that they grant.
	ReasonRefused = "Refused"
	// ReasonAPINotRecorded means that no ClusterRoles are created for an API, because nothing proves that the API belongs
	// to this ClusterServiceVersion. Either no InstallPlan recorded the ClusterServiceVersion on the
	// CustomResourceDefinition, or the API group has APIServices of other operators, or the API group belongs to
	// Kubernetes. A manager reports this reason once after it starts, and again whenever Reconcile returns writes. Assess
	// always reports it. Install the CustomResourceDefinition with an InstallPlan, or create the ClusterRoles.
	ReasonAPINotRecorded = "APINotRecorded"
	// ReasonRoleNotLifted means that a Role or RoleBinding names the ClusterServiceVersion as its owner, but no
	// InstallPlan created it. The object is in the operator's namespace, and has the owner labels of the
	// ClusterServiceVersion or an owner reference to it. The object grants nothing outside that namespace, although the
	// operator watches other namespaces. A manager reports this reason once after it starts, and again whenever Reconcile
	// returns writes. Assess always reports it. Declare the rules under spec.install.spec.permissions or
	// clusterPermissions of the bundle, or create a ClusterRole and a ClusterRoleBinding for the operator's
	// ServiceAccount.
	ReasonRoleNotLifted = "RoleNotLifted"
)
