// SPDX-License-Identifier: Apache-2.0

// Package olmruntime runs the library on a real cluster with controller-runtime: reads from a manager's cache, and a queue
// for each Runner of package controllers. Writes, and reads of what is not cached, are those of examples/dynamic.
package olmruntime

import (
	"context"
	"errors"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/olmcore/olm/controllers"
	olmdynamic "github.com/olmcore/olm/examples/dynamic"
	"github.com/olmcore/olm/olmcore"
)

// Manager is a manager that runs the controllers, and the olmcore.Reader and olmcore.Executor that they use. What its cache
// holds is read from there, and shared with it; all else goes to the API server: kinds that are not watched, namespaces
// outside of a shard, and the writes.
type Manager struct {
	ctrl.Manager
	*olmdynamic.Cluster
	watched controllers.Watched
	// read are the API types of the cache's maps, by UID: to make them anew at each read would take longer than all else.
	read sync.Map
}

type readObject struct {
	resourceVersion string
	object          olmcore.Object
	err             error
}

// labelIndex is the name of the cache's index of labels.
const labelIndex = "olm.labels"

// New makes a manager with the options of m, to which other controllers may be added. The library's types are added to its
// scheme, and its cache is bounded by what a shard needs. An empty KubernetesVersion is asked of the API server. told,
// unless nil, hears what each reconcile came to that did or said something.
func New(config *rest.Config, m ctrl.Options, o controllers.Options, told func(controllers.Report)) (*Manager, error) {
	if m.Scheme == nil {
		m.Scheme = runtime.NewScheme()
	}
	watched := o.Watched()
	bound(&m.Cache, watched)
	err := olmcore.AddToScheme(m.Scheme)
	if err != nil {
		return nil, err
	}
	mgr := &Manager{watched: watched}
	if mgr.Cluster, err = olmdynamic.New(config); err != nil {
		return nil, err
	}
	if mgr.Manager, err = ctrl.NewManager(config, m); err != nil {
		return nil, err
	}
	mgr.Mapper, mgr.FieldManager = mgr.GetRESTMapper(), "olm"
	terms := func(o client.Object) []string { return olmcore.IndexTerms(o) }
	for gvk := range watched {
		err = errors.Join(err, mgr.GetFieldIndexer().IndexField(context.Background(), olmcore.Blank(gvk), labelIndex, terms))
	}
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = mgr.Version
	}
	for _, r := range controllers.New(&o).Runners(mgr, mgr) {
		recorder := mgr.GetEventRecorder("olm-" + r.Name)
		r.Cached = watched.Holds
		r.Told = func(report controllers.Report) {
			for _, e := range report.Events() {
				recorder.Eventf(&e.Regarding, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
			}
			if told != nil {
				told(report)
			}
		}
		err = errors.Join(err, mgr.add(r))
	}
	return mgr, err
}

// bound makes a cache hold no more than a shard needs.
func bound(options *cache.Options, watched controllers.Watched) {
	options.DefaultTransform = controllers.Transform
	options.ByObject = map[client.Object]cache.ByObject{}
	for gvk, namespaces := range watched {
		if namespaces == nil {
			continue
		}
		in := map[string]cache.Config{}
		for _, name := range namespaces {
			in[name] = cache.Config{}
		}
		options.ByObject[olmcore.Blank(gvk)] = cache.ByObject{Namespaces: in}
	}
}

// Get implements olmcore.Reader.
func (m *Manager) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if !m.watched.Holds(gvk, namespace) {
		return m.Cluster.Get(ctx, gvk, namespace, name)
	}
	o := olmcore.Blank(gvk)
	if err := m.GetCache().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return m.typed(o)
}

// typed is olmcore.Typed, which it asks once for each version of an object.
func (m *Manager) typed(o olmcore.Object) (olmcore.Object, error) {
	if _, isMap := o.(*unstructured.Unstructured); !isMap || o.GetUID() == "" {
		return olmcore.Typed(o)
	}
	if known, ok := m.read.Load(o.GetUID()); ok && known.(readObject).resourceVersion == o.GetResourceVersion() {
		return known.(readObject).object, known.(readObject).err
	}
	next := readObject{resourceVersion: o.GetResourceVersion()}
	next.object, next.err = olmcore.Typed(o)
	m.read.Store(o.GetUID(), next)
	return next.object, next.err
}

// List implements olmcore.Reader.
func (m *Manager) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if !m.watched.Holds(gvk, namespace) {
		return m.Cluster.List(ctx, gvk, namespace, selector)
	}
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
		if term := olmcore.IndexTerm(selector); term != "" {
			options = append(options, client.MatchingFields{labelIndex: term})
		}
	}
	list := olmcore.BlankList(m.GetScheme(), gvk)
	if err := m.GetCache().List(ctx, list, options...); err != nil {
		return nil, err
	}
	maps, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return olmcore.Items(list)
	}
	var typed metav1.List
	for i := range maps.Items {
		o, err := olmcore.Fitting(m.typed(&maps.Items[i]))
		if err != nil {
			return nil, err
		}
		typed.Items = append(typed.Items, runtime.RawExtension{Object: o})
	}
	return olmcore.Items(&typed)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// add gives a Runner a queue, and fills it from watches. What fails is tried again
// after a delay that doubles from 50 ms to 30 s.
func (m *Manager) add(r *controllers.Runner) error {
	c, err := controller.New("olm-"+r.Name, m.Manager, controller.Options{
		SkipNameValidation: new(true), // a program may have several managers
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 30*time.Second),
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			again, err := r.Run(ctx, request.NamespacedName, time.Now())
			if errors.Is(err, olmcore.ErrInvalidInput) {
				err = reconcile.TerminalError(err) // only a change can help
			}
			return reconcile.Result{RequeueAfter: again}, err
		}),
	})
	if err != nil {
		return err
	}
	err = c.Watch(source.Func(func(_ context.Context, q queue) error { enqueue(q, r.Always); return nil }))
	for gvk := range m.watched {
		err = errors.Join(err, c.Watch(source.Kind[client.Object](m.GetCache(), olmcore.Blank(gvk), m.changes(r))))
	}
	return err
}

// changes turns what watches deliver into keys.
func (m *Manager) changes(r *controllers.Runner) handler.EventHandler {
	changed := func(ctx context.Context, q queue, change controllers.Change) {
		change.At = time.Now()
		keys, err := r.Changed(ctx, r.Reader, change)
		if err != nil {
			log.FromContext(ctx).Error(err, "which keys a change counts for is not known", "object", olmcore.RefOf(change.New).String())
		}
		enqueue(q, keys)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			changed(ctx, q, controllers.Change{New: e.Object, Initial: e.IsInInitialList})
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			changed(ctx, q, controllers.Change{Old: e.ObjectOld, New: e.ObjectNew})
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			m.read.Delete(e.Object.GetUID())
			changed(ctx, q, controllers.Change{New: e.Object, Deleted: true})
		},
	}
}

func enqueue(q queue, keys []types.NamespacedName) {
	for _, key := range keys {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}
