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
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Reconcile returns the deletions, repairs and Diagnostics for one namespace: see the package comment. It returns the
// zero Result if there is nothing to do. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, gcInstallPlans.
// Differs: OLM ignores phases and references, and checks only the first ten plans of an unordered list. OLM does not
// check the relations of plans.
func Reconcile(in Input) (Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in), nil })
}

// decide returns what Reconcile does without a Checkpoint.
func decide(in Input) olmcore.Result {
	switch {
	case inputs.Terminating(in.Namespaces):
		return olmcore.Result{}
	case !in.Namespaces.Complete:
		return olmcore.Result{Diagnostics: reportUnread(&in)}
	}
	f := observe(&in)
	deletions, deleted := deleteOld(f)
	kept := slices.DeleteFunc(slices.Clone(f.plans), func(p plan) bool { return p.DeletionTimestamp != nil || deleted[p.UID] })
	var audits []olmcore.Result
	for _, p := range kept {
		audits = append(audits, auditPlan(f, p))
	}
	for _, s := range f.subscriptions {
		audits = append(audits, auditSubscription(f, s))
	}
	collisions := olmcore.Result{Diagnostics: auditCollisions(kept)}
	unread := olmcore.Result{Diagnostics: reportUnread(&in)}
	return deletions.And(audits...).And(collisions, deleteBundles(f), unread)
}

func inform(reason string, target olmcore.Object, format string, args ...any) olmcore.Diagnostic {
	return olmcore.Diagnose(olmcore.Info, reason, olmcore.RefOf(target), "", format, args...)
}

func warn(reason string, target olmcore.Object, format string, args ...any) olmcore.Diagnostic {
	return olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(target), "", format, args...)
}

// reportUnread returns a Diagnostic for each kind that was not read and is needed for a decision.
func reportUnread(in *Input) (diagnostics []olmcore.Diagnostic) {
	var unread []olmcore.NotReadError
	if !in.Namespaces.Complete {
		kind := corev1.SchemeGroupVersion.WithKind("Namespace")
		unread = append(unread, olmcore.NotReadError{Kind: kind, Unknown: "whether the namespace is being deleted"})
	}
	if !in.ConfigMaps.Complete {
		kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
		unread = append(unread, olmcore.NotReadError{Kind: kind, Unknown: "which unpacked bundles are not needed"})
	}
	if slices.ContainsFunc(in.ConfigMaps.Items, bundle.IsUnpacked) && !in.OtherPlans.Complete {
		kind := v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.InstallPlanKind)
		unread = append(unread, olmcore.NotReadError{Kind: kind, Unknown: "which unpacked bundles InstallPlans of other namespaces need"})
	}
	for _, s := range in.Steps {
		if !s.Unread.Empty() {
			unread = append(unread, olmcore.NotReadError{Kind: s.Unread, Unknown: "which objects of InstallPlans are gone"})
		}
	}
	for _, kind := range unread {
		d := inform(ReasonNotRead, in.object(), "%s", kind.Error())
		if !slices.Contains(diagnostics, d) { // several plans may lack the same kind
			diagnostics = append(diagnostics, d)
		}
	}
	return diagnostics
}

const (
	// maxDeletes is the maximum number of plans that one call deletes. The next call follows after nextDeletes.
	maxDeletes  = 5
	nextDeletes = time.Second
)

// deleteOld returns the deletions of plans that are not needed, the oldest first, and the UIDs of these plans.
func deleteOld(f *facts) (olmcore.Result, map[types.UID]bool) {
	keep := cmp.Or(f.in.Config.MaxInstallPlans, installplan.DefaultMaxInstallPlans)
	plans := slices.Clone(f.plans)
	slices.SortStableFunc(plans, func(a, b plan) int {
		return cmp.Or(cmp.Compare(a.Spec.Generation, b.Spec.Generation), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	var found []olmcore.Result
	deleted := map[types.UID]bool{}
	active := 0
	for i, p := range plans {
		if p.isActive() {
			active++
		}
		cause, waits := unneeded(f, p, i >= len(plans)-keep)
		found = append(found, waits)
		switch {
		case cause == olmcore.Cause{}:
		case len(deleted) == maxDeletes:
			found = append(found, olmcore.Result{RequeueAfter: nextDeletes})
		default:
			deleted[p.UID] = true
			found = append(found, olmcore.Result{Actions: []olmcore.Action{olmcore.DeleteOf(p.InstallPlan, cause)}})
		}
	}
	if active > keep {
		tooMany := warn(ReasonTooManyActivePlans, f.in.object(), "%d InstallPlans of namespace %s wait or run", active, f.in.Namespace)
		found = append(found, olmcore.Result{Diagnostics: []olmcore.Diagnostic{tooMany}})
	}
	return olmcore.Result{}.And(found...), deleted
}

// unneeded returns why a plan should be deleted, or the zero Cause if it should stay. isRecent reports whether it is
// one of the newest plans, which stay. The Result contains what was found about the plan, and when it may be deleted.
func unneeded(f *facts, p plan, isRecent bool) (olmcore.Cause, olmcore.Result) {
	switch {
	case p.DeletionTimestamp != nil || p.isActive():
		return olmcore.Cause{}, olmcore.Result{}
	case !relation.Terminal(p.InstallPlan):
		return unneededWithoutSteps(f, p)
	case isRecent || p.neededBy() != nil:
		return olmcore.Cause{}, olmcore.Result{}
	}
	const message = "newer plans are kept, and no Subscription references this one"
	return olmcore.Cause{Reason: ReasonPlanHistory, Message: message}, olmcore.Result{}
}

// unneededWithoutSteps decides like unneeded about a plan without steps. If it is old and no Subscription references
// it, it will never get steps. A plan that a Subscription references stays. Otherwise the Subscription would resolve
// again, perhaps to a second plan with the same version.
func unneededWithoutSteps(f *facts, p plan) (olmcore.Cause, olmcore.Result) {
	left := p.CreationTimestamp.Add(relation.OrphanGrace).Sub(f.in.Now)
	if left > 0 {
		return olmcore.Cause{}, olmcore.Result{RequeueAfter: left}
	}
	if s := p.neededBy(); s != nil {
		waits := warn(ReasonPlanWithoutStatus, p.InstallPlan, "the plan has no steps, and Subscription %s references it", s.Name)
		return olmcore.Cause{}, olmcore.Result{Diagnostics: []olmcore.Diagnostic{waits}}
	}
	return olmcore.Cause{Reason: ReasonPlanWithoutStatus, Message: "the plan never got its steps"}, olmcore.Result{}
}

// deleteBundles returns the deletions of unpacked bundles that no plan needs, once their retention is over.
func deleteBundles(f *facts) (result olmcore.Result) {
	in := f.in
	var old []*corev1.ConfigMap
	for _, cm := range inputs.ByName(in.ConfigMaps.Items) {
		if cm.DeletionTimestamp != nil || !bundle.IsUnpacked(cm) {
			continue
		}
		if left := bundle.Retained(cm, in.Now); left > 0 {
			result.Requeue(left)
		} else {
			old = append(old, cm)
		}
	}
	if len(old) == 0 || !in.OtherPlans.Complete {
		return result
	}
	needed := bundle.Needed(slices.Concat(in.InstallPlans.Items, in.OtherPlans.Items)...)
	for _, lookup := range in.Lookups {
		needed[bundle.LookedUp(lookup)] = true
	}
	for _, cm := range old {
		if !needed[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] {
			result.Diagnostics = append(result.Diagnostics, inform(ReasonUnpackedBundleUnused, cm, "no InstallPlan references it"))
			result.Actions = append(result.Actions, bundle.Delete(cm, ReasonUnpackedBundleUnused, "no InstallPlan references it"))
		}
	}
	return result
}
