// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/admission"
	"github.com/olmcore/olm/fake/internal/caches"
	"github.com/olmcore/olm/fake/internal/collector"
	"github.com/olmcore/olm/fake/internal/crds"
	"github.com/olmcore/olm/fake/internal/kubelet"
	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workloads"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Cluster is a simulated Kubernetes cluster: an API server with one store, and the controllers and kubelets that OLM
// relies on, which run only when Step or Settle is called. It implements olmcore.Reader and olmcore.Executor. It is not
// safe for concurrent use. Set the exported fields before the first write.
type Cluster struct {
	// AutoCreateNamespaces makes a write to a namespace that does not exist create the namespace first. Otherwise such a
	// write returns a NotFound error, as on an API server.
	AutoCreateNamespaces bool
	// TakesEveryPod lets any node run any Pod, regardless of its requirements. Use it if the nodes of the cluster are not
	// known.
	TakesEveryPod bool
	// Authorize returns an error, usually apierrors.NewForbidden, if an action may not run under its identity. Do returns
	// the error unchanged. Nil allows everything.
	Authorize func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error
	// Webhooks answers the calls of the API server to webhooks. An error means that the call failed. If Webhooks is nil,
	// no webhook is called. Serving makes such a function.
	Webhooks func(call WebhookCall) (WebhookAnswer, error)

	queue       *workqueue.Queue
	store       *store.Store
	collector   *collector.Collector
	namespaces  *collector.Namespaces
	crds        *crds.Controller
	webhooks    *admission.Webhooks
	images      *kubelet.Images
	nodes       *kubelet.Nodes
	deployments *workloads.Deployments
	servers     *workloads.Servers
	caches      *caches.Caches
	faults      Faults

	lastName uint64 // the last number in a generated name
}

// NewCluster returns an empty cluster whose clock shows start.
func NewCluster(start time.Time) *Cluster {
	c := &Cluster{queue: workqueue.New(start)}
	c.store = store.New(c.queue.Now)
	c.store.OnChange = c.changed
	c.collector = collector.New(c.store, c.queue)
	c.namespaces = collector.NewNamespaces(c.store, c.queue)
	c.crds = crds.New(c.store, c.queue)
	c.webhooks = admission.New(c.store, func() func(WebhookCall) (WebhookAnswer, error) { return c.Webhooks })
	c.images = kubelet.NewImages(c.store, c.queue)
	c.nodes = kubelet.New(c.store, c.queue, c.images, func() bool { return c.TakesEveryPod })
	c.deployments = workloads.NewDeployments(c.store, c.queue, c.images, c.nodes)
	c.servers = workloads.NewServers(c.store, c.deployments)
	c.caches = caches.New(c.store)
	return c
}

// Now returns the time of the cluster.
func (c *Cluster) Now() time.Time { return c.queue.Now() }

// ResourceVersion returns the resourceVersion of the last write, or "0" before the first. Two equal values mean that
// nothing changed in between.
func (c *Cluster) ResourceVersion() string { return strconv.FormatUint(c.store.Version(), 10) }

// changed is called after each change of an object.
func (c *Cluster) changed(t *store.Table, current, next olmcore.Object) {
	c.caches.Record(t, current, next)
	c.notify(t, current, next)
}

// Get implements olmcore.Reader. The object is shared with the store and must not be changed; a write never changes it
// but stores a new one. A kind that is not served is a *meta.NoKindMatchError.
func (c *Cluster) Get(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	t, err := c.store.Served(gvk)
	if err != nil {
		return nil, err
	}
	o, err := t.Read(gvk, namespace, name)
	if err != nil || !c.webhooks.Converts(t.Kind, gvk.Version) {
		return o, err
	}
	converted, err := c.webhooks.Convert(t.Kind, []olmcore.Object{t.Get(namespace, name)}, gvk.Version)
	if err != nil {
		return nil, err
	}
	return converted[0], nil
}

// List implements olmcore.Reader. Objects and slice are shared with the store and must not be changed. A kind that is
// not served is a *meta.NoKindMatchError.
func (c *Cluster) List(
	_ context.Context,
	gvk schema.GroupVersionKind,
	namespace string,
	selector labels.Selector,
) ([]olmcore.Object, error) {
	t, err := c.store.Served(gvk)
	if err != nil {
		return nil, err
	}
	if c.webhooks.Converts(t.Kind, gvk.Version) {
		return c.webhooks.Convert(t.Kind, store.Selected(t.List(namespace), selector), gvk.Version)
	}
	return t.ReadAll(gvk, namespace, selector), nil
}

// Objects returns every object, sorted by kind, group, namespace and name. The objects are shared with the store.
func (c *Cluster) Objects() []olmcore.Object { return c.store.Objects() }

// Snapshot returns the cluster's contents as they are now.
func (c *Cluster) Snapshot() (*olmcore.Snapshot, error) {
	return olmcore.NewSnapshot(c.Objects(), olmcore.Everything)
}
