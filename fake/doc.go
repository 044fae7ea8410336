// SPDX-License-Identifier: Apache-2.0

// Package fake is a simulated Kubernetes cluster to test reconcilers in: an API server with one store, and the
// controllers and kubelets that OLM relies on. It starts no goroutine, draws no random number and reads no clock. Every
// choice is a method that the caller calls, so a run can be repeated, shrunk and compared.
//
//	c := fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
//	c.AutoCreateNamespaces = true
//	err := c.Node("a").Create(nil)
//	err = c.Create(catalogSource)               // as a user with kubectl
//	res, err := catalog.Reconcile(input)        // input gathered from c, an olmcore.Reader
//	err = olmcore.Run(ctx, c, res.Actions)      // c is an olmcore.Executor
//	err = c.Settle()                            // Pods are scheduled, start, become ready
//	err = c.Node("a").Fail()                    // the kubelet stops
//	err = c.RunFor(time.Minute)                 // the simulation runs, deadline by deadline
//	pod := fake.Find[*corev1.Pod](c, "ns", "name")
//
// # The API server
//
// There is one store and one counter of resourceVersions. Another counter makes the UIDs "1", "2" and so on. Errors are
// those of apierrors. Create, Update, UpdateStatus, Delete, Edit and Patch act as a user. Do acts as a controller, and
// Faults affect only its writes. Load stores whole objects unchanged, for dumps of real clusters. The kinds of
// Kubernetes and OLM are always served. Other kinds are served once their CRD is established, after Discovery.Serve, or
// after Load. Access to a kind that is not served returns a *meta.NoKindMatchError.
//
// Preconditions (UID and resourceVersion in the Ref or object), status as a subresource, generation, finalizers,
// deletionTimestamp, grace periods and names work as on an API server. A write that changes nothing changes no
// resourceVersion. Setting a deletionTimestamp increments the generation. The metadata of every kind is validated. Of
// the content, only those fields are validated that make writes of OLM fail, see validate.go. Omitted fields get
// their defaults before anything is compared: those of the kinds of Kubernetes, and those in the schemas of CRDs,
// including OLM's. Pods also get the token of their ServiceAccount. Stored, rejected and deleted objects are compared
// with those of a real API server (internal/controlplane). There are two intended differences. The name of a Service
// must not begin with a digit, as before Kubernetes 1.34. A headless Service without a selector has one family of
// addresses. There is no schema validation of custom resources and, unless Authorize is set, no RBAC.
//
// # Webhooks
//
// Unless Webhooks is set, no webhook is called. If it is set, a write of a user or a controller calls the webhooks of
// the stored configurations, mutating ones first, each in the order of names. They are selected by operations,
// groups, resources, scope, namespaceSelector and objectSelector. All served versions of a resource are equivalent.
// There are no matchConditions, no second round for mutating webhooks and no CONNECT. Webhooks are not called for
// writes of the simulation itself. A conversion webhook converts custom resources if Get, List, Create, Update or
// UpdateStatus use another version than the stored one. Patches, Views and objects stored in an older version are not
// converted.
//
// Serving makes a function for Webhooks that lets workloads answer. The call needs a Service, running Pods behind it
// and a certificate that the caBundle verifies. Serving.Check calls every webhook and APIService of the cluster.
//
//	c.Webhooks = c.Serving().Webhooks(nil)      // all webhooks allow everything
//	err := c.Serving().Check()                  // can each of them be reached now?
//
// # Sharing
//
// Objects are copied when they are written, and shared when they are read. A stored object is never changed: a write
// stores a new one. Readers must not change what they read (olmcore.Reader). Sharing detects a reader that does.
//
// # The rest of the cluster
//
// Step lets the simulation do one thing. Settle lets it do everything that can happen at this instant. Advance only
// moves the clock. RunFor moves it through every deadline of the simulation. These parts of a cluster are simulated:
//
//   - the garbage collector and the namespace controller
//   - CRDs, which become established, and delete their instances
//   - the scheduler, and kubelets with images, see Node and Image
//   - the node controller with its grace period, taints and evictions
//   - the garbage collection of Pods whose node does not exist
//   - Deployments, which become available and have the revision of their template, without ReplicaSets and Pods, see
//     Deployment
//   - APIServices, which become available
//
// Jobs finish with Job.Finish.
//
// # Views and faults
//
// A View is a stale cache. It takes in events kind by kind when the caller tells it to, and calls its Watch for each.
// Driver runs controllers until nothing changes, and records their actions as Events. Lags sets how stale the reads of a
// controller are, kind by kind. AfterAction is called after every write. It can check invariants, change the
// cluster as a user does at the worst moment, or stop:
//
//	d := &fake.Driver{Cluster: c, Controllers: controllers}
//	d.Lags = map[string]fake.Lag{"catalog": {{}: 1, {Kind: "Pod"}: 3}}
//	d.AfterAction = func(e controller.Event) error { return check(c) }
//	err := d.RunFor(ctx, time.Hour)
package fake
