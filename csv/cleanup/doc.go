// SPDX-License-Identifier: Apache-2.0

// Package cleanup removes what a deleted ClusterServiceVersion leaves behind and garbage collection cannot reach. A
// finalizer keeps the ClusterServiceVersion until the cleanup is done.
//
// [Reconcile] runs the stages in this order. A stage starts once no object of the stage before it keeps the
// ClusterServiceVersion:
//
//	Operands     custom resources of owned CRDs, if spec.cleanup.enabled is set
//	Admission    webhook configurations
//	Conversion   the operator's Service in the conversion of owned CRDs
//	APIServices  those with the owner labels
//	Workload     Deployments, if there are permissions to delete
//	RBAC         ClusterRoleBindings and ClusterRoles, bindings in kube-system
//	Others       other cluster-scoped objects with the owner labels, and copies
//	Release      the finalizer is removed
//
// Every stage is decided from observed objects. So a cleanup continues after a restart, and every step may be repeated.
// The table of stages limits how long an object that cannot be deleted keeps the ClusterServiceVersion. A Diagnostic
// names the objects that are left behind. Package csv calls Reconcile, and [Gather] for its input.
//
// A cluster-scoped object that another live ClusterServiceVersion needs is not deleted. Its owner labels are changed to
// that ClusterServiceVersion. Package installplan records the co-owners in annotations of the object. Without such a
// record, the applied steps of InstallPlans show which ClusterServiceVersions need the object. If the labelled owner
// was deleted without a cleanup, the object belongs to the recorded co-owners. It is deleted with the last of them.
//
// Nothing that a tenant can write extends what is deleted. Owner labels have an effect only on cluster-scoped objects
// and in kube-system. Custom resources of a CRD are deleted only if an InstallPlan recorded on the CRD that it was
// installed with the ClusterServiceVersion. Custom resources are deleted only in the namespaces that the OperatorGroup
// selects.
package cleanup
