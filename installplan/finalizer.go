// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/olmcore"
)

// leavesMark reports whether a Subscription carries the mark of this plan that
// blocks its namespace once the plan is gone.
func (in *Input) leavesMark(s *v1alpha1.Subscription) bool {
	plan := in.InstallPlan
	if s == nil || s.UID == "" || s.Annotations[AnnotationGeneratedBy] != plan.Name {
		return false
	}
	return s.Status.InstallPlanRef == nil || refersTo(s, plan)
}

// clean is the round of a plan that is being deleted: first what it leaves
// behind, then its finalizer, alone. What its steps created has a life of its
// own and is never touched.
func (d *decision) clean() {
	plan := d.in.InstallPlan
	if !slices.Contains(plan.Finalizers, Finalizer) {
		return
	}
	left, bundles := d.marked(), d.unusedBundles()
	if terminating(d.in.Namespace) {
		left, bundles = nil, nil // Sweep finds what is not in the namespace
	}
	end := plan.DeletionTimestamp.Add(or(d.in.Config.CleanupGrace, DefaultCleanupGrace))
	overdue := !d.in.Now.Before(end)
	if len(left)+len(bundles) > 0 && !overdue {
		for _, s := range left {
			d.unmark(s)
		}
		for _, cm := range bundles {
			d.result.Actions = append(d.result.Actions, bundle.Delete(cm, ReasonPlanDeleted, "no InstallPlan refers to it any more"))
			d.forbidden(cm)
		}
		d.result.Requeue(end.Sub(d.in.Now))
		return
	}
	cause := olmcore.Cause{Reason: ReasonPlanDeleted, Message: "nothing is left to clean up"}
	if len(left)+len(bundles) > 0 {
		cause.Message = "the time for its clean-up is over"
	}
	if len(left) > 0 {
		d.warn(ReasonCleanupIncomplete, "metadata.finalizers", "annotation %s is left on Subscription %s",
			AnnotationGeneratedBy, joinNames(left))
	}
	if len(bundles) > 0 {
		d.warn(ReasonCleanupIncomplete, "metadata.finalizers", "ConfigMap %s is left", joinNames(bundles))
	}
	d.removeFinalizer(cause)
}

func joinNames[T olmcore.Object](objects []T) string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.GetName()
	}
	return strings.Join(names, ", ")
}

// unusedBundles returns the unpacked bundles that the plan is the last to refer
// to, and that are old enough that nobody is about to.
func (d *decision) unusedBundles() []*corev1.ConfigMap {
	mine := d.in.Config.ownBundles(d.in.InstallPlan)
	if len(mine) == 0 || len(d.in.ConfigMaps) == 0 || !d.in.OtherPlans.Complete {
		return nil
	}
	others := bundle.Needed(slices.DeleteFunc(slices.Clone(d.in.OtherPlans.Items), func(p *v1alpha1.InstallPlan) bool {
		return p == nil || p.Name == d.in.InstallPlan.Name && p.Namespace == d.in.InstallPlan.Namespace
	})...)
	var unused []*corev1.ConfigMap
	for _, cm := range sortedByName(d.in.ConfigMaps) {
		key := types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}
		if mine[key] && !others[key] && bundle.IsUnpacked(cm) && bundle.Retained(cm, d.in.Now) <= 0 {
			unused = append(unused, cm)
		}
	}
	return unused
}

func (d *decision) forbidden(o olmcore.Object) {
	if last := d.in.LastRun[olmcore.KeyOf(o)]; last.Class == olmcore.Forbidden {
		d.warn(ReasonCleanupForbidden, "", "%s: %s", olmcore.KeyOf(o), last.Message)
	}
}

func (d *decision) marked() []*v1alpha1.Subscription {
	var marked []*v1alpha1.Subscription
	for _, s := range d.in.Subscriptions {
		if d.in.leavesMark(s) {
			marked = append(marked, s)
		}
	}
	slices.SortFunc(marked, func(a, b *v1alpha1.Subscription) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(marked, func(a, b *v1alpha1.Subscription) bool { return a.Name == b.Name })
}

func (d *decision) unmark(s *v1alpha1.Subscription) {
	d.result.Actions = append(d.result.Actions,
		unmark(s, olmcore.Cause{Reason: ReasonPlanDeleted, Message: "the InstallPlan that generated it is being deleted"}))
	d.forbidden(s)
}

// unmark asks for a Subscription without the name of the plan that made it.
func unmark(s *v1alpha1.Subscription, cause olmcore.Cause) olmcore.Update {
	after := s.DeepCopy()
	delete(after.Annotations, AnnotationGeneratedBy)
	if len(after.Annotations) == 0 {
		after.Annotations = nil
	}
	return olmcore.UpdateOf(s, after, cause)
}

func (d *decision) removeFinalizer(cause olmcore.Cause) {
	plan := d.in.InstallPlan
	if !slices.Contains(plan.Finalizers, Finalizer) {
		return
	}
	after := plan.DeepCopy()
	after.Finalizers = withoutFinalizer(after.Finalizers)
	d.result.Actions = append(d.result.Actions, olmcore.UpdateOf(plan, after, cause))
}
