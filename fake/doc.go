// SPDX-License-Identifier: Apache-2.0

// Package fake is a simulated Kubernetes cluster to test reconcilers in: an API server with one store, and the
// controllers and kubelets that OLM relies on. It starts no goroutine, draws no random number and reads no clock: every
// choice is a method that the caller picks, so a run can be repeated, shrunk and compared.
//
//	c := fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
//	c.AutoCreateNamespaces = true
//	err := c.AddNode("a", nil)
//	err = c.Create(catalogSource)               // as a person with kubectl
//	res, err := catalog.Reconcile(input)        // input gathered from c, an olmcore.Reader
//	err = olmcore.Run(ctx, c, res.Actions)      // c is an olmcore.Executor
//	err = c.Settle()                            // Pods are scheduled, start, become ready
//	err = c.FailNode("a")                       // the node falls silent
//	err = c.RunFor(time.Minute)                 // the world goes on, deadline by deadline
//	pod := fake.Find[*corev1.Pod](c, "ns", "name")
//
// # The API server
//
// One store, one resourceVersion counter, UIDs "1", "2", ... from another, real apierrors. Create, Update,
// UpdateStatus, Delete, Edit and Patch act as a person; Do acts as a controller and is where Inject makes things go
// wrong. Load takes whole objects as they are, for dumps of real clusters. Kinds of Kubernetes and OLM are always
// served, others once their CRD is established, after Serve, or after Load; else the error is a *meta.NoKindMatchError.
//
// Preconditions (UID and resourceVersion in the Ref or object), status as a subresource, generation, finalizers,
// deletionTimestamp, grace periods and names work as on an API server; a write that changes nothing changes no
// resourceVersion, and setting a deletionTimestamp counts a generation. Metadata is validated; of content only what OLM
// can run into, see validate.go. Fields that are left out get their defaults before anything is compared: those of
// Kubernetes' kinds, and those that the schemas of CRDs say, OLM's own among them; Pods also get the token of their
// ServiceAccount. What is stored, refused and deleted is compared with a real API server (internal/controlplane). Two
// differences are on purpose: a Service's name must not begin with a digit, as before Kubernetes 1.34, and a headless
// Service without a selector has one family of addresses. There is no schema validation of custom resources and, unless
// Authorize is set, no RBAC.
//
// # Webhooks
//
// Unless Webhooks is set, no webhook is called. With it, a write of a person or a controller asks the webhooks of the
// stored configurations, mutating ones first, each in the order of names; they are selected by operations, groups,
// resources, scope, namespaceSelector and objectSelector. All served versions of a resource count as equivalent, and
// there are no matchConditions, no second round for mutating webhooks and no CONNECT. What the simulation itself writes
// is not shown to them. Custom resources whose CRD has a conversion webhook are converted by it when Get, List, Create,
// Update or UpdateStatus mean another version than the stored one; patches, Views and what is stored in an older
// version need none.
//
// Serving makes a function for Webhooks with which workloads answer: the call needs a Service, running Pods behind it
// and a certificate that the caBundle trusts. CheckServing tries all that the cluster names.
//
//	c.Webhooks = c.Serving(nil)                 // all allow everything
//	err := c.CheckServing()                     // would each of them be reached now?
//
// # Sharing
//
// Objects are copied on their way in. On the way out they are shared: a stored object is never changed, a write stores
// a new one. That is safe because readers promise to change nothing (olmcore.Reader); WatchSharing and Verify catch one
// who does.
//
// # The rest of the cluster
//
// Step lets the simulation do one thing, Settle everything that can happen at this instant. Advance only moves the
// clock; RunFor moves it through every deadline of the simulation. Simulated are: the garbage collector; the namespace
// controller; CRDs becoming established, and deleting their instances; the scheduler; kubelets with images that
// SetImage and BreakImage know; the node controller with its grace period, taints and evictions; the collection of Pods
// whose node is gone; Deployments becoming available, with the revision of their template, without ReplicaSets and
// Pods; APIServices becoming available. Jobs finish with FinishJob.
//
// # Views and faults
//
// View is a cache that lags behind the cluster, kind by kind, until it is updated. Its Watch is called with each event.
// Driver runs controllers until nothing changes, and records their actions as Events. Lags makes the caches of
// controllers lag, kind by kind. AfterAction is called after every write. It can check invariants, change the cluster
// as a user does, or stop the run:
//
//	d := &fake.Driver{Cluster: c, Controllers: controllers}
//	d.Lags = map[string]fake.Lag{"catalog": {{}: 1, {Kind: "Pod"}: 3}}
//	d.AfterAction = func(e controller.Event) error { return check(c) }
//	err := d.RunFor(ctx, time.Hour)
package fake
