// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// relations audits and repairs one plan's owners and labels.
func (s *sweep) relations(p *v1alpha1.InstallPlan) {
	in := Input{Now: s.in.Now, InstallPlan: p, Subscriptions: s.ties.of(p, s.in.Config), Config: s.in.Config}
	before := len(s.result.Diagnostics)
	for _, sub := range in.Subscriptions {
		s.owner(&in, sub)
	}
	if hasDuplicateOwner(p) {
		s.report(olmcore.Warning, ReasonOwnerReferenceDuplicate, p, "an owner reference is there more than once")
	}
	proven := s.provenByLabel(p, len(s.result.Diagnostics) > before)
	s.labels(&in)
	if len(proven) > 0 || in.lacksRelation() || in.mustBeManual() {
		s.result.Actions = append(s.result.Actions, repairOf(in, proven)...)
	}
}

// repairOf takes a copy of the input, which keeps that of plans in order off the
// heap.
func repairOf(in Input, proven []*v1alpha1.Subscription) []olmcore.Action {
	d := decision{in: &in, sweeping: true}
	d.repair(proven...)
	return d.result.Actions
}

// owner audits the reference of one plan to one Subscription.
func (s *sweep) owner(in *Input, sub *v1alpha1.Subscription) {
	p := in.InstallPlan
	generated := sub.Annotations[AnnotationGeneratedBy] == p.Name
	young := generated && s.in.Now.Before(sub.CreationTimestamp.Add(or(s.in.Config.VisibilityGrace, DefaultVisibilityGrace)))
	switch {
	case olmcore.OwnedBy(p, sub.UID), sub.UID == "":
	case young: // it is made an owner as a matter of course
	case refersTo(sub, p):
		s.report(olmcore.Warning, ReasonOwnerReferenceMissing, p, "Subscription %s refers to the plan and does not own it", sub.Name)
	case generated:
		s.report(olmcore.Warning, ReasonGeneratedOwnerMissing, p, "Subscription %s was made by the plan and does not own it", sub.Name)
	case in.mustOwn(sub):
		s.report(olmcore.Warning, ReasonOwnerReferenceMissing, p, "the plan was made for Subscription %s, which does not own it", sub.Name)
	}
	// An older Subscription cannot have replaced an owner: the list is behind.
	if sub.UID == "" || sub.CreationTimestamp.Before(&p.CreationTimestamp) {
		return
	}
	for _, r := range p.OwnerReferences {
		if r.Kind == v1alpha1.SubscriptionKind && r.Name == sub.Name && r.UID != sub.UID {
			s.report(olmcore.Warning, ReasonOwnerReferenceStale, p, "it is owned by an earlier Subscription %s", sub.Name)
			return
		}
	}
}

// provenByLabel returns whom the labels of a plan without an owner tie to it,
// and reports such a plan. found says that something else proves an owner.
func (s *sweep) provenByLabel(p *v1alpha1.InstallPlan, found bool) []*v1alpha1.Subscription {
	if slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubscriptionKind }) {
		return nil
	}
	var proven []*v1alpha1.Subscription
	for label := range p.Labels {
		for _, sub := range s.following(label) {
			if sub.UID != "" && !p.CreationTimestamp.Before(&sub.CreationTimestamp) && s.isLabelOf(label, packageOf(sub)) {
				proven = append(proven, sub)
			}
		}
	}
	slices.SortFunc(proven, func(a, b *v1alpha1.Subscription) int { return strings.Compare(a.Name, b.Name) })
	message := "no Subscription owns the plan, and nothing says which should"
	if found || len(proven) > 0 {
		message = "no Subscription owns the plan"
	}
	s.report(olmcore.Warning, ReasonPlanWithoutOwner, p, "%s", message)
	return proven
}

// labels audits the component labels of one plan.
func (s *sweep) labels(in *Input) {
	p := in.InstallPlan
	for _, sub := range in.Subscriptions {
		if in.involved(sub) && lacksLabel(p, packageOf(sub)) {
			s.report(olmcore.Warning, ReasonComponentLabelMissing, p, "the label of package %s is missing", packageOf(sub))
		}
	}
	for rest := p.Annotations[in.Config.packagesKey()]; rest != ""; {
		var pkg string
		pkg, rest, _ = strings.Cut(rest, ",")
		if lacksLabel(p, pkg) && !slices.ContainsFunc(in.Subscriptions, func(sub *v1alpha1.Subscription) bool {
			return packageOf(sub) == pkg && in.involved(sub)
		}) {
			s.report(olmcore.Warning, ReasonComponentLabelMissing, p, "the label of package %s is missing", pkg)
		}
	}
	for _, key := range s.unfollowed(p.Labels) {
		s.report(olmcore.Info, ReasonComponentLabelUnused, p, "no Subscription follows the package of label %s", key)
	}
}

// unfollowed returns the component labels of packages without a Subscription,
// sorted.
func (s *sweep) unfollowed(labels map[string]string) []string {
	var keys []string
	for key := range labels {
		if strings.HasPrefix(key, olmcore.ComponentLabelPrefix) && !s.followed(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (s *sweep) followed(label string) bool {
	return slices.ContainsFunc(s.following(label), func(sub *v1alpha1.Subscription) bool { return s.isLabelOf(label, packageOf(sub)) })
}

// isLabelOf reports whether a label key is the component label of a package.
func (s *sweep) isLabelOf(label, pkg string) bool {
	name, component := strings.CutPrefix(label, olmcore.ComponentLabelPrefix)
	switch {
	case !component || pkg == "":
		return false
	case len(name) == len(pkg)+1+len(s.in.Namespace) && strings.HasPrefix(name, pkg) && name[len(pkg)] == '.' && strings.HasSuffix(name, s.in.Namespace):
		return true
	case len(pkg)+1+len(s.in.Namespace) < len(name):
		return false // the label of a package is never longer
	}
	key, err := olmcore.ComponentLabelKey(pkg, s.in.Namespace)
	return err == nil && key == label
}

// references audits what one Subscription says about plans.
func (s *sweep) references(sub *v1alpha1.Subscription) {
	grace := or(s.in.Config.OrphanGrace, DefaultOrphanGrace)
	if ref := sub.Status.InstallPlanRef; ref != nil {
		p := s.plan(ref.Name)
		switch {
		case p != nil && refersTo(sub, p):
			if current := sub.Status.CurrentCSV; current != "" && len(p.Status.Plan) > 0 && !slices.Contains(p.Spec.ClusterServiceVersionNames, current) {
				s.report(olmcore.Warning, ReasonCurrentCSVNotInPlan, sub, "ClusterServiceVersion %s is not in InstallPlan %s", current, p.Name)
			}
		default:
			if left := sub.Status.LastUpdated.Add(grace).Sub(s.in.Now); left > 0 {
				s.result.Requeue(left)
			} else {
				s.report(olmcore.Warning, ReasonPlanReferenceDangling, sub, "InstallPlan %s does not exist", ref.Name)
			}
		}
		return
	}
	by, marked := sub.Annotations[AnnotationGeneratedBy]
	if !marked || sub.UID == "" || s.plan(by) != nil {
		return
	}
	if left := sub.CreationTimestamp.Add(grace).Sub(s.in.Now); left > 0 {
		s.result.Requeue(left)
		return
	}
	s.report(olmcore.Warning, ReasonGeneratedByDangling, sub, "InstallPlan %s, which made it, does not exist", by)
	s.do(unmark(sub, olmcore.Cause{Reason: ReasonGeneratedByDangling, Message: "the InstallPlan that generated it does not exist"}))
}

// plan returns the plan of a name, nil when there is none.
func (s *sweep) plan(name string) *v1alpha1.InstallPlan {
	i, found := slices.BinarySearchFunc(s.in.InstallPlans, name, func(p *v1alpha1.InstallPlan, name string) int {
		return strings.Compare(p.Name, name)
	})
	if !found {
		return nil
	}
	return s.in.InstallPlans[i]
}

// collisions reports plans that were made twice.
func (s *sweep) collisions() {
	if plans := s.in.InstallPlans; len(plans) <= fewObjects && !s.anyCollision(plans) {
		return
	}
	generations := map[int]string{}
	contents := map[string]string{}
	for _, p := range s.in.InstallPlans {
		if p.DeletionTimestamp != nil || s.going[p.UID] {
			continue
		}
		if other, taken := generations[p.Spec.Generation]; taken && p.Spec.Generation > 0 {
			s.report(olmcore.Warning, ReasonPlansCollide, p, "InstallPlan %s has generation %d too", other, p.Spec.Generation)
		} else {
			generations[p.Spec.Generation] = p.Name
		}
		hash := p.Annotations[s.in.Config.contentHashKey()]
		if hash == "" || terminal(p.Status.Phase) {
			continue
		}
		if other, taken := contents[hash]; taken {
			s.report(olmcore.Warning, ReasonPlansCollide, p, "InstallPlan %s has the same content and is not done either", other)
		} else {
			contents[hash] = p.Name
		}
	}
}

// anyCollision is a first look at few plans.
func (s *sweep) anyCollision(plans []*v1alpha1.InstallPlan) bool {
	key := s.in.Config.contentHashKey()
	for i, a := range plans {
		for _, b := range plans[:i] {
			if a.Spec.Generation == b.Spec.Generation || a.Annotations[key] != "" && a.Annotations[key] == b.Annotations[key] {
				return true
			}
		}
	}
	return false
}

// installed reports what a plan installed and is not there any more. It is not
// made again: a plan that is Complete is history, and users delete things.
func (s *sweep) installed(p *v1alpha1.InstallPlan) {
	have, next := s.stepsOf(p.UID), 0
	if have == nil || !s.ties.isCurrent(p, s.in.Config) {
		return
	}
	for n, step := range p.Status.Plan {
		if step == nil || step.Status == v1alpha1.StepStatusNotCreated || step.Resource.Kind == kindSubscription {
			continue
		}
		key, served := stepKey(step, p.Namespace, have.CustomResourceDefinitions)
		if !served || have.has(key, &next) {
			continue
		}
		if name := identify(step.Resource.Manifest).Metadata.Name; name != "" && name != key.Name {
			if key.Name = name; have.has(key, &next) {
				continue
			}
		}
		s.report(olmcore.Warning, ReasonStepObjectAbsent, p, "%s of %s is gone", key, stepPath(n))
	}
}

// has looks for an object, first behind the one that was found last: they are
// gathered in the order of the steps.
func (o *StepObjects) has(key olmcore.Key, next *int) bool {
	switch key.Kind {
	case kindCSV:
		return slices.ContainsFunc(o.ClusterServiceVersions, func(c *v1alpha1.ClusterServiceVersion) bool { return c != nil && c.Name == key.Name })
	case kindCRD:
		return slices.ContainsFunc(o.CustomResourceDefinitions, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c != nil && c.Name == key.Name })
	}
	for i := range o.Objects {
		at := (*next + i) % len(o.Objects)
		if olmcore.KeyOf(o.Objects[at]) == key {
			*next = at + 1
			return true
		}
	}
	return false
}
