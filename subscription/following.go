// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
	"github.com/olmcore/olm/subscription/internal/stage"
)

// following is what a Subscription follows: a plan, and the version that it brings.
type following struct {
	sub        *v1alpha1.Subscription
	ref        *corev1.ObjectReference
	csv        string
	installed  string
	state      v1alpha1.SubscriptionState
	generation int
	// cause says why this is another plan or version than the status has; zero where it
	// is not.
	cause olmcore.Cause
}

// recorded is what the status says.
func recorded(s *v1alpha1.Subscription) following {
	return following{
		sub: s, ref: s.Status.InstallPlanRef, csv: s.Status.CurrentCSV, installed: s.Status.InstalledCSV,
		state: s.Status.State, generation: s.Status.InstallPlanGeneration,
	}
}

// isMoved reports whether the Subscription is to refer to another plan, or to none any
// more.
func (f following) isMoved() bool { return f.ref != f.sub.Status.InstallPlanRef }

// to makes the Subscription refer to an observed plan.
func (f following) to(p *v1alpha1.InstallPlan) following {
	if have := f.sub.Status.InstallPlanRef; have != nil && have.Name == p.Name && have.UID == p.UID && have.Namespace == p.Namespace {
		f.ref = have
	} else {
		f.ref = &corev1.ObjectReference{
			APIVersion: v1alpha1.InstallPlanAPIVersion, Kind: v1alpha1.InstallPlanKind,
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
		}
	}
	return f
}

// waitingFor makes the Subscription wait for a version that a plan brings.
func (f following) waitingFor(csv string, p *v1alpha1.InstallPlan, reason, message string) following {
	f = f.to(p)
	f.csv, f.state, f.generation = csv, v1alpha1.SubscriptionStateUpgradePending, max(f.generation, p.Spec.Generation)
	f.cause = olmcore.Cause{Reason: reason, Message: message}
	return f
}

// forgotten makes the Subscription forget its plan, so that the namespace is resolved
// again.
func (f following) forgotten() following {
	f.ref, f.csv, f.state = nil, "", v1alpha1.SubscriptionStateNone
	f.cause = olmcore.Cause{Reason: ReasonReferenceCleared, Message: "the referenced InstallPlan cannot bring the operator any more"}
	return f
}

// answered is what a Subscription follows once the answer is carried out.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// syncResolvingNamespace. Differs: the reference is written before the plan has
// content, so no plan runs ahead of it; the conditions go from every
// Subscription as soon as the resolution succeeded.
func (n *namespace) answered(s *v1alpha1.Subscription) following {
	f, a := recorded(s), &n.answer
	d, decided := a.decisions[s.Name]
	switch {
	case n.blocked != "", a.failed, a.speaks && (!decided || d.Failure != nil):
		return f
	case !a.applies || s.DeletionTimestamp != nil || !d.Changed || d.CurrentCSV == "":
		return n.caughtUp(f)
	case a.plan == nil:
		f.csv = d.CurrentCSV
		return f
	case s.Status.CurrentCSV == d.CurrentCSV && s.Status.InstallPlanRef != nil && stage.SamePlan(s.Status.InstallPlanRef, a.plan.UID, a.plan.Name):
		return f // carried out
	}
	return f.waitingFor(d.CurrentCSV, a.plan, ReasonReferenceWritten, "InstallPlan "+a.plan.Name+" brings "+d.CurrentCSV)
}

// caughtUp moves a Subscription that waits for a version to the plan of the answer when
// that one brings the version too and the plan that it refers to does not run: one that
// never got its content, one that waits for its approval, one that failed. No later
// resolution decides about it again, and of two plans that wait the newer one has what
// the older one may not have any more: the versions of all others.
func (n *namespace) caughtUp(f following) following {
	plan, ref := n.answer.plan, f.sub.Status.InstallPlanRef
	if plan == nil || !n.answer.applies || ref == nil || f.csv == "" || f.sub.DeletionTimestamp != nil ||
		stage.SamePlan(ref, plan.UID, plan.Name) || !slices.Contains(plan.Spec.ClusterServiceVersionNames, f.csv) {
		return f
	}
	old := n.plans.ByName[ref.Name]
	if old == nil || !stage.SamePlan(ref, old.UID, old.Name) {
		return f
	}
	why := n.overtaken(old, f.csv)
	if why == "" {
		return f
	}
	return f.waitingFor(f.csv, plan, ReasonReferenceWritten, "InstallPlan "+plan.Name+" brings "+f.csv+" instead of "+ref.Name+", which "+why)
}

// overtaken says why the plan of the answer takes the place of an older one that was to
// bring the same version; empty when it does not.
func (n *namespace) overtaken(old *v1alpha1.InstallPlan, csv string) string {
	plan := n.answer.plan
	if stage.Statusless(old) {
		return "never got its steps"
	}
	if !n.answer.speaks || stage.Over(plan) || plan.Spec.Generation <= old.Spec.Generation || n.csvs[csv] != nil {
		return ""
	}
	switch s := stage.Of(old); {
	case s == StageFailed:
		return "failed"
	case (s == StageNotYetReconciled || s == StageRequiresApproval) && !old.Spec.Approved: // else it is about to run
		return "is older and waits for its approval"
	}
	return ""
}

// adopted makes a Subscription that a plan's step created, and that refers to no plan,
// refer to that one; what it says instead is why not.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog,
// ensureSubscriptionInstallPlanState. Differs: a plan that can bring nothing any
// more is not adopted, and one that is not there stops no other Subscription.
func (n *namespace) adopted(f following) (following, []olmcore.Diagnostic) {
	name := f.sub.Annotations[relation.AnnotationGeneratedBy]
	if f.sub.Status.Install != nil || f.sub.DeletionTimestamp != nil || name == "" {
		return f, nil
	}
	why := func(reason, format string) []olmcore.Diagnostic {
		return []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Info, reason, olmcore.RefOf(f.sub), "metadata.annotations", format, name)}
	}
	plan := n.plans.ByName[name]
	if plan == nil {
		return f, why(ReasonGeneratedByDangling, "the plan %s that generated this Subscription is not there")
	}
	csv := n.stillBrings(plan, f)
	if csv == "" {
		return f, why(ReasonGeneratedByStale, "the plan %s that generated this Subscription can bring nothing any more")
	}
	return f.waitingFor(csv, plan, ReasonPlanAdopted, "InstallPlan "+name+" created this Subscription"), nil
}

// stillBrings returns the version that the plan which generated a Subscription brings, or
// brought, to it; empty for none.
func (n *namespace) stillBrings(plan *v1alpha1.InstallPlan, f following) string {
	csv := f.sub.Spec.StartingCSV
	switch stage.Of(plan) {
	case StageNotYetReconciled, StagePlanning, StageRequiresApproval, StageInstalling:
		if f.installed == "" && plan.DeletionTimestamp == nil {
			return csv
		}
	case StageFailed:
		if n.failForward {
			return csv
		}
	case StageComplete:
		c := n.csvs[csv]
		if c == nil {
			c = n.replacements[csv]
		}
		if f.installed == "" && c != nil && !c.IsCopied() && csv != "" {
			return c.Name
		}
	}
	return ""
}

// bringer returns the newest plan that brings a version, nil for none.
func (n *namespace) bringer(s *v1alpha1.Subscription, csv string) *v1alpha1.InstallPlan {
	return n.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Generation >= s.Status.InstallPlanGeneration && slices.Contains(p.Spec.ClusterServiceVersionNames, csv)
	})
}

// laterPlan returns the newest plan of this Subscription that brings the version which it
// waits for, made after the one that is missing; nil for none. Without a reference to
// it the version would be installed all the same, and without a Subscription.
func (n *namespace) laterPlan(f following) *v1alpha1.InstallPlan {
	return n.newestPlan(func(p *v1alpha1.InstallPlan) bool {
		return p.Spec.Generation >= f.sub.Status.InstallPlanGeneration && !stage.SamePlan(f.ref, p.UID, p.Name) &&
			slices.Contains(p.Spec.ClusterServiceVersionNames, f.csv) &&
			slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == f.sub.UID })
	})
}
