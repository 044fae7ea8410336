// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/planhistory"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// setState sets status.state from the CSV: AtLatestKnown if it exists, or else UpgradePending or UpgradeFailed.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureSubscriptionCSVState. Differs:
// installedCSV is set whenever the CSV exists, not only when the state changes; a copied CSV does not count; the
// state stays as it is if the stage of the InstallPlan is not known.
func setState(f *facts, d draft) draft {
	const path = "status.currentCSV"
	name := d.status.CurrentCSV
	if name == "" {
		return d
	}
	d.csv = f.n.versions.csvs[name]
	if d.csv != nil && d.csv.IsCopied() {
		d = d.report(f, olmcore.Warning, ReasonCopiedCSVReferenced, path,
			"CSV %s is a copy from another namespace and does not count as installed", name)
		d.csv = nil
	}
	switch {
	case d.csv != nil:
		d.status.State, d.status.InstalledCSV = v1alpha1.SubscriptionStateAtLatest, name
		return reportPhase(f, d)
	case f.n.failForward && d.plan.Stage == StageUnverified:
	case f.n.failForward && d.plan.Stage == StageFailed:
		d.status.State = v1alpha1.SubscriptionStateFailed
	default:
		d.status.State = v1alpha1.SubscriptionStateUpgradePending
	}
	return d
}

// reportPhase reports a CSV that exists but has not succeeded.
func reportPhase(f *facts, d draft) draft {
	const path = "status.currentCSV"
	switch phase := d.csv.Status.Phase; phase {
	case v1alpha1.CSVPhaseSucceeded:
		return d
	case v1alpha1.CSVPhaseNone:
		return d.report(f, olmcore.Info, ReasonCSVNotSucceeded, path, "CSV %s exists but its phase is not set", d.status.CurrentCSV)
	default:
		return d.report(f, olmcore.Info, ReasonCSVNotSucceeded, path, "CSV %s exists but its phase is %s", d.status.CurrentCSV, phase)
	}
}

// followSuccessor follows the version that replaced the Subscription's own, if the InstallPlan of another Subscription
// installed it. This happens if two InstallPlans of a namespace contain two versions of one dependency. Otherwise no
// Subscription would follow the new version, and the namespace could not be resolved any more.
//
// Source: none. Differs: OLM leaves the Subscription UpgradePending until a user deletes the CSV.
func followSuccessor(f *facts, d draft) draft {
	old := d.status.CurrentCSV
	next := f.n.versions.successors[old]
	if d.csv != nil || old == "" || next == nil || d.status.InstallPlanRef == nil || d.changesReference(f) || !d.planHasEnded() {
		return d
	}
	d.status.CurrentCSV = next.Name
	d.cause = olmcore.Cause{Reason: ReasonReplacementFollowed, Message: "ClusterServiceVersion " + next.Name + " replaced " + old}
	plan := newestPlanWith(f, next.Name, relation.Executed)
	if plan != nil {
		d = observePlan(f, d.reference(f, plan))
	}
	return setState(f, d)
}

// planHasEnded reports whether the referenced InstallPlan is complete, has failed, or was deleted.
func (d draft) planHasEnded() bool {
	return d.plan.Stage == StageComplete || d.plan.Stage == StageFailed || d.plan.Stage == StageMissing && d.plan.Lasting
}

// newestPlanWith returns the newest accepted InstallPlan that contains a version and has not failed, or nil.
func newestPlanWith(f *facts, csv string, accept func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	return f.n.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		stage := planhistory.StageOf(p)
		if stage == StageFailed || stage == StageUnknown || p.Spec.Generation < f.sub.Status.InstallPlanGeneration {
			return false
		}
		return slices.Contains(p.Spec.ClusterServiceVersionNames, csv) && accept(p)
	})
}

// leaveEndedPlan changes or clears the reference to an InstallPlan that ended before it installed everything.
func leaveEndedPlan(f *facts, d draft) draft {
	// 1. It was superseded, and the version exists.
	d = leaveSuperseded(f, d)
	// 2. It was superseded or deleted, and the version does not exist.
	d = leaveFruitless(f, d)
	// 3. It was deleted while it installed the version.
	return resume(f, d)
}

// leaveSuperseded handles a Subscription whose version exists and whose InstallPlan was superseded before it started.
// It references the newest InstallPlan that may have installed the version, or none: that an InstallPlan was not
// needed is no failure. If an earlier InstallPlan created the version and was deleted before it created all objects
// of the bundle, the version is installed again.
func leaveSuperseded(f *facts, d draft) draft {
	old := d.plan.Plan
	if d.csv == nil || old == nil || d.changesReference(f) || d.plan.Stage != StageFailed {
		return d
	}
	if !relation.IsSuperseded(old) || relation.Executed(old) {
		return d
	}
	version := d.status.CurrentCSV
	next := executedPlanWith(f, version)
	if next == nil && isHalfMade(d.csv) {
		return installAgain(f, d, d.csv, "InstallPlan "+old.Name+" ended before it installed everything of "+version)
	}
	message := "InstallPlan " + old.Name + " was not needed for " + version
	if next == nil {
		d.status.InstallPlanRef = nil
		d.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: message}
		return observePlan(f, d)
	}
	d.cause = olmcore.Cause{Reason: ReasonReferenceWritten, Message: message + ", which InstallPlan " + next.Name + " installed"}
	return observePlan(f, d.reference(f, next))
}

// executedPlanWith returns the newest InstallPlan of the Subscription that may have installed a version, or nil.
func executedPlanWith(f *facts, csv string) *v1alpha1.InstallPlan {
	return f.n.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		isExecuted := relation.Executed(p) && planhistory.StageOf(p) != StageFailed
		return isExecuted && olmcore.OwnedBy(p, f.sub.UID) && slices.Contains(p.Spec.ClusterServiceVersionNames, csv)
	})
}

// isHalfMade reports whether an InstallPlan created a version, but not all objects of its bundle.
func isHalfMade(c *v1alpha1.ClusterServiceVersion) bool {
	return c.Labels[olmcore.LabelManaged] == "true" && plans.NeverInstalled(c) && lacksOwnObjects(c)
}

// leaveFruitless handles a Subscription that waits for an InstallPlan which was deleted or superseded. If a later
// InstallPlan of the Subscription installs the version, it is referenced instead. Otherwise the reference is cleared.
// The reference stays if the version was installed and deleted after its InstallPlan was.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription, InstallPlanNotFound. Differs: the
// conditions do not matter while the version was never installed; the InstallPlan must be missing for the grace period,
// or its deletion must have been observed.
func leaveFruitless(f *facts, d draft) draft {
	const pending, failed = v1alpha1.SubscriptionStateUpgradePending, v1alpha1.SubscriptionStateFailed
	isSuperseded := d.csv == nil && !d.changesReference(f) && d.plan.Plan != nil && relation.IsSuperseded(d.plan.Plan)
	if isSuperseded && d.status.State == failed {
		d.status.State = pending // nothing failed
	}
	reason := whyFruitless(f, d, isSuperseded)
	if reason == "" || d.status.State != pending {
		return d
	}
	next := laterPlan(f, d, isSuperseded)
	if next == nil {
		return goBack(f, d.clearReference())
	}
	d.cause = olmcore.Cause{
		Reason:  ReasonReferenceWritten,
		Message: "InstallPlan " + next.Name + " installs " + d.status.CurrentCSV + " instead of " + d.status.InstallPlanRef.Name + ", " + reason,
	}
	return observePlan(f, d.reference(f, next))
}

// whyFruitless returns why the InstallPlan that a Subscription waits for will not install the version, or "".
func whyFruitless(f *facts, d draft, isSuperseded bool) string {
	recorded := f.sub.Status.State
	isPending, hasFailed := recorded == v1alpha1.SubscriptionStateUpgradePending, recorded == v1alpha1.SubscriptionStateFailed
	switch {
	case isSuperseded && (isPending || hasFailed):
		return "which was superseded"
	case isSuperseded || !d.plan.Lasting || d.plan.Outlived:
		return ""
	case isPending || d.plan.Recorded == StageFailed:
		return "which was deleted"
	}
	return ""
}

// laterPlan returns another InstallPlan of the Subscription that installs its version, or nil. It must have steps if it
// takes the place of a superseded one.
func laterPlan(f *facts, d draft, needsSteps bool) *v1alpha1.InstallPlan {
	return newestPlanWith(f, d.status.CurrentCSV, func(p *v1alpha1.InstallPlan) bool {
		if d.references(p) || !olmcore.OwnedBy(p, f.sub.UID) {
			return false
		}
		return !needsSteps || !relation.Statusless(p)
	})
}

// goBack makes a Subscription whose version was deleted after its InstallPlan failed follow the version of its package
// that was being replaced: the only one that exists and that no Subscription follows.
func goBack(f *facts, d draft) draft {
	if d.plan.Recorded != StageFailed || f.n.versions.csvs[d.status.InstalledCSV] != nil {
		return d
	}
	var older []string
	for name, c := range f.n.versions.unfollowed {
		if isOfPackage(c, f.sub.Spec.Package) {
			older = append(older, name)
		}
	}
	if len(older) == 1 {
		d.status.InstalledCSV = older[0]
	}
	return d
}

// resume clears the reference to an InstallPlan that was deleted before it installed everything, if the version that it
// created was never installed. The Subscription returns to the version that is being replaced, or to none. Then the
// namespace is resolved again and a new InstallPlan does the open steps. A version that is being deleted is left, too,
// because its InstallPlan would be missing. A version that another InstallPlan contains stays.
//
// Source: none. Differs: OLM installs nothing more until the version is deleted, too.
func resume(f *facts, d draft) draft {
	c := d.csv
	if c == nil || d.plan.Stage != StageMissing || !plans.NeverInstalled(c) || !isPartlyInstalled(f.sub, c) {
		return d
	}
	if c.Status.Phase == v1alpha1.CSVPhaseFailed && f.n.failForward { // the namespace is resolved to a newer version
		return d
	}
	other := f.n.newestPlan(func(p *v1alpha1.InstallPlan) bool { return slices.Contains(p.Spec.ClusterServiceVersionNames, c.Name) })
	if other != nil {
		return d
	}
	if !d.plan.Lasting { // a cache may be stale
		return d.requeue(planhistory.Recheck)
	}
	return installAgain(f, d, c, "the InstallPlan of "+c.Name+" was deleted before it installed everything")
}

// installAgain makes a Subscription leave a version that was never installed, so that the namespace is resolved again
// and a new InstallPlan does the open steps.
func installAgain(f *facts, d draft, c *v1alpha1.ClusterServiceVersion, message string) draft {
	d = d.clearReference()
	d.csv, d.status.InstalledCSV = nil, f.n.versions.predecessor(c)
	d.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: message}
	return d
}

// isPartlyInstalled reports whether the deleted InstallPlan of a version left steps open. The Subscription recorded
// that the InstallPlan failed. If it recorded only that the InstallPlan is missing, as OLM does, the version must
// lack an object that its bundle contains.
func isPartlyInstalled(s *v1alpha1.Subscription, c *v1alpha1.ClusterServiceVersion) bool {
	isTrue := func(t v1alpha1.SubscriptionConditionType) bool {
		return s.Status.GetCondition(t).Status == corev1.ConditionTrue
	}
	return isTrue(v1alpha1.SubscriptionInstallPlanFailed) || isTrue(v1alpha1.SubscriptionInstallPlanMissing) && lacksOwnObjects(c)
}

// lacksOwnObjects reports whether the status of a version lists an object of its own bundle as a requirement that is
// not met: a CustomResourceDefinition that the version owns, or a ServiceAccount with its permissions.
func lacksOwnObjects(c *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(c.Status.RequirementStatus, func(r v1alpha1.RequirementStatus) bool {
		switch r.Kind {
		case "ServiceAccount":
			return r.Status != v1alpha1.RequirementStatusReasonPresent
		case "CustomResourceDefinition":
			return ownsDefinition(c, r.Name) && isMissing(r)
		}
		return false
	})
}

func ownsDefinition(c *v1alpha1.ClusterServiceVersion, crd string) bool {
	return slices.ContainsFunc(c.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == crd })
}

func isMissing(r v1alpha1.RequirementStatus) bool {
	return r.Status == v1alpha1.RequirementStatusReasonNotPresent || r.Status == v1alpha1.RequirementStatusReasonPresentNotSatisfied
}

// resolveWedge handles a Subscription that waits for an event that cannot occur: its InstallPlan failed, or its
// version was installed and deleted.
func resolveWedge(f *facts, d draft) draft {
	isPending := d.status.State == v1alpha1.SubscriptionStateUpgradePending
	if d.csv != nil || !isPending || d.status.InstallPlanRef == nil || d.changesReference(f) {
		return d
	}
	switch {
	case d.plan.Stage == StageFailed && !relation.IsRetried(d.plan.Plan):
		return d.report(f, olmcore.Warning, ReasonFailedPlanWedge, "status.installPlanRef",
			"InstallPlan %s failed and blocks this Subscription; remove the cause or delete the InstallPlan", d.plan.Plan.Name)
	case d.plan.Stage == StageComplete && d.status.CurrentCSV != "":
		return reinstall(f, d, "InstallPlan %[2]s is complete, but CSV %[1]s does not exist; delete the InstallPlan to install the CSV again")
	case d.plan.Stage == StageMissing && d.plan.Outlived:
		return reinstall(f, d, "CSV %[1]s and its InstallPlan do not exist; delete the Subscription and create it again to install the CSV")
	}
	return d
}

// reinstall handles a version that was installed and deleted. After AuditGrace it is installed again if
// Config.ReinstallMissingCSV is set, and reported otherwise.
func reinstall(f *facts, d draft, message string) draft {
	start := f.sub.Status.LastUpdated.Time
	if f.sub.Status.State != d.status.State {
		start = f.n.now // the version existed until now
	}
	start = relation.Latest(start, relation.InstalledAt(d.plan.Plan))
	left := AuditGrace - elapsed(start, f.n.now)
	switch {
	case left > 0:
		return d.requeue(left)
	case f.n.reinstalls:
		return d.clearReference()
	}
	return d.report(f, olmcore.Warning, ReasonWedgedUpgradePending, "status.currentCSV", message, d.status.CurrentCSV, d.plan.Name)
}
