// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// plan audits one plan: its owners, labels and use. What may be done about it is for a person to decide; the rest is
// package installplan's part.
func (a *audit) plan(p *v1alpha1.InstallPlan) {
	created := p.CreationTimestamp.Time
	live := a.owners(p)
	referenced, latest := false, ""
	for _, s := range a.subs {
		if relation.Refers(s, p) {
			referenced = true
			if s.Status.State == v1alpha1.SubscriptionStateAtLatest {
				latest = s.Name
			}
		}
		a.association(s, p, live)
	}
	if relation.Over(p) {
		return
	}
	if relation.Statusless(p) && a.now.Sub(created) >= subscription.AuditGrace {
		f := a.add(p, olmcore.Warning, created, StatuslessPlan, "status", "the plan was never given its steps")
		if !referenced {
			f.repair(false, removalOf(p)...)
		}
	}
	switch names, newer := p.Spec.ClusterServiceVersionNames, a.newerThan(p); {
	case newer != "":
		a.add(p, olmcore.Info, created, SupersededPlan, "status.phase", "InstallPlan %s is newer, and every Subscription that this plan is for refers to a newer one", newer).
			repair(false, removalOf(p)...)
	case latest != "":
		a.add(p, olmcore.Info, created, SupersededPlan, "status.phase", "Subscription %s refers to the plan and has what it brings", latest)
	case len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return a.csvs[name] == nil }):
		a.add(p, olmcore.Info, created, SupersededPlan, "status.phase", "all that the plan brings is there")
	}
	if !referenced && len(live) == 0 {
		a.add(p, olmcore.Warning, created, OrphanPlan, "metadata.ownerReferences", "no Subscription refers to the plan or owns it").
			repair(false, removalOf(p)...)
	}
	a.approval(p, referenced)
}

// newerThan returns the newest plan that a Subscription for which a plan was made refers to instead; empty unless all
// of them do.
func (a *audit) newerThan(p *v1alpha1.InstallPlan) string {
	newest := p
	for _, s := range a.subs {
		if !relation.Contributes(s, p) && !olmcore.OwnedBy(p, s.UID) || s.Status.InstallPlanRef == nil {
			continue
		}
		other := a.planNamed[s.Status.InstallPlanRef.Name]
		if other == nil || !relation.Refers(s, other) || other.Spec.Generation <= p.Spec.Generation {
			return ""
		}
		if other.Spec.Generation > newest.Spec.Generation {
			newest = other
		}
	}
	if newest == p {
		return ""
	}
	return newest.Name
}

// owners audits the references of a plan to Subscriptions, and returns the UIDs of those that own it.
func (a *audit) owners(p *v1alpha1.InstallPlan) map[types.UID]bool {
	const path = "metadata.ownerReferences"
	created := p.CreationTimestamp.Time
	live, others, names := map[types.UID]bool{}, map[types.UID]bool{}, map[string]bool{}
	var dangling []string
	for _, r := range p.OwnerReferences {
		if live[r.UID] || others[r.UID] {
			a.add(p, olmcore.Warning, created, OwnerDuplicate, path, "the reference to %s is there more than once", r.Name)
			continue
		}
		names[r.Name] = names[r.Name] || r.Kind == v1alpha1.SubscriptionKind
		s := a.byUID[r.UID]
		if s == nil {
			others[r.UID] = true
			if a.isDangling(p, &r) {
				dangling = append(dangling, r.Name)
			}
			continue
		}
		live[r.UID] = true
		if !olmcore.SameOwnerReference(r, olmcore.OwnerReferenceTo(s)) {
			a.add(p, olmcore.Warning, created, OwnerMalformed, path, "the reference to %s has wrong fields", s.Name)
		}
	}
	for _, name := range dangling {
		f := a.add(p, olmcore.Info, created, OwnerDangling, path, "the Subscription %s that owns the plan does not exist any more", name)
		if len(live) > 0 {
			f.repair(false, changeOf(p, a.disown)...)
		}
	}
	for _, s := range a.subs {
		if live[s.UID] || !relation.Contributes(s, p) {
			continue
		}
		reason := OwnerMissing
		if names[s.Name] {
			reason = OwnerStaleUID
		}
		a.add(p, olmcore.Warning, created, reason, path, "the plan is for Subscription %s, which does not own it", s.Name)
	}
	return live
}

// association compares the two ways in which a plan belongs to a Subscription; live are the owners that exist.
func (a *audit) association(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan, live map[types.UID]bool) {
	key := a.keys[s.Name]
	if key == "" {
		return
	}
	_, labelled := p.Labels[key]
	switch {
	case relation.Refers(s, p) && !labelled:
		a.add(p, olmcore.Warning, p.CreationTimestamp.Time, LabelMissing, "metadata.labels", "the component label of Subscription %s is missing", s.Name)
	case labelled && len(live) > 0 && !live[s.UID] && !relation.Refers(s, p):
		a.add(p, olmcore.Info, p.CreationTimestamp.Time, AssociationDisagree, "metadata.labels", "the plan carries the label of Subscription %s, which does not own it", s.Name)
	}
}

// approval audits whom a plan makes wait.
func (a *audit) approval(p *v1alpha1.InstallPlan, referenced bool) {
	for _, s := range a.subs {
		if asksForApproval(s) && p.Spec.Approval != v1alpha1.ApprovalManual && relation.Refers(s, p) {
			a.add(p, olmcore.Info, time.Time{}, ApprovalDrift, "spec.approval", "the plan runs although Subscription %s asks for approvals by now", s.Name)
		}
	}
	if p.Spec.Approval != v1alpha1.ApprovalManual {
		return
	}
	if len(a.manual) == 0 {
		if referenced && !p.Spec.Approved {
			a.add(p, olmcore.Warning, p.CreationTimestamp.Time, ApprovalDrift, "spec.approval", "the plan waits for an approval that no Subscription asks for any more").
				repair(false, changeOf(p, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })...)
		}
		return
	}
	for _, s := range a.subs {
		if relation.Refers(s, p) && !asksForApproval(s) {
			a.add(s, olmcore.Info, time.Time{}, ApprovalForcedBy, "spec.installPlanApproval",
				"InstallPlan %s has to be approved because of Subscription %s", p.Name, strings.Join(a.manual, ", "))
		}
	}
}

func asksForApproval(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// planPairs audits what plans have in common with each other.
func (a *audit) planPairs() {
	generations, versions := map[int]string{}, map[string][]*v1alpha1.InstallPlan{}
	for _, p := range a.plans {
		if p.DeletionTimestamp != nil {
			continue
		}
		if other, found := generations[p.Spec.Generation]; found && p.Spec.Generation > 0 {
			a.add(p, olmcore.Info, time.Time{}, GenerationDuplicate, "spec.generation", "InstallPlan %s has generation %d too", other, p.Spec.Generation)
		} else {
			generations[p.Spec.Generation] = p.Name
		}
		names := slices.Clone(p.Spec.ClusterServiceVersionNames)
		slices.Sort(names)
		content := strings.Join(names, " ")
		if len(names) == 0 {
			content = p.Annotations[relation.AnnotationContentHash]
		}
		if relation.Over(p) || content == "" {
			continue
		}
		if others := versions[content]; len(others) > 0 {
			a.add(p, olmcore.Warning, p.CreationTimestamp.Time, ContentDuplicate, "spec.clusterServiceVersionNames", "InstallPlan %s brings the same versions", others[0].Name).
				repair(false, a.withoutDuplicate(p, others)...)
		}
		versions[content] = append(versions[content], p)
	}
}

// withoutDuplicate deletes a plan that brings the same as others, or else all the others; nothing when a Subscription
// refers to one of either, or it is approved.
func (a *audit) withoutDuplicate(p *v1alpha1.InstallPlan, others []*v1alpha1.InstallPlan) []olmcore.Action {
	if a.isUnwanted(p) {
		return removalOf(p)
	}
	var actions []olmcore.Action
	for _, o := range others {
		if !a.isUnwanted(o) {
			return nil
		}
		actions = append(actions, removalOf(o)...)
	}
	return actions
}

func (a *audit) isUnwanted(p *v1alpha1.InstallPlan) bool {
	return relation.Writable(p) && !p.Spec.Approved &&
		!slices.ContainsFunc(a.subs, func(s *v1alpha1.Subscription) bool { return relation.Refers(s, p) })
}

// disown takes the references to Subscriptions that do not exist off a plan.
func (a *audit) disown(p *v1alpha1.InstallPlan) {
	p.OwnerReferences = slices.DeleteFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
		return a.isDangling(p, &r)
	})
}

// isDangling reports whether a reference is to a Subscription that does not exist. One to the former self of a
// Subscription that the plan is for, and that does not own it yet, is stale instead.
func (a *audit) isDangling(p *v1alpha1.InstallPlan, r *metav1.OwnerReference) bool {
	if r.Kind != v1alpha1.SubscriptionKind || a.byUID[r.UID] != nil {
		return false
	}
	s := a.byName[r.Name]
	return s == nil || olmcore.OwnedBy(p, s.UID) || !relation.Contributes(s, p)
}

// removalOf deletes a plan as it was seen; nothing when it cannot be addressed.
func removalOf(p *v1alpha1.InstallPlan) []olmcore.Action {
	if !relation.Writable(p) {
		return nil
	}
	return []olmcore.Action{olmcore.Delete{Target: olmcore.RefOf(p), Cause: olmcore.Cause{Reason: RelationRepaired, Message: "no Subscription needs the InstallPlan"}}}
}

// changeOf changes a plan as it was seen; nothing when it cannot be addressed.
func changeOf(p *v1alpha1.InstallPlan, change func(*v1alpha1.InstallPlan)) []olmcore.Action {
	if !relation.Writable(p) {
		return nil
	}
	after := p.DeepCopy()
	change(after)
	return []olmcore.Action{olmcore.UpdateOf(p, after, olmcore.Cause{Reason: RelationRepaired, Message: "the InstallPlan contradicts the Subscriptions"})}
}
