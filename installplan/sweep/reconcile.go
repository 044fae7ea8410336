// SPDX-License-Identifier: Apache-2.0

// Package sweep deletes old InstallPlans of a namespace, and repairs their relations to Subscriptions.
//
// [Reconcile] deletes finished plans that are old and that no Subscription references, and plans that never got their
// steps. It also deletes unpacked bundles that no plan of any namespace needs. It reports each problem between plans
// and Subscriptions as a Diagnostic with its own reason. It repairs what can be repaired, with one Update for each
// object. A plan that has steps and is not finished is never deleted.
package sweep

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

// Reconcile returns the deletions, repairs and Diagnostics for one namespace: see the package comment. It returns the
// zero Result if there is nothing to do. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, gcInstallPlans.
// Differs: OLM ignores phases and references, and checks only the first ten plans of an unordered list. It does not
// check the relations of plans.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in), nil })
}

func decide(in Input) olmcore.Result {
	if input.Terminating(in.Namespaces) {
		return olmcore.Result{}
	}
	f := findings{}
	if in.Namespaces.Complete {
		n := newNamespace(in)
		gone := deleteOld(n, &f)
		kept := slices.DeleteFunc(slices.Clone(n.plans), func(p plan) bool { return p.DeletionTimestamp != nil || gone[p.UID] })
		for _, p := range kept {
			auditPlan(n, p, &f)
		}
		for _, s := range n.subscriptions {
			auditSubscription(n, s, &f)
		}
		auditCollisions(kept, &f)
		deleteBundles(in, &f)
	}
	sayUnread(in, &f)
	return f.Result
}

// findings is the Result in the making.
type findings struct{ olmcore.Result }

func (f *findings) say(severity olmcore.Severity, reason string, target olmcore.Object, format string, args ...any) {
	f.Diagnostics = append(f.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(target), "", format, args...))
}

func (f *findings) warn(reason string, target olmcore.Object, format string, args ...any) {
	f.say(olmcore.Warning, reason, target, format, args...)
}

// sayUnread names the kinds that were not read and without which something is left undecided.
func sayUnread(in Input, f *findings) {
	say := func(kind schema.GroupVersionKind, unknown string) {
		text := (&olmcore.NotReadError{Kind: kind, Unknown: unknown}).Error()
		if !slices.ContainsFunc(f.Diagnostics, func(d olmcore.Diagnostic) bool { return d.Message == text }) {
			f.say(olmcore.Info, ReasonNotRead, in.object(), "%s", text)
		}
	}
	if !in.Namespaces.Complete {
		say(corev1.SchemeGroupVersion.WithKind("Namespace"), "whether the namespace is being deleted")
	}
	if !in.ConfigMaps.Complete {
		say(corev1.SchemeGroupVersion.WithKind("ConfigMap"), "which unpacked bundles are not needed")
	}
	if slices.ContainsFunc(in.ConfigMaps.Items, bundle.IsUnpacked) && !in.OtherPlans.Complete {
		say(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind), "which unpacked bundles InstallPlans of other namespaces need")
	}
	for _, s := range in.Steps {
		if !s.Unread.Empty() {
			say(s.Unread, "which objects of InstallPlans are gone")
		}
	}
}

// namespace is the Input with indexes of its objects. newNamespace fills it once.
type namespace struct {
	in Input // as the caller passed it
	// subscriptions and plans are sorted by name.
	subscriptions []*v1alpha1.Subscription
	plans         []plan
	// byLabel finds the Subscriptions of the package of a component label.
	byLabel map[string][]*v1alpha1.Subscription
	steps   map[types.UID]StepObjects // by plan
}

// plan is a plan beside the Subscriptions that it has to do with, sorted by name.
type plan struct {
	*v1alpha1.InstallPlan
	subscriptions []*v1alpha1.Subscription
}

func newNamespace(in Input) namespace {
	n := namespace{
		in: in, subscriptions: input.ByName(in.Subscriptions.Items), plans: make([]plan, 0, len(in.InstallPlans.Items)),
		byLabel: map[string][]*v1alpha1.Subscription{}, steps: make(map[types.UID]StepObjects, len(in.Steps)),
	}
	ties := relation.NewTies(n.subscriptions)
	for _, p := range input.ByName(in.InstallPlans.Items) {
		n.plans = append(n.plans, plan{p, ties.Of(p)})
	}
	for _, s := range n.subscriptions {
		if key, err := olmcore.ComponentLabelKey(relation.PackageOf(s), in.Namespace); err == nil {
			n.byLabel[key] = append(n.byLabel[key], s)
		}
	}
	for _, s := range in.Steps {
		n.steps[s.InstallPlan] = s
	}
	return n
}

// plan returns the plan of a name, nil for none.
func (n namespace) plan(name string) *v1alpha1.InstallPlan {
	i, found := slices.BinarySearchFunc(n.plans, name, func(p plan, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return nil
	}
	return n.plans[i].InstallPlan
}

const (
	// maxDeletes bounds the plans that one call deletes; the next ones follow after nextDeletes.
	maxDeletes  = 5
	nextDeletes = time.Second
)

// deleteOld deletes plans that are not needed, the oldest first, and returns their UIDs.
func deleteOld(n namespace, f *findings) (gone map[types.UID]bool) {
	keep := cmp.Or(n.in.Config.MaxInstallPlans, installplan.DefaultMaxInstallPlans)
	plans := slices.Clone(n.plans)
	slices.SortStableFunc(plans, func(a, b plan) int {
		return cmp.Or(cmp.Compare(a.Spec.Generation, b.Spec.Generation), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	gone = map[types.UID]bool{}
	active := 0
	for i, tied := range plans {
		p := tied.InstallPlan
		cause := olmcore.Cause{Reason: ReasonPlanHistory, Message: "newer plans are kept, and no Subscription refers to this one"}
		switch {
		case p.DeletionTimestamp != nil:
			continue
		case !relation.Terminal(p) && len(p.Status.Plan)+len(p.Status.BundleLookups) == 0:
			if !isOrphan(n, tied, f) {
				continue
			}
			cause = olmcore.Cause{Reason: ReasonPlanWithoutStatus, Message: "the plan never got its steps"}
		case !relation.Terminal(p):
			active++
			continue
		case i >= len(plans)-keep || tied.neededBy() != nil:
			continue
		}
		if len(gone) == maxDeletes {
			f.Requeue(nextDeletes)
			continue
		}
		gone[p.UID] = true
		f.Actions = append(f.Actions, olmcore.DeleteOf(p, cause))
	}
	if active > keep {
		f.warn(ReasonTooManyActivePlans, n.in.object(), "%d InstallPlans of namespace %s wait or run", active, n.in.Namespace)
	}
	return gone
}

// isOrphan reports that a plan without steps will never get any: it is old, and no Subscription refers to it. One that
// a Subscription refers to is kept: without it the Subscription would resolve again, beside the plan that may have its
// version.
func isOrphan(n namespace, p plan, f *findings) bool {
	if left := p.CreationTimestamp.Add(relation.OrphanGrace).Sub(n.in.Now); left > 0 {
		f.Requeue(left)
		return false
	}
	s := p.neededBy()
	if s != nil {
		f.warn(ReasonPlanWithoutStatus, p.InstallPlan, "the plan has no steps, and Subscription %s refers to it", s.Name)
	}
	return s == nil
}

// neededBy returns the first Subscription that needs the plan, nil for none.
func (p plan) neededBy() *v1alpha1.Subscription {
	for _, s := range p.subscriptions {
		if relation.Needs(s, p.InstallPlan) {
			return s
		}
	}
	return nil
}

// deleteBundles deletes unpacked bundles that no plan needs once their retention is over.
func deleteBundles(in Input, f *findings) {
	var old []*corev1.ConfigMap
	for _, cm := range input.ByName(in.ConfigMaps.Items) {
		if cm.DeletionTimestamp != nil || !bundle.IsUnpacked(cm) {
			continue
		}
		if left := bundle.Retained(cm, in.Now); left > 0 {
			f.Requeue(left)
		} else {
			old = append(old, cm)
		}
	}
	if len(old) == 0 || !in.OtherPlans.Complete {
		return
	}
	needed := bundle.Needed(slices.Concat(in.InstallPlans.Items, in.OtherPlans.Items)...)
	for _, lookup := range in.Lookups {
		needed[bundle.LookedUp(lookup)] = true
	}
	for _, cm := range old {
		if !needed[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] {
			f.say(olmcore.Info, ReasonUnpackedBundleUnused, cm, "no InstallPlan refers to it")
			f.Actions = append(f.Actions, bundle.Delete(cm, ReasonUnpackedBundleUnused, "no InstallPlan refers to it"))
		}
	}
}
