// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// resume forgets a plan that was deleted before it installed everything, if the version that it created was never installed.
// The Subscription goes back to the version that is being replaced, or to none, so that the namespace is resolved again and a
// new plan does the open steps. A version that is being deleted is forgotten, too: it would be missed in vain later. A version
// that another plan contains stays.
//
// Differs: OLM installs nothing more until the version is deleted, too.
func (j *judgement) resume() {
	c := j.CSV
	if c == nil || j.Plan.Stage != StageMissing || !olmcore.NeverInstalled(c) || !isPartlyInstalled(j.Subscription, c) {
		return
	}
	if c.Status.Phase == v1alpha1.CSVPhaseFailed && j.failForward { // the namespace is resolved to a newer version
		return
	}
	other := j.newestPlan(func(p *v1alpha1.InstallPlan) bool { return slices.Contains(p.Spec.ClusterServiceVersionNames, c.Name) })
	if other != nil {
		return
	}
	if !j.Plan.Lasting { // a cache may be stale
		j.Requeue(recheck)
		return
	}
	j.installAgain(c, "the InstallPlan of "+c.Name+" was deleted before it installed everything")
}

// installAgain makes a Subscription forget a version that was never installed, so that the namespace is resolved again and a new plan
// does the open steps.
func (j *judgement) installAgain(c *v1alpha1.ClusterServiceVersion, message string) {
	j.forget()
	j.CSV, j.Status.InstalledCSV = nil, ""
	if old := j.csvs[c.Spec.Replaces]; old != nil && !old.IsCopied() && old.DeletionTimestamp == nil {
		j.Status.InstalledCSV = old.Name
	}
	j.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: message}
}

// followRecorded makes a Subscription that has neither a plan nor status.currentCSV follow the version that status.installedCSV
// records. A manager whose cache did not show the version can have cleared the other two after the plan was deleted. A version that
// lacks objects of its bundle is installed again, because nothing else creates them.
//
// Source: none. Differs: OLM never clears status.currentCSV.
func followRecorded(j *judgement) {
	f, c := &j.Status, j.csvs[j.Status.InstalledCSV]
	if f.InstallPlanRef != nil || f.CurrentCSV != "" || j.Subscription.DeletionTimestamp != nil || c == nil || !isFollowedByNoOther(j, c) {
		return
	}
	if olmcore.NeverInstalled(c) && lacksOwnObjects(c) && j.csvs[c.Spec.Replaces] != nil {
		j.installAgain(c, "the InstallPlan of "+c.Name+" was deleted before it installed everything")
		return
	}
	f.CurrentCSV = c.Name
	message := "status.installedCSV records " + c.Name + ", which no Subscription follows"
	j.cause = olmcore.Cause{Reason: ReasonInstalledFollowed, Message: message}
}

// isFollowedByNoOther reports whether a version can be followed: no other Subscription does, and no other version replaces it.
func isFollowedByNoOther(j *judgement, c *v1alpha1.ClusterServiceVersion) bool {
	isReplaced := c.Status.Phase == v1alpha1.CSVPhaseReplacing || c.Status.Phase == v1alpha1.CSVPhaseDeleting || j.replaced[c.Name]
	if c.IsCopied() || c.DeletionTimestamp != nil || isReplaced {
		return false
	}
	others := j.followers[c.Name]
	if slices.Contains(followedBy(j.Subscription), c.Name) {
		others--
	}
	return others == 0
}

// goBack makes a Subscription whose version is gone after its plan failed follow the version of its package that was being
// replaced: the only one that is there and that no Subscription follows.
func (j *judgement) goBack() {
	if j.Plan.Recorded != StageFailed || j.csvs[j.Status.InstalledCSV] != nil {
		return
	}
	var older []string
	for name, c := range j.unfollowed {
		if slices.Contains(olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties]), j.Subscription.Spec.Package) {
			older = append(older, name)
		}
	}
	if len(older) == 1 {
		j.Status.InstalledCSV = older[0]
	}
}

// leaveWithdrawn makes a Subscription that has an installed version leave a plan without steps, if the answer does not install the
// version of the plan: the catalogs do not offer that upgrade any more. The plan keeps the Subscription for AuditGrace after its
// creation, because the catalogs that two managers know may differ for a while.
//
// Source: none. Differs: OLM creates a plan with its steps.
func leaveWithdrawn(j *judgement) {
	f, a, ref := &j.Status, &j.answer, j.Status.InstallPlanRef
	d := a.decisions[j.Subscription.Name]
	isDecided := a.succeeded && d != nil && d.Failure == nil && !d.Changed
	if !isDecided || ref == nil || j.csvs[f.CurrentCSV] != nil || j.csvs[f.InstalledCSV] == nil {
		return
	}
	plan := j.planNamed[ref.Name]
	if plan == nil || !relation.SamePlan(ref, plan.UID, plan.Name) || !relation.Statusless(plan) {
		return
	}
	if slices.ContainsFunc(a.in.Resolution.Operators, func(o olmcore.Operator) bool { return o.Name == f.CurrentCSV }) {
		return
	}
	if left := AuditGrace - since(plan.CreationTimestamp.Time, j.now); left > 0 {
		j.Requeue(left)
		return
	}
	j.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: fmt.Sprintf(
		"no catalog offers %s as an upgrade of %s any more, and InstallPlan %s has no steps", f.CurrentCSV, f.InstalledCSV, plan.Name)}
	f.CurrentCSV, f.InstallPlanRef = f.InstalledCSV, nil
}

// isPartlyInstalled reports whether the deleted plan of a version left steps open. The Subscription recorded that the plan
// failed. If it recorded only that the plan is missing, as OLM does, the version has to lack an object that its bundle contains.
func isPartlyInstalled(s *v1alpha1.Subscription, c *v1alpha1.ClusterServiceVersion) bool {
	isTrue := func(t v1alpha1.SubscriptionConditionType) bool {
		return s.Status.GetCondition(t).Status == corev1.ConditionTrue
	}
	return isTrue(v1alpha1.SubscriptionInstallPlanFailed) || isTrue(v1alpha1.SubscriptionInstallPlanMissing) && lacksOwnObjects(c)
}

// lacksOwnObjects reports whether the status of a version lists an object of its own bundle as a requirement that is not met: a
// CustomResourceDefinition that the version owns, or a ServiceAccount with its permissions.
func lacksOwnObjects(c *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(c.Status.RequirementStatus, func(r v1alpha1.RequirementStatus) bool {
		switch r.Kind {
		case "ServiceAccount":
			return r.Status != v1alpha1.RequirementStatusReasonPresent
		case "CustomResourceDefinition":
			isOwned := slices.ContainsFunc(c.Spec.CustomResourceDefinitions.Owned, func(d v1alpha1.CRDDescription) bool { return d.Name == r.Name })
			isOpen := r.Status == v1alpha1.RequirementStatusReasonNotPresent || r.Status == v1alpha1.RequirementStatusReasonPresentNotSatisfied
			return isOwned && isOpen
		}
		return false
	})
}
