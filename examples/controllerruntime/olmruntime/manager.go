// SPDX-License-Identifier: Apache-2.0

// Package olmruntime runs the library on a real cluster with controller-runtime: reads from a manager's cache, and a
// queue for each Runner of package controllers. Writes, and reads of what is not cached, are those of olmdynamic.
package olmruntime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/installplan/crvalidation"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// Manager is a manager that runs the controllers, and the olmcore.Reader and olmcore.Executor that they use. What a
// cache holds is read from there; all else goes to the API server: kinds that are not watched, namespaces outside of a
// shard, and the writes.
type Manager struct {
	ctrl.Manager
	*olmdynamic.Cluster
	controllers.Indexes
	// Apart says why kinds are not read from the manager's cache but from one that the library has for itself: see
	// NewCache. Kinds that it always keeps for itself, as controllers.Watched.Transform makes them, are not named.
	Apart map[schema.GroupVersionKind]string

	options Options
	watched controllers.Watched
	// caches are where each of the watched kinds is read from. scheme has the library's types.
	caches map[schema.GroupVersionKind]cache.Cache
	// entire are the kinds of which the library's own cache holds all objects as they are: those that other controllers
	// watch.
	entire sets.Set[schema.GroupVersionKind]
	scheme *runtime.Scheme
	events *eventWriter
}

// Options are those of the controllers, and what is this adapter's alone. The zero value works. Without a Judge custom
// resources are judged by crvalidation.Live, which lists them from the API server: those of each
// CustomResourceDefinition that a plan gives other schemas, and of no other.
type Options struct {
	controllers.Options
	// SkipJudge leaves Judge nil where it is: no plan is refused for custom resources.
	SkipJudge bool
	// OnReport, if set, is called after each reconcile that had an action, Transition or Diagnostic.
	OnReport func(controller.Report)
	// FieldManager and FieldValidation (Ignore, Warn or Strict) go with each write; empty: olm, and the API server's
	// default.
	FieldManager, FieldValidation string
	// Controller returns the options of a controller by its name, such as controllers.Catalog: its rate limiter, how many
	// keys it reconciles at once. What is not set is the manager's; without a RateLimiter what fails is tried again after
	// a delay that doubles from 50 ms to 30 s. The Reconciler is the library's.
	Controller func(name string) runtimecontroller.Options
	// Predicates are asked of every change before a controller hears of it. What they refuse is not noticed.
	Predicates []predicate.Predicate
}

// New makes a manager with the options of m, to which other controllers may be added, and runs the controllers with it
// as SetupWithManager does. What m leaves open is set: a scheme with the library's types, and the cache that
// CacheOptions and NewCache make.
func New(config *rest.Config, m ctrl.Options, o Options, only ...string) (*Manager, error) {
	if m.Scheme == nil {
		m.Scheme = runtime.NewScheme()
		if err := decode.AddToScheme(m.Scheme); err != nil {
			return nil, err
		}
	}
	if m.NewCache == nil {
		m.NewCache = NewCache
	}
	if m.Controller.SkipNameValidation == nil {
		m.Controller.SkipNameValidation = new(true) // a program may have several managers
	}
	m.Cache = CacheOptions(o.Options, m.Cache)
	mgr, err := ctrl.NewManager(config, m)
	if err != nil {
		return nil, err
	}
	return SetupWithManager(mgr, o, only...)
}

// SetupWithManager runs controllers with a manager: those of the names only, without names all of them. What these do
// not read is not watched: the account needs the Rights of the names alone. Nothing of the manager is changed. Objects
// are read from its cache where NewCache made that and it holds all that is needed of a kind, else from a cache of the
// library's own, which starts and ends with the manager. The manager's Controller options hold for the controllers,
// which are called olm-NAME: a second one of a name is refused, unless they skip the validation of names. An empty
// KubernetesVersion is asked of the API server. The error is of that, of the names, or of the manager.
func SetupWithManager(mgr ctrl.Manager, o Options, only ...string) (*Manager, error) {
	m := &Manager{Manager: mgr, options: o, watched: o.Watched(only...), scheme: runtime.NewScheme(), entire: sets.New[schema.GroupVersionKind]()}
	err := decode.AddToScheme(m.scheme)
	if err != nil {
		return nil, err
	}
	if m.Cluster, err = olmdynamic.New(mgr.GetConfig()); err != nil {
		return nil, err
	}
	m.Mapper, m.FieldManager, m.FieldValidation = mgr.GetRESTMapper(), cmp.Or(o.FieldManager, "olm"), o.FieldValidation
	if m.options.KubernetesVersion == "" {
		m.options.KubernetesVersion = m.Version
	}
	if m.options.Judge == nil && !m.options.SkipJudge {
		m.options.Judge = crvalidation.Live(m.Cluster)
	}
	m.Indexes.Watched = m.watched
	if m.events, err = newEvents(mgr); err != nil {
		return nil, err
	}
	set := controllers.New(&m.options.Options)
	if err := errors.Join(set.Only(only...), m.chooseCaches()); err != nil {
		return nil, err
	}
	for _, r := range set.Runners(m, m) {
		name := "olm-" + r.Name
		r.Cached, r.OnReport = m.watched.Holds, m.tell(name)
		if err := m.add(name, r, sets.KeySet(m.watched).UnsortedList()); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// tell returns the OnReport function of a controller. It records Events, and calls Options.OnReport.
func (m *Manager) tell(name string) func(controller.Report) {
	recorder := m.events.recorder(name)
	return func(report controller.Report) {
		for _, e := range controllers.Events(report) {
			recorder.Eventf(&e.Regarding, nil, e.Type, e.Reason, "Reconcile", "%s", e.Note)
		}
		if m.options.OnReport != nil {
			m.options.OnReport(report)
		}
	}
}

// Get implements olmcore.Reader.
func (m *Manager) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if !m.watched.Holds(gvk, namespace) {
		return m.Cluster.Get(ctx, gvk, namespace, name)
	}
	if m.isKept(gvk) {
		return m.whole().Get(ctx, gvk, namespace, name)
	}
	o := decode.Blank(gvk)
	if err := m.caches[gvk].Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	return o, nil
}

// List implements olmcore.Reader.
func (m *Manager) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if !m.watched.Holds(gvk, namespace) {
		return m.Cluster.List(ctx, gvk, namespace, selector)
	}
	if m.isKept(gvk) {
		return m.whole().List(ctx, gvk, namespace, selector)
	}
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
		if term := olmcore.IndexTerm(gvk, selector); term != "" {
			options = append(options, client.MatchingFields{labelIndex: term})
		}
	}
	list := decode.BlankList(m.scheme, gvk)
	if err := m.caches[gvk].List(ctx, list, options...); err != nil {
		return nil, err
	}
	return decode.Items(list)
}

// ListMetadata implements olmcore.IndexedReader.
func (m *Manager) ListMetadata(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if m.watched.Holds(gvk, namespace) && m.isKept(gvk) {
		return m.whole().ListMetadata(ctx, gvk, namespace, selector)
	}
	return m.List(ctx, gvk, namespace, selector)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// add gives a Runner a queue, and fills it from watches of kinds.
func (m *Manager) add(name string, r *controller.Runner, kinds []schema.GroupVersionKind) error {
	var options runtimecontroller.Options
	if m.options.Controller != nil {
		options = m.options.Controller(r.Name)
	}
	if options.RateLimiter == nil {
		options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 30*time.Second)
	}
	options.Reconciler = reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		again, err := r.Run(ctx, request.NamespacedName, time.Now())
		switch {
		case ctx.Err() != nil:
			err = nil // the manager stops
		case errors.Is(err, olmcore.ErrInvalidInput):
			err = reconcile.TerminalError(err) // only a change can help
		}
		return reconcile.Result{RequeueAfter: again}, err
	})
	c, err := runtimecontroller.New(name, m.Manager, options)
	if err != nil {
		return err
	}
	err = c.Watch(source.Func(func(ctx context.Context, q queue) error {
		enqueue(q, r.Always)
		if m.options.Watch != nil {
			go m.options.Watch(ctx, func(change controller.Change) { m.changed(ctx, r, q, change) })
		}
		return nil
	}))
	predicates := make([]predicate.Predicate, len(m.options.Predicates))
	for i, p := range m.options.Predicates {
		predicates[i] = delivered{p}
	}
	for _, gvk := range kinds {
		err = errors.Join(err, c.Watch(source.Kind(m.caches[gvk], client.Object(decode.Blank(gvk)), m.changes(r), predicates...)))
	}
	return err
}

// changed enqueues the keys that a change counts for.
func (m *Manager) changed(ctx context.Context, r *controller.Runner, q queue, change controller.Change) {
	change.At = time.Now()
	m.Drop(change.New)
	m.Cluster.Changed(change.New)
	keys, err := r.Changed(ctx, r.Reader, change)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "which keys a change counts for is not known", "object", olmcore.RefOf(change.New).String())
	}
	enqueue(q, keys)
}

// changes turns what watches deliver into keys.
func (m *Manager) changes(r *controller.Runner) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			m.changed(ctx, r, q, controller.Change{New: e.Object, Initial: e.IsInInitialList})
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			m.changed(ctx, r, q, controller.Change{Old: e.ObjectOld, New: e.ObjectNew})
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			m.changed(ctx, r, q, controller.Change{New: e.Object, Deleted: true})
		},
	}
}

func enqueue(q queue, keys []types.NamespacedName) {
	for _, key := range keys {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}
