// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Finding is one broken or missing relation between Subscriptions, InstallPlans
// and ClusterServiceVersions.
type Finding struct {
	// Diagnostic says what is wrong: Reason is one of the Audit constants, Target
	// the object. It is an Info while it is younger than Config.AuditGrace or
	// harmless.
	olmcore.Diagnostic
	// Repair are the actions that end it, nil when there are none to offer: owner
	// references and labels of InstallPlans are what sweep.Reconcile repairs by
	// itself. Actions of several findings may be about one object; run one of them
	// and audit again.
	Repair []olmcore.Action
	// Safe: the repair may run without asking anybody.
	Safe bool
}

// Audit reports every relation of a namespace that is broken, missing or odd,
// sorted by object and reason, with the actions that repair it. It reads what
// Reconcile reads, but no memory and no observation window. A namespace in order
// has no findings. The error is an *olmcore.InputError.
func Audit(in Input) ([]Finding, error) {
	in.Histories, in.Config.ObservationWindow, in.Config.MaxPublishLag = nil, 0, max(in.Config.MaxPublishLag, 3*min(in.Config.ObservationWindow, math.MaxInt64/3))
	var v view
	if err := v.fill(&in); err != nil {
		return nil, err
	}
	a := audit{v: &v}
	a.index()
	for _, s := range v.subs {
		a.subscription(s)
	}
	a.pairs()
	a.labels()
	for _, p := range v.plans {
		if p.DeletionTimestamp == nil {
			a.plan(p)
		}
	}
	a.planPairs()
	slices.SortStableFunc(a.findings, func(x, y Finding) int {
		return cmp.Or(x.Target.Compare(y.Target), strings.Compare(x.Reason, y.Reason), strings.Compare(x.Message, y.Message))
	})
	return a.findings, nil
}

type audit struct {
	v        *view
	byUID    map[types.UID]*v1alpha1.Subscription
	keys     map[string]string // their component label keys, by name: a UID may be there twice
	byTie    map[tie][]int     // their positions, by what may tie them to a plan
	manual   []string          // the names of those that ask for approvals
	findings []Finding
}

// add reports a finding that is as old as since; a zero time is old enough.
func (a *audit) add(o olmcore.Object, severity olmcore.Severity, since time.Time, reason, path string, message ...string) *Finding {
	if a.v.now.Sub(since) < a.v.config.AuditGrace {
		severity = info
	}
	a.findings = append(a.findings, Finding{Diagnostic: olmcore.Diagnostic{
		Severity: severity, Reason: reason, Message: strings.Join(message, ""), Target: olmcore.RefOf(o).Unversioned(), Path: path,
	}})
	return &a.findings[len(a.findings)-1]
}

func (f *Finding) repair(safe bool, actions ...olmcore.Action) { f.Repair, f.Safe = actions, safe }

// audited are the diagnostics of Reconcile that are findings too.
func audited(reason string) bool {
	switch reason {
	case ReasonInvalidSpec, ReasonRefUIDMismatch, ReasonConditionWithoutRef,
		ReasonCopiedCSVReferenced, ReasonFailedPlanWedge, ReasonGeneratedByDangling, ReasonGeneratedByStale:
		return true
	}
	return false
}

// subscription audits one Subscription's status.
func (a *audit) subscription(sub *v1alpha1.Subscription) {
	v := a.v
	var d verdict
	v.judge(sub, &d)
	s := &d.sub.Status
	updated := s.LastUpdated.Time
	write := func() olmcore.Action {
		return olmcore.UpdateStatusOf(d.sub, v.status(&d), olmcore.Cause{Reason: ReasonRelationRepaired, Message: "the status contradicts what is there"})
	}
	for _, g := range d.diagnostics {
		if !audited(g.Reason) {
			continue
		}
		f := a.add(d.sub, g.Severity, updated, g.Reason, g.Path, g.Message)
		if d.changed && (g.Reason == ReasonRefUIDMismatch || g.Reason == ReasonConditionWithoutRef) {
			f.repair(true, write())
		}
	}
	if d.skip {
		return
	}
	switch approval := sub.Spec.InstallPlanApproval; approval {
	case "", v1alpha1.ApprovalAutomatic, v1alpha1.ApprovalManual:
	default:
		a.add(sub, warning, updated, ReasonInvalidSpec, "spec.installPlanApproval", "the unknown approval ", string(approval), " counts as Automatic")
	}
	if c := v.csv(s.InstalledCSV); c != nil && isCopied(c) && s.InstalledCSV != d.currentCSV {
		a.add(d.sub, warning, updated, ReasonCopiedCSVReferenced, "status.installedCSV", "CSV ", c.Name, " is a copy and satisfies nothing in this namespace")
	}
	a.reference(&d, write)
	a.wedge(&d)
	if s.State == v1alpha1.SubscriptionStateAtLatest && s.CurrentCSV != "" && d.changed && (!d.csvPresent || s.InstalledCSV != s.CurrentCSV) {
		message := "AtLatestKnown, but CSV " + s.CurrentCSV + " does not exist"
		if d.csvPresent {
			message = "status.installedCSV is not status.currentCSV, which exists"
		}
		a.add(d.sub, warning, updated, AuditStateContradiction, "status.state", message).repair(true, write())
	}
	if message := a.contradiction(&d); message != "" {
		a.add(d.sub, warning, updated, AuditConditionContradiction, "status.conditions", message).repair(true, write())
	}
}

// reference audits status.installPlanRef and what repeats it.
func (a *audit) reference(d *verdict, write func() olmcore.Action) {
	s := &d.sub.Status
	ref := s.InstallPlanRef
	switch {
	case d.seen.invalid:
		reason := ReasonRefInvalid
		if ref.Namespace != "" && ref.Namespace != d.sub.Namespace {
			reason = AuditRefWrongNamespace
		}
		cleared := *d
		cleared.clearReference()
		cleared.stage = wish{}
		a.add(d.sub, warning, s.LastUpdated.Time, reason, "status.installPlanRef", "the reference names no InstallPlan of this namespace").
			repair(false, olmcore.UpdateStatusOf(d.sub, a.v.status(&cleared), cleared.cause))
		return
	case !isMirror(s.Install, ref):
		a.add(d.sub, warning, s.LastUpdated.Time, ReasonRefMirrorMismatch, "status.installplan", "status.installplan does not repeat status.installPlanRef").
			repair(true, write())
	}
	if ref == nil {
		return
	}
	switch {
	case d.seen.stage == StageUnverified && d.seen.plan == nil:
		a.add(d.sub, info, s.LastUpdated.Time, AuditRefMissingPlan, "status.installPlanRef", "InstallPlan ", ref.Name, " is not visible")
	case d.seen.stage == StageMissing:
		forget := d.ref == nil || d.seen.lasting && d.state == v1alpha1.SubscriptionStateUpgradePending && !d.outlivedPlan()
		if shown, _, _ := shownStage(s.Conditions); shown == StageMissing && !forget {
			return // the conditions say so, and there is nothing to repair
		}
		action := write()
		if forget {
			cleared := *d
			cleared.clearReference()
			cleared.stage = wish{}
			action = olmcore.UpdateStatusOf(d.sub, a.v.status(&cleared), cleared.cause)
		}
		a.add(d.sub, warning, s.LastUpdated.Time, AuditRefMissingPlan, "status.installPlanRef", "InstallPlan ", ref.Name, " does not exist").
			repair(true, action)
	case d.seen.plan != nil && !d.seen.replaced && s.InstallPlanGeneration < d.seen.plan.Spec.Generation && d.changed:
		a.add(d.sub, warning, s.LastUpdated.Time, AuditGenerationMismatch, "status.installPlanGeneration",
			"status.installPlanGeneration is lower than the InstallPlan's spec.generation").repair(true, write())
	}
}

// wedge audits a Subscription whose version was deleted.
func (a *audit) wedge(d *verdict) {
	s := &d.sub.Status
	if s.State != v1alpha1.SubscriptionStateUpgradePending || d.csvPresent || s.CurrentCSV == "" || d.ref != nil && d.currentCSV != s.CurrentCSV {
		return
	}
	message := "CSV " + s.CurrentCSV + " and its InstallPlan are gone"
	switch {
	case d.seen.stage == StageComplete && d.seen.plan != nil:
		message = "InstallPlan " + d.seen.plan.Name + " is complete but CSV " + s.CurrentCSV + " is gone"
	case d.seen.stage != StageMissing || !d.outlivedPlan():
		return
	}
	since := s.LastUpdated.Time
	if at := installedAt(d.seen.plan); at.After(since) {
		since = at
	}
	if a.v.now.Sub(since) < a.v.config.AuditGrace {
		return
	}
	cleared := *d
	cleared.clearReference()
	cleared.stage = wish{}
	a.add(d.sub, warning, since, ReasonWedgedUpgradePending, "status.currentCSV", message).
		repair(a.v.config.ReinstallMissingCSV, olmcore.UpdateStatusOf(d.sub, a.v.status(&cleared), cleared.cause))
}

// contradiction says which conditions contradict each other or the plan, and
// makes the verdict repair them; empty when none do.
func (a *audit) contradiction(d *verdict) string {
	have := d.sub.Status.Conditions
	var shown []string
	for i := range have {
		if groupOf(have[i].Type) == groupPlan && have[i].Status == corev1.ConditionTrue && first(have, have[i].Type) == i {
			shown = append(shown, string(have[i].Type))
		}
		if groupOf(have[i].Type) != groupOther && first(have, have[i].Type) != i {
			return "condition " + string(have[i].Type) + " is there more than once"
		}
	}
	slices.Sort(shown)
	if len(shown) > 1 && !d.stage.keep {
		return "conditions " + strings.Join(shown, ", ") + " exclude each other"
	}
	plan := d.seen.plan
	if plan == nil {
		return ""
	}
	stage, _, ok := shownStage(have)
	entered := plan.CreationTimestamp.Time
	if plan.Status.StartTime != nil {
		entered = plan.Status.StartTime.Time
	}
	if at := installedAt(plan); at.After(entered) {
		entered = at
	}
	if ok && !d.stage.keep && stage != d.seen.stage && a.v.now.Sub(entered)-a.v.config.AuditGrace > a.v.config.MaxPublishLag {
		return "the conditions show " + string(stage) + ", InstallPlan " + plan.Name + " is " + string(d.seen.stage)
	}
	i := first(have, v1alpha1.SubscriptionBundleUnpacking)
	if i >= 0 && have[i].Status == corev1.ConditionTrue && d.unpack.keep && !isStatusless(plan) &&
		(have[i].LastTransitionTime == nil || have[i].LastTransitionTime.Time.Before(plan.CreationTimestamp.Time)) {
		d.unpack = wish{}
		return "BundleUnpacking is older than InstallPlan " + plan.Name + ", whose bundles are unpacked"
	}
	return ""
}

// pairs audits what Subscriptions have in common with each other.
func (a *audit) pairs() {
	packages, installed := map[string]string{}, map[string][]*v1alpha1.Subscription{}
	var csvs []string
	for _, s := range a.v.subs {
		if s.Spec != nil && s.Spec.Package != "" {
			if other, found := packages[s.Spec.Package]; found {
				a.add(s, warning, time.Time{}, AuditSamePackage, "spec.name", "Subscription ", other, " follows package ", s.Spec.Package, " too")
			} else {
				packages[s.Spec.Package] = s.Name
			}
		}
		if csv := s.Status.InstalledCSV; csv != "" {
			if installed[csv] = append(installed[csv], s); len(installed[csv]) == 2 {
				csvs = append(csvs, csv)
			}
		}
	}
	for _, csv := range csvs {
		owners := ownersOf(installed[csv], a.v.namespace, csv, func(s *v1alpha1.Subscription) string { return s.Status.InstalledCSV })
		a.findings = append(a.findings, Finding{Diagnostic: sharedCSV(owners, csv)})
	}
}

// labels audits the component labels of all but the plans.
func (a *audit) labels() {
	var out Outcome
	var missing []componentKey
	for _, s := range a.v.subs {
		missing = a.v.label(&out, missing, s, false)
	}
	a.v.labelRest(&out, missing)
	for _, g := range out.Diagnostics {
		a.findings = append(a.findings, Finding{Diagnostic: g})
	}
	for _, action := range out.Actions {
		update := action.(olmcore.Update)
		reason, message := AuditLabelMissing, "a component label is missing"
		if len(update.After.GetLabels()) < len(update.Before.GetLabels()) {
			reason, message = AuditLabelStale, "the component label is that of an earlier package"
		}
		a.add(update.Before, warning, time.Time{}, reason, "metadata.labels", message).repair(true, action)
	}
	keys := map[string]*v1alpha1.Subscription{}
	for _, s := range a.v.subs {
		key := a.keys[s.Name]
		other := keys[key]
		if key == "" {
			continue
		}
		if other != nil && other.Spec.Package != s.Spec.Package {
			a.add(s, warning, time.Time{}, AuditLabelKeyCollision, "spec.name", "package ", s.Spec.Package, " has the same label key as package ", other.Spec.Package)
		}
		keys[key] = s
	}
}

// key returns a Subscription's component label key, empty when it has none.
func (a *audit) key(s *v1alpha1.Subscription) string {
	if s.Spec == nil || s.Spec.Package == "" {
		return ""
	}
	key, err := olmcore.ComponentLabelKey(s.Spec.Package, a.v.namespace)
	if err != nil {
		return ""
	}
	return key
}
