// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Cluster is a simulated Kubernetes cluster: an API server with one store, and the controllers and kubelets that OLM
// relies on, which run only when Step or Settle is called. It implements olmcore.Reader and olmcore.Executor. It is not
// safe for concurrent use. Set the exported fields before the first write.
type Cluster struct {
	// AutoCreateNamespaces makes a write to a namespace that does not exist create
	// it first. Otherwise such a write is NotFound, as on an API server.
	AutoCreateNamespaces bool
	// TakesEveryPod lets any node run any Pod, whatever that asks of nodes, as where the nodes of a cluster are not known.
	TakesEveryPod bool
	// Authorize decides whether an action may run under its identity; nil allows
	// everything. The error is returned as it is, usually apierrors.NewForbidden.
	Authorize func(as *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error
	// Webhooks answers the API server's calls to webhooks; an error means that the call failed. nil: none is called.
	// Serving makes such a function.
	Webhooks func(call WebhookCall) (WebhookAnswer, error)

	queue *workqueue.Queue

	version  uint64 // the resourceVersion of the last write
	lastUID  uint64
	lastName uint64
	lastIP   uint64

	tables map[schema.GroupKind]*table
	uids   map[types.UID]olmcore.Object
	owned  map[types.UID]map[olmcore.Key]bool // dependants by the UID of their owner
	// outside holds UIDs of owners that loaded objects name but that were not
	// loaded themselves: they exist where the objects come from.
	outside map[types.UID]bool
	// twins holds a private copy of every stored object, for Verify; nil when off.
	twins map[olmcore.Object]olmcore.Object

	kubelets map[string]*kubelet
	goneAt   map[string]time.Time // when a Node object went
	images   map[string]image
	held     map[types.UID]bool // loaded Pods and Deployments that stay as they are
	broken   map[types.NamespacedName]string
	// revisions of Deployments, by UID.
	revisions map[types.UID]revision
	started   map[types.UID]started // Deployments whose Pods mount something
	// handshakes are those that succeeded.
	handshakes handshakes

	views  []*View
	logs   map[schema.GroupKind]*eventLog
	faults Faults
}

// NewCluster returns an empty cluster whose clock shows start.
func NewCluster(start time.Time) *Cluster {
	c := &Cluster{
		queue:    workqueue.New(start),
		tables:   map[schema.GroupKind]*table{},
		uids:     map[types.UID]olmcore.Object{},
		owned:    map[types.UID]map[olmcore.Key]bool{},
		outside:  map[types.UID]bool{},
		kubelets: map[string]*kubelet{},
		goneAt:   map[string]time.Time{},
		images:   map[string]image{},
		held:     map[types.UID]bool{},
		broken:   map[types.NamespacedName]string{},

		revisions: map[types.UID]revision{},
		started:   map[types.UID]started{},

		handshakes: handshakes{},
		logs:       map[schema.GroupKind]*eventLog{},
	}
	for _, k := range builtinKinds() {
		c.tables[k.groupKind()] = newTable(k)
	}
	return c
}

// Now returns the cluster's time.
func (c *Cluster) Now() time.Time { return c.queue.Now() }

// ResourceVersion returns the resourceVersion of the last write; "0" before the
// first. Two equal values mean that nothing changed in between.
func (c *Cluster) ResourceVersion() string { return formatCounter(c.version) }

// Get implements olmcore.Reader. The object is shared with the store and must not be changed; a write never changes it
// but stores a new one. A kind that is not served is a *meta.NoKindMatchError.
func (c *Cluster) Get(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	t, err := c.table(gvk)
	if err != nil {
		return nil, err
	}
	o, err := t.read(gvk, namespace, name)
	if err != nil || !c.converts(t.kind, gvk.Version) {
		return o, err
	}
	converted, err := c.convert(t.kind, []olmcore.Object{t.get(namespace, name)}, gvk.Version)
	if err != nil {
		return nil, err
	}
	return converted[0], nil
}

func (t *table) read(gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o := t.get(namespace, name)
	if o == nil {
		return nil, apierrors.NewNotFound(t.kind.groupResource(), name)
	}
	return t.kind.inVersion(o, gvk.Version), nil
}

// List implements olmcore.Reader. Objects and slice are shared with the store and must not be changed. A kind that is
// not served is a *meta.NoKindMatchError.
func (c *Cluster) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	t, err := c.table(gvk)
	if err != nil {
		return nil, err
	}
	if c.converts(t.kind, gvk.Version) {
		return c.convert(t.kind, selected(t.list(namespace), selector), gvk.Version)
	}
	return t.readAll(gvk, namespace, selector), nil
}

func (t *table) readAll(gvk schema.GroupVersionKind, namespace string, selector labels.Selector) []olmcore.Object {
	objects := selected(t.list(namespace), selector)
	if t.kind.goType != nil || gvk.Version == "" || gvk.Version == t.kind.gvk.Version {
		return objects
	}
	converted := make([]olmcore.Object, len(objects))
	for i, o := range objects {
		converted[i] = t.kind.inVersion(o, gvk.Version)
	}
	return converted
}

// inVersion converts as a CRD with the conversion strategy None does: only apiVersion changes.
func (k *kind) inVersion(o olmcore.Object, version string) olmcore.Object {
	if k.goType != nil || version == "" || version == k.gvk.Version {
		return o
	}
	u := shallow(o).(*unstructured.Unstructured)
	u.SetGroupVersionKind(k.groupKind().WithVersion(version))
	return u
}

// Objects returns every object, sorted by kind, group, namespace and name. The objects are shared with the store.
func (c *Cluster) Objects() []olmcore.Object {
	objects := make([]olmcore.Object, 0, len(c.uids))
	for _, k := range c.sortedKinds() {
		objects = append(objects, c.tables[k].list("")...)
	}
	return objects
}

// Snapshot returns the cluster's contents as they are now.
func (c *Cluster) Snapshot() (*olmcore.Snapshot, error) {
	return olmcore.NewSnapshot(c.Objects(), olmcore.Everything)
}

func (c *Cluster) sortedKinds() []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(c.tables))
	for k, t := range c.tables {
		if t.count > 0 {
			kinds = append(kinds, k)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return olmcore.Key{Kind: a.Kind, Group: a.Group}.Compare(olmcore.Key{Kind: b.Kind, Group: b.Group})
	})
	return kinds
}

func formatCounter(n uint64) string { return strconv.FormatUint(n, 10) }

func groupKind(key olmcore.Key) schema.GroupKind {
	return schema.GroupKind{Group: key.Group, Kind: key.Kind}
}

func lookup[T olmcore.Object](c *Cluster, k schema.GroupKind, namespace, name string) T {
	var none T
	if t := c.tables[k]; t != nil {
		if o, ok := t.get(namespace, name).(T); ok {
			return o
		}
	}
	return none
}
