// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"iter"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// auditPlan checks the owners, labels and objects of a plan. It repairs the owners and labels in one Update.
func auditPlan(f *facts, p plan) olmcore.Result {
	var found []olmcore.Diagnostic
	for _, s := range p.subscriptions {
		found = append(found, auditOwner(f, p.InstallPlan, s)...)
	}
	owned := slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubscriptionKind })
	var proven []*v1alpha1.Subscription
	if !owned {
		proven = provenByLabel(f, p.InstallPlan)
	}
	repair := relation.Check(p.InstallPlan, p.subscriptions, proven...)
	if repair.Duplicate {
		found = append(found, warn(ReasonOwnerReferenceDuplicate, p.InstallPlan, "the InstallPlan has the same owner reference more than once"))
	}
	switch {
	case owned:
	case len(found) > 0 || len(proven) > 0:
		found = append(found, warn(ReasonPlanWithoutOwner, p.InstallPlan, "no Subscription owns the plan"))
	default:
		const message = "no Subscription owns the plan, and no reference or label shows which one should"
		found = append(found, warn(ReasonPlanWithoutOwner, p.InstallPlan, message))
	}
	found = append(found, auditLabels(f, p.InstallPlan, repair.Unlabelled)...)
	var actions []olmcore.Action
	if repair.Needed {
		after, cause := repair.Update(p.InstallPlan)
		actions = append(actions, olmcore.UpdateOf(p.InstallPlan, after, cause))
	}
	if isCurrent(p.InstallPlan, p.subscriptions) {
		found = append(found, auditObjects(f, p.InstallPlan)...)
	}
	return olmcore.Result{Actions: actions, Diagnostics: found}
}

// auditLabels reports the labels of packages that a plan lacks, and those that no Subscription needs.
func auditLabels(f *facts, p *v1alpha1.InstallPlan, unlabelled []string) (found []olmcore.Diagnostic) {
	for _, pkg := range unlabelled {
		found = append(found, warn(ReasonComponentLabelMissing, p, "the label of package %s is missing", pkg))
	}
	var unused []string
	for label := range p.Labels {
		if strings.HasPrefix(label, olmcore.ComponentLabelPrefix) && len(f.byLabel[label]) == 0 {
			unused = append(unused, label)
		}
	}
	slices.Sort(unused)
	for _, label := range unused {
		found = append(found, inform(ReasonComponentLabelUnused, p, "no Subscription follows the package of label %s", label))
	}
	return found
}

// auditOwner checks the owner reference of one plan to one Subscription.
func auditOwner(f *facts, p *v1alpha1.InstallPlan, s *v1alpha1.Subscription) (found []olmcore.Diagnostic) {
	if s.UID == "" {
		return nil
	}
	generated := s.Annotations[relation.GeneratedBy] == p.Name
	young := generated && f.in.Now.Before(s.CreationTimestamp.Add(plans.VisibilityGrace))
	switch {
	case olmcore.OwnedBy(p, s.UID):
	case young: // the repair adds the owner reference without a report
	case relation.RefersTo(s, p):
		found = append(found, warn(ReasonOwnerReferenceMissing, p, "Subscription %s references the plan and does not own it", s.Name))
	case generated:
		found = append(found, warn(ReasonGeneratedOwnerMissing, p, "Subscription %s was created by the plan and does not own it", s.Name))
	case relation.MustOwn(p, s):
		found = append(found, warn(ReasonOwnerReferenceMissing, p, "the plan was created for Subscription %s, which does not own it", s.Name))
	}
	// An older Subscription cannot have replaced an owner. It comes from a stale list.
	if !s.CreationTimestamp.Before(&p.CreationTimestamp) && slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == v1alpha1.SubscriptionKind && r.Name == s.Name && r.UID != s.UID
	}) {
		found = append(found, inform(ReasonOwnerReferenceStale, p, "it is owned by a deleted Subscription with the name %s", s.Name))
	}
	return found
}

// provenByLabel returns the Subscriptions of the packages in the labels of a plan, without those that are younger than
// the plan.
func provenByLabel(f *facts, p *v1alpha1.InstallPlan) (proven []*v1alpha1.Subscription) {
	for label := range p.Labels {
		for _, s := range f.byLabel[label] {
			if s.UID != "" && !p.CreationTimestamp.Before(&s.CreationTimestamp) {
				proven = append(proven, s)
			}
		}
	}
	return inputs.ByName(proven)
}

// auditSubscription checks the references of a Subscription to plans.
func auditSubscription(f *facts, s *v1alpha1.Subscription) olmcore.Result {
	if s.Status.InstallPlanRef != nil {
		return auditReference(f, s)
	}
	return auditGeneratedBy(f, s)
}

// auditReference checks that the plan that a Subscription references exists and contains its version.
func auditReference(f *facts, s *v1alpha1.Subscription) olmcore.Result {
	name, current := s.Status.InstallPlanRef.Name, s.Status.CurrentCSV
	p := f.plan(name)
	exists := p != nil && relation.RefersTo(s, p)
	left := s.Status.LastUpdated.Add(relation.OrphanGrace).Sub(f.in.Now)
	var found []olmcore.Diagnostic
	switch {
	case !exists && left > 0:
		return olmcore.Result{RequeueAfter: left}
	case !exists:
		found = append(found, warn(ReasonPlanReferenceDangling, s, "InstallPlan %s does not exist", name))
	case current != "" && len(p.Status.Plan) > 0 && !slices.Contains(p.Spec.ClusterServiceVersionNames, current):
		found = append(found, warn(ReasonCurrentCSVNotInPlan, s, "ClusterServiceVersion %s is not in InstallPlan %s", current, p.Name))
	}
	return olmcore.Result{Diagnostics: found}
}

// auditGeneratedBy checks that the plan that created a Subscription exists, and removes the annotation otherwise.
func auditGeneratedBy(f *facts, s *v1alpha1.Subscription) olmcore.Result {
	by, marked := s.Annotations[relation.GeneratedBy]
	left := s.CreationTimestamp.Add(relation.OrphanGrace).Sub(f.in.Now)
	switch {
	case !marked || s.UID == "" || f.plan(by) != nil:
		return olmcore.Result{}
	case left > 0:
		return olmcore.Result{RequeueAfter: left}
	}
	cause := olmcore.Cause{Reason: ReasonGeneratedByDangling, Message: "the InstallPlan that generated it does not exist"}
	return olmcore.Result{
		Actions:     []olmcore.Action{relation.Unmark(s, cause)},
		Diagnostics: []olmcore.Diagnostic{warn(ReasonGeneratedByDangling, s, "InstallPlan %s, which created it, does not exist", by)},
	}
}

// auditCollisions reports plans that collide with others. Each set of colliding plans gets one Diagnostic, about the
// last plan of the set.
func auditCollisions(kept []plan) (found []olmcore.Diagnostic) {
	var all, unfinished []*v1alpha1.InstallPlan
	for _, p := range kept {
		all = append(all, p.InstallPlan)
		if !relation.Terminal(p.InstallPlan) {
			unfinished = append(unfinished, p.InstallPlan)
		}
	}
	for _, set := range plans.OfOneGeneration(all, packagesOf) {
		last := set[len(set)-1]
		others := plans.Names(set[:len(set)-1], "has the same generation", "have the same generation")
		found = append(found, warn(ReasonPlansCollide, last, "%s %d", others, last.Spec.Generation))
	}
	for _, set := range plans.Colliding(unfinished, contentHash) {
		const one, many = "has the same content and is not finished either", "have the same content and are not finished either"
		others := plans.Names(set[:len(set)-1], one, many)
		found = append(found, warn(ReasonPlansCollide, set[len(set)-1], "%s", others))
	}
	return found
}

// packagesOf returns the packages by which a plan collides with others of its generation. One resolution gives plans of
// different sets the same generation: separate plans collide only if they share a package. Any other plan, or one
// without packages, collides with all.
func packagesOf(p *v1alpha1.InstallPlan) (packages []string, hasAll bool) {
	packages = relation.PackagesOf(p)
	return packages, !olmcore.IsSeparatePlan(p) || len(packages) == 0
}

// contentHash returns the hash by which a plan collides with others of the same content.
func contentHash(p *v1alpha1.InstallPlan) (hashes []string, hasAll bool) {
	if hash := p.Annotations[relation.ContentHash]; hash != "" {
		hashes = []string{hash}
	}
	return hashes, false
}

// isCurrent reports whether a plan is Complete and one of its Subscriptions references it.
func isCurrent(p *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == v1alpha1.InstallPlanPhaseComplete &&
		slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool { return relation.RefersTo(s, p) })
}

// auditObjects reports the objects that a plan installed and that do not exist any more. They are not created again:
// users may delete what a Complete plan installed.
func auditObjects(f *facts, p *v1alpha1.InstallPlan) (found []olmcore.Diagnostic) {
	observed, read := f.steps[p.UID]
	if !read || !observed.Unread.Empty() {
		return nil
	}
	exists := make(map[olmcore.Key]bool, len(observed.Objects))
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, o := range observed.Objects {
		exists[olmcore.KeyOf(o)] = true
		if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			crds = append(crds, crd)
		}
	}
	for i, s := range p.Status.Plan {
		var missing olmcore.Key
		for key := range objectsOf(s, p.Namespace, crds) {
			missing = key
			if exists[key] {
				missing = olmcore.Key{}
				break
			}
		}
		if missing != (olmcore.Key{}) {
			found = append(found, warn(ReasonStepObjectAbsent, p, "%s of status.plan[%d] is gone", missing, i))
		}
	}
	return found
}

// leavesObject reports whether the object of a step of a Complete plan should exist. Subscriptions of dependencies
// belong to the user once they exist.
func leavesObject(s *v1alpha1.Step) bool {
	return s != nil && s.Status != v1alpha1.StepStatusNotCreated && s.Resource.Kind != kinds.Subscription
}

// objectsOf yields the keys that the object of a step may have: first with the name of the step, then with the name in
// its manifest. It yields none if the kind is not served.
func objectsOf(s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition) iter.Seq[olmcore.Key] {
	return func(yield func(olmcore.Key) bool) {
		if !leavesObject(s) {
			return
		}
		key, served := kinds.KeyOf(s, namespace, crds)
		if !served || !yield(key) {
			return
		}
		name := bundle.NameOfStep(s)
		if name != "" && name != key.Name {
			key.Name = name
			yield(key)
		}
	}
}
