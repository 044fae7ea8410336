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
	planKeys  []olmcore.Key // of the plans that were asked for last, one for each part of the answer
	asked     string        // the fingerprint of the last request
	basis     string        // what the answer depends on besides the Subscriptions
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
		if namespace := o.GetNamespace(); namespace != s.options.globalNamespace() && namespace != s.options.olmNamespace() {
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
	plans := planner{Set: s, reader: r, namespace: key.Namespace, now: now}
	planned, err := plans.plan(ctx, n)
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
	in.Live, in.SeparatePlans, in.Checkpoint = s.options.Live, s.options.InstallPlan.SeparatePlans, p.checkpoint
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
			if planned, err = plans.plan(ctx, n); err != nil {
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

// planner makes the plans of one namespace, and unpacks their bundles.
type planner struct {
	*Set
	reader    olmcore.Reader
	namespace string
	now       time.Time
	// unpacking is how many bundle images are being unpacked for the namespace.
	unpacking int
}

// maxUnpacking is how many bundle images are unpacked at a time for one namespace. Each has a Job in the namespace of its catalog,
// which many namespaces share. Without the limit, a user who creates Subscriptions could start a Job for each operator of the catalog.
const maxUnpacking = 10

// learn notes why the plans of the answer could not be written. An answer that was handed out is not written to.
func (n *namespace) learn(last olmcore.LastResults) {
	if n.answer == nil {
		return
	}
	next := copyOf(n.answer)
	for i, of := range progressOf(next) {
		if i >= len(n.planKeys) || n.planKeys[i] == (olmcore.Key{}) {
			continue
		}
		problem := ""
		if outcome, ran := last[n.planKeys[i]]; ran && outcome.Class != olmcore.ClassNone {
			problem = outcome.Message
		}
		if problem != of.PlanError {
			of.PlanError, n.answer = problem, next
		}
	}
}

// copyOf returns a copy of an answer whose PlanProgress and Parts may be written to.
func copyOf(answer *subscription.Resolved) *subscription.Resolved {
	next := *answer
	next.Parts = slices.Clone(answer.Parts)
	return &next
}

// progressOf returns how far the plans of an answer are: that of each part, or the one of all.
func progressOf(answer *subscription.Resolved) (all []*subscription.PlanProgress) {
	if len(answer.Parts) == 0 {
		return []*subscription.PlanProgress{&answer.PlanProgress}
	}
	for i := range answer.Parts {
		all = append(all, &answer.Parts[i].PlanProgress)
	}
	return all
}

// plan returns what create.Plan needs for the answer that is there, and keeps the plans' references for the Subscriptions.
func (p *planner) plan(ctx context.Context, n *namespace) (result olmcore.Result, err error) {
	if n.answer == nil {
		return result, nil
	}
	whole, wholeErr := create.Gather(ctx, p.reader, p.namespace, n.answer.Resolution, p.options.planConfig())
	next := copyOf(n.answer)
	sets := setsOf(next, p.options.InstallPlan.SeparatePlans)
	keys, progress := make([]olmcore.Key, len(sets)), progressOf(next)
	for i, set := range sets {
		in, err := whole, wholeErr
		if err != nil && len(sets) > 1 { // another set may need what could not be read
			in, err = create.Gather(ctx, p.reader, p.namespace, set.Resolution, p.options.planConfig())
		}
		if err != nil {
			if err := failSet(ctx, progress[i], set.Subscriptions, err); err != nil {
				return olmcore.Result{}, err
			}
			continue
		}
		in.Now, in.Resolution, in.Owners = p.now, set.Resolution, set.Subscriptions
		more, err := p.planSet(ctx, in, progress[i])
		if err != nil {
			return olmcore.Result{}, err
		}
		withoutWritten(&more, result) // two sets may end the plan that they replace
		keys[i] = createdPlan(more)
		more.Diagnostics = slices.DeleteFunc(more.Diagnostics, func(d olmcore.Diagnostic) bool { return slices.Contains(result.Diagnostics, d) })
		add(&result, more)
	}
	n.answer, n.planKeys = next, keys
	return result, nil
}

// failSet notes an error as the unpack failure of one set, so that it holds up no other set. Trying again helps unless the input is
// invalid. It returns the error if it is not of one set: there are no sets, the caller gave up, or a kind was not read.
func failSet(ctx context.Context, progress *subscription.PlanProgress, set []string, err error) error {
	if set == nil || ctx.Err() != nil || errors.Is(err, olmcore.ErrNotRead) {
		return err
	}
	var invalid *olmcore.InputError
	failure := &olmcore.ResolutionFailure{Transient: !errors.As(err, &invalid), Message: err.Error()}
	progress.Unpacking = &subscription.Unpacking{Failure: failure}
	return nil
}

// setsOf returns what plans are made of: the whole answer, or its sets of Subscriptions, for which it gives the answer parts.
func setsOf(answer *subscription.Resolved, isSeparate bool) []create.Set {
	if !isSeparate || len(answer.Resolution.Operators)+len(answer.Resolution.Generated) == 0 {
		answer.Parts = nil
		return []create.Set{{Resolution: answer.Resolution}}
	}
	sets := create.Sets(answer.Resolution)
	if len(sets) == 1 && sets[0].Subscriptions == nil {
		answer.Parts = nil
		return sets
	}
	if len(answer.Parts) != len(sets) {
		answer.Parts = make([]subscription.Part, len(sets))
	}
	for i := range sets {
		answer.Parts[i].Subscriptions = sets[i].Subscriptions
	}
	return sets
}

// withoutWritten removes from a Result what it writes of InstallPlans that another Result writes.
func withoutWritten(r *olmcore.Result, other olmcore.Result) {
	written := map[olmcore.Key]bool{}
	for _, a := range other.Actions {
		if _, target, _ := a.Describe(); target.GVK() == installPlanKind {
			written[target.Key()] = true
		}
	}
	r.Actions = slices.DeleteFunc(r.Actions, func(a olmcore.Action) bool {
		_, target, _ := a.Describe()
		return written[target.Key()]
	})
	r.Transitions = slices.DeleteFunc(r.Transitions, func(t olmcore.Transition) bool { return written[t.Target.Key()] })
}

// createdPlan returns the key of the InstallPlan that a Result creates, the zero Key for none.
func createdPlan(r olmcore.Result) olmcore.Key {
	for _, a := range r.Actions {
		if create, ok := a.(olmcore.Create); ok && create.Target.GVK() == installPlanKind {
			return create.Target.Key()
		}
	}
	return olmcore.Key{}
}

// planSet returns what create.Plan needs for one set of Subscriptions, or for all of them, and notes how far their plan is.
func (p *planner) planSet(ctx context.Context, in create.Input, progress *subscription.PlanProgress) (olmcore.Result, error) {
	out, err := create.Plan(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if createdPlan(out.Result) == (olmcore.Key{}) {
		progress.PlanError = "" // the plan exists, or no plan is needed
	}
	progress.PlanRefused = out.Refused
	if progress.PlanRefused.Reason == "" && len(out.Lookups) > 0 && !p.options.unpacks() && p.options.Asked == nil {
		progress.PlanRefused = notUnpacked(out.Diagnostics)
	}
	if progress.Unpacking = nil; p.options.unpacks() {
		progress.Unpacking = &subscription.Unpacking{}
	}
	for _, lookup := range out.Lookups {
		if p.options.unpacks() && p.unpacking >= maxUnpacking {
			progress.Unpacking.Lookups = append(progress.Unpacking.Lookups, lookup) // it waits for those before
			continue
		}
		if lookup, err = p.unpack(ctx, lookup, &out.Result); err != nil {
			if err := failSet(ctx, progress, in.Owners, err); err != nil {
				return olmcore.Result{}, err
			}
			break
		}
		if lookup.GetCondition(v1alpha1.BundleLookupFailed).Status != corev1.ConditionTrue { // one that failed waits for its next try
			p.unpacking++
		}
		if progress.Unpacking != nil {
			progress.Unpacking.Lookups = append(progress.Unpacking.Lookups, lookup)
		}
	}
	if out.Plan.Name != "" {
		progress.Plan = out.Plan
	}
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
func (p *planner) unpack(ctx context.Context, lookup v1alpha1.BundleLookup, result *olmcore.Result) (v1alpha1.BundleLookup, error) {
	p.ask(InstallPlan, types.NamespacedName{Namespace: p.namespace}, lookup)
	if !p.options.unpacks() {
		return lookup, nil
	}
	in, err := unpack.Gather(ctx, p.reader, p.namespace, lookup, p.options.planConfig())
	if err != nil {
		return lookup, err
	}
	in.Now = p.now
	out, err := unpack.Bundle(in)
	if err != nil {
		return lookup, err
	}
	add(result, out.Result)
	return out.Lookup, nil
}
