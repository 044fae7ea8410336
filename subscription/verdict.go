// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Verdict is the decision about one Subscription: what was observed, and what its status should say. What it points to
// must not be changed.
type Verdict struct {
	// Subscription is the one that was judged, as observed.
	Subscription *v1alpha1.Subscription
	// Plan is what is known of the plan that it refers to.
	Plan PlanState
	// CSV is the version that it follows; nil unless that is there and no copy.
	CSV *v1alpha1.ClusterServiceVersion
	// Status is what its status should be, but for lastUpdated. Writes: that is another than the observed one.
	Status v1alpha1.SubscriptionStatus
	Writes bool
	// Kept are the library's conditions of which nothing is known that would change them.
	Kept []v1alpha1.SubscriptionConditionType
	// Waits: it does not need the namespace to be resolved.
	Waits bool
	// Result is what Reconcile asks for and reports because of it.
	olmcore.Result

	held    bool     // a resolution has to wait for the write
	history *History // what to remember, nil unless that is new
}

// Update returns the write of the status, for a reason.
func (v *Verdict) Update(now time.Time, why olmcore.Cause) olmcore.UpdateStatus {
	after := v.Subscription.DeepCopy()
	v.Status.DeepCopyInto(&after.Status)
	after.Status.LastUpdated = metav1.NewTime(relation.Latest(v.Subscription.Status.LastUpdated.Time, olmcore.Timestamp(now).Time))
	return olmcore.UpdateStatusOf(v.Subscription, after, why)
}

// judgement is a Verdict that is being made, in the order of the steps of judge.
type judgement struct {
	tracker
	follows following
}

// judge decides one Subscription's status.
func (n *namespace) judge(v *Verdict) {
	spec := v.Subscription.Spec
	v.Status, v.Waits = v.Subscription.Status, true
	j := judgement{tracker: newTracker(n, v)}
	switch {
	case spec == nil:
		j.Plan.Stage, j.Plan.Shown = StageUnknown, StageUnknown
		j.report(olmcore.Error, ReasonInvalidSpec, "spec", "the Subscription has no spec")
		return
	case spec.Package == "" || spec.CatalogSource == "" || spec.CatalogSourceNamespace == "":
		j.report(olmcore.Error, ReasonInvalidSpec, "spec", "the Subscription lacks package, source or sourceNamespace")
	}
	if j.follows = n.answered(v.Subscription); j.follows.ref == nil {
		j.adopt()
	}
	j.observe()
	j.state()
	if j.CSV == nil {
		j.followReplacement()
	}
	j.forgetMissing()
	if j.CSV == nil {
		j.stuck()
	}
	j.publish(j.follows.ref)
	j.status()
	if j.kept && j.after != j.before {
		after := j.after
		v.history = &after
	}
}

// observe looks at the plan that the Subscription follows.
func (j *judgement) observe() {
	j.look(j.follows.ref)
	if j.Plan.Replaced {
		j.follows.to(j.Plan.Plan)
	}
	if j.Plan.Plan != nil && j.Plan.Stage != StageUnverified {
		j.follows.generation = max(j.follows.generation, j.Plan.Plan.Spec.Generation)
	}
}

// state sets the state that follows from the CSV (subscription states UpgradePending, UpgradeFailed and AtLatestKnown).
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureSubscriptionCSVState. Differs:
// installedCSV is set whenever the CSV is there, not only when the state changes; a copied CSV does not count; a plan
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

// followReplacement makes a Subscription follow the version that replaced its own, when the replacement came with a
// plan that was not made for it: two plans of one namespace can bring two versions of one dependency, and its
// Subscription refers to the plan whose step made it. Left with the version that is gone, the one that is there would
// belong to no Subscription, and the namespace could not be resolved any more.
//
// Source: none. Differs: OLM leaves the Subscription UpgradePending, and a user deletes the CSV.
func (j *judgement) followReplacement() {
	f, p := &j.follows, &j.Plan
	isOver := p.Stage == StageComplete || p.Stage == StageFailed || p.Stage == StageMissing && p.Lasting
	next := j.replacements[f.csv]
	if f.csv == "" || f.ref == nil || f.isMoved() || !isOver || next == nil {
		return
	}
	f.cause = olmcore.Cause{Reason: ReasonReplacementFollowed, Message: "ClusterServiceVersion " + next.Name + " replaced " + f.csv}
	f.csv = next.Name
	if plan := j.bringer(func(*v1alpha1.InstallPlan) bool { return true }); plan != nil {
		f.to(plan)
		j.observe()
	}
	j.state()
}

// forgetMissing forgets a missing plan that is gone for good while the Subscription waits for it. A CSV that is there
// is kept instead: to forget it would orphan it. So is a version that was installed and removed after its plan was.
// Where a later plan of this Subscription brings the version, it refers to that one instead: else the version would be
// installed all the same, and without a Subscription.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, InstallPlanNotFound. Differs:
// whether the conditions change does not matter while the version was never installed; absence has to last, or to be
// witnessed, first.
func (j *judgement) forgetMissing() {
	const pending = v1alpha1.SubscriptionStateUpgradePending
	f := &j.follows
	if !j.Plan.Lasting || f.state != pending || j.Subscription.Status.State != pending || j.Plan.Outlived {
		return
	}
	next := j.bringer(func(p *v1alpha1.InstallPlan) bool {
		return !relation.SamePlan(f.ref, p.UID, p.Name) && olmcore.OwnedBy(p, f.sub.UID)
	})
	if next == nil {
		f.forget()
		return
	}
	f.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: "InstallPlan " + next.Name + " brings " + f.csv +
		" instead of " + f.ref.Name + ", which is gone"}
	f.to(next)
	j.observe()
}

// stuck looks at Subscriptions without their CSV that wait for something that cannot come.
func (j *judgement) stuck() {
	f, plan := &j.follows, j.Plan.Plan
	if f.state != v1alpha1.SubscriptionStateUpgradePending || f.ref == nil || f.isMoved() {
		return
	}
	switch {
	case j.Plan.Stage == StageFailed && !relation.IsRetried(plan):
		j.report(olmcore.Warning, ReasonFailedPlanWedge, "status.installPlanRef", "InstallPlan %s failed and holds this Subscription until it is deleted", plan.Name)
	case j.Plan.Stage == StageComplete && f.csv != "":
		j.removed("InstallPlan %[2]s is complete but CSV %[1]s is gone; delete the plan to install it again")
	case j.Plan.Stage == StageMissing && j.Plan.Outlived:
		j.removed("CSV %[1]s and its InstallPlan are gone; create the Subscription again to install it")
	}
}

// removed is about a version that was installed and then removed: it stays removed unless Config.ReinstallMissingCSV
// says otherwise.
func (j *judgement) removed(format string) {
	start := j.Subscription.Status.LastUpdated.Time
	if j.Subscription.Status.State != j.follows.state {
		start = j.now // it was there until now
	}
	left := AuditGrace - since(relation.Latest(start, relation.InstalledAt(j.Plan.Plan)), j.now)
	switch {
	case left > 0:
		j.Requeue(left)
	case j.reinstalls:
		j.follows.forget()
	default:
		j.report(olmcore.Warning, ReasonWedgedUpgradePending, "status.currentCSV", format, j.follows.csv, j.Plan.Name)
	}
}

// status builds the desired status, compares it with the observed one, and reports what changes: the plan's stages, the
// state, the conditions.
func (j *judgement) status() {
	f, s, facts := &j.follows, &j.Subscription.Status, j.facts()
	if j.catalogs != nil {
		health := j.catalogs.health(j.Subscription, j.now)
		facts.catalogs, facts.deprecation = &health, j.catalogs.deprecation(j.Subscription.Spec, f.installed)
		j.Status.CatalogHealth, j.Writes = health.list, health.changed
		j.reportCatalogs(&health, facts.deprecation.known)
	}
	mirrors := relation.Mirrors(s.Install, f.ref)
	if !mirrors {
		j.Status.Install = nil
		if f.ref != nil {
			j.Status.Install = v1alpha1.NewInstallPlanReference(f.ref)
		}
	}
	j.Status.CurrentCSV, j.Status.InstalledCSV, j.Status.State = f.csv, f.installed, f.state
	j.Status.InstallPlanGeneration, j.Status.InstallPlanRef = f.generation, f.ref
	changed := f.csv != s.CurrentCSV || f.installed != s.InstalledCSV || f.state != s.State || f.generation != s.InstallPlanGeneration || f.isMoved() || !mirrors
	moved, held := j.conditions(&facts)
	j.held, j.Writes = changed || held, changed || j.Writes
	if !mirrors && !f.isMoved() {
		j.report(olmcore.Info, ReasonRefMirrorMismatch, "status.installplan", "status.installplan did not repeat status.installPlanRef")
	}
	j.Waits = j.waits()
	if f.cause.Reason == "" && j.Writes {
		f.cause = j.observedCause(facts.resolution)
	}
	j.Transitions = j.trace(f.ref, f.isMoved(), f.isMoved() || f.state != s.State)
	if f.state != s.State {
		t := olmcore.Moved(olmcore.RefOf(j.Subscription), TransitionState, string(s.State), string(f.state), j.now)
		t.Status, t.Reason, t.Bound = metav1.ConditionTrue, f.cause.Reason, olmcore.NotAfter
		j.Transitions = append(j.Transitions, t)
	}
	j.Transitions = append(j.Transitions, moved...)
	if j.Writes {
		j.Actions = []olmcore.Action{j.Update(j.now, f.cause)}
	}
}

// reportCatalogs says what is not in the conditions.
func (j *judgement) reportCatalogs(h *catalogsHealth, known bool) {
	if h.changed {
		change := v1alpha1.CatalogSourcesUpdated
		switch n := len(h.list) - len(j.Subscription.Status.CatalogHealth); {
		case n > 0:
			change = v1alpha1.CatalogSourcesAdded
		case n < 0:
			change = v1alpha1.CatalogSourcesDeleted
		}
		j.report(olmcore.Info, ReasonCatalogsChanged, "status.catalogHealth", "the catalogs are others than before, or their health is: %s", change)
	}
	isOfContent := func(r conditionRow) bool {
		return r.OfCatalogs && r.Type != v1alpha1.SubscriptionCatalogSourcesUnhealthy && newest(j.Subscription.Status.Conditions, r.Type) != nil
	}
	if !known && slices.ContainsFunc(j.table, isOfContent) {
		j.report(olmcore.Info, ReasonDeprecationUnknown, "status.conditions", "the catalog has no entry for %s", j.follows.installed)
	}
}

// waits reports whether the Subscription does not need the namespace to be resolved: it waits for a plan that will run
// or that may only be invisible, or is being deleted.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: a plan that was
// created but never got its content does not count as one to wait for.
func (j *judgement) waits() bool {
	if j.Subscription.DeletionTimestamp != nil || j.Plan.Stage == StageUnverified {
		return true
	}
	return j.follows.ref != nil && !j.Plan.Invalid && j.follows.state == v1alpha1.SubscriptionStateUpgradePending &&
		(j.Plan.Plan == nil || !relation.Statusless(j.Plan.Plan))
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
