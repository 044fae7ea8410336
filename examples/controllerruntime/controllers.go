// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"
	"maps"
	"sync"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// Controller is one of the library's reconcile functions with all around it that
// does not depend on who runs it.
type Controller struct {
	Name string
	// Kinds are the kinds of the objects that are reconciled; ByNamespace: their
	// namespaces are, as keys without a name.
	Kinds       []schema.GroupVersionKind
	ByNamespace bool
	// Affected returns the keys to reconcile after a change of an object.
	Affected func(o olmcore.Object) []types.NamespacedName
	// Reconcile gathers and decides. NotFound means that the object is gone.
	Reconcile func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error)

	// see, when set, hears every change that a watch reports.
	see func(old, next olmcore.Object, deleted bool, now time.Time)
}

// embedding is what the controllers remember beside the cluster.
type embedding struct {
	Options
	mu         sync.Mutex // guards what follows
	addresses  map[types.NamespacedName]string
	namespaces map[string]*namespace
}

// namespace is the memory about one namespace of Subscriptions.
type namespace struct {
	histories map[types.UID]subscription.History
	seen      []subscription.Observation
	answer    *subscription.Resolved
	outdated  bool // a catalog changed since the answer
}

// maxSeen bounds the observations of one namespace between two reconciles.
const maxSeen = 100

var (
	operatorGroup = operatorsv1.GroupVersion.WithKind(operatorsv1.OperatorGroupKind)
	installPlan   = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind)
	subscribed    = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	version       = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.ClusterServiceVersionKind)
)

// Controllers returns the controllers. They share a memory: each call of it makes
// a new one.
func (o Options) Controllers() []Controller { return o.embed().controllers() }

func (o Options) embed() *embedding {
	return &embedding{Options: o, addresses: map[types.NamespacedName]string{}, namespaces: map[string]*namespace{}}
}

func (e *embedding) controllers() []Controller {
	return []Controller{
		{Name: "catalog", Kinds: []schema.GroupVersionKind{catalogSource}, Affected: catalog.Affected, Reconcile: e.catalog},
		{Name: "subscription", Kinds: []schema.GroupVersionKind{subscribed}, ByNamespace: true, Affected: subscriptionAffected, Reconcile: e.subscription, see: e.notice},
		{Name: "installplan", Kinds: []schema.GroupVersionKind{installPlan}, Affected: installplan.Affected, Reconcile: e.installPlan},
		{Name: "sweep", Kinds: []schema.GroupVersionKind{installPlan, subscribed, catalogSource}, ByNamespace: true, Affected: installplan.SweepAffected, Reconcile: e.sweep},
		{Name: "group", Kinds: []schema.GroupVersionKind{operatorGroup}, Affected: csv.GroupAffected, Reconcile: e.group},
		{Name: "csv", Kinds: []schema.GroupVersionKind{version}, Affected: csv.Affected, Reconcile: e.csv},
	}
}

func (e *embedding) catalog(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	in, err := catalog.Gather(ctx, r, key, e.Catalog)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.Connection = now, last, e.connection(key)
	out, err := catalog.Reconcile(in)
	if err != nil || e.Connection == nil || out.Connection.Verb == catalog.ConnectionKeep {
		return out.Result, err
	}
	e.mu.Lock()
	if e.addresses[key] = out.Connection.Address; out.Connection.Verb == catalog.ConnectionDrop {
		delete(e.addresses, key)
	}
	e.mu.Unlock()
	in.Connection = e.connection(key)
	out, err = catalog.Reconcile(in)
	return out.Result, err
}

func (e *embedding) connection(key types.NamespacedName) *catalog.Connection {
	e.mu.Lock()
	address := e.addresses[key]
	e.mu.Unlock()
	if address == "" {
		return nil
	}
	return e.Connection(key, address)
}

func (e *embedding) installPlan(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	in, err := installplan.Gather(ctx, r, key, e.InstallPlan)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun = now, last
	return installplan.Reconcile(in)
}

func (e *embedding) sweep(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.Outcomes) (olmcore.Result, error) {
	in, err := installplan.GatherSweep(ctx, r, key.Namespace, e.InstallPlan)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	return installplan.Sweep(in)
}

func (e *embedding) group(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.Outcomes) (olmcore.Result, error) {
	in, err := csv.GatherGroup(ctx, r, key)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	return csv.Group(in)
}

func (e *embedding) csv(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	in, err := csv.Gather(ctx, r, key, e.CSV)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.KubernetesVersion = now, last, e.KubernetesVersion
	out, err := csv.Reconcile(in)
	return out.Result, err
}

// subscription reconciles a namespace: the Subscriptions ask, Resolve answers,
// the answer becomes a plan, and the Subscriptions refer to it before it runs.
func (e *embedding) subscription(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	n := e.recall(key.Namespace)
	planned, err := e.plan(ctx, r, key.Namespace, now, n)
	if err != nil {
		return olmcore.Result{}, err
	}
	in, err := subscription.Gather(ctx, r, key.Namespace, e.Subscription)
	if err != nil {
		return olmcore.Result{}, err
	}
	if len(in.Subscriptions) == 0 {
		e.forget(key.Namespace)
		return olmcore.Result{}, nil
	}
	in.Now, in.LastRun, in.Histories, in.Resolution, in.Observations = now, last, n.histories, n.answer, e.observed(n)
	out, err := subscription.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if out.Resolve != nil && e.Resolve != nil {
		if err := e.answer(ctx, r, *out.Resolve, n, now); err != nil {
			return olmcore.Result{}, err
		}
		if planned, err = e.plan(ctx, r, key.Namespace, now, n); err != nil {
			return olmcore.Result{}, err
		}
		in.Resolution = n.answer
		if out, err = subscription.Reconcile(in); err != nil {
			return olmcore.Result{}, err
		}
	}
	maps.Copy(n.histories, out.Histories)
	add(&out.Result, planned)
	return out.Result, nil
}

// answer asks the resolver and counts its failures.
func (e *embedding) answer(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest, n *namespace, now time.Time) error {
	resolution, err := e.Resolve(ctx, r, request)
	if err != nil {
		return err
	}
	next := &subscription.Resolved{Resolution: resolution, At: now}
	if n.answer != nil && resolution.Failure != nil && n.answer.Resolution.Failure != nil {
		next.Attempts = n.answer.Attempts + 1
	}
	n.answer = next
	return nil
}

// plan returns what installplan.Create needs for the answer that is there, and
// keeps the plan's reference for the Subscriptions.
func (e *embedding) plan(ctx context.Context, r olmcore.Reader, name string, now time.Time, n *namespace) (olmcore.Result, error) {
	if n.answer == nil {
		return olmcore.Result{}, nil
	}
	in, err := installplan.GatherCreate(ctx, r, name, n.answer.Resolution, e.InstallPlan)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	out, err := installplan.Create(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	for _, lookup := range out.Lookups {
		if e.InstallPlan.OPMImage == "" || e.InstallPlan.UtilImage == "" {
			break // nobody can unpack: the lookup stays a question
		}
		in, err := installplan.GatherUnpack(ctx, r, name, lookup, e.InstallPlan)
		if err != nil {
			return olmcore.Result{}, err
		}
		in.Now = now
		unpacked, err := installplan.Unpack(in)
		if err != nil {
			return olmcore.Result{}, err
		}
		add(&out.Result, unpacked.Result)
	}
	if out.Plan.Name != "" && out.Plan != n.answer.Plan {
		next := *n.answer
		next.Plan = out.Plan
		n.answer = &next
	}
	return out.Result, nil
}

func add(to *olmcore.Result, more olmcore.Result) {
	to.Actions = append(to.Actions, more.Actions...)
	to.Transitions = append(to.Transitions, more.Transitions...)
	to.Diagnostics = append(to.Diagnostics, more.Diagnostics...)
	to.Requeue(more.RequeueAfter)
}

// subscriptionAffected adds to the package's own what its answers come from:
// catalogs, and the Jobs and ConfigMaps of bundles that are unpacked.
func subscriptionAffected(o olmcore.Object) []types.NamespacedName {
	switch o.(type) {
	case *v1alpha1.CatalogSource:
		return []types.NamespacedName{{}}
	case *batchv1.Job, *corev1.ConfigMap:
		if o.GetLabels()[olmcore.LabelManaged] == "true" {
			return []types.NamespacedName{{}}
		}
	}
	return subscription.Affected(o)
}

// notice takes in what a watch delivers: the versions of InstallPlans, and that
// catalogs changed, so that answers from them are worth nothing any more.
func (e *embedding) notice(old, next olmcore.Object, deleted bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch o := next.(type) {
	case *v1alpha1.InstallPlan:
		if n := e.namespaces[o.Namespace]; n != nil {
			n.seen = append(n.seen, subscription.Observation{At: now, Plan: o, Deleted: deleted})
			n.seen = n.seen[max(0, len(n.seen)-maxSeen):]
		}
	case *v1alpha1.CatalogSource:
		if b, ok := old.(*v1alpha1.CatalogSource); ok && b.Generation == o.Generation {
			return
		}
		for _, n := range e.namespaces {
			n.outdated = true
		}
	}
}

// recall returns the memory about a namespace, without an answer that is
// outdated.
func (e *embedding) recall(name string) *namespace {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.namespaces[name]
	if n == nil {
		n = &namespace{histories: map[types.UID]subscription.History{}}
		e.namespaces[name] = n
	}
	if n.outdated {
		n.answer, n.outdated = nil, false
	}
	return n
}

// observed returns what was seen since the last call.
func (e *embedding) observed(n *namespace) []subscription.Observation {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := n.seen
	n.seen = nil
	return seen
}

// forget drops the memory about a namespace that has no Subscription any more.
func (e *embedding) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.namespaces, name)
}
