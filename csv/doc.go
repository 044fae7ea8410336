// SPDX-License-Identifier: Apache-2.0

// Package csv reconciles one ClusterServiceVersion: its status, the objects that it installs, and its cleanup.
//
// [Gather] reads an [Input], and [Reconcile] turns it into an [Outcome]. [Assess] returns the same decision without
// actions. [Affected] returns the keys to reconcile after a change of an object. The decision is that of the first row
// in gates.go and phases.go that applies to the facts of the Input. Package cleanup handles a CSV that is being
// deleted. Package operatorgroup computes the status of the OperatorGroup, which all CSVs of its namespace need.
// Package sweep deletes objects that earlier CSVs left behind.
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
// A CSV is Replacing as soon as a newer version has begun to install, whatever its phase. It is Deleting if it has been
// deleted and its cleanup takes time.
//
// A failed installation is retried from Failed with backoff, until the CSV is Installing or the operator is healthy. A
// write that the API server called invalid is retried only after its content or the CSV has changed. Outcome.Judged
// remembers the failed writes. Pass it in Input.Judged of the next call. Without it, one more attempt is made.
//
// # Gates
//
// The gates are checked before the phase machine:
//   - The CSV has the finalizer, the olm.api labels and the annotations of the OperatorGroup. One write adds them all.
//   - The spec is valid.
//   - The namespace has exactly one OperatorGroup, and the install modes support its target namespaces.
//   - The OperatorGroup lists the APIs that the CSV provides.
//   - No other OperatorGroup with a common target namespace provides one of these APIs.
//
// A CSV that is Replacing or Deleting does not need the OperatorGroup.
//
// # Certificates of waiting versions
//
// The Pods of a CSV that is Replacing, or Pending after it ran, keep serving. Reconcile renews its certificates if the
// namespace has exactly one OperatorGroup. It installs nothing else.
//
// # Speed
//
// Pass Outcome.Checkpoint in the next Input of the same CSV. If the CSV is at rest, the call then only compares
// resourceVersions. It takes less than a microsecond for an Input of any size, and allocates nothing. Without the
// Checkpoint, the Outcome is the same, but the call takes some microseconds for each object. Pass Outcome.Inspected
// too, so that unchanged certificates are not verified again.
//
// # Webhooks and APIs
//
// An operator that serves webhooks or APIs needs certificates. Reconcile cannot create them, because that needs
// randomness. Outcome.Certificates contains the requests, and Input.Issued the answers. Package serving describes
// both, and the observed objects.
//
// A CSV that is InstallReady writes these parts, one after the other:
//  1. The Services, the certificates, and the permissions to read them.
//  2. The caBundles of existing webhooks, conversions and APIServices, which trust the old and the new certificate.
//  3. The Deployments.
//  4. The APIServices, the webhook configurations and the conversions of CRDs.
//
// If a certificate must be replaced, a Succeeded CSV is Pending again and passes through the same parts. So an operator
// never serves with a certificate that its callers do not trust. API servers cache a caBundle, so Pods serve with the
// new certificate ten seconds later at the earliest. The old certificate is trusted until no Pod can serve with it.
//
// # Related packages
//
// Package copies creates the copies of a CSV in the target namespaces of its operator, and reports in the OLMConfig
// whether they exist. Package permissions grants the operator its permissions in the target namespaces. Package
// operatorcondition reconciles the object in which an operator reports whether it may be upgraded.
package csv
