// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is the condition of a Subscription that shows a stage. The zero Condition
// is none.
type Condition struct {
	Type            v1alpha1.SubscriptionConditionType
	Reason, Message string
}

// ConditionOf returns the condition that shows a stage; none for NoPlan, Complete,
// Unverified and Unknown. plan is nil when it is not visible; its message is part of the
// condition.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// CheckInstallPlanStatus and InstallPlanNotFound. Differs: an unknown phase keeps what is
// published instead of counting as installed; an empty failure reason becomes
// InstallPlanFailed.
func ConditionOf(s Stage, plan *v1alpha1.InstallPlan) Condition {
	var c Condition
	switch s {
	case NotYetReconciled:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, v1alpha1.InstallPlanNotYetReconciled
	case Planning, RequiresApproval, Installing:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanPending, string(s)
	case Failed:
		c.Type, c.Reason = v1alpha1.SubscriptionInstallPlanFailed, FailureReason(plan)
	case Missing:
		return Condition{Type: v1alpha1.SubscriptionInstallPlanMissing, Reason: v1alpha1.ReferencedInstallPlanNotFound}
	default:
		return c
	}
	if plan != nil {
		c.Message = Message(plan)
	}
	return c
}

// rank orders the conditions about a plan: of several with one time the highest counts.
var rank = map[v1alpha1.SubscriptionConditionType]int{
	v1alpha1.SubscriptionInstallPlanPending: 1,
	v1alpha1.SubscriptionInstallPlanFailed:  2,
	v1alpha1.SubscriptionInstallPlanMissing: 3,
}

// IsAboutPlan reports whether a condition type shows the stage of a plan.
func IsAboutPlan(t v1alpha1.SubscriptionConditionType) bool { return rank[t] > 0 }

// Shown reads the stage that the conditions of a Subscription show, and since when; ok is
// false when they show none. The newest of several wins, then Missing, Failed, Pending.
func Shown(conditions []v1alpha1.SubscriptionCondition) (s Stage, since time.Time, ok bool) {
	var best *v1alpha1.SubscriptionCondition
	for i := range conditions {
		c := &conditions[i]
		if !IsAboutPlan(c.Type) || c.Status != corev1.ConditionTrue {
			continue
		}
		if best == nil || IsEarlier(best.LastTransitionTime, c.LastTransitionTime) ||
			rank[c.Type] > rank[best.Type] && !IsEarlier(c.LastTransitionTime, best.LastTransitionTime) {
			best = c
		}
	}
	if best == nil {
		return "", since, false
	}
	if best.LastTransitionTime != nil {
		since = best.LastTransitionTime.Time
	}
	switch {
	case best.Type == v1alpha1.SubscriptionInstallPlanMissing:
		return Missing, since, true
	case best.Type == v1alpha1.SubscriptionInstallPlanFailed:
		return Failed, since, true
	case best.Reason == v1alpha1.InstallPlanNotYetReconciled:
		return NotYetReconciled, since, true
	}
	switch s := Stage(best.Reason); s {
	case Planning, RequiresApproval, Installing:
		return s, since, true
	}
	return Unknown, since, true
}

// IsEarlier compares transition times; no time is earlier than any.
func IsEarlier(a, b *metav1.Time) bool { return !b.IsZero() && (a.IsZero() || a.Time.Before(b.Time)) }
