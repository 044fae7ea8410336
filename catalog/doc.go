// SPDX-License-Identifier: Apache-2.0

// Package catalog decides what one CatalogSource needs: the registry Pods that serve its content, the objects around them,
// and a status that says which Pods serve, on which nodes, and why a replacement happened.
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
// A Pod has exactly one [Class]: the first row that fits of the table in class.go, in this order: Foreign, Terminated, Lost,
// Terminating, Outdated, Disrupted, Serving, Unhealthy, Stuck, Starting. It follows from the Pod's own status and from the
// state of its node ([NodeState]). A Pod is Lost when its node is gone (for 40 s), out of service, unreachable (for 30 s) or
// not ready (for 60 s), or when it outlives its deletion (by 120 s). No replacement waits for a lost Pod to go.
//
// While Pods serve, new ones start as candidates, which the Service does not select. They take over once they are ready, and
// only when they are observed to serve are the others deleted. While nothing serves, new Pods serve as soon as they are ready.
//
// # Polling
//
// An image with a tag is polled when spec.updateStrategy asks for it: a candidate pulls it anew. With new content it takes
// over as any candidate does; with the content that is served, or when it fails, it is deleted. ConditionUpdatePolled records
// what became of the last poll.
//
// # Source types
//
// An image is served by Pods that run it, a ConfigMap (configmap, internal) by Pods of OLM's config map server. What the
// ConfigMap holds decides whether they are replaced; its metadata do not matter, and nothing is written to it. An address is
// a registry that others run: there is only the connection. What a former type needed is deleted once the present one serves.
//
// # Inside
//
// Input -> facts (observed, classified) -> plan -> report (conditions) -> actions, status. internal/registry builds the
// objects of a registry.
package catalog
