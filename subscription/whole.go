// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// Phase is where a Subscription stands as a whole: itself, its InstallPlan and
// its ClusterServiceVersion taken together.
type Phase string

// Phases. Installed is the only healthy end; Degraded, Failed and Stuck do not
// end without a change from outside, or only with luck; the others go on.
const (
	// PhaseResolving: it is not known yet what has to be installed.
	PhaseResolving Phase = "Resolving"
	// PhaseUnpacking: bundle images are being unpacked.
	PhaseUnpacking Phase = "Unpacking"
	// PhaseWaitingForApproval: somebody has to approve the InstallPlan.
	PhaseWaitingForApproval Phase = "WaitingForApproval"
	// PhaseInstalling: the first version is being installed.
	PhaseInstalling Phase = "Installing"
	// PhaseUpgrading: a newer version is being installed.
	PhaseUpgrading Phase = "Upgrading"
	// PhaseInstalled: the operator runs, and no newer one is known that could be
	// installed; the Message says so when the catalogs cannot be asked.
	PhaseInstalled Phase = "Installed"
	// PhaseDegraded: an operator is installed, and it has stopped working or cannot
	// be upgraded.
	PhaseDegraded Phase = "Degraded"
	// PhaseFailed: nothing that works is installed, and what was tried has failed.
	PhaseFailed Phase = "Failed"
	// PhaseStuck: nothing failed, and yet nothing will ever happen.
	PhaseStuck Phase = "Stuck"
	// PhaseDeleting: the Subscription is being deleted. What it installed stays, and no
	// newer version is looked for.
	PhaseDeleting Phase = "Deleting"
)

// Whole is the answer to "is it installed yet?" for one Subscription.
type Whole struct {
	Phase Phase
	// Blocking is the object that keeps the Subscription from being Installed; zero
	// when it is.
	Blocking olmcore.Ref
	// Since is the time from which the objects say so, zero when they do not tell.
	Since time.Time
	// Reason and Message are what the blocking object says.
	Reason, Message string
	// Advice is what the user can do; empty when there is nothing but to wait.
	Advice string
}

// whole judges a Subscription that was judged, with advice for what takes long.
func (v *view) whole(d *verdict) Whole {
	w := v.wholeOf(d)
	if w.Advice == "" && !w.Since.IsZero() && v.now.Sub(w.Since) >= longTime {
		w.Advice = v.adviceOn(d, &w)
	}
	return w
}

// wholeOf answers without advice about time. What stops everything comes first, then
// the plan, then what the plan brought.
func (v *view) wholeOf(d *verdict) Whole {
	self := olmcore.RefOf(d.sub).Unversioned()
	switch at := d.sub.DeletionTimestamp; {
	case at != nil:
		w := Whole{PhaseDeleting, self, at.Time, "", "the Subscription is being deleted", ""}
		if v.csv(d.installedCSV) != nil {
			w.Message += "; CSV " + d.installedCSV + " stays"
		}
		if len(d.sub.Finalizers) > 0 {
			w.Advice = "It waits for who put the finalizers " + listed(d.sub.Finalizers) + " on it."
		}
		return w
	case d.skip:
		return Whole{PhaseFailed, self, d.sub.CreationTimestamp.Time, ReasonInvalidSpec, "the Subscription has no spec", "Delete the Subscription and create it with a spec."}
	case d.seen.invalid:
		return Whole{PhaseStuck, self, d.sub.Status.LastUpdated.Time, ReasonRefInvalid, "status.installPlanRef names no InstallPlan of this namespace",
			"Clear status.installPlanRef."}
	}
	// Who waits for a plan does not wait for a resolution, which may fail for others.
	if d.needs() || v.blocked != "" || d.seen.stage == StageUnverified && d.csvPresent {
		if w, ok := v.wholeOfNamespace(d); ok {
			return w
		}
	}
	switch d.seen.stage {
	case StageNoPlan, StageMissing:
		if !d.csvPresent && !(d.seen.stage == StageMissing && d.ref != nil && d.outlivedPlan()) {
			return v.resolving(d)
		}
	case StageUnverified, StageNotYetReconciled, StageRequiresApproval: // for an operator that runs nothing hangs on its plan
		if !d.csvPresent {
			return v.wholeOfPlan(d)
		}
	case StageComplete:
	default:
		return v.wholeOfPlan(d)
	}
	return v.wholeOfCSV(d)
}

// wholeOfNamespace is about what keeps a resolution from becoming a plan.
func (v *view) wholeOfNamespace(d *verdict) (Whole, bool) {
	namespace := olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: v.namespace}
	for _, c := range [...]struct {
		conditionType v1alpha1.SubscriptionConditionType
		wish          wish
		advice        string
	}{
		{v1alpha1.SubscriptionResolutionFailed, d.resolution, "Change the Subscriptions, the installed operators or the catalogs that the message names."},
		{v1alpha1.SubscriptionBundleUnpackFailed, d.unpack, "Make the bundle image available, or follow the advice of the message."},
	} {
		w, ok := v.worded(d, c.conditionType, c.wish)
		if !ok {
			continue
		}
		w.Phase, w.Blocking, w.Advice = PhaseFailed, namespace, c.advice
		if v.blocked != "" {
			w.Advice = "Leave exactly one OperatorGroup in the namespace."
		}
		if v.works(d.installedCSV) {
			w.Phase = PhaseDegraded
		}
		return w, true
	}
	if w, ok := v.worded(d, v1alpha1.SubscriptionBundleUnpacking, d.unpack); ok {
		w.Phase, w.Blocking = PhaseUnpacking, namespace
		return w, true
	}
	return Whole{}, false
}

// worded returns what a condition says, or is made to say.
func (v *view) worded(d *verdict, t v1alpha1.SubscriptionConditionType, want wish) (Whole, bool) {
	have := d.sub.Status.Conditions
	i := newest(have, t)
	switch {
	case want.keep && i >= 0 && have[i].Status == corev1.ConditionTrue, !want.keep && want.conditionType == t && i >= 0 && want.is(&have[i]):
		w := Whole{Reason: have[i].Reason, Message: have[i].Message}
		if have[i].LastTransitionTime != nil {
			w.Since = have[i].LastTransitionTime.Time
		}
		return w, true
	case !want.keep && want.conditionType == t:
		return Whole{Reason: want.reason, Message: want.message}, true // since when is written nowhere yet
	}
	return Whole{}, false
}

func (v *view) works(csv string) bool {
	c := v.csv(csv)
	return csv != "" && c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded && c.DeletionTimestamp == nil && !isCopied(c)
}

func (v *view) resolving(d *verdict) Whole {
	w := Whole{PhaseResolving, olmcore.RefOf(d.sub).Unversioned(), d.sub.CreationTimestamp.Time, "", "the namespace has to be resolved", ""}
	if at := d.sub.Status.LastUpdated.Time; at.After(w.Since) {
		w.Since = at
	}
	if d.seen.stage == StageMissing {
		w.Reason, w.Message = v1alpha1.ReferencedInstallPlanNotFound, "the InstallPlan was deleted"
	}
	if health, ok := v.worded(d, v1alpha1.SubscriptionCatalogSourcesUnhealthy, d.health); ok && !d.health.off {
		spec := d.sub.Spec
		w.Blocking = olmcore.Ref{
			APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind, Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource,
		}
		w.Since, w.Reason, w.Message, w.Advice = health.Since, health.Reason, health.Message, "Make the catalogs available, or remove those that are not needed."
	}
	return w
}

func (v *view) progress(d *verdict) Phase {
	if d.sub.Status.InstalledCSV != "" && d.sub.Status.InstalledCSV != d.currentCSV {
		return PhaseUpgrading
	}
	return PhaseInstalling
}

func (v *view) wholeOfPlan(d *verdict) Whole {
	uid, name := d.planIdentity()
	w := Whole{Phase: v.progress(d), Reason: string(d.seen.stage), Message: "InstallPlan " + name + " is " + string(d.seen.stage)}
	w.Blocking = olmcore.Ref{APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind, Namespace: v.namespace, Name: name, UID: uid}
	plan := d.seen.plan
	if plan == nil { // out of sight: nothing is known that is not recorded
		w.Since = d.sub.Status.LastUpdated.Time
		return w
	}
	w.Since = sinceWhen(d, plan)
	if text := planMessage(plan); text != "" {
		w.Message = text
	} else if plan.Status.Message != "" {
		w.Message = plan.Status.Message
	}
	if plan.DeletionTimestamp != nil {
		w.Phase, w.Since, w.Message = PhaseResolving, plan.DeletionTimestamp.Time, "InstallPlan "+name+" is being deleted"
		return w
	}
	switch d.seen.stage {
	case StageNotYetReconciled:
		if isStatusless(plan) && v.now.Sub(plan.CreationTimestamp.Time) >= v.config.AuditGrace {
			w.Phase, w.Message, w.Advice = PhaseStuck, "InstallPlan "+name+" was never given its steps", "Delete the InstallPlan."
		}
	case StageInstalling:
		if c := installed(plan); c != nil && c.Reason == v1alpha1.InstallPlanReasonInstallCheckFailed {
			w.Advice = "Repair the OperatorGroup or the ServiceAccount that the message is about."
			if v.now.Sub(installedAt(plan)) >= v.config.AuditGrace {
				w.Phase = PhaseStuck
			}
			return w
		}
	case StageRequiresApproval:
		if plan.Spec.Approved { // and about to run
			return w
		}
		w.Phase, w.Advice = PhaseWaitingForApproval, "Review the InstallPlan and set its spec.approved to true."
		return w
	case StageFailed:
		w.Phase, w.Reason, w.Advice = PhaseFailed, failureReason(plan), "Remove the cause and delete the InstallPlan to try again."
		if isRetried(plan) {
			w.Advice = "Remove the cause; the InstallPlan is tried again by itself."
		}
		if v.works(d.installedCSV) {
			w.Phase = PhaseDegraded
		}
		return w
	case StageUnknown:
		w.Phase, w.Reason, w.Advice = PhaseStuck, ReasonUnknownPhase, "Repair the InstallPlan's status, or delete the InstallPlan."
		return w
	}
	if w.Phase != PhaseStuck && hasPendingLookup(plan) {
		w.Phase = PhaseUnpacking
	}
	return w
}

// sinceWhen returns since when a plan is in the stage in which it is seen.
func sinceWhen(d *verdict, plan *v1alpha1.InstallPlan) time.Time {
	created := plan.CreationTimestamp.Time
	shown, since, ok := shownStage(d.sub.Status.Conditions)
	switch {
	case ok && shown == d.seen.stage && !since.IsZero() && !since.Before(created):
		return since
	case d.seen.stage == StageFailed && !installedAt(plan).IsZero():
		return installedAt(plan)
	case d.seen.stage == StageInstalling && plan.Status.StartTime != nil:
		return plan.Status.StartTime.Time
	}
	return created
}

func hasPendingLookup(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.BundleLookups, func(b v1alpha1.BundleLookup) bool {
		return slices.ContainsFunc(b.Conditions, func(c v1alpha1.BundleLookupCondition) bool {
			return c.Type == v1alpha1.BundleLookupPending && c.Status == corev1.ConditionTrue
		})
	})
}

// wholeOfCSV is about what a complete plan brought.
func (v *view) wholeOfCSV(d *verdict) Whole {
	c := v.csv(d.currentCSV)
	w := Whole{Phase: v.progress(d)}
	w.Blocking = olmcore.Ref{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind, Namespace: v.namespace, Name: d.currentCSV}
	if c == nil || !d.csvPresent {
		w.Reason, w.Message, w.Since = "CSVAbsent", "CSV "+d.currentCSV+" does not exist", d.sub.Status.LastUpdated.Time
		if at := installedAt(d.seen.plan); at.After(w.Since) {
			w.Since = at
		}
		if d.currentCSV == "" {
			return v.resolving(d)
		}
		if c != nil {
			w.Reason, w.Message = ReasonCopiedCSVReferenced, "CSV "+c.Name+" is the copy of another namespace's operator"
			w.Advice = "Delete the Subscription, or the operator whose copy is in its place."
			if v.now.Sub(w.Since) >= v.config.AuditGrace {
				w.Phase = PhaseStuck
			}
			return w
		}
		if v.now.Sub(w.Since) >= v.config.AuditGrace {
			w.Phase, w.Reason, w.Advice = PhaseStuck, ReasonWedgedUpgradePending, "Delete the InstallPlan to install the version again."
			if d.seen.plan == nil {
				w.Advice = "Delete the Subscription and create it again to install the version again."
			}
		}
		return w
	}
	w.Blocking.UID = c.UID
	w.Reason, w.Message, w.Since = string(c.Status.Reason), c.Status.Message, c.CreationTimestamp.Time
	if at := c.Status.LastTransitionTime; at != nil {
		w.Since = at.Time
	}
	former := v.csv(c.Spec.Replaces)
	if former != nil {
		w.Phase = PhaseUpgrading
	}
	switch c.Status.Phase {
	case v1alpha1.CSVPhaseSucceeded:
		if c.DeletionTimestamp != nil {
			w.Phase, w.Since, w.Message = PhaseDegraded, c.DeletionTimestamp.Time, "CSV "+c.Name+" is being deleted"
			return w
		}
		w.Phase, w.Blocking = PhaseInstalled, olmcore.Ref{}
		if health, ok := v.worded(d, v1alpha1.SubscriptionCatalogSourcesUnhealthy, d.health); ok && !d.health.off {
			w.Reason, w.Message, w.Advice = health.Reason, health.Message, "Make the catalogs available: until then no newer version is seen."
		}
	case v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseUnknown:
		w.Phase, w.Advice = PhaseFailed, "Look at the ClusterServiceVersion's status and its Deployments."
		if hasSucceeded(c) || former != nil && hasSucceeded(former) {
			w.Phase = PhaseDegraded
		}
	case v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting:
		w.Phase = PhaseUpgrading
	case v1alpha1.CSVPhasePending:
		if strings.Contains(string(c.Status.Reason), "NotMet") || c.Status.Reason == v1alpha1.CSVReasonRequirementsNotMet {
			w.Advice = "Provide what status.requirementStatus of the ClusterServiceVersion lists as not met."
			if names := unmet(c); len(names) > 0 {
				w.Message, w.Advice = strings.TrimPrefix(w.Message+": "+listed(names), ": "), "Provide what is not met: "+listed(names)+"."
			}
		}
	}
	return w
}

// hasSucceeded reports whether a CSV worked once.
func hasSucceeded(c *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(p v1alpha1.ClusterServiceVersionCondition) bool {
		return p.Phase == v1alpha1.CSVPhaseSucceeded
	})
}
