// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

// auditPlan audits one plan's owners, labels and objects, and repairs the former two.
func auditPlan(in Input, n namespace, p *v1alpha1.InstallPlan, f *findings) {
	subscriptions := n.ties.Of(p)
	before := len(f.Diagnostics)
	for _, s := range subscriptions {
		auditOwner(in, p, s, f)
	}
	if relation.HasDuplicateOwner(p) {
		f.object(olmcore.Warning, ReasonOwnerReferenceDuplicate, p, "an owner reference is there more than once")
	}
	var proven []*v1alpha1.Subscription
	if !slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubscriptionKind }) {
		proven = provenByLabel(n, p)
		message := "no Subscription owns the plan, and nothing says which should"
		if len(f.Diagnostics) > before || len(proven) > 0 {
			message = "no Subscription owns the plan"
		}
		f.object(olmcore.Warning, ReasonPlanWithoutOwner, p, "%s", message)
	}
	auditLabels(n, p, subscriptions, f)
	if repair := relation.Check(p, subscriptions, proven...); repair.Needed {
		after, cause := repair.Update(p)
		f.do(olmcore.UpdateOf(p, after, cause))
	}
	auditObjects(n, p, subscriptions, f)
}

// auditOwner audits the reference of one plan to one Subscription.
func auditOwner(in Input, p *v1alpha1.InstallPlan, s *v1alpha1.Subscription, f *findings) {
	if s.UID == "" {
		return
	}
	generated := s.Annotations[relation.GeneratedBy] == p.Name
	young := generated && in.Now.Before(s.CreationTimestamp.Add(input.VisibilityGrace))
	switch {
	case olmcore.OwnedBy(p, s.UID):
	case young: // it is made an owner as a matter of course
	case relation.RefersTo(s, p):
		f.object(olmcore.Warning, ReasonOwnerReferenceMissing, p, "Subscription %s refers to the plan and does not own it", s.Name)
	case generated:
		f.object(olmcore.Warning, ReasonGeneratedOwnerMissing, p, "Subscription %s was made by the plan and does not own it", s.Name)
	case relation.MustOwn(p, s):
		f.object(olmcore.Warning, ReasonOwnerReferenceMissing, p, "the plan was made for Subscription %s, which does not own it", s.Name)
	}
	// An older Subscription cannot have replaced an owner: it comes from a stale list.
	replaces := !s.CreationTimestamp.Before(&p.CreationTimestamp)
	if replaces && slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == v1alpha1.SubscriptionKind && r.Name == s.Name && r.UID != s.UID
	}) {
		f.object(olmcore.Warning, ReasonOwnerReferenceStale, p, "it is owned by an earlier Subscription %s", s.Name)
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

// auditLabels audits the component labels of one plan.
func auditLabels(n namespace, p *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, f *findings) {
	missing := func(pkg string) {
		if relation.LacksLabel(p, pkg) {
			f.object(olmcore.Warning, ReasonComponentLabelMissing, p, "the label of package %s is missing", pkg)
		}
	}
	involved := map[string]bool{}
	for _, s := range subscriptions {
		if relation.Involves(p, s) {
			missing(relation.PackageOf(s))
			involved[relation.PackageOf(s)] = true
		}
	}
	for _, pkg := range relation.List(p.Annotations[relation.Packages]) {
		if !involved[pkg] {
			missing(pkg)
		}
	}
	var unused []string
	for label := range p.Labels {
		if strings.HasPrefix(label, olmcore.ComponentLabelPrefix) && len(n.byLabel[label]) == 0 {
			unused = append(unused, label)
		}
	}
	slices.Sort(unused)
	for _, label := range unused {
		f.object(olmcore.Info, ReasonComponentLabelUnused, p, "no Subscription follows the package of label %s", label)
	}
}

// auditSubscription audits what one Subscription says about plans.
func auditSubscription(in Input, n namespace, s *v1alpha1.Subscription, f *findings) {
	if ref := s.Status.InstallPlanRef; ref != nil {
		p, current := n.planByName[ref.Name], s.Status.CurrentCSV
		switch {
		case p == nil || !relation.RefersTo(s, p):
			if left := s.Status.LastUpdated.Add(relation.OrphanGrace).Sub(in.Now); left > 0 {
				f.Requeue(left)
			} else {
				f.object(olmcore.Warning, ReasonPlanReferenceDangling, s, "InstallPlan %s does not exist", ref.Name)
			}
		case current != "" && len(p.Status.Plan) > 0 && !slices.Contains(p.Spec.ClusterServiceVersionNames, current):
			f.object(olmcore.Warning, ReasonCurrentCSVNotInPlan, s, "ClusterServiceVersion %s is not in InstallPlan %s", current, p.Name)
		}
		return
	}
	by, marked := s.Annotations[relation.GeneratedBy]
	if !marked || s.UID == "" || n.planByName[by] != nil {
		return
	}
	if left := s.CreationTimestamp.Add(relation.OrphanGrace).Sub(in.Now); left > 0 {
		f.Requeue(left)
		return
	}
	f.object(olmcore.Warning, ReasonGeneratedByDangling, s, "InstallPlan %s, which made it, does not exist", by)
	f.do(relation.Unmark(s, olmcore.Cause{Reason: ReasonGeneratedByDangling, Message: "the InstallPlan that generated it does not exist"}))
}

// isCurrent reports whether a plan is Complete and one of its Subscriptions refers to
// it.
func isCurrent(p *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == v1alpha1.InstallPlanPhaseComplete &&
		slices.ContainsFunc(subscriptions, func(s *v1alpha1.Subscription) bool { return relation.RefersTo(s, p) })
}

// auditObjects reports what a plan installed and does not exist any more. It is not
// made again: a plan that is Complete is history, and users delete things.
func auditObjects(n namespace, p *v1alpha1.InstallPlan, subscriptions []*v1alpha1.Subscription, f *findings) {
	observed, read := n.steps[p.UID]
	if !read || !observed.Unread.Empty() || !isCurrent(p, subscriptions) {
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
	for i, step := range p.Status.Plan {
		if !leavesObject(step) {
			continue
		}
		key, served := kinds.Known.KeyOf(step, p.Namespace, crds)
		if !served || exists[key] {
			continue
		}
		if name := manifest.NameOf(step); name != "" && name != key.Name {
			if key.Name = name; exists[key] {
				continue
			}
		}
		f.object(olmcore.Warning, ReasonStepObjectAbsent, p, "%s of status.plan[%d] is gone", key, i)
	}
}

// leavesObject reports whether the object of a step of a plan that is Complete is one
// to look for. Subscriptions of dependencies are the user's, once they are there.
func leavesObject(s *v1alpha1.Step) bool {
	return s != nil && s.Status != v1alpha1.StepStatusNotCreated && s.Resource.Kind != kinds.Subscription
}
