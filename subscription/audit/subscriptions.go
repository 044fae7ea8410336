// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// repeated contains the reasons of Diagnostics of Reconcile that are findings, too. The value reports whether the
// status write of Reconcile repairs them.
var repeated = map[string]bool{
	subscription.ReasonInvalidSpec: false, subscription.ReasonRefUIDMismatch: true, subscription.ReasonConditionWithoutRef: true,
	subscription.ReasonCopiedCSVReferenced: false, subscription.ReasonFailedPlanWedge: false,
	subscription.ReasonGeneratedByDangling: false, subscription.ReasonGeneratedByStale: false, subscription.ReasonDeprecationUnknown: false,
}

// subscription audits the status of one Subscription.
func (a *audit) subscription(v *subscription.Decision) {
	a.reported(v)
	if v.Subscription.Spec == nil {
		return
	}
	a.unknownApproval(v)
	a.copiedCSV(v)
	a.reference(v)
	a.removed(v)
	a.stateWithoutCSV(v)
	if message, repaired := a.contradiction(v); message != "" {
		a.add(v.Subscription, olmcore.Warning, v.Subscription.Status.LastUpdated.Time, ConditionContradiction, "status.conditions",
			"%s", message).repair(true, statusWrite(&repaired, a.now))
	}
}

// reported repeats Diagnostics of Reconcile as findings.
func (a *audit) reported(v *subscription.Decision) {
	for _, d := range v.Diagnostics {
		isRepaired, isFinding := repeated[d.Reason]
		if !isFinding {
			continue
		}
		f := a.add(v.Subscription, d.Severity, v.Subscription.Status.LastUpdated.Time, d.Reason, d.Path, "%s", d.Message)
		if isRepaired && v.Writes {
			f.repair(true, statusWrite(v, a.now))
		}
	}
}

// unknownApproval reports an approval that is neither Automatic nor Manual.
func (a *audit) unknownApproval(v *subscription.Decision) {
	switch approval := v.Subscription.Spec.InstallPlanApproval; approval {
	case "", v1alpha1.ApprovalAutomatic, v1alpha1.ApprovalManual:
	default:
		a.add(v.Subscription, olmcore.Warning, v.Subscription.Status.LastUpdated.Time, subscription.ReasonInvalidSpec,
			"spec.installPlanApproval", "the approval %s is unknown and is treated as Automatic", approval)
	}
}

// copiedCSV reports a copied CSV in status.installedCSV.
func (a *audit) copiedCSV(v *subscription.Decision) {
	s := &v.Subscription.Status
	c := a.csvs[s.InstalledCSV]
	if c == nil || !c.IsCopied() || s.InstalledCSV == v.Status.CurrentCSV {
		return
	}
	a.add(v.Subscription, olmcore.Warning, s.LastUpdated.Time, subscription.ReasonCopiedCSVReferenced, "status.installedCSV",
		"CSV %s is a copy from another namespace and does not count as installed", c.Name)
}

// stateWithoutCSV reports AtLatestKnown if the CSV does not exist or is not the installed one.
func (a *audit) stateWithoutCSV(v *subscription.Decision) {
	s := &v.Subscription.Status
	if s.State != v1alpha1.SubscriptionStateAtLatest || s.CurrentCSV == "" || !v.Writes {
		return
	}
	message := "status.state is AtLatestKnown, but CSV " + s.CurrentCSV + " does not exist"
	switch {
	case v.CSV != nil && s.InstalledCSV == s.CurrentCSV:
		return
	case v.CSV != nil:
		message = "status.installedCSV differs from status.currentCSV, although that CSV exists"
	}
	a.add(v.Subscription, olmcore.Warning, s.LastUpdated.Time, StateContradiction, "status.state", "%s", message).
		repair(true, statusWrite(v, a.now))
}

// statusWrite returns the status write of Reconcile.
func statusWrite(v *subscription.Decision, now time.Time) olmcore.Action {
	return v.Update(now, olmcore.Cause{Reason: RelationRepaired, Message: "the status does not match the observed objects"})
}

// forgetPlan returns a status write that removes the reference to the InstallPlan, so that the namespace is resolved
// again.
func forgetPlan(v *subscription.Decision, now time.Time) olmcore.Action {
	forgotten := without(v, relation.PlanConditions...)
	s := &forgotten.Status
	s.InstallPlanRef, s.Install = nil, nil
	s.CurrentCSV, s.State = "", v1alpha1.SubscriptionStateNone
	return forgotten.Update(now, olmcore.Cause{
		Reason: subscription.ReasonReferenceCleared, Message: "the referenced InstallPlan cannot install the operator any more",
	})
}

// without returns a Decision without the given conditions in its status.
func without(v *subscription.Decision, types ...v1alpha1.SubscriptionConditionType) subscription.Decision {
	next := *v
	next.Status.RemoveConditions(types...)
	return next
}

// reference checks status.installPlanRef, and status.installplan, which mirrors it.
func (a *audit) reference(v *subscription.Decision) {
	const path = "status.installPlanRef"
	sub, s := v.Subscription, &v.Subscription.Status
	updated := s.LastUpdated.Time
	ref := s.InstallPlanRef
	switch {
	case v.Plan.Invalid:
		reason := subscription.ReasonRefInvalid
		if ref.Namespace != "" && ref.Namespace != sub.Namespace {
			reason = RefWrongNamespace
		}
		a.add(sub, olmcore.Warning, updated, reason, path, "the reference names no InstallPlan of this namespace").
			repair(false, forgetPlan(v, a.now))
		return
	case !relation.Mirrors(s.Install, ref):
		a.add(sub, olmcore.Warning, updated, subscription.ReasonRefMirrorMismatch, "status.installplan",
			"status.installplan does not match status.installPlanRef").
			repair(true, statusWrite(v, a.now))
	}
	if ref == nil {
		return
	}
	switch {
	case v.Plan.Stage == subscription.StageUnverified && v.Plan.Plan == nil:
		a.add(sub, olmcore.Info, updated, RefMissingPlan, path, "InstallPlan %s is not visible", ref.Name)
	case v.Plan.Stage == subscription.StageMissing:
		a.missing(v)
	case v.Plan.Plan != nil && !v.Plan.Replaced && s.InstallPlanGeneration < v.Plan.Plan.Spec.Generation && v.Writes:
		a.add(sub, olmcore.Warning, updated, GenerationMismatch, "status.installPlanGeneration",
			"status.installPlanGeneration is lower than the InstallPlan's spec.generation").repair(true, statusWrite(v, a.now))
	}
}

// missing reports a reference to a missing InstallPlan, unless the conditions report it already and there is no repair.
func (a *audit) missing(v *subscription.Decision) {
	s := &v.Subscription.Status
	forgets := v.Status.InstallPlanRef == nil ||
		v.Plan.Lasting && v.Status.State == v1alpha1.SubscriptionStateUpgradePending && !v.Plan.Outlived
	if v.Plan.Recorded == subscription.StageMissing && !forgets {
		return
	}
	action := statusWrite(v, a.now)
	if forgets {
		action = forgetPlan(v, a.now)
	}
	a.add(v.Subscription, olmcore.Warning, s.LastUpdated.Time, RefMissingPlan, "status.installPlanRef",
		"InstallPlan %s does not exist", s.InstallPlanRef.Name).
		repair(true, action)
}

// removed reports a Subscription whose version was deleted.
func (a *audit) removed(v *subscription.Decision) {
	s := &v.Subscription.Status
	if s.State != v1alpha1.SubscriptionStateUpgradePending || v.CSV != nil || s.CurrentCSV == "" ||
		v.Status.InstallPlanRef != nil && v.Status.CurrentCSV != s.CurrentCSV {
		return
	}
	message := "CSV " + s.CurrentCSV + " and its InstallPlan do not exist"
	switch {
	case v.Plan.Stage == subscription.StageComplete && v.Plan.Plan != nil:
		message = "InstallPlan " + v.Plan.Name + " is complete, but CSV " + s.CurrentCSV + " does not exist"
	case v.Plan.Stage != subscription.StageMissing || !v.Plan.Outlived:
		return
	}
	since := relation.Latest(s.LastUpdated.Time, relation.InstalledAt(v.Plan.Plan))
	if a.now.Sub(since) >= subscription.AuditGrace {
		a.add(v.Subscription, olmcore.Warning, since, subscription.ReasonWedgedUpgradePending, "status.currentCSV", "%s", message).
			repair(a.reinstalls, forgetPlan(v, a.now))
	}
}

// contradiction returns which conditions contradict each other or the InstallPlan, and the Decision that repairs them.
func (a *audit) contradiction(v *subscription.Decision) (message string, repaired subscription.Decision) {
	isDecided := !slices.Contains(v.Kept, v1alpha1.SubscriptionInstallPlanPending)
	duplicate, shown := conditionsOf(v)
	switch {
	case duplicate != "":
		return "the status contains condition " + duplicate + " more than once", *v
	case len(shown) > 1 && isDecided:
		slices.Sort(shown)
		return "conditions " + strings.Join(shown, ", ") + " exclude each other", *v
	case v.Plan.Plan == nil:
		return "", *v
	case isDecided && a.showsOtherStage(v):
		return "the conditions report " + string(v.Plan.Recorded) + ", but InstallPlan " + v.Plan.Plan.Name + " is " + string(v.Plan.Stage), *v
	case hasOldUnpacking(v):
		return "BundleUnpacking is older than InstallPlan " + v.Plan.Plan.Name + ", whose bundles are unpacked",
			without(v, v1alpha1.SubscriptionBundleUnpacking, v1alpha1.SubscriptionBundleUnpackFailed)
	}
	return "", *v
}

// conditionsOf returns the first condition of the library that a Subscription has more than once, or "", and the
// conditions about the InstallPlan that are True.
func conditionsOf(v *subscription.Decision) (duplicate string, shown []string) {
	seen := map[v1alpha1.SubscriptionConditionType]bool{}
	for _, c := range v.Subscription.Status.Conditions {
		if seen[c.Type] && slices.Contains(subscription.Conditions(), c.Type) {
			return string(c.Type), shown
		}
		if slices.Contains(relation.PlanConditions, c.Type) && c.Status == corev1.ConditionTrue {
			shown = append(shown, string(c.Type))
		}
		seen[c.Type] = true
	}
	return "", shown
}

// showsOtherStage reports whether the conditions have shown another stage than that of the InstallPlan for AuditGrace.
func (a *audit) showsOtherStage(v *subscription.Decision) bool {
	plan := v.Plan.Plan
	entered := relation.Latest(cmp.Or(plan.Status.StartTime, &plan.CreationTimestamp).Time, relation.InstalledAt(plan))
	is := v.Plan.Recorded
	return is != "" && is != v.Plan.Stage && a.now.Sub(entered) > subscription.AuditGrace
}

// hasOldUnpacking reports whether the condition BundleUnpacking is older than the InstallPlan, which has its steps.
func hasOldUnpacking(v *subscription.Decision) bool {
	const unpacking = v1alpha1.SubscriptionBundleUnpacking
	c, plan := v.Subscription.Status.GetCondition(unpacking), v.Plan.Plan
	if c.Status != corev1.ConditionTrue || !slices.Contains(v.Kept, unpacking) || relation.Statusless(plan) {
		return false
	}
	return relation.Time(c.LastTransitionTime).Before(plan.CreationTimestamp.Time)
}
