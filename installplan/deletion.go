// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// cleanupGrace bounds how long the finalizer holds a deleted plan.
const cleanupGrace = time.Minute

// clean is the round of a plan that is being deleted: first what it leaves behind, then its finalizer, alone. What its
// steps created has a life of its own and is never touched.
func (d *decision) clean(in *Input) {
	d.state = StateDeleting
	plan := in.InstallPlan
	if !relation.HasFinalizer(plan) {
		return
	}
	marked, bundles := relation.Marked(plan, in.Subscriptions.Items), in.unusedBundles()
	if input.Terminating(in.Namespace) {
		marked, bundles = nil, nil // package sweep finds what is not in the namespace
	}
	cause := olmcore.Cause{Reason: ReasonPlanDeleted, Message: "nothing is left to clean up"}
	if len(marked)+len(bundles) > 0 {
		cause.Message = "the time for its cleanup is over"
	}
	left := plan.DeletionTimestamp.Add(cleanupGrace).Sub(in.Now)
	if len(marked)+len(bundles) == 0 || left <= 0 {
		if len(marked) > 0 {
			d.say(olmcore.Warning, ReasonCleanupIncomplete, "metadata.finalizers", "annotation %s is left on Subscription %s",
				AnnotationGeneratedBy, joinNames(marked))
		}
		if len(bundles) > 0 {
			d.say(olmcore.Warning, ReasonCleanupIncomplete, "metadata.finalizers", "ConfigMap %s is left", joinNames(bundles))
		}
		d.release(in, cause)
		return
	}
	for _, s := range marked {
		cause := olmcore.Cause{Reason: ReasonPlanDeleted, Message: "the InstallPlan that generated it is being deleted"}
		d.result.Actions = append(d.result.Actions, relation.Unmark(s, cause))
	}
	for _, cm := range bundles {
		d.result.Actions = append(d.result.Actions, bundle.Delete(cm, ReasonPlanDeleted, "no InstallPlan refers to it any more"))
	}
	for _, a := range d.result.Actions {
		_, target, _ := a.Describe()
		if last := in.LastRun[target.Key()]; last.Class == olmcore.Forbidden {
			d.say(olmcore.Warning, ReasonCleanupForbidden, "", "%s: %s", target.Key(), last.Message)
		}
	}
	d.result.Requeue(left)
}

// abandon is the round of a plan in a namespace that is being deleted.
func (d *decision) abandon(in *Input) {
	d.state = StateNamespaceTerminating
	if plan := in.InstallPlan; !relation.Terminal(plan) {
		d.say(olmcore.Info, ReasonNamespaceTerminating, "", "namespace %s is being deleted", plan.Namespace)
	}
	d.release(in, olmcore.Cause{Reason: ReasonNamespaceTerminating, Message: "the namespace is being deleted"})
}

// release asks for the plan without its finalizer.
func (d *decision) release(in *Input, cause olmcore.Cause) {
	if plan := in.InstallPlan; relation.HasFinalizer(plan) {
		after := plan.DeepCopy()
		relation.RemoveFinalizer(after)
		d.result.Actions = append(d.result.Actions, olmcore.UpdateOf(plan, after, cause))
	}
}

// mustRelease: the plan has the finalizer, and is done or plans shall have none.
func (in *Input) mustRelease() bool {
	return in.Config.DisableFinalizer && relation.HasFinalizer(in.InstallPlan) || relation.Terminal(in.InstallPlan) && in.isReleasable()
}

// isReleasable: the plan has the finalizer, and nothing but what runs needs it.
func (in *Input) isReleasable() bool {
	return relation.HasFinalizer(in.InstallPlan) && len(relation.Marked(in.InstallPlan, in.Subscriptions.Items)) == 0
}

// unusedBundles returns the unpacked bundles that the plan is the last to refer to, and that are old enough that no
// other is about to, sorted by name.
func (in *Input) unusedBundles() []*corev1.ConfigMap {
	plan := in.InstallPlan
	if !in.OtherPlans.Complete {
		return nil
	}
	unneeded := bundle.Referred(plan)
	for _, p := range in.OtherPlans.Items {
		if p.Name != plan.Name || p.Namespace != plan.Namespace {
			for key := range bundle.Needed(p) {
				delete(unneeded, key)
			}
		}
	}
	unused := slices.DeleteFunc(slices.Clone(in.ConfigMaps.Items), func(cm *corev1.ConfigMap) bool {
		return !unneeded[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}] || !step.MayRefer(plan.Namespace, cm.Namespace, in.Config.globalNamespace()) ||
			!bundle.IsUnpacked(cm) || bundle.Retained(cm, in.Now) > 0
	})
	slices.SortFunc(unused, func(a, b *corev1.ConfigMap) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return unused
}

func joinNames[T olmcore.Object](objects []T) string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.GetName()
	}
	return strings.Join(names, ", ")
}
