// SPDX-License-Identifier: Apache-2.0

// Package csv decides about one ClusterServiceVersion: what must happen to it, to its install objects, and to what it
// leaves behind.
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], [Assess] gives the same decision without objects,
// and [Affected] says which CSVs to look at again when an object changed. A decision is the first of the rules
// (gates.go, phases.go) that applies to the facts of the Input. Package cleanup decides about a CSV that is being
// deleted, package operatorgroup about an OperatorGroup, whose status every CSV of its namespace needs, and package
// sweep about what was left behind.
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
// Any phase goes to Replacing when a newer version has begun to install, and to Deleting when the CSV is deleted and
// its cleanup takes time.
//
// # Gates
//
// Before the phase machine runs: the finalizer, the olm.api labels and the OperatorGroup's annotations are on the CSV
// (one write), the spec is sound, the namespace has exactly one OperatorGroup, the install modes allow its targets, the
// group lists the APIs that the CSV provides, and no other group that shares a namespace with it provides one of them.
// A CSV that is Replacing or Deleting passes without the group.
//
// # Speed
//
// Hand Outcome.Checkpoint back in the next Input of the same CSV: then one at rest costs the comparison of
// resourceVersions, below a microsecond whatever its size, and allocates nothing. Without it the answer is the same, at
// some microseconds for each object.
//
// # What is left to the caller
//
// Webhooks, APIServices and their certificates, copies of CSVs in other namespaces, the ClusterRoles for single APIs
// and permissions in target namespaces are not written by this version. A CSV that needs webhooks or
// APIServices is installed without them, and a Diagnostic says so.
package csv
