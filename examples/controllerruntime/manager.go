// SPDX-License-Identifier: Apache-2.0

// Package olmruntime runs the library on a real cluster with controller-runtime:
// a Reader over a manager's cache, an Executor over its client, and a runner of
// what package controllers makes of the reconcile functions. Copy these files into
// a program that has a manager already, or call NewManager as cmd/olm does.
package olmruntime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// Options has the choices. The zero value runs the controllers in all namespaces
// and resolves nothing.
type Options struct {
	// Options are those of the controllers. An empty KubernetesVersion is asked of
	// the API server.
	controllers.Options
	// Namespaces is a shard: only objects of these namespaces are reconciled. The
	// cache then holds Pods, Secrets and the like of these alone, and of the
	// namespaces of the global catalogs and of OLM. Empty: all.
	Namespaces []string
	// FieldValidation is Ignore, Warn or Strict, for all writes; empty: the API
	// server's default.
	FieldValidation string
	// Observe, when set, hears each result that asks or says something, and what
	// became of its actions: the error of olmcore.Run.
	Observe func(controller string, key types.NamespacedName, result olmcore.Result, runErr error)
}

// Failures are tried again after a delay that doubles from firstRetry to
// lastRetry.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// AddToManager adds the controllers to a manager that was made with Scheme,
// CacheOptions and the same Options.
func AddToManager(mgr ctrl.Manager, o Options) error {
	if err := o.complete(mgr.GetConfig()); err != nil {
		return err
	}
	if err := addIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	wrap := func(c client.Client) client.Client {
		c = client.WithFieldOwner(c, "olm")
		if o.FieldValidation != "" {
			c = client.WithFieldValidation(c, client.FieldValidation(o.FieldValidation))
		}
		return c
	}
	executor := &Executor{Client: wrap(mgr.GetClient()), Config: mgr.GetConfig(), Wrap: wrap}
	reader := &Reader{Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme(), Namespaces: o.cached()}
	set := controllers.New(&o.Options)
	for _, c := range set.Controllers {
		recorder := mgr.GetEventRecorder("olm-" + c.Name)
		r := &runner{namespaces: o.Namespaces, Runner: &controllers.Runner{
			Controller: c, Reader: reader, Executor: executor, Cached: watched,
			Told: func(report controllers.Report) {
				tell(recorder, report)
				if o.Observe != nil {
					o.Observe(c.Name, report.Key, report.Result, report.Err)
				}
			},
		}}
		if c.Name == controllers.Subscription {
			r.notice = set.Notice
		}
		added, err := controller.New("olm-"+c.Name, mgr, controller.Options{
			Reconciler: r, SkipNameValidation: new(true),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
		if err != nil {
			return err
		}
		if err := added.Watch(source.Func(r.always)); err != nil {
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

// runner is a controllers.Runner with a queue of its keys.
type runner struct {
	*controllers.Runner
	// namespaces are those of the shard; empty: all.
	namespaces []string
	// notice, when set, hears every change.
	notice func(old, next olmcore.Object, deleted bool, now time.Time)
}

// Reconcile implements reconcile.Reconciler.
func (r *runner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	again, err := r.Run(ctx, request.NamespacedName, time.Now().UTC())
	if errors.Is(err, olmcore.ErrInvalidInput) {
		err = reconcile.TerminalError(err) // only a change can help
	}
	return reconcile.Result{RequeueAfter: again}, err
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// always puts what there is to reconcile whatever the cluster holds into the queue.
func (r *runner) always(_ context.Context, q queue) error {
	r.add(q, r.Always)
	return nil
}

// handler turns what watches report into keys.
func (r *runner) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			// OLM's own objects ask for every key: what else is there at the start need not.
			if !e.IsInInitialList || olmcore.GVKOf(e.Object).Group == v1alpha1.GroupName {
				r.enqueue(ctx, q, nil, e.Object, false)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.enqueue(ctx, q, e.ObjectOld, e.ObjectNew, false)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.enqueue(ctx, q, nil, e.Object, true)
		},
	}
}

func (r *runner) enqueue(ctx context.Context, q queue, old, next client.Object, deleted bool) {
	keys, err := r.changed(ctx, old, next, deleted)
	if err != nil {
		log.FromContext(ctx).Error(err, "which keys a change counts for is not known", "object", olmcore.RefOf(next).String())
		return
	}
	r.add(q, keys)
}

func (r *runner) changed(ctx context.Context, old, next client.Object, deleted bool) ([]types.NamespacedName, error) {
	after, err := typed(next)
	if err != nil {
		return nil, err
	}
	var before olmcore.Object
	if old != nil {
		if b, unreadable := typed(old); unreadable == nil { // else nobody acted on it
			before = b
		}
	}
	if r.notice != nil {
		r.notice(before, after, deleted, time.Now().UTC())
	}
	return r.Changed(ctx, r.Reader, before, after)
}

// add leaves out what belongs to another shard.
func (r *runner) add(q queue, keys []types.NamespacedName) {
	for _, key := range keys {
		if len(r.namespaces) == 0 || slices.Contains(r.namespaces, key.Namespace) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}
}
