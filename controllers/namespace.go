// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// namespaces is the memory about the namespaces of Subscriptions.
type namespaces struct {
	mu    sync.Mutex
	known map[string]*namespace
}

// namespace is what is known of one namespace. The mutex of all of them guards seen and outdated; the rest belongs to
// who reconciles it.
type namespace struct {
	histories map[types.UID]subscription.History
	answer    *subscription.Resolved
	planKeys  []olmcore.Key // of the plans that were asked for last, one for each part of the answer
	asked     string        // the fingerprint of the last request
	basis     string        // what the answer depends on besides the Subscriptions
	seen      []subscription.Observation
	outdated  bool // a catalog changed since the answer, and there is no fingerprint that says whether it holds
}

// maxSeen bounds the observations of one namespace between two reconciles. The oldest are dropped: what they alone
// showed is inferred from the later ones.
const maxSeen = 1000

// onChange remembers a state of an InstallPlan, and that a CatalogSource changed. It is Controller.OnChange of the
// controller of Subscriptions.
func (s *Set) onChange(change controller.Change) {
	switch o := change.New.(type) {
	case *v1alpha1.InstallPlan:
		s.namespaces.observe(o.Namespace, subscription.Observation{At: change.At, Plan: o, Deleted: change.Deleted})
	case *v1alpha1.CatalogSource:
		before, known := change.Old.(*v1alpha1.CatalogSource)
		switch changed := change.Deleted || !known || before.Generation != o.Generation; {
		case !changed || s.options.Fingerprint != nil: // a fingerprint reports which Resolutions no longer hold
		case o.Namespace == s.options.globalNamespace():
			s.CatalogsChanged()
		default:
			s.namespaces.outdate(o.Namespace)
		}
	}
}

// CatalogsChanged makes every namespace resolve again when it is reconciled next. With Options.Fingerprint it is not
// needed.
func (s *Set) CatalogsChanged() { s.namespaces.outdateAll() }

func (m *namespaces) observe(name string, seen subscription.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.known[name]; n != nil {
		n.seen = append(n.seen[max(0, len(n.seen)-maxSeen+1):], seen)
	}
}

func (m *namespaces) outdateAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.known {
		n.outdated = true
	}
}

func (m *namespaces) outdate(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if n := m.known[name]; n != nil {
			n.outdated = true
		}
	}
}

// recall returns the memory about a namespace, without an answer that is outdated, and what was observed since the last
// success.
func (m *namespaces) recall(name string) (*namespace, []subscription.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.known[name]
	if n == nil {
		n = &namespace{histories: map[types.UID]subscription.History{}}
		m.known[name] = n
	}
	if n.outdated {
		n.answer, n.asked, n.outdated = nil, "", false
	}
	return n, slices.Clone(n.seen)
}

// reported takes away what was handed to a reconcile that succeeded.
func (m *namespaces) reported(n *namespace, seen []subscription.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n.seen = slices.DeleteFunc(n.seen, func(o subscription.Observation) bool { return slices.Contains(seen, o) })
}

func (m *namespaces) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, name)
}

func (m *namespaces) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.known)
}

// globalNamespace is the namespace whose CatalogSources all namespaces see.
func (o *Options) globalNamespace() string {
	return cmp.Or(o.GlobalNamespace, DefaultGlobalNamespace)
}

// local keeps the changes of one namespace's catalogs, of what is unpacked of them and of pull Secrets to that
// namespace: only those of the global catalogs and of OLM count for others.
func (s *Set) local(affected func(olmcore.Object) []types.NamespacedName) func(olmcore.Object) []types.NamespacedName {
	return func(o olmcore.Object) []types.NamespacedName {
		keys := affected(o)
		switch o.(type) {
		case *v1alpha1.CatalogSource, *corev1.ConfigMap, *batchv1.Job, *corev1.Secret:
		default:
			return keys
		}
		namespace := o.GetNamespace()
		if namespace != s.options.globalNamespace() && namespace != s.options.olmNamespace() {
			for i, key := range keys {
				if key == (types.NamespacedName{}) {
					keys[i].Namespace = namespace
				}
			}
		}
		return keys
	}
}

// subscriptionAffected adds to the package's own where bundles are unpacked.
func subscriptionAffected(o olmcore.Object) []types.NamespacedName {
	switch o.(type) {
	case *batchv1.Job, *corev1.ConfigMap:
		if o.GetLabels()[olmcore.LabelManaged] == "true" {
			return []types.NamespacedName{{}}
		}
	}
	return subscription.Affected(o)
}

// subscription reconciles the Subscriptions of a namespace. They request a resolution, Resolve answers, the answer
// becomes InstallPlans, and the Subscriptions reference an InstallPlan before it runs.
func (s *Set) subscription(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	name := p.key.Namespace
	n, seen := s.namespaces.recall(name)
	n.learn(p.last)
	if err := s.check(ctx, r, name, n); err != nil {
		return olmcore.Result{}, err
	}
	// 1. Request the objects of the plans for the last answer.
	plans := planner{Set: s, reader: r, namespace: name, now: p.now}
	planned, err := plans.plan(ctx, n)
	if err != nil {
		return olmcore.Result{}, err
	}
	// 2. Reconcile with the last answer.
	in, err := s.gatherSubscriptions(ctx, r, name)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Histories, in.Observations, in.Resolution = p.now, n.histories, seen, n.answer
	in.Checkpoint = p.checkpoint
	out, err := subscription.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	// 3. If a resolution is requested, resolve and reconcile with the new answer.
	isAnswered, err := s.resolve(ctx, r, p, n, out.Resolve)
	if err != nil {
		return olmcore.Result{}, err
	}
	if isAnswered {
		planned, err = plans.plan(ctx, n)
		if err != nil {
			return olmcore.Result{}, err
		}
		in.Resolution = n.answer
		out, err = subscription.Reconcile(in)
		if err != nil {
			return olmcore.Result{}, err
		}
	}
	// 4. Remember.
	p.checkpoint = out.Checkpoint
	n.remember(out.Histories, in.Subscriptions.Items)
	s.namespaces.reported(n, seen)
	if len(in.Subscriptions.Items) == 0 {
		s.namespaces.forget(name)
	}
	result := out.Result
	add(&result, planned)
	return result, nil
}

// resolve passes a request on to Options.Asked and Options.Resolve, and keeps the answer. It reports whether there is
// one.
func (s *Set) resolve(ctx context.Context, r olmcore.Reader, p *pass, n *namespace, request *subscription.ResolveRequest) (bool, error) {
	if request == nil {
		return false, nil
	}
	if request.Fingerprint != n.asked {
		s.ask(Subscription, p.key, request)
		n.asked = request.Fingerprint
	}
	if s.options.Resolve == nil {
		return false, nil
	}
	answer, err := s.answer(ctx, r, *request, n.answer, p.now)
	if err != nil {
		return false, err
	}
	n.answer = answer
	return answer != nil, nil
}

// gatherSubscriptions reads the Input of a namespace, with the options and the catalogs that the resolver knows.
func (s *Set) gatherSubscriptions(ctx context.Context, r olmcore.Reader, namespace string) (subscription.Input, error) {
	in, err := subscription.Gather(ctx, r, namespace, s.options.Subscription)
	if err != nil {
		return in, err
	}
	in.Live, in.SeparatePlans = s.options.Live, s.options.InstallPlan.SeparatePlans
	in.Catalogs, err = s.knownCatalogs(ctx, r, namespace)
	return in, err
}

// remember keeps the histories of the Subscriptions that exist.
func (n *namespace) remember(histories map[types.UID]subscription.History, existing []*v1alpha1.Subscription) {
	maps.Copy(n.histories, histories)
	if len(n.histories) <= len(existing) {
		return
	}
	maps.DeleteFunc(n.histories, func(uid types.UID, _ subscription.History) bool {
		return !slices.ContainsFunc(existing, func(s *v1alpha1.Subscription) bool { return s.UID == uid })
	})
}

// check drops an answer that does not hold any more.
func (s *Set) check(ctx context.Context, r olmcore.Reader, name string, n *namespace) error {
	if s.options.Fingerprint == nil {
		return nil
	}
	basis, err := s.options.Fingerprint(ctx, r, name)
	if err == nil && basis != n.basis {
		n.answer, n.asked, n.basis = nil, "", basis
	}
	return err
}

func add(to *olmcore.Result, more olmcore.Result) {
	to.Actions = append(to.Actions, more.Actions...)
	to.Transitions = append(to.Transitions, more.Transitions...)
	to.Diagnostics = append(to.Diagnostics, more.Diagnostics...)
	to.Requeue(more.RequeueAfter)
}

func (s *Set) knownCatalogs(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error) {
	if s.options.CatalogsOf != nil {
		return s.options.CatalogsOf(ctx, r, namespace)
	}
	return subscription.GatherCatalogs(ctx, r, namespace, s.options.globalNamespace())
}

// answer asks the resolver and counts its failures; while it does not know, the answer is the last one, nil if there is
// none.
func (s *Set) answer(
	ctx context.Context,
	r olmcore.Reader,
	request subscription.ResolveRequest,
	before *subscription.Resolved,
	now time.Time,
) (*subscription.Resolved, error) {
	resolution, err := s.options.Resolve(ctx, r, request)
	switch {
	case errors.Is(err, ErrPending):
		return before, nil
	case err != nil:
		return nil, err
	}
	answer := &subscription.Resolved{Resolution: resolution, At: now}
	if before != nil && (failed(resolution) && failed(before.Resolution) || slices.ContainsFunc(progressOf(before), hasFailed)) {
		answer.Attempts = before.Attempts + 1
	}
	return answer, nil
}

// hasFailed reports whether a plan could not be written, or its bundles could not be unpacked.
func hasFailed(p *subscription.PlanProgress) bool {
	return p.PlanError != "" || p.Unpacking != nil && p.Unpacking.Failure != nil
}

// failed reports whether a resolution failed, or did for one of its Subscriptions.
func failed(r olmcore.Resolution) bool {
	return r.Failure != nil || slices.ContainsFunc(r.Decisions, func(d olmcore.SubscriptionDecision) bool { return d.Failure != nil })
}
