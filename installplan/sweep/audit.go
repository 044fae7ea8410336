// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"iter"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// auditPlan audits one plan's owners, labels and objects, and repairs the former two.
func auditPlan(n namespace, tied plan, f *findings) {
	p, before := tied.InstallPlan, len(f.Diagnostics)
	for _, s := range tied.subscriptions {
		auditOwner(n, p, s, f)
	}
	owned := slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubscriptionKind })
	var proven []*v1alpha1.Subscription
	if !owned {
		proven = provenByLabel(n, p)
	}
	repair := relation.Check(p, tied.subscriptions, proven...)
	if repair.Duplicate {
		f.warn(ReasonOwnerReferenceDuplicate, p, "an owner reference is there more than once")
	}
	switch {
	case owned:
	case len(f.Diagnostics) > before || len(proven) > 0:
		f.warn(ReasonPlanWithoutOwner, p, "no Subscription owns the plan")
	default:
		f.warn(ReasonPlanWithoutOwner, p, "no Subscription owns the plan, and nothing says which should")
	}
	for _, pkg := range repair.Unlabelled {
		f.warn(ReasonComponentLabelMissing, p, "the label of package %s is missing", pkg)
	}
	var unused []string
	for label := range p.Labels {
		if strings.HasPrefix(label, olmcore.ComponentLabelPrefix) && len(n.byLabel[label]) == 0 {
			unused = append(unused, label)
		}
	}
	slices.Sort(unused)
	for _, label := range unused {
		f.say(olmcore.Info, ReasonComponentLabelUnused, p, "no Subscription follows the package of label %s", label)
	}
	if repair.Needed {
		after, cause := repair.Update(p)
		f.Actions = append(f.Actions, olmcore.UpdateOf(p, after, cause))
	}
	if isCurrent(p, tied.subscriptions) {
		auditObjects(n, p, f)
	}
}

// auditOwner audits the reference of one plan to one Subscription.
func auditOwner(n namespace, p *v1alpha1.InstallPlan, s *v1alpha1.Subscription, f *findings) {
	if s.UID == "" {
		return
	}
	generated := s.Annotations[relation.GeneratedBy] == p.Name
	young := generated && n.in.Now.Before(s.CreationTimestamp.Add(input.VisibilityGrace))
	switch {
	case olmcore.OwnedBy(p, s.UID):
	case young: // it is made an owner as a matter of course
	case relation.RefersTo(s, p):
		f.warn(ReasonOwnerReferenceMissing, p, "Subscription %s refers to the plan and does not own it", s.Name)
	case generated:
		f.warn(ReasonGeneratedOwnerMissing, p, "Subscription %s was made by the plan and does not own it", s.Name)
	case relation.MustOwn(p, s):
		f.warn(ReasonOwnerReferenceMissing, p, "the plan was made for Subscription %s, which does not own it", s.Name)
	}
	// An older Subscription cannot have replaced an owner: it comes from a stale list.
	if !s.CreationTimestamp.Before(&p.CreationTimestamp) && slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == v1alpha1.SubscriptionKind && r.Name == s.Name && r.UID != s.UID
	}) {
		f.say(olmcore.Info, ReasonOwnerReferenceStale, p, "it is owned by an earlier Subscription %s", s.Name)
	}
}

// provenByLabel returns the Subscriptions that the labels of a plan tie to it.
func provenByLabel(n namespace, p *v1alpha1.InstallPlan) (proven []*v1alpha1.Subscription) {
	for label := range p.Labels {
		for _, s := range n.byLabel[label] {
			if s.UID != "" && !p.CreationTimestamp.Before(&s.CreationTimestamp) {
				proven = append(proven, s)
			}
		}
	}
	return input.ByName(proven)
}

// auditSubscription audits what one Subscription says about plans.
func auditSubscription(n namespace, s *v1alpha1.Subscription, f *findings) {
	if ref := s.Status.InstallPlanRef; ref != nil {
		p, current := n.plan(ref.Name), s.Status.CurrentCSV
		switch {
		case p == nil || !relation.RefersTo(s, p):
			if left := s.Status.LastUpdated.Add(relation.OrphanGrace).Sub(n.in.Now); left > 0 {
				f.Requeue(left)
			} else {
				f.warn(ReasonPlanReferenceDangling, s, "InstallPlan %s does not exist", ref.Name)
			}
		case current != "" && len(p.Status.Plan) > 0 && !slices.Contains(p.Spec.ClusterServiceVersionNames, current):
			f.warn(ReasonCurrentCSVNotInPlan, s, "ClusterServiceVersion %s is not in InstallPlan %s", current, p.Name)
		}
		return
	}
	by, marked := s.Annotations[relation.GeneratedBy]
	if !marked || s.UID == "" || n.plan(by) != nil {
		return
	}
	if left := s.CreationTimestamp.Add(relation.OrphanGrace).Sub(n.in.Now); left > 0 {
		f.Requeue(left)
		return
	}
	f.warn(ReasonGeneratedByDangling, s, "InstallPlan %s, which made it, does not exist", by)
	f.Actions = append(f.Actions, relation.Unmark(s, olmcore.Cause{Reason: ReasonGeneratedByDangling, Message: "the InstallPlan that generated it does not exist"}))
}

// auditCollisions reports plans that were made twice: once for each set of plans that collide, as a finding about the
// last of them.
func auditCollisions(kept []plan, f *findings) {
	var all, unfinished []*v1alpha1.InstallPlan
	for _, tied := range kept {
		all = append(all, tied.InstallPlan)
		if !relation.Terminal(tied.InstallPlan) {
			unfinished = append(unfinished, tied.InstallPlan)
		}
	}
	for _, set := range plans.OfOneGeneration(all, packagesOf) {
		last := set[len(set)-1]
		f.warn(ReasonPlansCollide, last, "%s generation %d too", plans.Names(set[:len(set)-1], "has", "have"), last.Spec.Generation)
	}
	for _, set := range plans.Colliding(unfinished, contentHash) {
		others, last := set[:len(set)-1], set[len(set)-1]
		const one, many = "has the same content and is not done either", "have the same content and are not done either"
		f.warn(ReasonPlansCollide, last, "%s", plans.Names(others, one, many))
	}
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

// isCurrent reports whether a plan is Complete and one of its Subscriptions refers to it.
func isCurrent(p *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == v1alpha1.InstallPlanPhaseComplete &&
		slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool { return relation.RefersTo(s, p) })
}

// auditObjects reports what a plan installed and does not exist any more. It is not made again: a plan that is Complete
// is history, and users delete things.
func auditObjects(n namespace, p *v1alpha1.InstallPlan, f *findings) {
	observed, read := n.steps[p.UID]
	if !read || !observed.Unread.Empty() {
		return
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
			f.warn(ReasonStepObjectAbsent, p, "%s of status.plan[%d] is gone", missing, i)
		}
	}
}

// leavesObject reports whether the object of a step of a plan that is Complete is one to look for. Subscriptions of
// dependencies are the user's, once they exist.
func leavesObject(s *v1alpha1.Step) bool {
	return s != nil && s.Status != v1alpha1.StepStatusNotCreated && s.Resource.Kind != kinds.Subscription
}

// objectsOf returns the object to look for of a step: the one of its name, else the one of the name in its manifest.
// There is none of a kind that is not served.
func objectsOf(s *v1alpha1.Step, namespace string, crds []*apiextensionsv1.CustomResourceDefinition) iter.Seq[olmcore.Key] {
	return func(yield func(olmcore.Key) bool) {
		if !leavesObject(s) {
			return
		}
		key, served := kinds.KeyOf(s, namespace, crds)
		if !served || !yield(key) {
			return
		}
		name := manifest.NameOf(s)
		if name != "" && name != key.Name {
			key.Name = name
			yield(key)
		}
	}
}
