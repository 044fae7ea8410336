// SPDX-License-Identifier: Apache-2.0

// Package cleanup decides what happens to a ClusterServiceVersion that is being deleted, until nothing is left that
// garbage collection cannot reach. The finalizer holds it until then.
//
// [Reconcile] goes through the stages, each of which starts when the one before holds
// nothing any more:
//
//	Operands     custom resources of owned CRDs, when spec.cleanup.enabled
//	Admission    webhook configurations
//	Conversion   the operator's Service in the conversion of owned CRDs
//	APIServices  those with the owner labels
//	Workload     Deployments, when there are permissions to take away
//	RBAC         ClusterRoleBindings and ClusterRoles, bindings in kube-system
//	Others       other cluster-scoped objects with the owner labels, and copies
//	Release      the finalizer goes
//
// Every stage is decided from what is observed, so a cleanup goes on after a restart where it was, and every step may
// be repeated. How long an object that cannot be deleted holds the ClusterServiceVersion says the row of its stage;
// what is left behind is named in a Diagnostic. Package csv calls Reconcile, and [Gather] for what it needs.
//
// A cluster-scoped object that another live ClusterServiceVersion needs is not deleted: its owner labels name that one
// afterwards. Package installplan records on the object who that is; without a record the applied steps of InstallPlans
// tell. If the labelled owner is gone without a cleanup, the object belongs to the recorded co-owners, and is deleted
// with the last of them.
//
// What a tenant can write never widens what is deleted: owner labels count outside the namespaces and in kube-system
// only, a CRD counts when an InstallPlan recorded that it came with the ClusterServiceVersion, and custom resources are
// deleted where the OperatorGroup selects.
package cleanup
