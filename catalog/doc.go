// SPDX-License-Identifier: Apache-2.0

// Package catalog decides what one CatalogSource needs: the registry Pods that serve its content, the objects around
// them, and a status that says which Pods serve, on which nodes, and why a replacement happened.
//
// [Reconcile] takes an [Input] and returns an [Outcome]. [Gather] reads the Input, and [Affected] returns the
// CatalogSources to reconcile after a change of another object. [Assess] returns the decision without objects.
//
// # States
//
// The state of a CatalogSource follows from its conditions Available and Progressing:
//
//	                 +----------+
//	   New --------> | Starting | ------------+
//	                 +----------+             v
//	                      |             +----------+   Pods added    +----------+
//	    node fails,       |             | Serving  | <-------------> | Updating |
//	    Pods fail         |             +----------+   or replaced   +----------+
//	                      v                ^    |                       ^    |
//	               +-------------+         |    |  last Pod fails       |    |
//	               | Recovering  | --------+----+-----------------------+    |
//	               +-------------+ <--------------------------------------- -+
//	                   ^    |
//	  another attempt  |    v  backoff, deadline, no usable node
//	               +-------------+
//	               | Unavailable |
//	               +-------------+
//
//	Unknown:  it is unknown whether it serves, for example while a client connects to an address
//	Invalid:  no Pod serves, and the spec is invalid
//	Deleting: reached from any state, and never left
//
// # Pods
//
// A Pod has exactly one [Class]. It follows from the status of the Pod and from the [NodeState] of its Node. A Pod is
// lost if its Node is gone (for 40 s), out of service, unreachable (for 30 s) or not ready (for 60 s), or if the Pod
// still exists 120 s after its deletion time. No replacement waits for the deletion of a lost Pod.
//
// While Pods serve, new Pods start as candidates, which the Service does not select. Candidates become active once they
// are ready. The old Pods are deleted once the new ones are observed to serve. While no Pod serves, new Pods serve as
// soon as they are ready.
//
// Before a Pod that serves is deleted, [AnnotationKeptPod] records the Pod that stays, so that two managers whose
// caches differ do not delete all Pods.
//
// # Polling
//
// An image with a tag is polled if spec.updateStrategy asks for it: a candidate pulls the image again. If the image has
// new content, the candidate becomes active. Otherwise, or if the candidate fails, the candidate is deleted.
// ConditionUpdatePolled records the result of the last poll.
//
// # Source types
//
// An image is served by Pods that run it. A ConfigMap (source types configmap and internal) is served by Pods of OLM's
// config map server. If the content of the ConfigMap changes, its Pods are replaced. The metadata of the ConfigMap is
// ignored, and the ConfigMap is never written. A registry at spec.address is run by others, so there is only a
// connection. Objects of a former source type are deleted once the present source serves.
//
// # Files
//
//	input.go, config.go, reasons.go  the API
//	gather.go                        reads the Input, and maps other objects to CatalogSources
//	facts.go                         observe: Input -> facts
//	standing.go                        whether and how the CatalogSource is served
//	pod.go, podlist.go, node.go        the Pods, with the tables of Pod classes and Node states
//	polling.go, connection.go          the poll that is under way, and the gRPC connection
//	rules.go                         decide: facts -> decision
//	replacement.go, removal.go         which Pods are created and removed
//	keep.go                            the record of the Pod that stays
//	conditions.go, status.go         report: facts, decision -> conditions, status
//	reconcile.go, assess.go          actions, requests, diagnostics
//	content.go, template.go          helpers that do not need an Input
//
// Facts are read-only, and decisions are values. Package internal/registry builds the objects of a registry.
package catalog
