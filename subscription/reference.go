// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/planhistory"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// chooseReference decides which InstallPlan the Subscription should reference and which version it should follow. The
// first rule that applies decides.
func chooseReference(f *facts, d draft) draft {
	// 1. An InstallPlan of the Subscription installed a version that no Subscription follows.
	if plan, csv := installedUnfollowed(f); plan != nil {
		message := "InstallPlan " + plan.Name + " installed " + csv + ", which no Subscription follows"
		return d.waitFor(f, csv, plan, ReasonInstalledFollowed, message)
	}
	// 2. The answer to the last ResolveRequest.
	d = followAnswer(f, d)
	// 3. A step of an InstallPlan created the Subscription.
	if d.status.InstallPlanRef == nil {
		d = adoptCreator(f, d)
	}
	// 4. status.installedCSV records a version that no other Subscription follows.
	return followRecorded(f, d)
}

// installedUnfollowed returns an InstallPlan of the Subscription that installed a version of its package which no
// Subscription follows, and that version. This happens when the InstallPlan was approved and started while the
// Subscription changed to another InstallPlan, which may have been deleted since. Such a version blocks every
// resolution.
//
// Source: none. Differs: OLM leaves both as they are until a user deletes the CSV.
func installedUnfollowed(f *facts) (plan *v1alpha1.InstallPlan, csv string) {
	if f.n.versions.csvs[f.sub.Status.CurrentCSV] != nil {
		return nil, ""
	}
	var referenced *v1alpha1.InstallPlan
	if ref := f.sub.Status.InstallPlanRef; ref != nil {
		referenced = f.n.plans.Plans[ref.Name]
	}
	plan = f.n.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return mayHaveInstalled(p, f.sub, referenced) && unfollowedVersion(f, p) != ""
	})
	if plan == nil {
		return nil, ""
	}
	return plan, unfollowedVersion(f, plan)
}

// unfollowedVersion returns the first version of an InstallPlan that is of the Subscription's package and that no
// Subscription follows, or "".
func unfollowedVersion(f *facts, p *v1alpha1.InstallPlan) string {
	for _, name := range p.Spec.ClusterServiceVersionNames {
		if f.n.versions.isUnfollowed(name, f.sub.Spec.Package) {
			return name
		}
	}
	return ""
}

// mayHaveInstalled reports whether an InstallPlan may have installed a version that the Subscription does not follow.
// The InstallPlan belongs to the Subscription and was executed, and the InstallPlan that the Subscription references,
// if any, waits for its approval or has no steps. An InstallPlan gets no steps as long as the namespace cannot be
// resolved.
func mayHaveInstalled(p *v1alpha1.InstallPlan, s *v1alpha1.Subscription, referenced *v1alpha1.InstallPlan) bool {
	isFree := s.Status.InstallPlanRef == nil || waitsForApproval(referenced) || referenced != nil && relation.Statusless(referenced)
	return isFree && s.DeletionTimestamp == nil && olmcore.OwnedBy(p, s.UID) && relation.Executed(p)
}

// waitsForApproval reports whether an InstallPlan waits for its approval. An approved one is about to run.
func waitsForApproval(p *v1alpha1.InstallPlan) bool {
	if p == nil || p.Spec.Approved {
		return false
	}
	stage := planhistory.StageOf(p)
	return stage == StageNotYetReconciled || stage == StageRequiresApproval
}

// followAnswer references the InstallPlan that was created for the last resolution.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: the reference
// is written before the InstallPlan has content, so that no InstallPlan runs before it is referenced; the conditions
// are removed from every Subscription as soon as the resolution succeeded.
func followAnswer(f *facts, d draft) draft {
	a := &f.n.answer
	decision, p := a.decisions[f.sub.Name], a.partOf(f.sub.Name)
	switch {
	case f.n.blocked != "" || a.failed:
		return d
	case a.speaks && (decision == nil || decision.Failure != nil):
		return d
	case !p.applies || !installsVersion(decision) || f.sub.DeletionTimestamp != nil:
		return leaveWithdrawn(f, catchUp(f, d))
	case p.isHeld(f.n):
		return d
	case p.plan == nil:
		d.status.CurrentCSV = decision.CurrentCSV
		return d
	case d.references(p.plan) && d.status.CurrentCSV == decision.CurrentCSV:
		return d // it is done
	}
	return d.waitFor(f, decision.CurrentCSV, p.plan, ReasonReferenceWritten,
		"InstallPlan "+p.plan.Name+" installs "+decision.CurrentCSV)
}

func installsVersion(decision *olmcore.SubscriptionDecision) bool {
	return decision != nil && decision.Changed && decision.CurrentCSV != ""
}

// keepsPlan reports whether a Subscription keeps the InstallPlan that it references, whatever an answer says.
//
//  1. An InstallPlan that has steps is kept until it is Complete or Failed, is gone, or has applied every step of the
//     Subscription's version. If it has started, it must not lose its Subscription, because nothing would follow the
//     version that it installs. If it has not started, it ends as superseded when a later InstallPlan replaces it.
//  2. A version that the InstallPlan has just installed is recorded first, because the answer was computed without it.
//
// Source: none. Differs: OLM changes the reference as soon as the version exists, even if the InstallPlan still runs.
func (n *namespace) keepsPlan(s *v1alpha1.Subscription) bool {
	plan, csv := n.planOf(s.Status.InstallPlanRef), s.Status.CurrentCSV
	switch {
	case plan == nil || s.DeletionTimestamp != nil || plan.DeletionTimestamp != nil || len(plan.Status.Plan) == 0:
		return false
	case isUnderWay(plan) && !relation.HasInstalled(plan, csv):
		return true
	case csv == s.Status.InstalledCSV || !slices.Contains(plan.Spec.ClusterServiceVersionNames, csv):
		return false
	}
	isRecent := elapsed(relation.InstalledAt(plan), n.now) < n.plans.Grace
	return n.versions.csvs[csv] != nil || plan.Status.Phase == v1alpha1.InstallPlanPhaseComplete && isRecent
}

func isUnderWay(p *v1alpha1.InstallPlan) bool {
	return !relation.Over(p) && planhistory.StageOf(p) != StageUnknown
}

// planOf returns the InstallPlan that a reference names. It is nil if the InstallPlan is not in the list, or if another
// InstallPlan has its name.
func (n *namespace) planOf(ref *corev1.ObjectReference) *v1alpha1.InstallPlan {
	if ref == nil {
		return nil
	}
	p := n.plans.Plans[ref.Name]
	if p == nil || !relation.SamePlan(ref, p.UID, p.Name) {
		return nil
	}
	return p
}

// catchUp changes a Subscription that waits for a version to the InstallPlan of the last resolution. That one must
// install the version, too, and the referenced one must have failed or have never got its steps. No later resolution
// decides about the version again.
func catchUp(f *facts, d draft) draft {
	p := f.n.answer.partOf(f.sub.Name)
	ref, csv := d.status.InstallPlanRef, d.status.CurrentCSV
	if p.plan == nil || !p.applies || ref == nil || csv == "" || f.sub.DeletionTimestamp != nil {
		return d
	}
	if d.references(p.plan) || !slices.Contains(p.plan.Spec.ClusterServiceVersionNames, csv) {
		return d
	}
	old := f.n.planOf(ref)
	if old == nil || f.n.keepsPlan(f.sub) || p.isHeld(f.n) {
		return d
	}
	why := reasonToLeave(f, p, old, csv)
	if why == "" {
		return d
	}
	return d.waitFor(f, csv, p.plan, ReasonReferenceWritten,
		"InstallPlan "+p.plan.Name+" installs "+csv+" instead of "+ref.Name+", which "+why)
}

// reasonToLeave returns why the InstallPlan of a part should be referenced instead of an old one, or "".
func reasonToLeave(f *facts, p *part, old *v1alpha1.InstallPlan, csv string) string {
	switch {
	case relation.Statusless(old):
		return "has no steps"
	case !p.speaks || relation.Over(p.plan) || p.plan.Spec.Generation <= old.Spec.Generation || f.n.versions.csvs[csv] != nil:
		return ""
	case planhistory.StageOf(old) == StageFailed:
		return "failed"
	}
	return ""
}

// leaveWithdrawn clears the reference to an InstallPlan without steps, if a version is installed and the last
// resolution does not install the version of the InstallPlan. The catalogs do not offer that upgrade any more. The
// reference stays for AuditGrace after the InstallPlan was created, because the catalogs that two managers know may
// differ for a while.
//
// Source: none. Differs: OLM creates an InstallPlan with its steps.
func leaveWithdrawn(f *facts, d draft) draft {
	a, csvs := &f.n.answer, f.n.versions.csvs
	version := d.status.CurrentCSV
	decision := a.decisions[f.sub.Name]
	isUnchanged := a.succeeded && decision != nil && decision.Failure == nil && !decision.Changed
	if !isUnchanged || csvs[version] != nil || csvs[d.status.InstalledCSV] == nil {
		return d
	}
	plan := f.n.planOf(d.status.InstallPlanRef)
	isInstalled := func(o olmcore.Operator) bool { return o.Name == version }
	if plan == nil || !relation.Statusless(plan) || slices.ContainsFunc(a.operators, isInstalled) {
		return d
	}
	if left := AuditGrace - elapsed(plan.CreationTimestamp.Time, f.n.now); left > 0 {
		return d.requeue(left)
	}
	d.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: fmt.Sprintf(
		"no catalog offers %s as an upgrade of %s any more, and InstallPlan %s has no steps", version, d.status.InstalledCSV, plan.Name)}
	d.status.CurrentCSV, d.status.InstallPlanRef = d.status.InstalledCSV, nil
	return d
}

// adoptCreator references the InstallPlan whose step created the Subscription.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureSubscriptionInstallPlanState. Differs: an
// InstallPlan that cannot install anything any more is not referenced. If it does not exist, other Subscriptions are
// decided all the same, and the version is followed if it exists.
func adoptCreator(f *facts, d draft) draft {
	const path = "metadata.annotations"
	name := f.sub.Annotations[relation.AnnotationGeneratedBy]
	if name == "" || f.sub.Status.Install != nil || f.sub.DeletionTimestamp != nil {
		return d
	}
	plan, version := f.n.plans.Plans[name], f.sub.Spec.StartingCSV
	if plan == nil && f.n.versions.isUnfollowed(version, f.sub.Spec.Package) {
		// The InstallPlan was deleted after it installed the version. Nothing else would ever follow the version.
		d.status.CurrentCSV = version
		d.cause = olmcore.Cause{Reason: ReasonInstalledFollowed, Message: "InstallPlan " + name + " installed " + version + " and was deleted"}
		return d
	}
	if plan == nil {
		return d.report(f, olmcore.Info, ReasonGeneratedByDangling, path,
			"InstallPlan %s, which created this Subscription, does not exist", name)
	}
	csv := stillInstalls(f, d, plan)
	if csv == "" {
		return d.report(f, olmcore.Info, ReasonGeneratedByStale, path,
			"InstallPlan %s created this Subscription, but can no longer install a version for it", name)
	}
	return d.waitFor(f, csv, plan, ReasonPlanAdopted, "InstallPlan "+name+" created this Subscription")
}

// stillInstalls returns the version that an InstallPlan installs, or installed, for the Subscription that it created,
// or "".
func stillInstalls(f *facts, d draft, plan *v1alpha1.InstallPlan) string {
	csv, stage := f.sub.Spec.StartingCSV, planhistory.StageOf(plan)
	switch {
	case stage == StageFailed && f.n.failForward:
		return csv
	case stage == StageFailed || stage == StageUnknown || d.status.InstalledCSV != "":
		return ""
	case stage == StageComplete:
		return f.n.versions.orSuccessor(csv)
	case plan.DeletionTimestamp == nil:
		return csv
	}
	return ""
}

// followRecorded makes a Subscription that has neither a reference nor status.currentCSV follow the version that
// status.installedCSV records. A manager whose cache did not show the version can have cleared the other two after the
// InstallPlan was deleted. A version that lacks objects of its bundle is installed again, because nothing else creates
// them.
//
// Source: none. Differs: OLM never clears status.currentCSV.
func followRecorded(f *facts, d draft) draft {
	versions, c := &f.n.versions, f.n.versions.csvs[d.status.InstalledCSV]
	if d.status.InstallPlanRef != nil || d.status.CurrentCSV != "" || f.sub.DeletionTimestamp != nil {
		return d
	}
	if c == nil || !versions.canBeFollowed(c, f.sub) {
		return d
	}
	if plans.NeverInstalled(c) && lacksOwnObjects(c) && versions.csvs[c.Spec.Replaces] != nil {
		return installAgain(f, d, c, "the InstallPlan of "+c.Name+" was deleted before it installed everything")
	}
	d.status.CurrentCSV = c.Name
	message := "status.installedCSV records " + c.Name + ", which no Subscription follows"
	d.cause = olmcore.Cause{Reason: ReasonInstalledFollowed, Message: message}
	return d
}
