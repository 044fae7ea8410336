// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"fmt"
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
	switch stageOf(plan) {
	case StageNotYetReconciled, StagePlanning, StageRequiresApproval, StageInstalling:
		if d.installedCSV != "" || plan.DeletionTimestamp != nil {
			plan = nil
		}
	case StageFailed:
		if !v.failForward {
			plan = nil
		}
	case StageComplete:
		c := v.csv(startingCSV)
		if c == nil {
			c = v.replacement(startingCSV)
		}
		if d.installedCSV != "" || c == nil || isCopied(c) {
			plan = nil
			break
		}
		startingCSV = c.Name
	default:
		plan = nil
	}
	if plan == nil || startingCSV == "" {
		d.report(info, ReasonGeneratedByStale, "metadata.annotations", "the plan ", name, " that generated this Subscription can bring nothing any more")
		return
	}
	d.setReference(plan)
	d.currentCSV, d.state = startingCSV, v1alpha1.SubscriptionStateUpgradePending // or what judgeState sees
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
	if len(v.observations) > 0 {
		plan = v.newestOf(d, plan)
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
		d.requeue(lastRetry)
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
		if began := v.memo.next.MissingSince; began.IsZero() || began.After(v.now) { // the clock went back
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

// newestOf returns the newest version of the plan that the Subscription refers to:
// the listed one, unless the window goes on after it or shows, for as long as a cache
// may be behind, a later one; nil for a plan whose deletion was witnessed.
func (v *view) newestOf(d *verdict, listed *v1alpha1.InstallPlan) *v1alpha1.InstallPlan {
	uid, name := d.ref.UID, d.ref.Name
	if listed != nil {
		uid, name = listed.UID, listed.Name
	}
	last := v.lastSeen(uid, name)
	switch {
	case (listed != nil || uid != "") && v.isGone(uid, ""), listed == nil && v.isGone("", name):
		return nil
	case last == nil || listed != nil && sameVersion(last.Plan, listed):
		return listed
	case listed != nil && v.wasListed(listed):
		return last.Plan
	case v.live || listed != nil && !isBehind(listed, last.Plan):
		return listed
	}
	left := v.config.MissingGrace - since(last.At, v.now)
	if left <= 0 && (listed == nil || !isOlderVersion(listed.ResourceVersion, last.Plan.ResourceVersion)) {
		return listed
	}
	d.requeue(left)
	return last.Plan
}

// wasListed reports whether the window holds a version.
func (v *view) wasListed(plan *v1alpha1.InstallPlan) bool {
	for i := range v.observations {
		if o := &v.observations[i]; v.isOf(o, plan.UID, plan.Name) && sameVersion(o.Plan, plan) {
			return true
		}
	}
	return false
}

// isBehind reports whether a version of a plan must be older than another one: the
// resourceVersions tell, and where they do not, what is in it.
func isBehind(a, b *v1alpha1.InstallPlan) bool {
	if order, ok := compareVersions(a.ResourceVersion, b.ResourceVersion); ok && order != 0 {
		return order < 0
	}
	from, to := stageOf(a), stageOf(b)
	if from == StageFailed && to == StageInstalling && hasFailed(b) && installedAt(a).Equal(installedAt(b)) {
		return true // b carries the failure that a is
	}
	return a.Generation < b.Generation || installedAt(a).Before(installedAt(b)) || from != to && reachable(from, to) && !reachable(to, from)
}

// reportStrangers says how many Observations are about other namespaces.
func (v *view) reportStrangers(out *Outcome) {
	count := 0
	for i := range v.observations {
		if namespace := v.observations[i].Plan.Namespace; namespace != v.namespace && namespace != "" {
			count++
		}
	}
	if count > 0 {
		out.Diagnostics = append(out.Diagnostics, v.namespaceDiagnostic(info, ReasonObservationIgnored,
			fmt.Sprintf("%d observations are of InstallPlans of other namespaces", count)))
	}
}

// isOf reports whether an Observation shows a plan that exists.
func (v *view) isOf(o *Observation, uid types.UID, name string) bool {
	return !o.Deleted && o.Plan.Namespace == v.namespace && o.Plan.Name == name && (uid == "" || o.Plan.UID == uid)
}

// lastSeen returns the newest Observation of a plan that exists, nil for none.
func (v *view) lastSeen(uid types.UID, name string) *Observation {
	for i := len(v.observations) - 1; i >= 0; i-- {
		if v.isOf(&v.observations[i], uid, name) {
			return &v.observations[i]
		}
	}
	return nil
}

// sameVersion compares more than the resourceVersion, which may not be known.
func sameVersion(a, b *v1alpha1.InstallPlan) bool {
	return a.ResourceVersion == b.ResourceVersion && a.Generation == b.Generation && a.Status.Phase == b.Status.Phase && installedAt(a).Equal(installedAt(b))
}

// isGone reports whether the deletion of a plan was witnessed. Without a UID the
// last word about the name counts.
func (v *view) isGone(uid types.UID, name string) bool {
	gone := false
	for i := range v.observations {
		o := &v.observations[i]
		switch {
		case o.Plan.Namespace != v.namespace && o.Plan.Namespace != "":
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
	at, patience, isSame := installedAt(plan), v.config.MissingRecheck, h.isAbout(plan.UID, plan.Name)
	order, isOrdered := compareVersions(plan.ResourceVersion, h.LastVersion)
	isOrdered = isOrdered && isSame && order != 0
	isOlder := isOrdered && order < 0 && (stage != last || at.Before(h.LastInstalledUpdate)) // else it says nothing else
	if !isOrdered {
		isOlder = isSame && at.Before(h.LastInstalledUpdate) &&
			(!at.IsZero() || last == stage || reachable(last, stage)) // no controller takes the condition away
	}
	switch {
	case isOlder: // or written by another leader, whose clock is behind; or etcd was restored
		patience = v.config.MissingGrace
	case isOrdered:
		v.trust()
		return stage
	case isSame && last == StageInstalling && stage == StageFailed && !at.IsZero() && at.Equal(h.LastInstalledUpdate):
		// Another failure would have a time of its own.
	case last == stage || last == StageMissing || last == StageUnknown || stage == StageUnknown || reachable(last, stage):
		v.trust()
		return stage
	}
	if v.wasObserved(plan, stage) || !v.doubts(d, stage, patience) {
		v.trust()
		return stage
	}
	if isOlder {
		d.report(info, ReasonSuspectObservation, "status.installPlanRef", "InstallPlan ", plan.Name, " was seen in an older version than before")
	} else {
		d.report(info, ReasonSuspectObservation, "status.installPlanRef",
			"InstallPlan ", plan.Name, " seems to have gone from ", string(last), " to ", string(stage))
	}
	return StageUnverified
}

// doubts reports whether a stage has been suspect for less than the patience, and
// remembers since when it is.
func (v *view) doubts(d *verdict, stage Stage, patience time.Duration) bool {
	h := &v.memo.history
	left := patience
	if h.SuspectStage == stage && !h.SuspectSince.After(v.now) {
		left -= since(h.SuspectSince, v.now)
	} else {
		n := v.note()
		n.SuspectStage, n.SuspectSince = stage, instant(v.now)
	}
	d.requeue(min(left, v.config.MissingRecheck))
	return left > 0
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

// wasObserved reports whether an ordered watch or a direct read delivered the plan
// in a stage last, after what is remembered of it.
func (v *view) wasObserved(plan *v1alpha1.InstallPlan, stage Stage) bool {
	last, h := v.lastSeen(plan.UID, plan.Name), &v.memo.history
	if last == nil || stageOf(last.Plan) != stage {
		return false
	}
	if order, ok := compareVersions(last.Plan.ResourceVersion, h.LastVersion); ok && order != 0 && h.isAbout(plan.UID, plan.Name) {
		return order > 0
	}
	return last.At.After(h.LastObserved) && (!h.LastObserved.IsZero() || !last.At.Before(h.LastAt))
}

// judgeMissing forgets a missing plan that is gone for good while the Subscription waits
// for it. A CSV that is there is kept instead: to forget it would orphan it. So is a
// version that was installed and removed after its plan was: judgeWedge has it. Where a
// later plan brings the version, the Subscription refers to that one instead.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// InstallPlanNotFound. Differs: whether the conditions change does not matter while the
// version was never installed; absence has to last, or to be witnessed, first.
func (v *view) judgeMissing(d *verdict) {
	pending := v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateUpgradePending)
	if !d.seen.lasting || d.state != pending || d.sub.Status.State != pending || d.outlivedPlan() {
		return
	}
	next := v.laterPlan(d)
	if next == nil {
		d.clearReference()
		return
	}
	d.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: "InstallPlan " + next.Name + " brings " + d.currentCSV +
		" instead of " + d.ref.Name + ", which is gone"}
	d.setReference(next)
	d.seen = sighting{}
	v.follow(d)
}

// outlivedPlan reports whether the plan of a version that was installed was missing
// already before anything else was: to resolve the namespace again would undo what
// was done to the version on purpose.
func (d *verdict) outlivedPlan() bool {
	s := &d.sub.Status
	shown, _, _ := shownStage(s.Conditions)
	return s.CurrentCSV != "" && s.InstalledCSV == s.CurrentCSV &&
		(shown == StageMissing || s.State == v1alpha1.SubscriptionStateAtLatest)
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
