// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// What package installplan writes on plans.
const (
	// reasonSuperseded is the reason of condition Installed of a plan that is never
	// executed, because a later one took its place.
	reasonSuperseded = "Superseded"
	// conditionRetrying is the condition of a plan that failed for a passing reason and
	// is executed again by itself.
	conditionRetrying = "Retrying"
)

// Statusless reports whether a plan was created but never given its content, so that
// it never runs.
func Statusless(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseNone && len(p.Status.Plan) == 0 && len(p.Status.BundleLookups) == 0
}

// Over reports whether a plan is complete or failed.
func Over(p *v1alpha1.InstallPlan) bool {
	return p.Status.Phase == v1alpha1.InstallPlanPhaseComplete || p.Status.Phase == v1alpha1.InstallPlanPhaseFailed
}

// Installed returns the plan's Installed condition, nil when there is none or no plan.
func Installed(plan *v1alpha1.InstallPlan) *v1alpha1.InstallPlanCondition {
	if plan == nil {
		return nil
	}
	i := slices.IndexFunc(plan.Status.Conditions, func(c v1alpha1.InstallPlanCondition) bool {
		return c.Type == v1alpha1.InstallPlanInstalled
	})
	if i < 0 {
		return nil
	}
	return &plan.Status.Conditions[i]
}

// InstalledAt returns when the plan's Installed condition was last written, the zero
// time when it never was. The transition time would not do: it is kept when a plan runs
// again and ends the same way.
func InstalledAt(plan *v1alpha1.InstallPlan) time.Time {
	if c := Installed(plan); c != nil && c.LastUpdateTime != nil {
		return c.LastUpdateTime.Time
	}
	return time.Time{}
}

// Retried reports whether a plan that failed will be executed again by itself.
func Retried(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(plan.Status.Conditions, func(c v1alpha1.InstallPlanCondition) bool {
		return c.Type == conditionRetrying && c.Status == corev1.ConditionTrue
	})
}

// FailureReason returns why a plan failed.
func FailureReason(plan *v1alpha1.InstallPlan) string {
	if c := Installed(plan); c != nil && c.Status == corev1.ConditionFalse && c.Reason != "" {
		return string(c.Reason)
	}
	return v1alpha1.InstallPlanFailed
}

// Message is what a plan says about itself: its Installed condition, else the bundle
// lookups that are pending.
func Message(plan *v1alpha1.InstallPlan) string {
	if c := Installed(plan); c != nil && c.Message != "" && c.Status != corev1.ConditionUnknown {
		return c.Message
	}
	var texts []string
	for i := range plan.Status.BundleLookups {
		for _, c := range plan.Status.BundleLookups[i].Conditions {
			if c.Type == v1alpha1.BundleLookupPending && c.Status != corev1.ConditionUnknown && c.Message != "" {
				texts = append(texts, c.Message+".")
			}
		}
	}
	return strings.Join(texts, " ")
}

// ended reports whether the Installed condition is the one that a controller writes
// when a plan gets to its end.
func ended(plan *v1alpha1.InstallPlan, to Stage) bool {
	c := Installed(plan)
	switch {
	case c == nil:
		return false
	case to == Complete:
		return c.Status == corev1.ConditionTrue
	case to == Failed:
		return c.Status == corev1.ConditionFalse && c.Reason == v1alpha1.InstallPlanReasonComponentFailed
	}
	return false
}

// isSuperseded reports whether a plan was ended without having been executed, because
// another one took its place.
func isSuperseded(plan *v1alpha1.InstallPlan) bool {
	c := Installed(plan)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == reasonSuperseded
}

// hasFailed reports whether the plan carries the failure of an earlier try.
func hasFailed(plan *v1alpha1.InstallPlan) bool { return ended(plan, Failed) }

// SamePlan compares a reference with a plan, by UID where both have one, else by name.
func SamePlan(ref *corev1.ObjectReference, uid types.UID, name string) bool {
	return same(ref.UID, ref.Name, uid, name)
}

func same(uid types.UID, name string, otherUID types.UID, otherName string) bool {
	if uid != "" && otherUID != "" {
		return uid == otherUID
	}
	return name == otherName
}

// sameVersion compares more than the resourceVersion, which may not be known.
func sameVersion(a, b *v1alpha1.InstallPlan) bool {
	return a.ResourceVersion == b.ResourceVersion && a.Generation == b.Generation && a.Status.Phase == b.Status.Phase && InstalledAt(a).Equal(InstalledAt(b))
}

// isStale reports whether a version of a plan must be older than another one: the
// resourceVersions tell, and where they do not, what is in it.
func isStale(a, b *v1alpha1.InstallPlan) bool {
	if order, ok := compareVersions(a.ResourceVersion, b.ResourceVersion); ok && order != 0 {
		return order < 0
	}
	from, to := Of(a), Of(b)
	if from == Failed && to == Installing && hasFailed(b) && InstalledAt(a).Equal(InstalledAt(b)) {
		return true // b carries the failure that a is
	}
	return a.Generation < b.Generation || InstalledAt(a).Before(InstalledAt(b)) || from != to && Reachable(from, to) && !Reachable(to, from)
}

// compareVersions compares two resourceVersions of InstallPlans; ok is false where that
// cannot be done.
func compareVersions(a, b string) (order int, ok bool) {
	if a == "" || b == "" {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// isOlderVersion reports whether a resourceVersion is older than another one for certain.
func isOlderVersion(a, b string) bool {
	order, ok := compareVersions(a, b)
	return ok && order < 0
}

// Since returns the time from then to now, never a negative one: clocks go back.
func Since(then, now time.Time) time.Duration { return max(0, now.Sub(then)) }
