// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
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
	planKey   olmcore.Key // of the plan that was asked for last
	asked     string      // the fingerprint of the last request
	basis     string      // what the answer depends on besides the Subscriptions
	seen      []subscription.Observation
	outdated  bool // a catalog changed since the answer, and there is no fingerprint that says whether it holds
}

// maxSeen bounds the observations of one namespace between two reconciles. The oldest are dropped: what they alone
// showed is inferred from the later ones.
const maxSeen = 1000

// notice takes in what a watch delivers: next is new when old is nil, and gone when deleted.
func (s *Set) notice(old, next olmcore.Object, deleted bool, now time.Time) {
	switch o := next.(type) {
	case *v1alpha1.InstallPlan:
		s.namespaces.observe(o.Namespace, subscription.Observation{At: now, Plan: o, Deleted: deleted})
	case *v1alpha1.CatalogSource:
		before, known := old.(*v1alpha1.CatalogSource)
		switch changed := deleted || !known || before.Generation != o.Generation; {
		case !changed || s.options.Fingerprint != nil: // fingerprints tell which answers do not hold any more
		case o.Namespace == s.options.globalNamespace():
			s.CatalogsChanged()
		default:
			s.namespaces.outdate(o.Namespace)
		}
	}
}

// CatalogsChanged makes every namespace resolve again when it is reconciled next. With Options.Fingerprint it is not needed.
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
		if namespace := o.GetNamespace(); namespace != s.options.globalNamespace() && namespace != cmp.Or(s.options.InstallPlan.OLMNamespace, installplan.DefaultOLMNamespace) {
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

// subscription reconciles a namespace: the Subscriptions ask, Resolve answers, the answer becomes a plan, and the
// Subscriptions refer to it before it runs.
func (s *Set) subscription(ctx context.Context, r olmcore.Reader, p *pass) (olmcore.Result, error) {
	key, now, last := p.key, p.now, p.last
	n, seen := s.namespaces.recall(key.Namespace)
	n.learn(last)
	if err := s.check(ctx, r, key.Namespace, n); err != nil {
		return olmcore.Result{}, err
	}
	planned, err := s.plan(ctx, r, key.Namespace, now, n)
	if err != nil {
		return olmcore.Result{}, err
	}
	in, err := subscription.Gather(ctx, r, key.Namespace, s.options.Subscription)
	if err != nil {
		return olmcore.Result{}, err
	}
	if in.Catalogs, err = s.knownCatalogs(ctx, r, key.Namespace); err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.Histories, in.Observations, in.Resolution = now, n.histories, seen, n.answer
	in.Live, in.Checkpoint = s.options.Live, p.checkpoint
	out, err := subscription.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if out.Resolve != nil && out.Resolve.Fingerprint != n.asked {
		s.ask(Subscription, key, out.Resolve)
		n.asked = out.Resolve.Fingerprint
	}
	if out.Resolve != nil && s.options.Resolve != nil {
		answer, err := s.answer(ctx, r, *out.Resolve, n.answer, now)
		if err != nil {
			return olmcore.Result{}, err
		}
		if n.answer = answer; answer != nil {
			if planned, err = s.plan(ctx, r, key.Namespace, now, n); err != nil {
				return olmcore.Result{}, err
			}
			in.Resolution = n.answer
			if out, err = subscription.Reconcile(in); err != nil {
				return olmcore.Result{}, err
			}
		}
	}
	p.checkpoint = out.Checkpoint
	maps.Copy(n.histories, out.Histories)
	if len(n.histories) > len(in.Subscriptions.Items) { // some are gone
		maps.DeleteFunc(n.histories, func(uid types.UID, _ subscription.History) bool {
			return !slices.ContainsFunc(in.Subscriptions.Items, func(s *v1alpha1.Subscription) bool { return s.UID == uid })
		})
	}
	s.namespaces.reported(n, seen)
	if len(in.Subscriptions.Items) == 0 {
		s.namespaces.forget(key.Namespace)
	}
	result := out.Result
	add(&result, planned)
	return result, nil
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

// learn notes why the plan of the answer could not be written. An answer that was handed out is not written to.
func (n *namespace) learn(last olmcore.LastResults) {
	if n.answer == nil || n.planKey == (olmcore.Key{}) {
		return
	}
	problem := ""
	if outcome, ran := last[n.planKey]; ran && outcome.Class != olmcore.ClassNone {
		problem = outcome.Message
	}
	if problem != n.answer.PlanError {
		next := *n.answer
		next.PlanError = problem
		n.answer = &next
	}
}

// answer asks the resolver and counts its failures; while it does not know, the answer is the last one, nil if there is none.
func (s *Set) answer(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest, before *subscription.Resolved, now time.Time) (*subscription.Resolved, error) {
	resolution, err := s.options.Resolve(ctx, r, request)
	switch {
	case errors.Is(err, ErrPending):
		return before, nil
	case err != nil:
		return nil, err
	}
	answer := &subscription.Resolved{Resolution: resolution, At: now}
	if before != nil && (failed(resolution) && failed(before.Resolution) || before.PlanError != "") {
		answer.Attempts = before.Attempts + 1
	}
	return answer, nil
}

// failed reports whether a resolution failed, or did for one of its Subscriptions.
func failed(r olmcore.Resolution) bool {
	return r.Failure != nil || slices.ContainsFunc(r.Decisions, func(d olmcore.SubscriptionDecision) bool { return d.Failure != nil })
}

// plan returns what create.Plan needs for the answer that is there, and keeps the plan's reference for the Subscriptions.
func (s *Set) plan(ctx context.Context, r olmcore.Reader, name string, now time.Time, n *namespace) (olmcore.Result, error) {
	if n.answer == nil {
		return olmcore.Result{}, nil
	}
	in, err := create.Gather(ctx, r, name, n.answer.Resolution, s.options.planConfig())
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	out, err := create.Plan(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	n.planKey = olmcore.Key{}
	for _, a := range out.Actions {
		if create, ok := a.(olmcore.Create); ok {
			n.planKey = create.Target.Key()
		}
	}
	next := *n.answer
	if n.planKey == (olmcore.Key{}) {
		next.PlanError = "" // whoever made it, the plan is there, or none is needed
	}
	next.PlanRefused = out.Refused
	if next.PlanRefused.Reason == "" && len(out.Lookups) > 0 && !s.options.unpacks() && s.options.Asked == nil {
		next.PlanRefused = notUnpacked(out.Diagnostics)
	}
	if s.options.unpacks() {
		next.Unpacking = &subscription.Unpacking{}
	}
	for _, lookup := range out.Lookups {
		if lookup, err = s.unpack(ctx, r, name, lookup, now, &out.Result); err != nil {
			return olmcore.Result{}, err
		}
		if next.Unpacking != nil {
			next.Unpacking.Lookups = append(next.Unpacking.Lookups, lookup)
		}
	}
	if out.Plan.Name != "" {
		next.Plan = out.Plan
	}
	n.answer = &next
	return out.Result, nil
}

// notUnpacked returns the reason and the message for bundle images that a plan needs and that nothing unpacks.
func notUnpacked(found []olmcore.Diagnostic) olmcore.Cause {
	var messages []string
	for _, d := range found {
		if d.Reason == create.ReasonBundleNotUnpacked {
			messages = append(messages, d.Message)
		}
	}
	return olmcore.Cause{Reason: create.ReasonBundleNotUnpacked, Message: strings.Join(messages, "; ") +
		", and the controller has no images to unpack it with"}
}

// unpacks reports whether there are the images that unpack others.
func (o *Options) unpacks() bool {
	return o.InstallPlan.OPMImage != "" && o.InstallPlan.UtilImage != ""
}

// unpack adds what unpacks one bundle image, and returns how far that is; without the images that do it the lookup
// stays a question.
func (s *Set) unpack(ctx context.Context, r olmcore.Reader, name string, lookup v1alpha1.BundleLookup, now time.Time, result *olmcore.Result) (v1alpha1.BundleLookup, error) {
	s.ask(InstallPlan, types.NamespacedName{Namespace: name}, lookup)
	if !s.options.unpacks() {
		return lookup, nil
	}
	in, err := unpack.Gather(ctx, r, name, lookup, s.options.planConfig())
	if err != nil {
		return lookup, err
	}
	in.Now = now
	out, err := unpack.Bundle(in)
	if err != nil {
		return lookup, err
	}
	add(result, out.Result)
	return out.Lookup, nil
}
