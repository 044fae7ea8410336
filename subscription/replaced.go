// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// followReplacement makes a Subscription follow the version that replaced its own, when
// the replacement came with a plan that was not made for it: two plans of one namespace
// can bring two versions of one dependency, and its Subscription refers to the plan whose
// step made it. Left with the version that is gone, the one that is there would belong to
// no Subscription, and the namespace could not be resolved any more.
//
// Source: none. Differs: OLM leaves the Subscription UpgradePending, and a user deletes
// the CSV.
func (v *view) followReplacement(d *verdict) {
	if d.currentCSV == "" || d.ref == nil || d.changedReference() || !d.seen.isOver() {
		return
	}
	next := v.replacement(d.currentCSV)
	if next == nil {
		return
	}
	d.cause = olmcore.Cause{Reason: ReasonReplacementFollowed, Message: "ClusterServiceVersion " + next.Name + " replaced " + d.currentCSV}
	d.currentCSV = next.Name
	if plan := v.bringer(d, next.Name); plan != nil {
		d.setReference(plan)
		d.seen = sighting{}
		v.follow(d)
	}
	v.judgeState(d)
}

// isOver reports whether a plan brings nothing any more.
func (s *sighting) isOver() bool {
	return s.stage == StageComplete || s.stage == StageFailed || s.stage == StageMissing && s.lasting
}

// replacement returns the CSV that replaces a version and that no Subscription follows,
// the first by name; nil for none.
func (v *view) replacement(name string) *v1alpha1.ClusterServiceVersion {
	if v.replacements == nil {
		v.replacements = replacements(v.csvs, v.subs)
	}
	return v.replacements[name]
}

// replacements returns the CSVs that no Subscription follows, by what they replace.
func replacements(csvs []*v1alpha1.ClusterServiceVersion, subs []*v1alpha1.Subscription) map[string]*v1alpha1.ClusterServiceVersion {
	followed := map[string]bool{}
	for _, s := range subs {
		followed[s.Status.CurrentCSV], followed[s.Status.InstalledCSV] = true, true
	}
	found := map[string]*v1alpha1.ClusterServiceVersion{}
	for _, c := range csvs {
		if replaced := c.Spec.Replaces; replaced != "" && found[replaced] == nil && !followed[c.Name] && c.DeletionTimestamp == nil && !isCopied(c) {
			found[replaced] = c
		}
	}
	return found
}

// bringer returns the newest plan that brings a version, nil for none.
func (v *view) bringer(d *verdict, csv string) *v1alpha1.InstallPlan {
	return v.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Generation >= d.sub.Status.InstallPlanGeneration && slices.Contains(p.Spec.ClusterServiceVersionNames, csv)
	})
}

// laterPlan returns the newest plan of this Subscription that brings the version which it
// waits for, made after the one that is missing; nil for none. Without a reference to
// it the version would be installed all the same, and without a Subscription.
func (v *view) laterPlan(d *verdict) *v1alpha1.InstallPlan {
	return v.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Generation >= d.sub.Status.InstallPlanGeneration && !samePlan(d.ref, p.UID, p.Name) &&
			slices.Contains(p.Spec.ClusterServiceVersionNames, d.currentCSV) &&
			slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == d.sub.UID })
	})
}

// newestPlan returns the plan with the highest generation that can still bring
// something, or did, and that meets a condition; nil for none.
func (v *view) newestPlan(meets func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	var newest *v1alpha1.InstallPlan
	for _, p := range v.plans {
		if p.DeletionTimestamp != nil || stageOf(p) == StageFailed || stageOf(p) == StageUnknown || v.isGone(p.UID, "") || !meets(p) {
			continue
		}
		if newest == nil || p.Spec.Generation > newest.Spec.Generation {
			newest = p
		}
	}
	return newest
}
