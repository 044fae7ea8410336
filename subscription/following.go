// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// following is what a Subscription follows: a plan, and the version that it brings.
type following struct {
	sub        *v1alpha1.Subscription
	ref        *corev1.ObjectReference
	csv        string
	installed  string
	state      v1alpha1.SubscriptionState
	generation int
	// cause says why this is another plan or version than the status has; zero where it is not.
	cause olmcore.Cause
}

// isMoved reports whether the Subscription is to refer to another plan, or to none any more.
func (f *following) isMoved() bool { return f.ref != f.sub.Status.InstallPlanRef }

// to makes the Subscription refer to an observed plan.
func (f *following) to(p *v1alpha1.InstallPlan) {
	if have := f.sub.Status.InstallPlanRef; have != nil && have.Name == p.Name && have.UID == p.UID && have.Namespace == p.Namespace {
		f.ref = have
		return
	}
	f.ref = &corev1.ObjectReference{
		APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind,
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
	}
}

// waitFor makes the Subscription wait for a version that a plan brings.
func (f *following) waitFor(csv string, p *v1alpha1.InstallPlan, reason, message string) {
	f.to(p)
	f.csv, f.state, f.generation = csv, v1alpha1.SubscriptionStateUpgradePending, max(f.generation, p.Spec.Generation)
	f.cause = olmcore.Cause{Reason: reason, Message: message}
}

// forget makes the Subscription forget its plan, so that the namespace is resolved again.
func (f *following) forget() {
	f.ref, f.csv, f.state = nil, "", v1alpha1.SubscriptionStateNone
	f.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: "the referenced InstallPlan cannot bring the operator any more"}
}

// answered is what a Subscription follows once the answer is carried out.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, syncResolvingNamespace. Differs: the reference
// is written before the plan has content, so no plan runs ahead of it; the conditions go from every Subscription as
// soon as the resolution succeeded.
func (n *namespace) answered(s *v1alpha1.Subscription) following {
	status, a := &s.Status, &n.answer
	f := following{sub: s, ref: status.InstallPlanRef, csv: status.CurrentCSV, installed: status.InstalledCSV, state: status.State, generation: status.InstallPlanGeneration}
	d := a.decisions[s.Name]
	switch {
	case n.blocked != "", a.failed, a.speaks && (d == nil || d.Failure != nil):
	case !a.applies || s.DeletionTimestamp != nil || d == nil || !d.Changed || d.CurrentCSV == "":
		n.catchUp(&f)
	case a.plan == nil:
		f.csv = d.CurrentCSV
	case f.csv == d.CurrentCSV && f.ref != nil && relation.SamePlan(f.ref, a.plan.UID, a.plan.Name): // carried out
	default:
		f.waitFor(d.CurrentCSV, a.plan, ReasonReferenceWritten, "InstallPlan "+a.plan.Name+" brings "+d.CurrentCSV)
	}
	return f
}

// catchUp moves a Subscription that waits for a version to the plan of the answer when that one brings the version too
// and the plan that it refers to does not run: one that never got its content, one that waits for its approval, one
// that failed. No later resolution decides about it again, and of two plans that wait the newer one has what the older
// one may not have any more: the versions of all others.
func (n *namespace) catchUp(f *following) {
	plan := n.answer.plan
	if plan == nil || !n.answer.applies || f.ref == nil || f.csv == "" || f.sub.DeletionTimestamp != nil ||
		relation.SamePlan(f.ref, plan.UID, plan.Name) || !slices.Contains(plan.Spec.ClusterServiceVersionNames, f.csv) {
		return
	}
	old := n.planNamed[f.ref.Name]
	if old == nil || !relation.SamePlan(f.ref, old.UID, old.Name) {
		return
	}
	if why := n.overtaken(old, f.csv); why != "" {
		f.waitFor(f.csv, plan, ReasonReferenceWritten, "InstallPlan "+plan.Name+" brings "+f.csv+" instead of "+f.ref.Name+", which "+why)
	}
}

// overtaken says why the plan of the answer takes the place of an older one that was to bring the same version; empty
// when it does not.
func (n *namespace) overtaken(old *v1alpha1.InstallPlan, csv string) string {
	plan, s := n.answer.plan, stageOf(old)
	switch {
	case relation.Statusless(old):
		return "never got its steps"
	case !n.answer.speaks || relation.Over(plan) || plan.Spec.Generation <= old.Spec.Generation || n.csvs[csv] != nil:
	case s == StageFailed:
		return "failed"
	case (s == StageNotYetReconciled || s == StageRequiresApproval) && !old.Spec.Approved: // else it is about to run
		return "is older and waits for its approval"
	}
	return ""
}

// adopt makes a Subscription that a plan's step created, and that refers to no plan, refer to that one.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureSubscriptionInstallPlanState. Differs: a
// plan that can bring nothing any more is not adopted, and one that is not there stops no other Subscription.
func (j *judgement) adopt() {
	const path = "metadata.annotations"
	s, name := j.Subscription, j.Subscription.Annotations[relation.AnnotationGeneratedBy]
	if s.Status.Install != nil || s.DeletionTimestamp != nil || name == "" {
		return
	}
	plan := j.planNamed[name]
	if plan == nil {
		j.report(olmcore.Info, ReasonGeneratedByDangling, path, "the plan %s that generated this Subscription is not there", name)
	} else if csv := j.stillBrings(plan); csv == "" {
		j.report(olmcore.Info, ReasonGeneratedByStale, path, "the plan %s that generated this Subscription can bring nothing any more", name)
	} else {
		j.follows.waitFor(csv, plan, ReasonPlanAdopted, "InstallPlan "+name+" created this Subscription")
	}
}

// stillBrings returns the version that the plan which generated a Subscription brings, or brought, to it; empty for
// none.
func (j *judgement) stillBrings(plan *v1alpha1.InstallPlan) string {
	csv, stage := j.Subscription.Spec.StartingCSV, stageOf(plan)
	switch {
	case stage == StageFailed && j.failForward:
		return csv
	case stage == StageFailed || stage == StageUnknown || j.follows.installed != "":
	case stage == StageComplete:
		c := j.csvs[csv]
		if c == nil {
			c = j.replacements[csv]
		}
		if c != nil && !c.IsCopied() && csv != "" {
			return c.Name
		}
	case plan.DeletionTimestamp == nil:
		return csv
	}
	return ""
}

// bringer returns the newest plan that brings the version which a Subscription waits for, nil for none.
func (j *judgement) bringer(meets func(*v1alpha1.InstallPlan) bool) *v1alpha1.InstallPlan {
	return j.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Generation >= j.Subscription.Status.InstallPlanGeneration && slices.Contains(p.Spec.ClusterServiceVersionNames, j.follows.csv) && meets(p)
	})
}
