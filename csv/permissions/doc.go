// SPDX-License-Identifier: Apache-2.0

// Package permissions decides where the permissions of one ClusterServiceVersion hold besides its own namespace, and
// which ClusterRoles there are for the APIs that it provides.
//
// An InstallPlan makes Roles and RoleBindings in the namespace of the operator. An operator that watches others needs
// them there as well:
//
//	its OperatorGroup targets     its namespaced permissions are
//	all namespaces                lifted: a ClusterRole and a ClusterRoleBinding of the same name
//	other namespaces              copied into each, as objects of the copied ClusterServiceVersion there
//	its own namespace alone       where the InstallPlan made them
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], and [Affected] says which ClusterServiceVersions
// to look at again when an object changed. [Assess] tells a person which of its APIs have no ClusterRoles, and why.
// [Gained] says what roles and bindings give that others do not, such as those of an upgrade.
//
// # What is granted
//
// Rules and subjects are those of spec.install.spec.permissions, never those of a live object: who edits or forges a
// Role, a RoleBinding or their labels grants nothing with it. And the live Role and RoleBinding must grant what the
// spec says: who edits the spec alone grants nothing either. A tenant may write both, so a permission needs a proof
// before it is granted for the first time. One of these is enough:
//
//	proof                                             where it is
//	the permission was granted before                 ClusterRoles and bindings of the version, or of the one that it
//	                                                  replaces; of OLM also the Roles in target namespaces
//	an InstallPlan installed it                       an applied step in the status of a plan of the namespace
//	a cluster administrator allows it                 AnnotationAllowed of the Namespace
//
// Without a proof what exists stays, nothing is added, and ReasonPermissionNotApproved reports it. A ClusterRole
// without rules is the proof for what is granted in target namespaces. If the OperatorGroup names a ServiceAccount, an
// annotation limits this proof to that account, as the rights of the account limit what an InstallPlan can install.
//
// What the library writes it keeps in that form, and takes it back when the group has other targets or the spec has
// other permissions. All of it goes with the ClusterServiceVersion: what is outside the namespaces by its owner labels
// (package cleanup), what was copied with the copied ClusterServiceVersion that owns it.
package permissions
