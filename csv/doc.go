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
//	InstallReady <----------------|---+  something is outdated
//	     | all is                 |   |
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
// An installation that fails is repeated from Failed, with backoff, until it is Installing or healthy. A write that the
// API server called invalid is repeated only once its content or the CSV changes. Outcome.Judged, handed back as
// Input.Judged, is the memory of the failed writes. Without it one more try is made.
//
// # Gates
//
// Before the phase machine runs: the finalizer, the olm.api labels and the OperatorGroup's annotations are on the CSV
// (one write), the spec is sound, the namespace has exactly one OperatorGroup, the install modes allow its targets, the
// group lists the APIs that the CSV provides, and no other group that shares a namespace with it provides one of them.
// A CSV that is Replacing or Deleting passes without the group.
//
// # Certificates of waiting versions
//
// The Pods of a CSV that is Replacing, or Pending after it ran, keep serving. Reconcile renews its certificates if the
// namespace has exactly one OperatorGroup. It installs nothing else.
//
// # Speed
//
// Hand Outcome.Checkpoint back in the next Input of the same CSV: then one at rest costs the comparison of
// resourceVersions, below a microsecond whatever its size, and allocates nothing. Without it the answer is the same, at
// some microseconds for each object. Outcome.Inspected, handed back as well, spares that certificates which have not
// changed are verified in each pass.
//
// # Webhooks and APIs
//
// An operator that serves webhooks or APIs needs certificates. Making one needs randomness: Outcome.Certificates asks
// for those without which nothing is installed, and Input.Issued answers. Package certificate says what they are, and
// serving what is observed of all that has to do with them. InstallReady writes one part after the other: Services,
// certificates and what may read them; who exists already and calls the operator trusts the new certificate as well as
// the old one; the Deployments; APIServices, webhook configurations and the conversion of CRDs. A certificate that must
// be replaced leads from Succeeded to Pending and through the same parts, so that at no time an operator serves with a
// certificate that its callers do not trust. API servers learn of a bundle through caches of their own, so they have
// ten seconds before Pods serve with the new one. The old one is trusted until no Pod can have it any more.
//
// # Beside this package
//
// Package copies makes the copies of a CSV in the namespaces that its operator watches, olmconfig says whether they are
// there, permissions what the operator may do there, and operatorcondition the object through which it says whether it
// may be replaced.
package csv
