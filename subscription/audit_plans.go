// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Annotations of plans that package installplan made: the UIDs of the Subscriptions
// that they were made for, and the hash of what they bring. Config.KeyPrefix stands
// in front.
const (
	annotationContributors = "contributors"
	annotationContentHash  = "content-hash"
)

// own returns one of those annotations, empty when it is not there.
func (v *view) own(p *v1alpha1.InstallPlan, name string) string {
	if len(p.Annotations) == 0 {
		return ""
	}
	return p.Annotations[cmp.Or(v.config.KeyPrefix, olmcore.KeyPrefix)+name]
}

func isTerminal(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

func refersTo(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == p.Name && (ref.Namespace == "" || ref.Namespace == p.Namespace) && samePlan(ref, p.UID, p.Name)
}

// contributes reports whether a plan is for a Subscription: it refers to the
// plan, was made by it, or waits for what it brings.
func (v *view) contributes(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	return refersTo(s, p) || s.Annotations[annotationGeneratedBy] == p.Name && s.Status.InstallPlanRef == nil ||
		!isTerminal(p) && s.Status.CurrentCSV != "" && slices.Contains(p.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV) ||
		slices.Contains(strings.Split(v.own(p, annotationContributors), ","), string(s.UID))
}

// plan audits one plan: its owners, labels and use. What may be done about it is
// for a person to decide; the rest is package installplan's part.
func (a *audit) plan(p *v1alpha1.InstallPlan) {
	created := p.CreationTimestamp.Time
	near := a.near(p)
	live := a.owners(p, near)
	referenced, latest := false, ""
	for _, s := range near {
		if refersTo(s, p) {
			referenced = true
			if s.Status.State == v1alpha1.SubscriptionStateAtLatest {
				latest = s.Name
			}
		}
		a.association(s, p, live)
	}
	if isTerminal(p) {
		return
	}
	if isStatusless(p) && a.v.now.Sub(created) >= a.v.config.AuditGrace {
		f := a.add(p, warning, created, AuditStatuslessPlan, "status", "the plan was never given its steps")
		if !referenced {
			f.repair(false, removalOf(p)...)
		}
	}
	switch names, newer := p.Spec.ClusterServiceVersionNames, a.newerThan(p, near); {
	case newer != "":
		a.add(p, info, created, AuditSupersededPlan, "status.phase", "InstallPlan ", newer, " is newer, and every Subscription that this plan is for refers to a newer one").
			repair(false, removalOf(p)...)
	case latest != "":
		a.add(p, info, created, AuditSupersededPlan, "status.phase", "Subscription ", latest, " refers to the plan and has what it brings")
	case len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return a.v.csv(name) == nil }):
		a.add(p, info, created, AuditSupersededPlan, "status.phase", "all that the plan brings is there")
	}
	if !referenced && len(live) == 0 {
		a.add(p, warning, created, AuditOrphanPlan, "metadata.ownerReferences", "no Subscription refers to the plan or owns it").
			repair(false, removalOf(p)...)
	}
	a.approval(p, near, referenced)
}

// newerThan returns the newest plan that a Subscription for which a plan was made refers
// to instead; empty unless all of them do.
func (a *audit) newerThan(p *v1alpha1.InstallPlan, near []*v1alpha1.Subscription) string {
	newest := p
	for _, s := range near {
		if !a.v.contributes(s, p) && !olmcore.OwnedBy(p, s.UID) || s.Status.InstallPlanRef == nil {
			continue
		}
		other := a.v.plan(s.Status.InstallPlanRef.Name)
		if other == nil || !refersTo(s, other) || other.Spec.Generation <= p.Spec.Generation {
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

// owners audits the references of a plan to Subscriptions, and returns the UIDs of
// those that own it.
func (a *audit) owners(p *v1alpha1.InstallPlan, near []*v1alpha1.Subscription) map[types.UID]bool {
	const path = "metadata.ownerReferences"
	created := p.CreationTimestamp.Time
	live, others, names := map[types.UID]bool{}, map[types.UID]bool{}, map[string]bool{}
	var dangling []string
	for _, r := range p.OwnerReferences {
		if live[r.UID] || others[r.UID] {
			a.add(p, warning, created, AuditOwnerDuplicate, path, "the reference to ", r.Name, " is there more than once")
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
			a.add(p, warning, created, AuditOwnerMalformed, path, "the reference to ", s.Name, " has wrong fields")
		}
	}
	for _, name := range dangling {
		f := a.add(p, info, created, AuditOwnerDangling, path, "the Subscription ", name, " that owns the plan does not exist any more")
		if len(live) > 0 {
			f.repair(false, changeOf(p, a.disown)...)
		}
	}
	for _, s := range near {
		if live[s.UID] || !a.v.contributes(s, p) {
			continue
		}
		reason := AuditOwnerMissing
		if names[s.Name] {
			reason = AuditOwnerStaleUID
		}
		a.add(p, warning, created, reason, path, "the plan is for Subscription ", s.Name, ", which does not own it")
	}
	return live
}

// association compares the two ways in which a plan belongs to a Subscription; live
// are the owners that exist.
func (a *audit) association(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan, live map[types.UID]bool) {
	key := a.keys[s.Name]
	if key == "" {
		return
	}
	_, labelled := p.Labels[key]
	switch {
	case refersTo(s, p) && !labelled:
		a.add(p, warning, p.CreationTimestamp.Time, AuditLabelMissing, "metadata.labels", "the component label of Subscription ", s.Name, " is missing")
	case labelled && len(live) > 0 && !live[s.UID] && !refersTo(s, p):
		a.add(p, info, p.CreationTimestamp.Time, AuditAssociationDisagree, "metadata.labels", "the plan carries the label of Subscription ", s.Name, ", which does not own it")
	}
}

// approval audits whom a plan makes wait.
func (a *audit) approval(p *v1alpha1.InstallPlan, near []*v1alpha1.Subscription, referenced bool) {
	for _, s := range near {
		if asksForApproval(s) && p.Spec.Approval != v1alpha1.ApprovalManual && refersTo(s, p) {
			a.add(p, info, time.Time{}, AuditApprovalDrift, "spec.approval", "the plan runs although Subscription ", s.Name, " asks for approvals by now")
		}
	}
	if p.Spec.Approval != v1alpha1.ApprovalManual {
		return
	}
	if len(a.manual) == 0 {
		if referenced && !p.Spec.Approved {
			a.add(p, warning, p.CreationTimestamp.Time, AuditApprovalDrift, "spec.approval", "the plan waits for an approval that no Subscription asks for any more").
				repair(false, changeOf(p, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })...)
		}
		return
	}
	for _, s := range near {
		if refersTo(s, p) && !asksForApproval(s) {
			a.add(s, info, time.Time{}, AuditApprovalForcedBy, "spec.installPlanApproval",
				"InstallPlan ", p.Name, " has to be approved because of Subscription ", strings.Join(a.manual, ", "))
		}
	}
}

func asksForApproval(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// planPairs audits what plans have in common with each other.
func (a *audit) planPairs() {
	generations, versions := map[int]string{}, map[string][]*v1alpha1.InstallPlan{}
	for _, p := range a.v.plans {
		if p.DeletionTimestamp != nil {
			continue
		}
		if other, found := generations[p.Spec.Generation]; found && p.Spec.Generation > 0 {
			a.add(p, info, time.Time{}, AuditGenerationDuplicate, "spec.generation", "InstallPlan ", other, " has generation ", strconv.Itoa(p.Spec.Generation), " too")
		} else {
			generations[p.Spec.Generation] = p.Name
		}
		names := slices.Clone(p.Spec.ClusterServiceVersionNames)
		slices.Sort(names)
		content := strings.Join(names, " ")
		if len(names) == 0 {
			content = a.v.own(p, annotationContentHash)
		}
		if isTerminal(p) || content == "" {
			continue
		}
		if others := versions[content]; len(others) > 0 {
			a.add(p, warning, p.CreationTimestamp.Time, AuditContentDuplicate, "spec.clusterServiceVersionNames", "InstallPlan ", others[0].Name, " brings the same versions").
				repair(false, a.withoutDuplicate(p, others)...)
		}
		versions[content] = append(versions[content], p)
	}
}

// withoutDuplicate deletes a plan that brings the same as others, or else all the
// others; nothing when a Subscription refers to one of either, or somebody has
// approved it.
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
	return isWritable(p) && !p.Spec.Approved &&
		!slices.ContainsFunc(a.near(p), func(s *v1alpha1.Subscription) bool { return refersTo(s, p) })
}

// disown takes the references to Subscriptions that do not exist off a plan.
func (a *audit) disown(p *v1alpha1.InstallPlan) {
	p.OwnerReferences = slices.DeleteFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool {
		return a.isDangling(p, &r)
	})
}

// isDangling reports whether a reference is to a Subscription that does not exist.
// One to the former self of a Subscription that the plan is for, and that does not
// own it yet, is stale instead.
func (a *audit) isDangling(p *v1alpha1.InstallPlan, r *metav1.OwnerReference) bool {
	if r.Kind != v1alpha1.SubscriptionKind || a.byUID[r.UID] != nil {
		return false
	}
	s := a.v.subscription(r.Name)
	return s == nil || olmcore.OwnedBy(p, s.UID) || !a.v.contributes(s, p)
}

// removalOf deletes a plan as it was seen; nothing when it cannot be addressed.
func removalOf(p *v1alpha1.InstallPlan) []olmcore.Action {
	if !isWritable(p) {
		return nil
	}
	return []olmcore.Action{olmcore.Delete{Target: olmcore.RefOf(p), Cause: olmcore.Cause{Reason: ReasonRelationRepaired, Message: "nobody needs the InstallPlan"}}}
}

// changeOf changes a plan as it was seen; nothing when it cannot be addressed.
func changeOf(p *v1alpha1.InstallPlan, change func(*v1alpha1.InstallPlan)) []olmcore.Action {
	if !isWritable(p) {
		return nil
	}
	after := p.DeepCopy()
	change(after)
	return []olmcore.Action{olmcore.UpdateOf(p, after, olmcore.Cause{Reason: ReasonRelationRepaired, Message: "the InstallPlan contradicts the Subscriptions"})}
}
