// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// followedBy returns the versions that a Subscription follows, each once.
func followedBy(s *v1alpha1.Subscription) []string {
	if s.Status.CurrentCSV == s.Status.InstalledCSV {
		return []string{s.Status.CurrentCSV}
	}
	return []string{s.Status.CurrentCSV, s.Status.InstalledCSV}
}

// unfollowed returns the CSVs that no Subscription follows, by name: neither copies nor those that are being deleted.
func unfollowed(csvs map[string]*v1alpha1.ClusterServiceVersion, followers map[string]int) map[string]*v1alpha1.ClusterServiceVersion {
	found := map[string]*v1alpha1.ClusterServiceVersion{}
	for name, c := range csvs {
		if followers[name] == 0 && c.DeletionTimestamp == nil && !c.IsCopied() {
			found[name] = c
		}
	}
	return found
}

// replacements returns CSVs by what they replace: of several the first by name.
func replacements(csvs map[string]*v1alpha1.ClusterServiceVersion) map[string]*v1alpha1.ClusterServiceVersion {
	found := map[string]*v1alpha1.ClusterServiceVersion{}
	for name, c := range csvs {
		if first := found[c.Spec.Replaces]; c.Spec.Replaces != "" && (first == nil || name < first.Name) {
			found[c.Spec.Replaces] = c
		}
	}
	return found
}

// waitsForApproval reports whether a plan may wait for its approval for ever; one that has it is about to run.
func waitsForApproval(p *v1alpha1.InstallPlan) bool {
	return p != nil && !p.Spec.Approved && (stageOf(p) == StageNotYetReconciled || stageOf(p) == StageRequiresApproval)
}

// mayHaveInstalled reports whether a plan may have installed a version that the Subscription does not follow. The plan belongs to
// the Subscription and was executed, and the plan that the Subscription references, if any, waits for its approval or has no
// steps. A plan gets no steps as long as the namespace cannot be resolved.
func mayHaveInstalled(p *v1alpha1.InstallPlan, s *v1alpha1.Subscription, referenced *v1alpha1.InstallPlan) bool {
	isFree := s.Status.InstallPlanRef == nil || waitsForApproval(referenced) || referenced != nil && relation.Statusless(referenced)
	return isFree && s.DeletionTimestamp == nil && olmcore.OwnedBy(p, s.UID) && relation.Executed(p)
}

// followInstalled makes a Subscription follow a version of its package that its own plan installed and that belongs to
// no Subscription, and reports whether it does: the plan was approved and started while the Subscription left it for
// another plan, which may be gone since. That version would keep the namespace from being resolved for ever.
//
// Source: none. Differs: OLM leaves both as they are, and a user deletes the CSV.
func (j *judgement) followInstalled() bool {
	s, ref := j.Subscription, j.Subscription.Status.InstallPlanRef
	if j.csvs[s.Status.CurrentCSV] != nil {
		return false
	}
	var referred *v1alpha1.InstallPlan
	if ref != nil {
		referred = j.planNamed[ref.Name]
	}
	plan := j.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return mayHaveInstalled(p, s, referred) && j.unfollowedVersion(p) != ""
	})
	if plan != nil {
		csv := j.unfollowedVersion(plan)
		j.waitFor(csv, plan, ReasonInstalledFollowed, "InstallPlan "+plan.Name+" installed "+csv+", which no Subscription follows")
	}
	return plan != nil
}

// unfollowedVersion returns the first version of a plan for which isUnfollowed is true, or "".
func (j *judgement) unfollowedVersion(p *v1alpha1.InstallPlan) string {
	i := slices.IndexFunc(p.Spec.ClusterServiceVersionNames, j.isUnfollowed)
	if i < 0 {
		return ""
	}
	return p.Spec.ClusterServiceVersionNames[i]
}

// isUnfollowed reports whether a version exists that belongs to the Subscription's package and that no Subscription follows. A
// version that is being replaced does not count.
func (j *judgement) isUnfollowed(name string) bool {
	c := j.unfollowed[name]
	if c == nil || j.replaced[name] {
		return false
	}
	return slices.Contains(olmcore.PackagesOf(c.Annotations[olmcore.AnnotationProperties]), j.Subscription.Spec.Package)
}

// followReplacement makes a Subscription follow the version that replaced its own, when the replacement came with a
// plan that was not made for it: two plans of one namespace can bring two versions of one dependency, and its
// Subscription refers to the plan whose step made it. Left with the version that is gone, the one that is there would
// belong to no Subscription, and the namespace could not be resolved any more.
//
// Source: none. Differs: OLM leaves the Subscription UpgradePending, and a user deletes the CSV.
func (j *judgement) followReplacement() {
	f, p := &j.Status, &j.Plan
	isOver := p.Stage == StageComplete || p.Stage == StageFailed || p.Stage == StageMissing && p.Lasting
	next := j.replacements[f.CurrentCSV]
	if f.CurrentCSV == "" || f.InstallPlanRef == nil || j.isMoved() || !isOver || next == nil {
		return
	}
	j.cause = olmcore.Cause{Reason: ReasonReplacementFollowed, Message: "ClusterServiceVersion " + next.Name + " replaced " + f.CurrentCSV}
	f.CurrentCSV = next.Name
	if plan := j.bringer(relation.Executed); plan != nil {
		j.refer(plan)
		j.look()
	}
	j.state()
}
