// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/planhistory"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Decision is the decision about one Subscription, with the facts that explain it. The caller must not change the
// objects that a Decision references.
type Decision struct {
	// Subscription is the observed Subscription.
	Subscription *v1alpha1.Subscription
	// Plan is the state of the InstallPlan that the Subscription should reference.
	Plan PlanState
	// CSV is the version that the Subscription follows. It is nil if the version does not exist or is a copied CSV.
	CSV *v1alpha1.ClusterServiceVersion
	// Status is the desired status, except for lastUpdated.
	Status v1alpha1.SubscriptionStatus
	// Writes means that Status differs from the observed status.
	Writes bool
	// Kept contains the types of the conditions of this library that are not changed, because the facts about them are
	// unknown.
	Kept []v1alpha1.SubscriptionConditionType
	// Waits means that this Subscription does not need a resolution of the namespace.
	Waits bool
	// Result contains what Reconcile does and reports because of this Subscription. Reconcile leaves out
	// Diagnostics that only explain a status, unless it writes the status.
	olmcore.Result

	held    bool     // the namespace must not be resolved before the status was written
	history *History // the History for the next call; nil if it did not change
}

// Update returns the action that writes Status to the Subscription.
func (v *Decision) Update(now time.Time, why olmcore.Cause) olmcore.UpdateStatus {
	after := v.Subscription.DeepCopy()
	v.Status.DeepCopyInto(&after.Status)
	after.Status.LastUpdated = metav1.NewTime(relation.Latest(v.Subscription.Status.LastUpdated.Time, olmcore.Timestamp(now).Time))
	return olmcore.UpdateStatusOf(v.Subscription, after, why)
}

// result returns the Result for Reconcile. ReasonDeprecationUnknown explains a status that cannot be improved, so
// it is only reported together with a write.
func (v *Decision) result() olmcore.Result {
	r := v.Result
	if !v.Writes {
		explains := func(d olmcore.Diagnostic) bool { return d.Reason == ReasonDeprecationUnknown }
		r.Diagnostics = slices.DeleteFunc(slices.Clone(r.Diagnostics), explains)
	}
	return r
}

// facts contains the facts about one Subscription. It is read-only.
type facts struct {
	n    *namespace
	sub  *v1alpha1.Subscription // as observed
	past planhistory.Past
}

// draft is the status that a Subscription should get, under construction. It is a value: each step takes a draft
// and returns the next one.
type draft struct {
	status v1alpha1.SubscriptionStatus
	plan   *planhistory.Seen               // the InstallPlan that status references, as observed
	csv    *v1alpha1.ClusterServiceVersion // the version that the Subscription follows, or nil
	// cause is the reason why the Subscription should follow another InstallPlan or version. It is zero if the
	// Subscription should follow the same ones.
	cause olmcore.Cause
	// catalogsChanged means that status.catalogHealth changes.
	catalogsChanged bool
	// result contains the Diagnostics and the deadline of the steps so far.
	result olmcore.Result
}

// judge decides about one Subscription. The steps have a fixed order, because each one reads the decisions
// of the earlier ones.
func judge(n *namespace, s *v1alpha1.Subscription) Decision {
	past, result := n.plans.Recall(s, planhistory.History(n.histories[s.UID]))
	f := &facts{n: n, sub: s, past: past}
	d := draft{status: s.Status, result: result}

	// 1. A Subscription without a spec is left alone.
	d = checkSpec(f, d)
	if s.Spec == nil {
		return leaveAlone(f, d)
	}
	// 2. Which InstallPlan should the Subscription reference, and which version should it follow?
	d = chooseReference(f, d)
	// 3. In which stage is that InstallPlan?
	d = observePlan(f, d)
	// 4. status.state and status.installedCSV follow from the CSV, or else from the stage.
	d = setState(f, d)
	// 5. If the InstallPlan of another Subscription replaced the CSV, the successor is followed.
	d = followSuccessor(f, d)
	// 6. A reference to an InstallPlan that ended before it installed everything is changed or cleared.
	d = leaveEndedPlan(f, d)
	// 7. A Subscription that waits for an event that cannot occur is reported, or its operator is installed again.
	d = resolveWedge(f, d)
	// 8. The stage that the conditions should show, and the transitions that led there.
	history := reportStages(f, d)
	d = d.requeue(history.Result.RequeueAfter)
	d = reportLeftovers(f, d)
	// 9. The health of the catalogs, and the deprecation of the installed version.
	known := conditionFactsOf(f, d, history.Shown)
	d = setCatalogHealth(f, d, &known.catalogs)
	// 10. status.installplan repeats status.installPlanRef.
	d = mirrorReference(f, d)
	// 11. The conditions.
	conditions := changeConditions(f, known)
	d = setConditions(d, &conditions)
	// 12. What to write, report and remember.
	return conclude(f, d, &history, &conditions)
}

// report returns a draft with a Diagnostic added.
func (d draft) report(f *facts, severity olmcore.Severity, reason, path, format string, args ...any) draft {
	diagnostic := olmcore.Diagnose(severity, reason, olmcore.RefOf(f.sub), path, format, args...)
	d.result.Diagnostics = append(slices.Clip(d.result.Diagnostics), diagnostic)
	return d
}

// requeue returns a draft with a requeue after the given time. 0 has no effect.
func (d draft) requeue(after time.Duration) draft {
	d.result.Requeue(after)
	return d
}

// reference returns a draft that references an InstallPlan.
func (d draft) reference(f *facts, p *v1alpha1.InstallPlan) draft {
	d.status.InstallPlanRef = f.sub.Status.InstallPlanRef
	ref := d.status.InstallPlanRef
	if ref == nil || ref.Name != p.Name || ref.UID != p.UID || ref.Namespace != p.Namespace {
		d.status.InstallPlanRef = &corev1.ObjectReference{
			APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind,
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		}
	}
	return d
}

// waitFor returns a draft that waits until an InstallPlan installs a version.
func (d draft) waitFor(f *facts, csv string, p *v1alpha1.InstallPlan, reason, message string) draft {
	d = d.reference(f, p)
	d.status.CurrentCSV, d.status.State = csv, v1alpha1.SubscriptionStateUpgradePending
	d.status.InstallPlanGeneration = max(d.status.InstallPlanGeneration, p.Spec.Generation)
	d.cause = olmcore.Cause{Reason: reason, Message: message}
	return d
}

// clearReference returns a draft without an InstallPlan, so that the namespace is resolved again.
func (d draft) clearReference() draft {
	d.status.InstallPlanRef = nil
	d.status.CurrentCSV = ""
	d.status.State = v1alpha1.SubscriptionStateNone
	d.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: "the referenced InstallPlan cannot install the operator any more"}
	return d
}

// references reports whether the draft references an InstallPlan.
func (d draft) references(p *v1alpha1.InstallPlan) bool {
	ref := d.status.InstallPlanRef
	return ref != nil && relation.SamePlan(ref, p.UID, p.Name)
}

// changesReference reports whether the reference should change.
func (d draft) changesReference(f *facts) bool { return f.past.Moved(d.status.InstallPlanRef) }

func checkSpec(f *facts, d draft) draft {
	switch spec := f.sub.Spec; {
	case spec == nil:
		return d.report(f, olmcore.Error, ReasonInvalidSpec, "spec", "the Subscription has no spec")
	case spec.Package == "" || spec.CatalogSource == "" || spec.CatalogSourceNamespace == "":
		return d.report(f, olmcore.Error, ReasonInvalidSpec, "spec", "the Subscription lacks package, source or sourceNamespace")
	}
	return d
}

// leaveAlone returns the Decision that changes nothing.
func leaveAlone(f *facts, d draft) Decision {
	return Decision{
		Subscription: f.sub, Status: d.status, Waits: true, Result: d.result,
		Plan: PlanState{
			Stage: StageUnknown, Shown: StageUnknown, Recorded: f.past.Shown, RecordedAt: f.past.ShownSince, Outlived: f.past.Outlived,
		},
	}
}

// observePlan observes the InstallPlan that the draft references. It is called again when a step changes the reference.
func observePlan(f *facts, d draft) draft {
	seen := f.n.plans.Observe(&f.past, d.status.InstallPlanRef)
	d.plan = &seen
	d.result.Diagnostics = append(slices.Clip(d.result.Diagnostics), d.plan.Result.Diagnostics...)
	d = d.requeue(d.plan.Result.RequeueAfter)
	if d.plan.Replaced {
		d = d.reference(f, d.plan.Plan)
	}
	if d.plan.Plan != nil && d.plan.Stage != StageUnverified {
		d.status.InstallPlanGeneration = max(d.status.InstallPlanGeneration, d.plan.Plan.Spec.Generation)
	}
	return d
}

// reportStages returns the stage that the conditions should show, and the transitions that led there.
func reportStages(f *facts, d draft) planhistory.Report {
	return f.n.plans.Report(&f.past, d.plan, planhistory.Decision{
		Reference: d.status.InstallPlanRef, ChangesState: d.status.State != f.sub.Status.State,
	})
}

// reportLeftovers reports conditions about an InstallPlan that are left although none is referenced.
func reportLeftovers(f *facts, d draft) draft {
	isLeftover := func(c v1alpha1.SubscriptionCondition) bool { return slices.Contains(relation.PlanConditions, c.Type) }
	hasNoPlan := d.status.InstallPlanRef == nil || d.plan.Invalid
	if hasNoPlan && !d.changesReference(f) && slices.ContainsFunc(f.sub.Status.Conditions, isLeftover) {
		return d.report(f, olmcore.Info, ReasonConditionWithoutRef, "status.conditions",
			"the status had a condition about an InstallPlan, but no reference to one")
	}
	return d
}

// mirrorReference makes status.installplan repeat status.installPlanRef.
func mirrorReference(f *facts, d draft) draft {
	if d.mirrors(f) {
		return d
	}
	d.status.Install = nil
	if d.status.InstallPlanRef != nil {
		d.status.Install = v1alpha1.NewInstallPlanReference(d.status.InstallPlanRef)
	}
	if !d.changesReference(f) {
		return d.report(f, olmcore.Info, ReasonRefMirrorMismatch, "status.installplan",
			"status.installplan did not match status.installPlanRef")
	}
	return d
}

// mirrors reports whether the observed status.installplan repeats the reference.
func (d draft) mirrors(f *facts) bool {
	return relation.Mirrors(f.sub.Status.Install, d.status.InstallPlanRef)
}

// conclude returns the Decision.
func conclude(f *facts, d draft, history *planhistory.Report, conditions *conditionChanges) Decision {
	v := Decision{
		Subscription: f.sub, Plan: PlanState(d.plan.State), CSV: d.csv, Status: d.status, Kept: conditions.kept, Result: d.result,
	}
	v.Plan.Shown = history.Shown

	// 1. What is written, and whether it must be written before the namespace is resolved.
	v.held = conditions.deferResolution || defersResolution(f, d)
	v.Writes = v.held || d.catalogsChanged || conditions.changed
	v.Waits = waits(f, d)
	cause := d.cause
	if cause.Reason == "" && v.Writes {
		cause = observedCause(d, conditions.resolutionFails)
	}
	// 2. What is reported. Without a memory, the stages of the InstallPlan are only reported together with a write.
	if f.n.plans.KeepsHistories || v.Writes {
		v.Transitions = append(v.Transitions, history.Result.Transitions...)
		v.Diagnostics = append(slices.Clip(v.Diagnostics), history.Result.Diagnostics...)
	}
	if was, is := f.sub.Status.State, d.status.State; is != was {
		t := olmcore.Moved(olmcore.RefOf(f.sub), TransitionState, string(was), string(is), f.n.now)
		t.Status = metav1.ConditionTrue
		t.Reason = cause.Reason
		t.Bound = olmcore.NotAfter
		v.Transitions = append(v.Transitions, t)
	}
	v.Transitions = append(v.Transitions, conditions.transitions...)
	if v.Writes {
		v.Actions = []olmcore.Action{v.Update(f.n.now, cause)}
	}
	// 3. What is remembered.
	if f.n.plans.KeepsHistories && history.History != f.past.History {
		v.history = new(History(history.History))
	}
	return v
}

// defersResolution reports whether the status changes in a field that a resolution reads.
func defersResolution(f *facts, d draft) bool {
	is, was := &d.status, &f.sub.Status
	return !d.mirrors(f) || d.changesReference(f) || is.CurrentCSV != was.CurrentCSV ||
		is.InstalledCSV != was.InstalledCSV || is.State != was.State || is.InstallPlanGeneration != was.InstallPlanGeneration
}

// waits reports whether the namespace does not have to be resolved for this Subscription. The Subscription is being
// deleted, or it waits for an InstallPlan that will run or that may exist although a stale cache does not show it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: an
// InstallPlan that never got its content does not count. With Input.SeparatePlans, an InstallPlan that several sets
// of Subscriptions share does not count, either, because the InstallPlans of the sets will supersede it.
func waits(f *facts, d draft) bool {
	switch {
	case f.sub.DeletionTimestamp != nil || d.plan.Stage == StageUnverified:
		return true
	case d.status.InstallPlanRef == nil || d.plan.Invalid || d.status.State != v1alpha1.SubscriptionStateUpgradePending:
		return false
	}
	plan := d.plan.Plan
	return plan == nil || !relation.Statusless(plan) && !f.n.isShared(plan, f.sub)
}

// isShared reports whether the InstallPlan that a Subscription references was made for other sets of Subscriptions,
// too, so that the InstallPlans of the sets will supersede it. If there is no fresh, successful resolution, each
// Subscription is a set of its own.
func (n *namespace) isShared(plan *v1alpha1.InstallPlan, of *v1alpha1.Subscription) bool {
	return n.separates && plans.IsShared(plan, n.subs, func(name string) bool {
		if name == of.Name || !n.answer.succeeded {
			return name == of.Name
		}
		return n.answer.inOnePart(name, of.Name)
	})
}

// observedCause returns the cause of a write that only follows what was observed.
func observedCause(d draft, resolutionFails bool) olmcore.Cause {
	message := "the InstallPlan is " + string(d.plan.Stage)
	switch {
	case resolutionFails:
		message = "the namespace cannot be resolved"
	case d.plan.Stage == StageNoPlan:
		message = "no InstallPlan is referenced"
	}
	return olmcore.Cause{Reason: ReasonStatusObserved, Message: message}
}
