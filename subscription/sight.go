// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// annotationGeneratedBy is on a Subscription that a plan's step created: the
// plan's name.
const annotationGeneratedBy = "olm.generated-by"

// sighting is what is known of the plan that a Subscription refers to.
type sighting struct {
	stage Stage
	plan  *v1alpha1.InstallPlan // nil unless visible
	// invalid: the reference cannot name a plan of this Subscription.
	invalid bool
	// replaced: the visible plan has another UID than the reference.
	replaced bool
	// proven: the plan's absence was witnessed, not only waited for.
	proven bool
	// lasting: the absence has lasted long enough to forget the plan.
	lasting bool
}

// adopt makes a Subscription that a plan's step created, and that refers to no plan,
// refer to that one.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// ensureSubscriptionInstallPlanState. Differs: a plan that can bring nothing any
// more is not adopted, and one that is not there stops nobody.
func (v *view) adopt(d *verdict) {
	if d.sub.Status.Install != nil || d.sub.DeletionTimestamp != nil {
		return
	}
	name := d.sub.Annotations[annotationGeneratedBy]
	if name == "" {
		return
	}
	plan := v.plan(name)
	if plan == nil {
		d.report(info, ReasonGeneratedByDangling, "metadata.annotations", "the plan ", name, " that generated this Subscription is not there")
		return
	}
	startingCSV := d.sub.Spec.StartingCSV
	state := v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateUpgradePending)
	switch stageOf(plan) {
	case StageNotYetReconciled, StagePlanning, StageRequiresApproval, StageInstalling:
		if d.installedCSV != "" || plan.DeletionTimestamp != nil {
			plan = nil
		}
	case StageFailed:
		if !v.failForward {
			plan = nil
		}
		state = v1alpha1.SubscriptionStateFailed
	case StageComplete:
		c := v.csv(startingCSV)
		if d.installedCSV != "" || c == nil || isCopied(c) {
			plan = nil
		}
	default:
		plan = nil
	}
	if plan == nil {
		d.report(info, ReasonGeneratedByStale, "metadata.annotations", "the plan ", name, " that generated this Subscription can bring nothing any more")
		return
	}
	d.setReference(plan)
	d.currentCSV, d.state = startingCSV, state
	d.generation = max(d.generation, plan.Spec.Generation)
	d.cause = olmcore.Cause{Reason: ReasonPlanAdopted, Message: "InstallPlan " + name + " created this Subscription"}
}

// follow looks at the plan that the Subscription refers to.
func (v *view) follow(d *verdict) {
	ref := d.ref
	if ref == nil {
		d.seen.stage = StageNoPlan
		return
	}
	if ref.Name == "" || ref.Kind != "" && ref.Kind != v1alpha1.InstallPlanKind ||
		ref.Namespace != "" && ref.Namespace != d.sub.Namespace {
		d.seen = sighting{stage: StageNoPlan, invalid: true}
		d.report(warning, ReasonRefInvalid, "status.installPlanRef", "the reference names no InstallPlan of this namespace")
		return
	}
	plan := v.plan(ref.Name)
	if plan != nil && len(v.observations) > 0 && v.isGone(plan.UID, "") {
		plan = nil
	}
	other := plan != nil && ref.UID != "" && plan.UID != "" && plan.UID != ref.UID
	if plan == nil || other && plan.DeletionTimestamp != nil {
		v.miss(d)
		return
	}
	if !v.memo.next.MissingSince.IsZero() {
		v.note().MissingSince = time.Time{}
	}
	d.seen.plan, d.seen.replaced = plan, other
	if other {
		d.report(warning, ReasonRefUIDMismatch, "status.installPlanRef", "InstallPlan ", plan.Name, " is another object than the one referred to")
		d.setReference(plan)
	}
	d.seen.stage = v.believe(d, plan)
	if d.seen.stage == StageUnverified {
		return
	}
	d.generation = max(d.generation, plan.Spec.Generation)
	if d.seen.stage == StageUnknown {
		d.report(warning, ReasonUnknownPhase, "status.conditions", "InstallPlan ", plan.Name, " has the unknown phase ", string(plan.Status.Phase))
	}
}

// miss decides what it means that the plan is not visible: nothing yet within
// the grace period, because a cache may be behind the reference; then that it
// was deleted.
func (v *view) miss(d *verdict) {
	d.seen.stage = StageMissing
	if v.live || v.isGone(d.ref.UID, d.ref.Name) {
		d.seen.proven, d.seen.lasting = true, true
		return
	}
	shown, _, _ := shownStage(d.sub.Status.Conditions)
	start := d.sub.Status.LastUpdated.Time
	negative := v.now.Before(start)
	if v.keepsHistory() {
		if v.memo.next.MissingSince.IsZero() {
			v.note().MissingSince = instant(v.now)
		}
		start, negative = v.memo.next.MissingSince, false
	}
	elapsed := since(start, v.now)
	d.seen.lasting = elapsed >= v.config.MissingGrace && !negative
	if d.seen.lasting {
		return
	}
	left := min(v.config.MissingGrace-elapsed, v.config.MissingRecheck)
	if shown == StageMissing { // said already: do not take it back because a clock moved
		if d.sub.Status.State == v1alpha1.SubscriptionStateUpgradePending {
			d.requeue(left)
		}
		return
	}
	d.seen.stage = StageUnverified
	d.requeue(left)
	d.report(info, ReasonPlanUnverified, "status.installPlanRef", "InstallPlan ", d.ref.Name, " is not visible")
}

// isGone reports whether the deletion of a plan was witnessed. Without a UID the
// last word about the name counts.
func (v *view) isGone(uid types.UID, name string) bool {
	gone := false
	for i := range v.observations {
		o := &v.observations[i]
		switch {
		case uid != "" && o.Plan.UID == uid:
			if o.Deleted {
				return true
			}
		case uid == "" && name != "" && o.Plan.Name == name:
			gone = o.Deleted
		}
	}
	return gone
}

// believe returns the plan's stage, or StageUnverified where a stale cache is
// the likelier explanation of what is seen. Only a caller who keeps a memory and
// has no ordered window needs to doubt.
func (v *view) believe(d *verdict, plan *v1alpha1.InstallPlan) Stage {
	stage := stageOf(plan)
	if !v.keepsHistory() {
		return stage
	}
	h := &v.memo.history
	last, ok := v.lastStage(d, plan)
	if !ok || v.live {
		v.trust()
		return stage
	}
	if at := installedAt(plan); h.isAbout(plan.UID, plan.Name) && !at.IsZero() && at.Before(h.LastInstalledUpdate) {
		d.requeue(v.config.MissingRecheck)
		d.report(info, ReasonSuspectObservation, "status.installPlanRef", "InstallPlan ", plan.Name, " was seen in an older version than before")
		return StageUnverified
	}
	if last == stage || last == StageMissing || last == StageUnknown || stage == StageUnknown || reachable(last, stage) || v.wasObserved(plan, stage) {
		v.trust()
		return stage
	}
	if h.SuspectStage != stage {
		n := v.note()
		n.SuspectStage, n.SuspectSince = stage, instant(v.now)
		d.requeue(v.config.MissingRecheck)
	} else if left := v.config.MissingRecheck - since(h.SuspectSince, v.now); left > 0 {
		d.requeue(left)
	} else {
		v.trust()
		return stage
	}
	d.report(info, ReasonSuspectObservation, "status.installPlanRef",
		"InstallPlan ", plan.Name, " seems to have gone from ", string(last), " to ", string(stage))
	return StageUnverified
}

// lastStage returns the stage of a plan that is known already to a caller who
// keeps a memory: what is remembered, else what the status says, which another
// writer may have made say so.
func (v *view) lastStage(d *verdict, plan *v1alpha1.InstallPlan) (last Stage, ok bool) {
	h, ref := &v.memo.history, d.sub.Status.InstallPlanRef
	switch {
	case d.remembers && h.isAbout(plan.UID, plan.Name):
		return h.LastStage, true
	case !v.keepsHistory() || ref == nil || !samePlan(ref, plan.UID, plan.Name):
		return "", false
	}
	from, _ := v.recorded(d)
	return from.stage, from.stage != StageNoPlan
}

// wasObserved reports whether an ordered watch delivered the plan in a stage.
func (v *view) wasObserved(plan *v1alpha1.InstallPlan, stage Stage) bool {
	for i := range v.observations {
		o := &v.observations[i]
		if !o.Deleted && o.Plan.UID == plan.UID && o.Plan.Name == plan.Name && stageOf(o.Plan) == stage {
			return true
		}
	}
	return false
}

// judgeMissing forgets a missing plan that is gone for good while the Subscription waits
// for it. A CSV that is there is kept instead: to forget it would orphan it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// InstallPlanNotFound. Differs: whether the conditions change does not matter;
// absence has to last, or to be witnessed, first.
func (v *view) judgeMissing(d *verdict) {
	pending := v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateUpgradePending)
	if d.seen.lasting && d.state == pending && d.sub.Status.State == pending {
		d.clearReference()
	}
}

// isAbout reports whether the history is about a plan.
func (h *History) isAbout(uid types.UID, name string) bool {
	if h.PlanUID != "" && uid != "" {
		return h.PlanUID == uid
	}
	return h.PlanName == name
}

// samePlan compares a reference with a plan the same way.
func samePlan(ref *corev1.ObjectReference, uid types.UID, name string) bool {
	if ref.UID != "" && uid != "" {
		return ref.UID == uid
	}
	return ref.Name == name
}
