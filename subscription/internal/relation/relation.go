// SPDX-License-Identifier: Apache-2.0

// Package relation has the facts about InstallPlans, which Subscriptions they belong to, and how long an odd relation
// between objects may last.
package relation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// Grace is how long an odd relation may last before something is concluded from it: controllers that write one object
// after the other are on their way.
const Grace = 2 * time.Minute

const (
	// AnnotationGeneratedBy is on a Subscription that a plan's step created: the plan's name.
	AnnotationGeneratedBy = "olm.generated-by"
	// AnnotationContentHash is on a plan that package installplan made: the hash of what it brings.
	AnnotationContentHash = olmcore.KeyPrefix + "content-hash"

	// reasonSuperseded and conditionRetrying are what package installplan writes on a plan whose place a later one
	// took, and on one that failed for a passing reason.
	reasonSuperseded  = "Superseded"
	conditionRetrying = "Retrying"
)

// PlanConditions are the conditions of a Subscription about its plan: of several with one time the last one counts.
var PlanConditions = []v1alpha1.SubscriptionConditionType{
	v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed, v1alpha1.SubscriptionInstallPlanMissing,
}

// SamePlan compares a reference with a plan, by UID where both have one, else by name.
func SamePlan(ref *corev1.ObjectReference, uid types.UID, name string) bool {
	return Same(ref.UID, ref.Name, uid, name)
}

// Same compares two plans by UID where both have one, else by name.
func Same(uid types.UID, name string, otherUID types.UID, otherName string) bool {
	if uid != "" && otherUID != "" {
		return uid == otherUID
	}
	return name == otherName
}

// Refers reports whether status.installPlanRef of a Subscription names a plan.
func Refers(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	ref := s.Status.InstallPlanRef
	return ref != nil && ref.Name == p.Name && (ref.Namespace == "" || ref.Namespace == p.Namespace) && SamePlan(ref, p.UID, p.Name)
}

// Contributes reports whether a plan is for a Subscription: by reference, by its making, by what it brings, or as it
// says.
func Contributes(s *v1alpha1.Subscription, p *v1alpha1.InstallPlan) bool {
	return Refers(s, p) || s.Annotations[AnnotationGeneratedBy] == p.Name && s.Status.InstallPlanRef == nil ||
		!Over(p) && s.Status.CurrentCSV != "" && slices.Contains(p.Spec.ClusterServiceVersionNames, s.Status.CurrentCSV) ||
		slices.Contains(strings.Split(p.Annotations[plans.AnnotationContributors], ","), string(s.UID))
}

// Statusless reports whether a plan was created but never given its content, so that it never runs.
func Statusless(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0 && len(p.Status.BundleLookups) == 0
}

// HasInstalled reports whether a plan contains steps for a ClusterServiceVersion and has applied all of them.
func HasInstalled(p *v1alpha1.InstallPlan, csv string) bool {
	found := false
	for _, s := range p.Status.Plan {
		if s != nil && s.Resolving == csv {
			found = true
			if !olmcore.IsStepDone(s) {
				return false
			}
		}
	}
	return found
}

// Over reports whether a plan is complete or failed.
func Over(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

// Executed reports whether steps of a plan may have been applied.
func Executed(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseInstalling || Over(p) && (!IsSuperseded(p) || p.Status.StartTime != nil)
}

// Installed returns the plan's Installed condition, an Unknown one when there is none.
func Installed(p *v1alpha1.InstallPlan) v1alpha1.InstallPlanCondition {
	return p.Status.GetCondition(v1alpha1.InstallPlanInstalled)
}

// InstalledAt returns when the plan's Installed condition was last written, the zero time when it never was or there is
// no plan. The transition time would not do: it is kept when a plan runs again and ends the same way.
func InstalledAt(p *v1alpha1.InstallPlan) time.Time {
	if p == nil {
		return time.Time{}
	}
	return Time(Installed(p).LastUpdateTime)
}

// IsSuperseded reports whether a plan was ended without having been executed, because another one took its place.
func IsSuperseded(p *v1alpha1.InstallPlan) bool {
	c := Installed(p)
	return c.Status == corev1.ConditionFalse && c.Reason == reasonSuperseded
}

// HasFailed reports whether the plan carries a failure, maybe that of an earlier try.
func HasFailed(p *v1alpha1.InstallPlan) bool {
	c := Installed(p)
	return c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.InstallPlanReasonComponentFailed
}

// FailureReason returns why a plan failed.
func FailureReason(p *v1alpha1.InstallPlan) string {
	if c := Installed(p); c.Status == corev1.ConditionFalse && c.Reason != "" {
		return string(c.Reason)
	}
	return v1alpha1.InstallPlanFailed
}

// IsRetried reports whether a plan that failed will be executed again by itself.
func IsRetried(p *v1alpha1.InstallPlan) bool {
	return p.Status.GetCondition(conditionRetrying).Status == corev1.ConditionTrue
}

// Message returns what a plan says of itself: the message of its Installed condition, or which bundles are pending.
func Message(p *v1alpha1.InstallPlan) string {
	if c := Installed(p); c.Message != "" && c.Status != corev1.ConditionUnknown {
		return c.Message
	}
	var texts []string
	for _, lookup := range p.Status.BundleLookups {
		for _, c := range lookup.Conditions {
			if c.Type == v1alpha1.BundleLookupPending && c.Status != corev1.ConditionUnknown && c.Message != "" {
				texts = append(texts, c.Message+".")
			}
		}
	}
	return strings.Join(texts, " ")
}

// Time returns a time that may not be there; the zero one then.
func Time(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Latest returns the latest of some times.
func Latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// Writable reports whether an object stays and can be addressed safely.
func Writable(o olmcore.Object) bool {
	return o.GetDeletionTimestamp() == nil && o.GetUID() != "" && o.GetResourceVersion() != ""
}

// ByName indexes the objects of one namespace.
func ByName[O olmcore.Object](list []O) map[string]O {
	index := make(map[string]O, len(list))
	for _, o := range list {
		index[o.GetName()] = o
	}
	return index
}

// Sorted returns objects by namespace and name.
func Sorted[O olmcore.Object](list []O) []O {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b O) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return list
}

// Mirrors reports whether status.installplan repeats status.installPlanRef.
func Mirrors(install *v1alpha1.InstallPlanReference, ref *corev1.ObjectReference) bool {
	if install == nil || ref == nil {
		return install == nil && ref == nil
	}
	return *install == *v1alpha1.NewInstallPlanReference(ref)
}

// ValidateNames returns an *olmcore.InputError for a list of objects of any kind of which one is nil or has no name.
func ValidateNames(field string, list []olmcore.Object) error {
	for i, o := range list {
		if olmcore.KeyOf(o).Name == "" {
			return &olmcore.InputError{Field: fmt.Sprintf("%s[%d]", field, i), Problem: "is nil or has no name"}
		}
	}
	return nil
}

// Names returns the names of objects, sorted and joined.
func Names[O olmcore.Object](list []O) string {
	names := make([]string, len(list))
	for i, o := range Sorted(list) {
		names[i] = o.GetName()
	}
	return strings.Join(names, ", ")
}
