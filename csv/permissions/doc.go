// SPDX-License-Identifier: Apache-2.0

// Package permissions grants the permissions of an operator in the namespaces that it watches. It also creates the
// ClusterRoles for the APIs that its ClusterServiceVersion provides.
//
// An InstallPlan creates Roles and RoleBindings in the namespace of the operator only. If the operator watches other
// namespaces, it also needs its permissions there:
//
//	the OperatorGroup targets     the namespaced permissions are
//	all namespaces                lifted: a ClusterRole and a ClusterRoleBinding of the same name
//	other namespaces              copied into each, owned by the copied ClusterServiceVersion there
//	only its own namespace        left where the InstallPlan created them
//
// [Gather] reads an [Input], and [Reconcile] turns it into an [olmcore.Outcome]. [Affected] returns the
// ClusterServiceVersions to reconcile after a change of an object. [Assess] reports which APIs have no ClusterRoles,
// and why. [Gained] compares two sets of roles and bindings, for example those before and after an upgrade.
//
// # What is granted
//
// Rules and subjects come from spec.install.spec.permissions, never from a live object. So editing or forging a Role, a
// RoleBinding or their labels grants nothing. The live Role and RoleBinding must also grant what the spec says, so
// editing only the spec grants nothing either. A tenant may write both. Therefore a permission needs a proof before it
// is granted for the first time. One of these is enough:
//
//	proof                                             where it is
//	the permission was granted before                 ClusterRoles and bindings of the version, or of the version
//	                                                  that it replaces; also Roles of OLM in target namespaces
//	an InstallPlan installed it                       an applied step in the status of a plan of the namespace
//	a cluster administrator allows it                 AnnotationAllowed of the Namespace
//
// Without a proof, existing grants stay, nothing is added, and ReasonPermissionNotApproved reports it. A ClusterRole
// without rules records the proof for grants in target namespaces. If the OperatorGroup names a ServiceAccount, an
// annotation limits this record to that account. The rights of the account limit in the same way what an InstallPlan
// can install.
//
// The roles and bindings that the library wrote are kept up to date. They are withdrawn when the OperatorGroup has
// other targets or the spec has other permissions. All of them are deleted with the ClusterServiceVersion. Package
// cleanup finds the cluster-scoped objects by their owner labels. Copied Roles and RoleBindings are deleted with the
// copied ClusterServiceVersion that owns them.
package permissions
