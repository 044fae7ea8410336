// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
	"github.com/olmcore/olm/subscription/internal/stage"
)

// PlanState is what is known of the InstallPlan that a Subscription refers to. Stage is
// the one that is believed, Shown the one that the conditions are to show; Plan is nil
// unless the plan is visible, UID and Name identify it in any case.
type PlanState = stage.PlanState

// Verdict is the decision about one Subscription: what was observed, and what its status
// should say. What it points to must not be changed.
type Verdict struct {
	// Subscription is the one that was judged, as observed.
	Subscription *v1alpha1.Subscription
	// Plan is what is known of the plan that it refers to.
	Plan PlanState
	// CSV is the version that it follows; nil unless that is there and no copy.
	CSV *v1alpha1.ClusterServiceVersion
	// Status is what its status should be, but for lastUpdated. Writes: that is another
	// than the observed one.
	Status v1alpha1.SubscriptionStatus
	Writes bool
	// Kept are the library's conditions of which nothing is known that would change them.
	Kept []v1alpha1.SubscriptionConditionType
	// Waits: it does not need the namespace to be resolved.
	Waits bool
	// Result is what Reconcile asks for and reports because of it.
	olmcore.Result

	held bool // a resolution has to wait for the write
}

// Update returns the write of the status, for a reason.
func (v *Verdict) Update(now time.Time, why olmcore.Cause) olmcore.UpdateStatus {
	after := v.Subscription.DeepCopy()
	updated := after.Status.LastUpdated
	v.Status.DeepCopyInto(&after.Status)
	if after.Status.LastUpdated = updated; olmcore.Timestamp(now).After(updated.Time) {
		after.Status.LastUpdated = olmcore.Timestamp(now)
	}
	return olmcore.UpdateStatusOf(v.Subscription, after, why)
}

// judgement is a Verdict that is being made, in the order of the steps of judge.
type judgement struct {
	*namespace
	Verdict
	follows following
}

// judge decides one Subscription's status.
func (n *namespace) judge(s *v1alpha1.Subscription) Verdict {
	j := judgement{namespace: n, Verdict: Verdict{Subscription: s, Status: s.Status, Waits: true}}
	memory, invalid := stage.Recall(n.histories, s.UID)
	if invalid != "" {
		j.report(olmcore.Info, ReasonHistoryInvalid, "", "the stored history names the unknown stage %s", invalid)
	}
	if s.Spec == nil {
		j.Plan.Stage, j.Plan.Shown, j.Plan.Memory = StageUnknown, StageUnknown, memory
		j.report(olmcore.Error, ReasonInvalidSpec, "spec", "the Subscription has no spec")
		return j.Verdict
	}
	if s.Spec.Package == "" || s.Spec.CatalogSource == "" || s.Spec.CatalogSourceNamespace == "" {
		j.report(olmcore.Error, ReasonInvalidSpec, "spec", "the Subscription lacks package, source or sourceNamespace")
	}
	var said []olmcore.Diagnostic
	if j.follows = n.answered(s); j.follows.ref == nil {
		j.follows, said = n.adopted(j.follows)
		j.Diagnostics = append(j.Diagnostics, said...)
	}
	j.Plan.Memory = memory
	j.look()
	j.state()
	if j.CSV == nil {
		j.followReplacement()
	}
	j.forgetMissing()
	if j.CSV == nil {
		j.stuck()
	}
	j.take(n.plans.Publish(j.Plan, j.follows.ref))
	j.status()
	j.reportTransitions()
	return j.Verdict
}

func (j *judgement) report(severity olmcore.Severity, reason, path, format string, args ...any) {
	j.Diagnostics = append(j.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(j.Subscription), path, format, args...))
}

// take keeps a PlanState, and what was said with it.
func (j *judgement) take(s PlanState) {
	j.Diagnostics = append(j.Diagnostics, s.Diagnostics...)
	j.Requeue(s.RequeueAfter)
	s.Result = olmcore.Result{}
	j.Plan = s
}

// look observes the plan that the Subscription follows.
func (j *judgement) look() {
	j.take(j.plans.Look(j.Subscription, j.follows.ref, j.Plan.Memory))
	if j.Plan.Replaced {
		j.follows = j.follows.to(j.Plan.Plan)
	}
	if j.Plan.Plan != nil && j.Plan.Stage != StageUnverified {
		j.follows.generation = max(j.follows.generation, j.Plan.Plan.Spec.Generation)
	}
}

// state sets the state that follows from the CSV (subscription states UpgradePending,
// UpgradeFailed and AtLatestKnown).
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// ensureSubscriptionCSVState. Differs: installedCSV is set whenever the CSV is
// there, not only when the state changes; a copied CSV does not count; a plan
// that cannot be judged leaves the state alone.
func (j *judgement) state() {
	f := &j.follows
	if f.csv == "" {
		return
	}
	j.CSV = j.csvs[f.csv]
	if j.CSV != nil && j.CSV.IsCopied() {
		j.report(olmcore.Warning, ReasonCopiedCSVReferenced, "status.currentCSV", "CSV %s is a copy and satisfies nothing in this namespace", f.csv)
		j.CSV = nil
	}
	switch {
	case j.CSV != nil:
		f.state, f.installed = v1alpha1.SubscriptionStateAtLatest, f.csv
		if phase := j.CSV.Status.Phase; phase == v1alpha1.CSVPhaseNone {
			j.report(olmcore.Info, ReasonCSVNotSucceeded, "status.currentCSV", "CSV %s exists but its phase is not set", f.csv)
		} else if phase != v1alpha1.CSVPhaseSucceeded {
			j.report(olmcore.Info, ReasonCSVNotSucceeded, "status.currentCSV", "CSV %s exists but its phase is %s", f.csv, phase)
		}
	case j.failForward && j.Plan.Stage == StageUnverified:
	case j.failForward && j.Plan.Stage == StageFailed:
		f.state = v1alpha1.SubscriptionStateFailed
	default:
		f.state = v1alpha1.SubscriptionStateUpgradePending
	}
}

// followReplacement makes a Subscription follow the version that replaced its own, when
// the replacement came with a plan that was not made for it: two plans of one namespace
// can bring two versions of one dependency, and its Subscription refers to the plan whose
// step made it. Left with the version that is gone, the one that is there would belong to
// no Subscription, and the namespace could not be resolved any more.
//
// Source: none. Differs: OLM leaves the Subscription UpgradePending, and a user deletes
// the CSV.
func (j *judgement) followReplacement() {
	f := &j.follows
	next := j.replacements[f.csv]
	if f.csv == "" || f.ref == nil || f.isMoved() || !j.Plan.IsOver() || next == nil {
		return
	}
	f.cause = olmcore.Cause{Reason: ReasonReplacementFollowed, Message: "ClusterServiceVersion " + next.Name + " replaced " + f.csv}
	f.csv = next.Name
	if plan := j.bringer(j.Subscription, next.Name); plan != nil {
		*f = f.to(plan)
		j.look()
	}
	j.state()
}

// forgetMissing forgets a missing plan that is gone for good while the Subscription waits
// for it. A CSV that is there is kept instead: to forget it would orphan it. So is a
// version that was installed and removed after its plan was. Where a later plan brings
// the version, the Subscription refers to that one instead.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// InstallPlanNotFound. Differs: whether the conditions change does not matter while the
// version was never installed; absence has to last, or to be witnessed, first.
func (j *judgement) forgetMissing() {
	const pending = v1alpha1.SubscriptionStateUpgradePending
	f, status := &j.follows, &j.Subscription.Status
	if j.Plan.Stage != StageMissing || !j.Plan.Lasting || f.state != pending || status.State != pending || relation.OutlivedPlan(status) {
		return
	}
	next := j.laterPlan(*f)
	if next == nil {
		*f = f.forgotten()
		return
	}
	f.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: "InstallPlan " + next.Name + " brings " + f.csv +
		" instead of " + f.ref.Name + ", which is gone"}
	*f = f.to(next)
	j.look()
}

// stuck looks at Subscriptions without their CSV that wait for something that cannot
// come.
func (j *judgement) stuck() {
	f, plan := &j.follows, j.Plan.Plan
	if f.state != v1alpha1.SubscriptionStateUpgradePending || f.ref == nil || f.isMoved() {
		return
	}
	switch {
	case j.Plan.Stage == StageFailed && !stage.Retried(plan):
		j.report(olmcore.Warning, ReasonFailedPlanWedge, "status.installPlanRef", "InstallPlan %s failed and holds this Subscription until it is deleted", plan.Name)
	case j.Plan.Stage == StageComplete && f.csv != "":
		j.removed("InstallPlan %[2]s is complete but CSV %[1]s is gone; delete the plan to install it again")
	case j.Plan.Stage == StageMissing && relation.OutlivedPlan(&j.Subscription.Status):
		j.removed("CSV %[1]s and its InstallPlan are gone; create the Subscription again to install it")
	}
}

// removed is about a version that was installed and then removed: it stays removed unless
// Config.ReinstallMissingCSV says otherwise.
func (j *judgement) removed(format string) {
	start := j.Subscription.Status.LastUpdated.Time
	if j.Subscription.Status.State != j.follows.state {
		start = j.now // it was there until now
	}
	if at := stage.InstalledAt(j.Plan.Plan); at.After(start) {
		start = at
	}
	if left := AuditGrace - stage.Since(start, j.now); left > 0 {
		j.Requeue(left)
		return
	}
	if j.reinstalls {
		j.follows = j.follows.forgotten()
		return
	}
	j.report(olmcore.Warning, ReasonWedgedUpgradePending, "status.currentCSV", format, j.follows.csv, j.Plan.Name)
}

// status builds the desired status and compares it with the observed one.
func (j *judgement) status() {
	f, s := j.follows, j.Subscription.Status
	conditions := j.conditionFacts(j.Subscription)
	conditions.plan, conditions.csv = j.Plan, j.CSV
	health := catalogsHealth{list: s.CatalogHealth}
	if j.catalogs != nil {
		health = j.catalogs.health(j.Subscription, j.now)
		conditions.catalogs = &health
		conditions.deprecation = j.catalogs.deprecation(j.Subscription.Spec, f.installed)
		j.reportCatalogs(&health, &conditions.deprecation)
	}
	m := mergeConditions(j.table, &conditions, s.Conditions, j.now)
	mirror := f.ref == nil && s.Install == nil
	if f.ref != nil {
		install := v1alpha1.NewInstallPlanReference(f.ref)
		mirror = s.Install != nil && *s.Install == *install
		j.Status.Install = install
	} else {
		j.Status.Install = nil
	}
	j.Status.CurrentCSV, j.Status.InstalledCSV, j.Status.State = f.csv, f.installed, f.state
	j.Status.InstallPlanGeneration, j.Status.InstallPlanRef = f.generation, f.ref
	j.Status.CatalogHealth, j.Status.Conditions = health.list, m.list
	moved := f.csv != s.CurrentCSV || f.installed != s.InstalledCSV || f.state != s.State || f.generation != s.InstallPlanGeneration ||
		f.isMoved() || !mirror
	j.held, j.Writes, j.Kept = moved || m.held, moved || health.changed || m.changed, m.kept
	if j.Writes && !f.isMoved() && !mirror {
		j.report(olmcore.Info, ReasonRefMirrorMismatch, "status.installplan", "status.installplan did not repeat status.installPlanRef")
	}
	j.Transitions = m.transitions(j.table, j.Subscription, j.now)
	j.Waits = j.waits()
	if j.follows.cause.Reason == "" {
		j.follows.cause = j.observedCause(conditions.resolution)
	}
}

// reportCatalogs says what is not in the conditions.
func (j *judgement) reportCatalogs(h *catalogsHealth, d *deprecation) {
	if h.changed {
		j.report(olmcore.Info, ReasonCatalogsChanged, "status.catalogHealth", "the catalogs are others than before, or their health is: %s",
			h.change(j.Subscription.Status.CatalogHealth))
	}
	isOfContent := func(c v1alpha1.SubscriptionCondition) bool {
		return slices.ContainsFunc(j.table, func(r conditionRow) bool {
			return r.Type == c.Type && r.OfCatalogs && r.Type != v1alpha1.SubscriptionCatalogSourcesUnhealthy
		})
	}
	if !d.known && slices.ContainsFunc(j.Subscription.Status.Conditions, isOfContent) {
		j.report(olmcore.Info, ReasonDeprecationUnknown, "status.conditions", "the catalog has no entry for %s", j.follows.installed)
	}
}

// waits reports whether the Subscription does not need the namespace to be resolved: it
// waits for a plan that will run or that may only be invisible, or is being deleted.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace. Differs: a plan that was created but never got its
// content does not count as one to wait for.
func (j *judgement) waits() bool {
	switch {
	case j.Subscription.DeletionTimestamp != nil, j.Plan.Stage == StageUnverified:
		return true
	case j.follows.ref == nil || j.Plan.Invalid || j.follows.state != v1alpha1.SubscriptionStateUpgradePending:
		return false
	}
	return j.Plan.Plan == nil || !stage.Statusless(j.Plan.Plan)
}

// observedCause returns what a status write is for that follows what was observed.
func (j *judgement) observedCause(resolution want) olmcore.Cause {
	message := "the InstallPlan is " + string(j.Plan.Stage)
	switch {
	case resolution.status != "":
		message = "the namespace cannot be resolved"
	case j.Plan.Stage == StageNoPlan:
		message = "no InstallPlan is referenced"
	}
	return olmcore.Cause{Reason: ReasonStatusObserved, Message: message}
}

// reportTransitions puts what is reported in order: the plan's stages, the state, the conditions.
func (j *judgement) reportTransitions() {
	was, is := j.Subscription.Status.State, j.Status.State
	s, stages := j.plans.Report(j.Plan, stage.Written{Any: j.Writes, Reference: j.follows.isMoved(), State: is != was, Cleared: j.follows.ref == nil})
	j.take(s)
	if is != was {
		t := olmcore.Moved(olmcore.RefOf(j.Subscription), TransitionState, string(was), string(is), j.now)
		t.Status, t.Reason, t.Bound = metav1.ConditionTrue, j.follows.cause.Reason, olmcore.NotAfter
		stages = append(stages, t)
	}
	j.Transitions = append(stages, j.Transitions...)
	if j.Writes {
		j.Actions = []olmcore.Action{j.Update(j.now, j.follows.cause)}
	}
}
