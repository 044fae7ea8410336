// SPDX-License-Identifier: Apache-2.0

// Package csv decides about one ClusterServiceVersion: what must happen to it,
// to its install objects, and to what it leaves behind.
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], [Assess]
// gives the same decision without objects, and [Affected] says which CSVs to look
// at again when an object changed. [Group] does the same for an OperatorGroup,
// whose status every CSV of its namespace needs.
//
// # Phases
//
//	     +------------------- None, Unknown
//	     v                          |
//	  Pending  <-----------+        | bad spec, no or unfit OperatorGroup
//	     | requirements    |        v
//	     | met             +---- Failed <---- any phase but Replacing, Deleting
//	     v                        ^   |
//	InstallReady <----------------|---+  a Deployment is outdated
//	     | Deployments            |   |
//	     | written                |   | healthy again
//	     v                        |   |
//	 Installing ------------------+   |
//	     | healthy      5 min         |
//	     v                            |
//	 Succeeded <----------------------+
//	     | a newer version names it in spec.replaces
//	     v
//	 Replacing -----> Deleting -----> (deleted)
//	     |   a later version is Succeeded
//	     +-> Pending, when the newer version disappeared
//
// Any phase goes to Replacing when a newer version has begun to install, and to
// Deleting when the CSV is deleted and its clean-up takes time.
//
// # Gates
//
// Before the phase machine runs: the finalizer, the olm.api labels and the
// OperatorGroup's annotations are on the CSV (one write), the spec is sound, the
// namespace has exactly one OperatorGroup, the install modes allow its targets,
// the group lists the APIs that the CSV provides, and no other group that shares
// a namespace with it provides one of them. A CSV that is Replacing or Deleting passes without the group.
//
// # Clean-up
//
// The finalizer [Finalizer] holds a CSV that is being deleted until nothing is
// left that garbage collection cannot reach. The stages, each of which starts
// when the one before holds nothing any more:
//
//	Operands     custom resources, when spec.cleanup.enabled
//	Admission    webhook configurations
//	Conversion   our service in the conversion of owned CRDs
//	APIServices  those with our labels
//	Workload     our Deployments, when there are permissions to take away
//	RBAC         ClusterRoleBindings and ClusterRoles, bindings in kube-system
//	Others       other cluster-scoped objects with our labels
//	Release      the finalizer goes
//
// Every stage is decided from what is there, so a clean-up goes on after any
// outage where it was, and every step may be repeated.
//
// What went while no controller watched, and what a deleted OperatorGroup leaves,
// [Sweep] finds.
//
// # Speed
//
// Hand [CheckpointOf] the Input of a reconcile that had nothing to do, and give
// its answer back in Input.Checkpoint, as the outcome of catalog goes back: then a
// CSV at rest costs the comparison of resourceVersions, well below a microsecond
// whatever its size. Without a Checkpoint its requirements, annotations and
// Deployments are compared each time, which takes some microseconds. Neither
// allocates, nor does an OperatorGroup at rest.
//
// # What is left to the caller
//
// Webhooks, APIServices and their certificates, copies of CSVs in other
// namespaces, the ClusterRoles for single APIs, permissions in target namespaces
// and OperatorConditions are not written by this version. A CSV that needs
// webhooks or APIServices is installed without them, and a Diagnostic says so.
package csv
