// SPDX-License-Identifier: Apache-2.0

// Package audit checks that the Subscriptions, InstallPlans and ClusterServiceVersions of a namespace are consistent
// with each other, and offers actions that repair them. [Find] writes nothing.
package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/component"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Finding is a broken or missing relation between Subscriptions, InstallPlans and ClusterServiceVersions.
type Finding struct {
	// Diagnostic describes the relation. Reason is a constant of this package or of package subscription. The severity is
	// Info if the Finding is harmless, or younger than subscription.AuditGrace.
	olmcore.Diagnostic
	// Repair contains the actions that repair the relation. It is nil if Find offers no repair, for example because
	// sweep.Reconcile repairs the owner references and labels of InstallPlans. The actions of two Findings may change the
	// same object, so apply the actions of one Finding, and then call Find again.
	Repair []olmcore.Action
	// Safe means that Repair may be applied without the approval of a user.
	Safe bool
}

// Find reports every broken, missing or inconsistent relation of a namespace, with the actions that repair the
// relation. The result is sorted by object, reason and message. It is empty if the namespace is consistent. Find takes
// the Input of subscription.Reconcile and ignores Histories. It returns an *olmcore.InputError if the input is invalid.
func Find(in subscription.Input) ([]Finding, error) {
	in.Histories = nil
	assessment, err := subscription.Assess(in)
	if err != nil {
		return nil, err
	}
	a := newAudit(in)
	for i := range assessment.Decisions {
		a.subscription(&assessment.Decisions[i])
	}
	a.pairs()
	a.labels(in.Components, in.PreviousPackages)
	for _, p := range a.plans {
		a.plan(p)
	}
	a.planPairs()
	slices.SortStableFunc(a.findings, func(x, y Finding) int {
		return cmp.Or(x.Target.Compare(y.Target), strings.Compare(x.Reason, y.Reason), strings.Compare(x.Message, y.Message))
	})
	return a.findings, nil
}

// audit contains the observed objects of a namespace and the findings so far.
type audit struct {
	now        time.Time
	namespace  string
	reinstalls bool
	subs       []*v1alpha1.Subscription // sorted by name, like plans
	plans      []*v1alpha1.InstallPlan  // without those that are being deleted
	csvs       map[string]*v1alpha1.ClusterServiceVersion
	byUID      map[types.UID]*v1alpha1.Subscription
	byName     map[string]*v1alpha1.Subscription
	planNamed  map[string]*v1alpha1.InstallPlan
	keys       map[string]string // component label keys by the name of the Subscription
	findings   []Finding
}

func newAudit(in subscription.Input) *audit {
	a := &audit{
		now: in.Now, namespace: in.Namespace, reinstalls: in.Config.ReinstallMissingCSV,
		subs: relation.Sorted(in.Subscriptions.Items), byName: relation.ByName(in.Subscriptions.Items),
		plans: slices.DeleteFunc(
			relation.Sorted(in.InstallPlans.Items),
			func(p *v1alpha1.InstallPlan) bool { return p.DeletionTimestamp != nil },
		),
		planNamed: relation.ByName(in.InstallPlans.Items),
		csvs:      relation.ByName(in.ClusterServiceVersions.Items), byUID: map[types.UID]*v1alpha1.Subscription{}, keys: map[string]string{},
	}
	for _, s := range a.subs {
		a.byUID[s.UID] = s
		if s.Spec != nil && s.Spec.Package != "" {
			a.keys[s.Name], _ = olmcore.ComponentLabelKey(s.Spec.Package, a.namespace) // empty for none
		}
	}
	return a
}

// add adds a finding that exists since the given time. A zero time means that it is older than subscription.AuditGrace.
func (a *audit) add(o olmcore.Object, severity olmcore.Severity, since time.Time, reason, path, format string, args ...any) *Finding {
	if a.now.Sub(since) < subscription.AuditGrace {
		severity = olmcore.Info
	}
	a.findings = append(a.findings, Finding{Diagnostic: olmcore.Diagnose(severity, reason, olmcore.RefOf(o), path, format, args...)})
	return &a.findings[len(a.findings)-1]
}

func (f *Finding) repair(safe bool, actions ...olmcore.Action) { f.Repair, f.Safe = actions, safe }

// pairs compares the Subscriptions with each other.
func (a *audit) pairs() {
	packages, keys := map[string]*v1alpha1.Subscription{}, map[string]*v1alpha1.Subscription{}
	installed := map[string]int{}
	for _, s := range a.subs {
		if s.Spec != nil && s.Spec.Package != "" {
			key, pkg := a.keys[s.Name], s.Spec.Package
			if other := packages[pkg]; other != nil {
				a.add(s, olmcore.Warning, time.Time{}, SamePackage, "spec.name", "Subscription %s also subscribes to package %s", other.Name, pkg)
			} else {
				packages[pkg] = s
			}
			other := keys[key]
			if key != "" && other != nil && other.Spec.Package != pkg {
				a.add(
					s,
					olmcore.Warning,
					time.Time{},
					LabelKeyCollision,
					"spec.name",
					"package %s has the same label key as package %s",
					pkg,
					other.Spec.Package,
				)
			}
			keys[key] = s
		}
		if csv := s.Status.InstalledCSV; csv != "" {
			if installed[csv]++; installed[csv] == 2 {
				_, shared := subscription.EffectiveConfig(a.subs, a.namespace, csv)
				a.repeat(shared)
			}
		}
	}
}

// repeat adds Diagnostics of other packages as findings.
func (a *audit) repeat(said []olmcore.Diagnostic) {
	for _, d := range said {
		a.findings = append(a.findings, Finding{Diagnostic: d})
	}
}

// labels checks the component labels of all objects except InstallPlans.
func (a *audit) labels(owned []olmcore.Object, previous map[types.UID][]string) {
	out := component.Labels(component.LabelsInput{
		Now: a.now, Namespace: a.namespace, Subscriptions: a.subs, ClusterServiceVersions: a.csvs, Owned: owned, PreviousPackages: previous,
	})
	a.repeat(out.Diagnostics)
	for _, action := range out.Actions {
		update := action.(olmcore.Update)
		reason, message := LabelMissing, "a component label is missing"
		if len(update.After.GetLabels()) < len(update.Before.GetLabels()) {
			reason, message = LabelStale, "the component label belongs to an earlier package"
		}
		a.add(update.Before, olmcore.Warning, time.Time{}, reason, "metadata.labels", "%s", message).repair(true, action)
	}
}

// plan checks the owners, the labels and the use of one InstallPlan. Its repairs are not Safe, because package
// installplan maintains InstallPlans.
func (a *audit) plan(p *v1alpha1.InstallPlan) {
	isOwned, manual := a.owners(p), a.manualOf(p)
	for _, s := range a.subs {
		a.association(s, p, relation.Refers(s, p), relation.Contributes(s, p), isOwned)
		a.approval(s, p, manual)
	}
	if relation.Over(p) {
		return
	}
	use := a.useOf(p)
	a.planWithoutSteps(p, &use)
	a.unneededPlan(p, &use)
	if !use.isReferenced && !isOwned {
		a.add(p, olmcore.Warning, p.CreationTimestamp.Time, OrphanPlan, "metadata.ownerReferences",
			"no Subscription references or owns the InstallPlan").repair(false, removalOf(p)...)
	}
	if use.isReferenced && isManual(p) && !p.Spec.Approved && len(manual) == 0 {
		a.add(p, olmcore.Warning, p.CreationTimestamp.Time, ApprovalDrift, "spec.approval",
			"the InstallPlan waits for approval, but no Subscription requires approval any more").
			repair(false, changeOf(p, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true })...)
	}
}

func isManual(p *v1alpha1.InstallPlan) bool { return p.Spec.Approval == v1alpha1.ApprovalManual }

// approval compares the approval of an InstallPlan that has not ended with that of a Subscription which references it.
// manual names the Subscriptions because of which the InstallPlan needs an approval.
func (a *audit) approval(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan, manual []string) {
	asks := asksForApproval(s)
	switch {
	case relation.Over(p) || !relation.Refers(s, p):
	case asks && !isManual(p):
		a.add(p, olmcore.Info, time.Time{}, ApprovalDrift, "spec.approval",
			"the InstallPlan runs without approval, although Subscription %s requires approval now", s.Name)
	case !asks && isManual(p) && len(manual) > 0:
		a.add(s, olmcore.Info, time.Time{}, ApprovalForcedBy, "spec.installPlanApproval",
			"InstallPlan %s needs an approval because of Subscription %s", p.Name, strings.Join(manual, ", "))
	}
}

// planUse says which Subscriptions use an InstallPlan.
type planUse struct {
	isReferenced bool
	// installed is the name of a Subscription that references the InstallPlan and has its version. It is empty if there
	// is none.
	installed string
	// newer is the newest of the later InstallPlans that the Subscriptions of this one reference. It is nil if one of
	// these Subscriptions references no later InstallPlan.
	newer *v1alpha1.InstallPlan
}

func (a *audit) useOf(p *v1alpha1.InstallPlan) planUse {
	var use planUse
	isOvertaken := true
	for _, s := range a.subs {
		if relation.Refers(s, p) {
			use.isReferenced = true
			if s.Status.State == v1alpha1.SubscriptionStateAtLatest {
				use.installed = s.Name
			}
		}
		ref := s.Status.InstallPlanRef
		if ref == nil || !relation.Contributes(s, p) && !olmcore.OwnedBy(p, s.UID) {
			continue
		}
		other := a.planNamed[ref.Name]
		switch {
		case other == nil || !relation.Refers(s, other) || other.Spec.Generation <= p.Spec.Generation:
			isOvertaken = false
		case use.newer == nil || other.Spec.Generation > use.newer.Spec.Generation:
			use.newer = other
		}
	}
	if !isOvertaken {
		use.newer = nil
	}
	return use
}

// planWithoutSteps reports an InstallPlan that has had no steps for AuditGrace.
func (a *audit) planWithoutSteps(p *v1alpha1.InstallPlan, use *planUse) {
	created := p.CreationTimestamp.Time
	if !relation.Statusless(p) || a.now.Sub(created) < subscription.AuditGrace {
		return
	}
	f := a.add(p, olmcore.Warning, created, StatuslessPlan, "status", "the InstallPlan has no steps")
	if !use.isReferenced {
		f.repair(false, removalOf(p)...)
	}
}

// unneededPlan reports an InstallPlan that no Subscription needs any more.
func (a *audit) unneededPlan(p *v1alpha1.InstallPlan, use *planUse) {
	const path = "status.phase"
	created, names := p.CreationTimestamp.Time, p.Spec.ClusterServiceVersionNames
	isMissing := func(name string) bool { return a.csvs[name] == nil }
	switch {
	case use.newer != nil:
		a.add(p, olmcore.Info, created, SupersededPlan, path,
			"InstallPlan %s is newer, and every Subscription of this InstallPlan references a newer one", use.newer.Name).
			repair(false, removalOf(p)...)
	case use.installed != "":
		a.add(p, olmcore.Info, created, SupersededPlan, path,
			"Subscription %s references the InstallPlan, and its version is installed", use.installed)
	case len(names) > 0 && !slices.ContainsFunc(names, isMissing):
		a.add(p, olmcore.Info, created, SupersededPlan, path, "all versions of the InstallPlan exist")
	}
}

// manualOf returns the names of the Subscriptions because of which an InstallPlan needs an approval: all Manual
// Subscriptions of the namespace or, for a separate plan, those that own or reference it.
func (a *audit) manualOf(p *v1alpha1.InstallPlan) (names []string) {
	for _, s := range a.subs {
		isReferenced := s.Status.InstallPlanRef != nil && s.Status.InstallPlanRef.Name == p.Name
		if asksForApproval(s) && (!olmcore.IsSeparatePlan(p) || olmcore.OwnedBy(p, s.UID) || isReferenced) {
			names = append(names, s.Name)
		}
	}
	return names
}

// owners checks the owner references of an InstallPlan, and reports whether an existing Subscription owns it.
func (a *audit) owners(p *v1alpha1.InstallPlan) (isOwned bool) {
	const path = "metadata.ownerReferences"
	created, seen := p.CreationTimestamp.Time, map[types.UID]bool{}
	isOwned = slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return a.byUID[r.UID] != nil })
	for _, r := range p.OwnerReferences {
		switch s := a.byUID[r.UID]; {
		case seen[r.UID]:
			a.add(p, olmcore.Warning, created, OwnerDuplicate, path, "the InstallPlan has more than one owner reference to %s %s", r.Kind, r.Name)
		case s != nil && !olmcore.SameOwnerReference(r, olmcore.OwnerReferenceTo(s)):
			a.add(p, olmcore.Warning, created, OwnerMalformed, path, "the owner reference to Subscription %s has wrong fields", s.Name)
		case a.isDangling(p, &r):
			f := a.add(p, olmcore.Info, created, OwnerDangling, path,
				"Subscription %s, which owns the InstallPlan, does not exist any more", r.Name)
			if isOwned {
				f.repair(false, changeOf(p, a.disown)...)
			}
		}
		seen[r.UID] = true
	}
	return isOwned
}

// association compares the reference of a Subscription to an InstallPlan with the owner references and labels of the
// plan.
func (a *audit) association(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan, refers, contributes, isOwned bool) {
	created, key := p.CreationTimestamp.Time, a.keys[s.Name]
	owns := olmcore.OwnedBy(p, s.UID)
	if !owns && contributes {
		reason, message := OwnerMissing, "the InstallPlan has no owner reference to Subscription %s"
		if slices.ContainsFunc(
			p.OwnerReferences,
			func(r metav1.OwnerReference) bool { return r.Kind == v1alpha1.SubscriptionKind && r.Name == s.Name },
		) {
			reason, message = OwnerStaleUID, "the InstallPlan has an owner reference to a deleted Subscription with the name %s"
		}
		a.add(p, olmcore.Warning, created, reason, "metadata.ownerReferences", message, s.Name)
	}
	switch _, labelled := p.Labels[key]; {
	case key == "":
	case refers && !labelled:
		a.add(p, olmcore.Warning, created, LabelMissing, "metadata.labels", "the component label of Subscription %s is missing", s.Name)
	case labelled && isOwned && !owns && !refers:
		a.add(p, olmcore.Info, created, AssociationDisagree, "metadata.labels",
			"the InstallPlan has the label of Subscription %s, but the Subscription does not own it", s.Name)
	}
}

func asksForApproval(s *v1alpha1.Subscription) bool {
	return s.DeletionTimestamp == nil && s.Spec != nil && s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual
}

// planPairs compares the InstallPlans with each other.
func (a *audit) planPairs() {
	for _, set := range plans.OfOneGeneration(a.plans, ownersOf) {
		last := set[len(set)-1]
		a.add(last, olmcore.Info, time.Time{}, GenerationDuplicate, "spec.generation",
			"%s generation %d", plans.Names(set[:len(set)-1], "also has", "also have"), last.Spec.Generation)
	}
	versions := map[string][]*v1alpha1.InstallPlan{}
	for _, p := range a.plans {
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
			a.add(p, olmcore.Warning, p.CreationTimestamp.Time, ContentDuplicate, "spec.clusterServiceVersionNames",
				"%s the same versions", plans.Names(others, "also installs", "also install")).repair(false, withoutDuplicate(a.subs, p, others)...)
		}
		versions[content] = append(versions[content], p)
	}
}

// ownersOf returns the owners by which a plan collides with others of its generation. One resolution gives plans of
// different sets the same generation: separate plans collide only if they share an owner. Any other plan collides with
// all.
func ownersOf(p *v1alpha1.InstallPlan) (owners []string, hasAll bool) {
	for _, r := range p.OwnerReferences {
		owners = append(owners, string(r.UID))
	}
	return owners, !olmcore.IsSeparatePlan(p)
}

// withoutDuplicate returns the deletion of a plan that installs the same as others. If the plan is approved or a
// Subscription references it, withoutDuplicate returns the deletions of all others, or nothing if one of them is
// needed.
func withoutDuplicate(subs []*v1alpha1.Subscription, p *v1alpha1.InstallPlan, others []*v1alpha1.InstallPlan) []olmcore.Action {
	isWanted := func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Approved || slices.ContainsFunc(subs, func(s *v1alpha1.Subscription) bool { return relation.Refers(s, p) })
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

// disown removes the owner references to Subscriptions that do not exist.
func (a *audit) disown(p *v1alpha1.InstallPlan) {
	p.OwnerReferences = slices.DeleteFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return a.isDangling(p, &r) })
}

// isDangling reports whether an owner reference names a Subscription that does not exist. If a Subscription of the plan
// was created again with the same name and does not own the plan yet, the reference has a stale UID instead.
func (a *audit) isDangling(p *v1alpha1.InstallPlan, r *metav1.OwnerReference) bool {
	if r.Kind != v1alpha1.SubscriptionKind || a.byUID[r.UID] != nil {
		return false
	}
	s := a.byName[r.Name]
	return s == nil || olmcore.OwnedBy(p, s.UID) || !relation.Contributes(s, p)
}

// removalOf returns the deletion of an InstallPlan in its observed version, or nil if it is not relation.Writable.
func removalOf(p *v1alpha1.InstallPlan) []olmcore.Action {
	if !relation.Writable(p) {
		return nil
	}
	return []olmcore.Action{olmcore.DeleteOf(p, olmcore.Cause{Reason: RelationRepaired, Message: "no Subscription needs the InstallPlan"})}
}

// changeOf returns the update of an InstallPlan in its observed version, or nil if it is not relation.Writable.
func changeOf(p *v1alpha1.InstallPlan, change func(*v1alpha1.InstallPlan)) []olmcore.Action {
	if !relation.Writable(p) {
		return nil
	}
	after := p.DeepCopy()
	change(after)
	cause := olmcore.Cause{Reason: RelationRepaired, Message: "the InstallPlan does not match the Subscriptions"}
	return []olmcore.Action{olmcore.UpdateOf(p, after, cause)}
}
