// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Verdict is the decision about one Subscription and what it follows from. What it points to must not be changed.
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
	// Result is what Reconcile asks for and reports because of it. What explains a status at rest it reports beside
	// the write of a status alone.
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

// result is the Result for Reconcile: a Subscription whose version left its catalog has all that it can have.
func (v *Verdict) result() olmcore.Result {
	r := v.Result
	if !v.Writes {
		r.Diagnostics = slices.DeleteFunc(slices.Clone(r.Diagnostics), func(d olmcore.Diagnostic) bool { return d.Reason == ReasonDeprecationUnknown })
	}
	return r
}

// isMoved reports whether the Subscription is to refer to another plan, or to none any more.
func (v *Verdict) isMoved() bool {
	return v.Status.InstallPlanRef != v.Subscription.Status.InstallPlanRef
}

// refer makes the Subscription refer to an observed plan.
func (v *Verdict) refer(p *v1alpha1.InstallPlan) {
	have := v.Subscription.Status.InstallPlanRef
	if have == nil || have.Name != p.Name || have.UID != p.UID || have.Namespace != p.Namespace {
		have = &corev1.ObjectReference{
			APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind,
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		}
	}
	v.Status.InstallPlanRef = have
}

// judgement is a Verdict that is being made, in the order of the steps of judge.
type judgement struct {
	tracker
	// cause says why the Subscription is to follow another plan or version; zero where it is not.
	cause olmcore.Cause
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
	if !j.followInstalled() {
		if j.followAnswer(); v.Status.InstallPlanRef == nil {
			j.adopt()
			followRecorded(&j)
		}
	}
	j.look()
	j.state()
	if j.CSV == nil {
		j.followReplacement()
	}
	j.leaveSuperseded()
	j.forgetMissing()
	j.resume()
	if j.CSV == nil {
		j.stuck()
	}
	j.publish()
	j.status()
	if j.kept && j.after != j.before {
		v.history = new(j.after)
	}
}

// waitFor makes the Subscription wait for a version that a plan brings.
func (j *judgement) waitFor(csv string, p *v1alpha1.InstallPlan, reason, message string) {
	j.refer(p)
	j.Status.CurrentCSV, j.Status.State = csv, v1alpha1.SubscriptionStateUpgradePending
	j.Status.InstallPlanGeneration = max(j.Status.InstallPlanGeneration, p.Spec.Generation)
	j.cause = olmcore.Cause{Reason: reason, Message: message}
}

// forget makes the Subscription forget its plan, so that the namespace is resolved again.
func (j *judgement) forget() {
	j.Status.InstallPlanRef, j.Status.CurrentCSV, j.Status.State = nil, "", v1alpha1.SubscriptionStateNone
	j.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: "the referenced InstallPlan cannot bring the operator any more"}
}

// followAnswer carries the answer out.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: the reference is
// written before the plan has content, so no plan runs ahead of it; the conditions go from every Subscription as soon
// as the resolution succeeded.
func (j *judgement) followAnswer() {
	a, s := &j.answer, &j.Status
	d, p := a.decisions[j.Subscription.Name], a.partOf(j.Subscription.Name)
	switch {
	case j.blocked != "", a.failed, a.speaks && (d == nil || d.Failure != nil):
	case !p.applies || j.Subscription.DeletionTimestamp != nil || d == nil || !d.Changed || d.CurrentCSV == "":
		j.catchUp()
		leaveWithdrawn(j)
	case p.isHeld():
	case p.plan == nil:
		s.CurrentCSV = d.CurrentCSV
	case s.CurrentCSV == d.CurrentCSV && s.InstallPlanRef != nil && relation.SamePlan(s.InstallPlanRef, p.plan.UID, p.plan.Name):
		// It is carried out.
	default:
		j.waitFor(d.CurrentCSV, p.plan, ReasonReferenceWritten, "InstallPlan "+p.plan.Name+" brings "+d.CurrentCSV)
	}
}

// keepsPlan reports whether a Subscription keeps the plan that it references, whatever an answer says.
//
//  1. A plan that has steps is kept until it is Complete or Failed, is gone, or has applied every step of the Subscription's
//     version. A plan that has started must not lose its Subscription, because nothing would follow the version that it installs.
//     A plan that has not started ends as superseded if a later plan replaces it.
//  2. A version that the plan has just installed is recorded first: the answer was computed without it.
//
// Source: none. Differs: OLM moves a Subscription as soon as its version exists, whether its plan is finished or not.
func (n *namespace) keepsPlan(of *v1alpha1.Subscription) bool {
	s := &of.Status
	if s.InstallPlanRef == nil || of.DeletionTimestamp != nil {
		return false
	}
	plan := n.planNamed[s.InstallPlanRef.Name]
	if plan == nil || !relation.SamePlan(s.InstallPlanRef, plan.UID, plan.Name) {
		return false
	}
	if plan.DeletionTimestamp != nil || len(plan.Status.Plan) == 0 {
		return false
	}
	if !relation.Over(plan) && stageOf(plan) != StageUnknown && !relation.HasInstalled(plan, s.CurrentCSV) {
		return true
	}
	if s.CurrentCSV == s.InstalledCSV || !slices.Contains(plan.Spec.ClusterServiceVersionNames, s.CurrentCSV) {
		return false
	}
	isRecent := since(relation.InstalledAt(plan), n.now) < n.grace
	return n.csvs[s.CurrentCSV] != nil || plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete && isRecent
}

// catchUp moves a Subscription that waits for a version to the plan of the answer if that plan installs the version, too, and
// the plan that the Subscription references never got its steps or failed. No later resolution decides about it again.
func (j *judgement) catchUp() {
	p, ref, csv := j.answer.partOf(j.Subscription.Name), j.Status.InstallPlanRef, j.Status.CurrentCSV
	plan := p.plan
	if plan == nil || !p.applies || ref == nil || csv == "" || j.Subscription.DeletionTimestamp != nil ||
		relation.SamePlan(ref, plan.UID, plan.Name) || !slices.Contains(plan.Spec.ClusterServiceVersionNames, csv) {
		return
	}
	old := j.planNamed[ref.Name]
	if old == nil || !relation.SamePlan(ref, old.UID, old.Name) || j.keepsPlan(j.Subscription) || p.isHeld() {
		return
	}
	why := ""
	switch {
	case relation.Statusless(old):
		why = "never got its steps"
	case !p.speaks || relation.Over(plan) || plan.Spec.Generation <= old.Spec.Generation || j.csvs[csv] != nil:
	case stageOf(old) == StageFailed:
		why = "failed"
	}
	if why != "" {
		j.waitFor(csv, plan, ReasonReferenceWritten, "InstallPlan "+plan.Name+" brings "+csv+" instead of "+ref.Name+", which "+why)
	}
}

// adopt makes a Subscription that a plan's step created, and that refers to no plan, refer to that one.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureSubscriptionInstallPlanState. Differs: a
// plan that can bring nothing any more is not adopted, and one that is not there stops no other Subscription. If the plan is gone
// and its version exists, the Subscription follows the version.
func (j *judgement) adopt() {
	const path = "metadata.annotations"
	s, name := j.Subscription, j.Subscription.Annotations[relation.AnnotationGeneratedBy]
	if s.Status.Install != nil || s.DeletionTimestamp != nil || name == "" {
		return
	}
	plan := j.planNamed[name]
	if plan == nil && j.isUnfollowed(s.Spec.StartingCSV) {
		// The plan was deleted after it installed the version. Nothing else would ever follow the version.
		j.Status.CurrentCSV = s.Spec.StartingCSV
		message := "InstallPlan " + name + " installed " + s.Spec.StartingCSV + " and is gone"
		j.cause = olmcore.Cause{Reason: ReasonInstalledFollowed, Message: message}
	} else if plan == nil {
		j.report(olmcore.Info, ReasonGeneratedByDangling, path, "the plan %s that generated this Subscription is not there", name)
	} else if csv := j.stillBrings(plan); csv == "" {
		j.report(olmcore.Info, ReasonGeneratedByStale, path, "the plan %s that generated this Subscription can bring nothing any more", name)
	} else {
		j.waitFor(csv, plan, ReasonPlanAdopted, "InstallPlan "+name+" created this Subscription")
	}
}

// stillBrings returns the version that a plan brings, or brought, to the Subscription that it generated; or "".
func (j *judgement) stillBrings(plan *v1alpha1.InstallPlan) string {
	csv, stage := j.Subscription.Spec.StartingCSV, stageOf(plan)
	switch {
	case stage == StageFailed && j.failForward:
		return csv
	case stage == StageFailed || stage == StageUnknown || j.Status.InstalledCSV != "":
	case stage == StageComplete:
		c := j.csvs[csv]
		if c == nil {
			c = j.replacements[csv]
		}
		if c != nil && !c.IsCopied() && csv != "" {
			return c.Name
		}
	case plan.DeletionTimestamp == nil:
		return csv
	}
	return ""
}

// bringer returns the newest plan that brings, or brought, the version which a Subscription waits for, nil for none.
func (j *judgement) bringer(meets func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	return j.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		stage := stageOf(p)
		isOver := stage == StageFailed || stage == StageUnknown
		return !isOver && p.Spec.Generation >= j.Subscription.Status.InstallPlanGeneration &&
			slices.Contains(p.Spec.ClusterServiceVersionNames, j.Status.CurrentCSV) && meets(p)
	})
}

// state sets the state that follows from the CSV (subscription states UpgradePending, UpgradeFailed and AtLatestKnown).
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureSubscriptionCSVState. Differs:
// installedCSV is set whenever the CSV is there, not only when the state changes; a copied CSV does not count; a plan
// that cannot be judged leaves the state alone.
func (j *judgement) state() {
	f := &j.Status
	if f.CurrentCSV == "" {
		return
	}
	j.CSV = j.csvs[f.CurrentCSV]
	if j.CSV != nil && j.CSV.IsCopied() {
		j.report(olmcore.Warning, ReasonCopiedCSVReferenced, "status.currentCSV", "CSV %s is a copy and satisfies nothing in this namespace", f.CurrentCSV)
		j.CSV = nil
	}
	switch {
	case j.CSV != nil:
		f.State, f.InstalledCSV = v1alpha1.SubscriptionStateAtLatest, f.CurrentCSV
		if phase := j.CSV.Status.Phase; phase == v1alpha1.CSVPhaseNone {
			j.report(olmcore.Info, ReasonCSVNotSucceeded, "status.currentCSV", "CSV %s exists but its phase is not set", f.CurrentCSV)
		} else if phase != v1alpha1.CSVPhaseSucceeded {
			j.report(olmcore.Info, ReasonCSVNotSucceeded, "status.currentCSV", "CSV %s exists but its phase is %s", f.CurrentCSV, phase)
		}
	case j.failForward && j.Plan.Stage == StageUnverified:
	case j.failForward && j.Plan.Stage == StageFailed:
		f.State = v1alpha1.SubscriptionStateFailed
	default:
		f.State = v1alpha1.SubscriptionStateUpgradePending
	}
}

// forgetMissing forgets a plan that is gone for good, or that was superseded, while the Subscription waits for it. If a later plan
// of this Subscription installs the version, the Subscription references that plan instead. Otherwise the version would be
// installed and nothing would follow it. A version that exists is kept, and so is one that was installed and removed after its
// plan was.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, InstallPlanNotFound. Differs: a change of the
// conditions does not matter while the version was never installed. The absence has to last, or to be observed, first.
func (j *judgement) forgetMissing() {
	const pending, failed = v1alpha1.SubscriptionStateUpgradePending, v1alpha1.SubscriptionStateFailed
	f, recorded := &j.Status, j.Subscription.Status.State
	isSuperseded := j.CSV == nil && !j.isMoved() && j.Plan.Plan != nil && relation.IsSuperseded(j.Plan.Plan)
	isAwaited := recorded == pending || j.Plan.Recorded == StageFailed
	if isSuperseded {
		isAwaited = recorded == pending || recorded == failed
		if f.State == failed {
			f.State = pending // nothing failed
		}
	}
	isGone := j.Plan.Lasting && !j.Plan.Outlived
	if !isGone && !isSuperseded || f.State != pending || !isAwaited {
		return
	}
	next := j.bringer(func(p *v1alpha1.InstallPlan) bool {
		isOther := !relation.SamePlan(f.InstallPlanRef, p.UID, p.Name)
		return isOther && olmcore.OwnedBy(p, j.Subscription.UID) && !(isSuperseded && relation.Statusless(p))
	})
	if next == nil {
		j.forget()
		j.goBack()
		return
	}
	reason := "which is gone"
	if isSuperseded {
		reason = "which was superseded"
	}
	j.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: "InstallPlan " + next.Name + " installs " + f.CurrentCSV +
		" instead of " + f.InstallPlanRef.Name + ", " + reason}
	j.refer(next)
	j.look()
}

// leaveSuperseded makes a Subscription that has its version, and whose plan was superseded before it started, reference the newest
// plan that may have installed the version, or no plan. That such a plan was not needed is no failure of the Subscription. If an
// earlier plan created the version and was deleted before it created all objects of the bundle, the version is installed again.
func (j *judgement) leaveSuperseded() {
	f, old := &j.Status, j.Plan.Plan
	if j.CSV == nil || old == nil || j.isMoved() || !relation.IsSuperseded(old) || relation.Executed(old) || j.Plan.Stage != StageFailed {
		return
	}
	next := j.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		isExecuted := relation.Executed(p) && stageOf(p) != StageFailed
		return isExecuted && olmcore.OwnedBy(p, j.Subscription.UID) && slices.Contains(p.Spec.ClusterServiceVersionNames, f.CurrentCSV)
	})
	message := "InstallPlan " + old.Name + " was not needed for " + f.CurrentCSV
	isOfPlan := j.CSV.Labels[olmcore.LabelManaged] == "true"
	if next == nil && isOfPlan && olmcore.NeverInstalled(j.CSV) && lacksOwnObjects(j.CSV) {
		j.installAgain(j.CSV, "InstallPlan "+old.Name+" ended before it installed everything of "+f.CurrentCSV)
		return
	}
	if next == nil {
		f.InstallPlanRef = nil
		j.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: message}
	} else {
		j.refer(next)
		j.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: message + ", which InstallPlan " + next.Name + " installed"}
	}
	j.look()
}

// stuck looks at Subscriptions without their CSV that wait for something that cannot come.
func (j *judgement) stuck() {
	f, plan := &j.Status, j.Plan.Plan
	if f.State != v1alpha1.SubscriptionStateUpgradePending || f.InstallPlanRef == nil || j.isMoved() {
		return
	}
	switch {
	case j.Plan.Stage == StageFailed && !relation.IsRetried(plan):
		j.report(olmcore.Warning, ReasonFailedPlanWedge, "status.installPlanRef",
			"InstallPlan %s failed and holds this Subscription until its cause is removed or the plan is deleted", plan.Name)
	case j.Plan.Stage == StageComplete && f.CurrentCSV != "":
		j.removed("InstallPlan %[2]s is complete but CSV %[1]s is gone; delete the plan to install it again")
	case j.Plan.Stage == StageMissing && j.Plan.Outlived:
		j.removed("CSV %[1]s and its InstallPlan are gone; create the Subscription again to install it")
	}
}

// removed is about a version that was installed and removed: only Config.ReinstallMissingCSV brings it back.
func (j *judgement) removed(format string) {
	start := j.Subscription.Status.LastUpdated.Time
	if j.Subscription.Status.State != j.Status.State {
		start = j.now // it was there until now
	}
	left := AuditGrace - since(relation.Latest(start, relation.InstalledAt(j.Plan.Plan)), j.now)
	switch {
	case left > 0:
		j.Requeue(left)
	case j.reinstalls:
		j.forget()
	default:
		j.report(olmcore.Warning, ReasonWedgedUpgradePending, "status.currentCSV", format, j.Status.CurrentCSV, j.Plan.Name)
	}
}

// status completes the desired status and reports what changes: the plan's stages, the state, the conditions.
func (j *judgement) status() {
	is, was, facts := &j.Status, &j.Subscription.Status, j.facts()
	if j.catalogs != nil {
		facts.catalogs, facts.deprecation = j.catalogs.health(j.Subscription, j.now), j.catalogs.deprecation(j.Subscription.Spec, is.InstalledCSV)
		is.CatalogHealth, j.Writes = facts.catalogs.list, facts.catalogs.changed
		j.reportCatalogs(&facts.catalogs, facts.deprecation.known)
	}
	mirrors := relation.Mirrors(was.Install, is.InstallPlanRef)
	if !mirrors {
		if is.Install = nil; is.InstallPlanRef != nil {
			is.Install = v1alpha1.NewInstallPlanReference(is.InstallPlanRef)
		}
		if !j.isMoved() {
			j.report(olmcore.Info, ReasonRefMirrorMismatch, "status.installplan", "status.installplan did not repeat status.installPlanRef")
		}
	}
	moved, held := j.conditions(&facts)
	j.held = held || !mirrors || j.isMoved() || is.CurrentCSV != was.CurrentCSV || is.InstalledCSV != was.InstalledCSV ||
		is.State != was.State || is.InstallPlanGeneration != was.InstallPlanGeneration
	j.Writes = j.Writes || j.held
	j.Waits = j.waits()
	if j.cause.Reason == "" && j.Writes {
		j.cause = j.observedCause(facts.resolution)
	}
	j.Transitions = j.trace()
	if is.State != was.State {
		t := olmcore.Moved(olmcore.RefOf(j.Subscription), TransitionState, string(was.State), string(is.State), j.now)
		t.Status, t.Reason, t.Bound = metav1.ConditionTrue, j.cause.Reason, olmcore.NotAfter
		j.Transitions = append(j.Transitions, t)
	}
	j.Transitions = append(j.Transitions, moved...)
	if j.Writes {
		j.Actions = []olmcore.Action{j.Update(j.now, j.cause)}
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
		j.report(olmcore.Info, ReasonDeprecationUnknown, "status.conditions", "the catalog has no entry for %s", j.Status.InstalledCSV)
	}
}

// waits reports whether the Subscription does not need the namespace to be resolved: it waits for a plan that will run
// or that may only be invisible, or is being deleted.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: a plan that was
// created but never got its content does not count as one to wait for, nor does, with Input.SeparatePlans, one that other sets of
// Subscriptions share: the plans of the sets supersede it.
func (j *judgement) waits() bool {
	if j.Subscription.DeletionTimestamp != nil || j.Plan.Stage == StageUnverified {
		return true
	}
	return j.Status.InstallPlanRef != nil && !j.Plan.Invalid && j.Status.State == v1alpha1.SubscriptionStateUpgradePending &&
		(j.Plan.Plan == nil || !relation.Statusless(j.Plan.Plan) && !j.isShared(j.Plan.Plan, j.Subscription))
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
