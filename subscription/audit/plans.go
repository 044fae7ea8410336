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
	created, isOver, isManual := p.CreationTimestamp.Time, relation.Over(p), p.Spec.Approval == v1alpha1.ApprovalManual
	isOwned := a.owners(p)
	referenced, latest, newest, isOvertaken := false, "", p, true
	for _, s := range a.subs {
		refers, contributes, owns := relation.Refers(s, p), relation.Contributes(s, p), olmcore.OwnedBy(p, s.UID)
		a.association(s, p, refers, contributes, isOwned)
		if refers {
			referenced = true
			if s.Status.State == v1alpha1.SubscriptionStateAtLatest {
				latest = s.Name
			}
		}
		if ref := s.Status.InstallPlanRef; ref != nil && (contributes || owns) {
			other := a.planNamed[ref.Name]
			if other == nil || !relation.Refers(s, other) || other.Spec.Generation <= p.Spec.Generation {
				isOvertaken = false
			} else if other.Spec.Generation > newest.Spec.Generation {
				newest = other
			}
		}
		switch asks := asksForApproval(s); {
		case isOver || !refers:
		case asks && !isManual:
			a.add(p, olmcore.Info, time.Time{}, ApprovalDrift, "spec.approval", "the plan runs although Subscription %s asks for approvals by now", s.Name)
		case !asks && isManual && len(a.manual) > 0:
			a.add(s, olmcore.Info, time.Time{}, ApprovalForcedBy, "spec.installPlanApproval",
				"InstallPlan %s has to be approved because of Subscription %s", p.Name, strings.Join(a.manual, ", "))
		}
	}
	if isOver {
		return
	}
	if relation.Statusless(p) && a.now.Sub(created) >= subscription.AuditGrace {
		f := a.add(p, olmcore.Warning, created, StatuslessPlan, "status", "the plan was never given its steps")
		if !referenced {
			f.repair(false, removalOf(p)...)
		}
	}
	switch names := p.Spec.ClusterServiceVersionNames; {
	case isOvertaken && newest != p:
		a.add(p, olmcore.Info, created, SupersededPlan, "status.phase", "InstallPlan %s is newer, and every Subscription that this plan is for refers to a newer one", newest.Name).
			repair(false, removalOf(p)...)
	case latest != "":
		a.add(p, olmcore.Info, created, SupersededPlan, "status.phase", "Subscription %s refers to the plan and has what it brings", latest)
	case len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return a.csvs[name] == nil }):
		a.add(p, olmcore.Info, created, SupersededPlan, "status.phase", "all that the plan brings is there")
	}
	if !referenced && !isOwned {
		a.add(p, olmcore.Warning, created, OrphanPlan, "metadata.ownerReferences", "no Subscription refers to the plan or owns it").
			repair(false, removalOf(p)...)
	}
	if isManual && referenced && !p.Spec.Approved && len(a.manual) == 0 {
		a.add(p, olmcore.Warning, created, ApprovalDrift, "spec.approval", "the plan waits for an approval that no Subscription asks for any more").
			repair(false, changeOf(p, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })...)
	}
}

// owners audits the references of a plan to Subscriptions, and reports whether one that exists owns it.
func (a *audit) owners(p *v1alpha1.InstallPlan) (isOwned bool) {
	const path = "metadata.ownerReferences"
	created, seen := p.CreationTimestamp.Time, map[types.UID]bool{}
	isOwned = slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return a.byUID[r.UID] != nil })
	for _, r := range p.OwnerReferences {
		switch s := a.byUID[r.UID]; {
		case seen[r.UID]:
			a.add(p, olmcore.Warning, created, OwnerDuplicate, path, "the reference to %s is there more than once", r.Name)
		case s != nil && !olmcore.SameOwnerReference(r, olmcore.OwnerReferenceTo(s)):
			a.add(p, olmcore.Warning, created, OwnerMalformed, path, "the reference to %s has wrong fields", s.Name)
		case a.isDangling(p, &r):
			f := a.add(p, olmcore.Info, created, OwnerDangling, path, "the Subscription %s that owns the plan does not exist any more", r.Name)
			if isOwned {
				f.repair(false, changeOf(p, a.disown)...)
			}
		}
		seen[r.UID] = true
	}
	return isOwned
}

// association compares the ways in which a plan belongs to a Subscription: its reference, owner references and labels.
func (a *audit) association(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan, refers, contributes, isOwned bool) {
	created, owns, key := p.CreationTimestamp.Time, olmcore.OwnedBy(p, s.UID), a.keys[s.Name]
	if !owns && contributes {
		reason := OwnerMissing
		if slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubscriptionKind && r.Name == s.Name }) {
			reason = OwnerStaleUID
		}
		a.add(p, olmcore.Warning, created, reason, "metadata.ownerReferences", "the plan is for Subscription %s, which does not own it", s.Name)
	}
	switch _, labelled := p.Labels[key]; {
	case key == "":
	case refers && !labelled:
		a.add(p, olmcore.Warning, created, LabelMissing, "metadata.labels", "the component label of Subscription %s is missing", s.Name)
	case labelled && isOwned && !owns && !refers:
		a.add(p, olmcore.Info, created, AssociationDisagree, "metadata.labels", "the plan carries the label of Subscription %s, which does not own it", s.Name)
	}
}

func asksForApproval(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// planPairs audits what plans have in common with each other.
func (a *audit) planPairs() {
	generations, versions := map[int]string{}, map[string][]*v1alpha1.InstallPlan{}
	for _, p := range a.plans {
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
	isWanted := func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Approved || slices.ContainsFunc(a.subs, func(s *v1alpha1.Subscription) bool { return relation.Refers(s, p) })
	}
	if !isWanted(p) && relation.Writable(p) {
		return removalOf(p)
	}
	var actions []olmcore.Action
	for _, o := range others {
		if isWanted(o) || !relation.Writable(o) {
			return nil
		}
		actions = append(actions, removalOf(o)...)
	}
	return actions
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
