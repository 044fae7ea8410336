// SPDX-License-Identifier: Apache-2.0

// Package olmruntime runs the library on a real cluster with controller-runtime:
// a Reader over a manager's cache, an Executor over its client, and one
// controller for each reconcile function. A program that has a manager already
// copies these files, or calls NewManager as cmd/olm does.
package olmruntime

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// Options has the choices. The zero value runs everything, in all namespaces,
// and resolves nothing.
type Options struct {
	Catalog      catalog.Config
	Subscription subscription.Config
	InstallPlan  installplan.Config
	CSV          csv.Config
	// Namespaces is a shard: only objects of these namespaces are reconciled. The
	// cache then holds Pods, Secrets and the like of these alone, and of the
	// namespaces of the global catalogs and of OLM. Empty: all.
	Namespaces []string
	// KubernetesVersion is the API server's gitVersion; empty: it is asked.
	KubernetesVersion string
	// Resolve answers what Subscriptions ask for; nil leaves it unanswered.
	// Catalogs.Resolve is such a function.
	Resolve func(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error)
	// Connection is the state of the gRPC client of a CatalogSource, which shall
	// dial address; nil: there is no such client, and catalogs are judged by their
	// Pods alone.
	Connection func(source types.NamespacedName, address string) *catalog.Connection
	// FieldValidation is Ignore, Warn or Strict, for all writes; empty: the API
	// server's default.
	FieldValidation string
	// Observe, when set, hears each result that asks or says something, and what
	// became of its actions: the error of olmcore.Run.
	Observe func(controller string, key types.NamespacedName, result olmcore.Result, runErr error)
}

// Failures are tried again after a delay that doubles from firstRetry to
// lastRetry, conflicts once the cache had time to catch up.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
	staleRetry = 10 * time.Millisecond
	// afterWrites is when what was written is looked at again, should no watch
	// report it.
	afterWrites = time.Second
)

// AddToManager adds the controllers to a manager that was made with Scheme,
// CacheOptions and the same Options.
func AddToManager(mgr ctrl.Manager, o Options) error {
	if err := o.complete(mgr.GetConfig()); err != nil {
		return err
	}
	reader := &Reader{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme(), Namespaces: o.cached()}
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	writer := client.WithFieldOwner(mgr.GetClient(), "olm")
	if o.FieldValidation != "" {
		writer = client.WithFieldValidation(writer, client.FieldValidation(o.FieldValidation))
	}
	executor := &Executor{Client: writer, Config: mgr.GetConfig()}
	e := o.embed()
	for _, c := range e.controllers() {
		r := &runner{Controller: c, embedding: e, reader: reader, executor: executor, recorder: mgr.GetEventRecorder("olm-" + c.Name)}
		added, err := controller.New("olm-"+c.Name, mgr, controller.Options{
			Reconciler: r, SkipNameValidation: new(true),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
		if err != nil {
			return err
		}
		for gvk := range watchedKinds {
			if err := added.Watch(source.Kind(mgr.GetCache(), prototype(gvk), r.handler())); err != nil {
				return err
			}
		}
	}
	return nil
}

// runner runs one Controller.
type runner struct {
	Controller
	*embedding
	reader   olmcore.Reader
	executor olmcore.Executor
	recorder events.EventRecorder
	memory   memory
}

// Reconcile implements reconcile.Reconciler.
func (r *runner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key, now := request.NamespacedName, time.Now().UTC()
	last := r.memory.get(key)
	result, err := r.Controller.Reconcile(ctx, r.reader, key, now, last.outcomes)
	switch {
	case olmcore.Classify(err) == olmcore.Gone:
		r.memory.set(key, remembered{})
		return reconcile.Result{}, nil
	case errors.Is(err, olmcore.ErrInvalidInput):
		return reconcile.Result{}, reconcile.TerminalError(err) // only a change can help
	case err != nil:
		return reconcile.Result{}, err
	}
	said := tell(r.recorder, result, last.said)
	runErr := olmcore.Run(ctx, r.executor, result.Actions)
	if r.Observe != nil && !result.Empty() {
		r.Observe(r.Name, key, result, runErr)
	}
	next := remembered{said: said}
	switch {
	case len(result.Actions) > 0:
		next.outcomes = olmcore.OutcomesOf(last.outcomes, result.Actions, runErr, now)
		result.Requeue(afterWrites)
	case !result.Empty() || result.RequeueAfter > 0:
		next.outcomes = last.outcomes
	}
	r.memory.set(key, next)
	if errors.Is(runErr, olmcore.ErrStale) || ctx.Err() != nil {
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	}
	return reconcile.Result{RequeueAfter: result.RequeueAfter}, runErr
}

// handler turns what watches report into keys.
func (r *runner) handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			// Every key comes with its own object: what else is there at the start need not ask for it.
			if !e.IsInInitialList || slices.Contains(r.Kinds, olmcore.GVKOf(e.Object)) {
				r.enqueue(ctx, q, change{next: e.Object})
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.enqueue(ctx, q, change{old: e.ObjectOld, next: e.ObjectNew})
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.enqueue(ctx, q, change{next: e.Object, deleted: true})
		},
	}
}

// change is one event of a watch.
type change struct {
	old, next client.Object
	deleted   bool
}

func (r *runner) enqueue(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], c change) {
	next, err := typed(c.next)
	if err != nil {
		log.FromContext(ctx).Error(err, "an object cannot be read", "object", olmcore.RefOf(c.next).String())
		return
	}
	keys := r.Affected(next)
	var old olmcore.Object
	if c.old != nil {
		if old, err = typed(c.old); err == nil {
			keys = append(keys, r.Affected(old)...)
		}
	}
	if r.see != nil {
		r.see(old, next, c.deleted, time.Now().UTC())
	}
	keys, err = r.expand(ctx, keys)
	if err != nil {
		log.FromContext(ctx).Error(err, "the keys that a change affects cannot be listed", "object", olmcore.RefOf(next).String())
		return
	}
	if r.ByNamespace && slices.Contains(r.Kinds, olmcore.GVKOf(next)) {
		keys = append(keys, types.NamespacedName{Namespace: next.GetNamespace()}) // the last of its namespace may have gone
	}
	for _, key := range keys {
		if len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, key.Namespace) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
}

// expand replaces the wildcards among keys by the keys that exist.
func (r *runner) expand(ctx context.Context, keys []types.NamespacedName) ([]types.NamespacedName, error) {
	if !slices.ContainsFunc(keys, func(k types.NamespacedName) bool { return k.Name == "" }) {
		return keys, nil
	}
	var known []types.NamespacedName
	for _, gvk := range r.Kinds {
		objects, err := r.reader.List(ctx, gvk, "", nil)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			known = append(known, r.keyOf(o))
		}
	}
	return olmcore.ExpandKeys(keys, known), nil
}

func (r *runner) keyOf(o olmcore.Object) types.NamespacedName {
	if r.ByNamespace {
		return types.NamespacedName{Namespace: o.GetNamespace()}
	}
	return client.ObjectKeyFromObject(o)
}
