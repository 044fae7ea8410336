// SPDX-License-Identifier: Apache-2.0

// Package catalog decides what one CatalogSource needs: the registry Pods that serve its content, the objects around
// them, and a status that says which Pods serve, on which nodes, and why a replacement happened.
//
// [Reconcile] takes an [Input] and returns an [Outcome]; [Gather] reads the Input, [Affected] says when to ask again.
// [Assess] is the decision without objects.
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
//	Unknown:  whether it serves is not known (an address that is being connected)
//	Invalid:  nothing serves and the spec cannot be carried out
//	Deleting: from any state, and the last one
//
// # Pods
//
// A Pod has exactly one [Class]: the first row of the table in pod.go that matches. It follows from the status of the
// Pod and from the [NodeState] of its Node, which is the first row that matches of the table in node.go. A Pod is
// lost if its Node is gone (for 40 s), out of service, unreachable (for 30 s) or not ready (for 60 s), or if the Pod
// outlives its deletion (by 120 s). No replacement waits for the deletion of a lost Pod.
//
// While Pods serve, new Pods start as candidates, which the Service does not select. Candidates take over once they
// are ready. Only when they are observed to serve are the other Pods deleted. While no Pod serves, new Pods serve as
// soon as they are ready.
//
// # Polling
//
// An image with a tag is polled if spec.updateStrategy asks for it: a candidate pulls the image again. If the image
// has new content, the candidate takes over. Otherwise, or if the candidate fails, it is deleted.
// ConditionUpdatePolled records the result of the last poll.
//
// # Source types
//
// An image is served by Pods that run it, a ConfigMap (configmap, internal) by Pods of OLM's config map server. The
// content of the ConfigMap decides whether its Pods are replaced; its metadata do not matter, and nothing is written
// to it. An address is a registry that others run, so there is only a connection. Objects of a former source type are
// deleted once the present source serves.
//
// # Inside
//
// Every file is one step or one subject:
//
//	input.go, config.go       what the caller passes
//	gather.go                 reads the Input; the relations of other objects to CatalogSources
//	facts.go                  observe: Input -> facts, with standing.go, pod.go, podlist.go, node.go, polling.go, connection.go
//	rules.go                  decide: facts -> decision, with replacement.go, removal.go, polling.go
//	conditions.go, status.go  report: facts, decision -> conditions, status
//	reconcile.go, assess.go   actions, requests, diagnostics
//
// Facts are read-only, and decisions are values. internal/registry builds the objects of a registry.
package catalog
