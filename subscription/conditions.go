// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// wish is what the conditions of one group should be: as they are (keep), none
// (the zero wish), or one that is True, or False when it is off.
type wish struct {
	keep            bool
	off             bool // the status is False
	conditionType   v1alpha1.SubscriptionConditionType
	reason, message string
}

// The conditions that this package writes belong to groups. A group shows at
// most one condition of a wish; the order is that in which new ones are added.
type group uint8

const (
	groupOther group = iota
	groupPlan
	groupResolution
	groupUnpack
	groupHealth
	groupDeprecation
)

// ourTypes are the conditions that this package writes.
var ourTypes = [...]v1alpha1.SubscriptionConditionType{
	v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed,
	v1alpha1.SubscriptionResolutionFailed, v1alpha1.SubscriptionBundleUnpacking, v1alpha1.SubscriptionBundleUnpackFailed,
	v1alpha1.SubscriptionCatalogSourcesUnhealthy, v1alpha1.SubscriptionPackageDeprecated, v1alpha1.SubscriptionChannelDeprecated,
	v1alpha1.SubscriptionBundleDeprecated, v1alpha1.SubscriptionDeprecated,
}

func groupOf(t v1alpha1.SubscriptionConditionType) group {
	switch t {
	case v1alpha1.SubscriptionInstallPlanMissing, v1alpha1.SubscriptionInstallPlanPending, v1alpha1.SubscriptionInstallPlanFailed:
		return groupPlan
	case v1alpha1.SubscriptionResolutionFailed:
		return groupResolution
	case v1alpha1.SubscriptionBundleUnpacking, v1alpha1.SubscriptionBundleUnpackFailed:
		return groupUnpack
	case v1alpha1.SubscriptionCatalogSourcesUnhealthy:
		return groupHealth
	case v1alpha1.SubscriptionPackageDeprecated, v1alpha1.SubscriptionChannelDeprecated,
		v1alpha1.SubscriptionBundleDeprecated, v1alpha1.SubscriptionDeprecated:
		return groupDeprecation
	}
	return groupOther
}

func (d *verdict) wishFor(g group, t v1alpha1.SubscriptionConditionType) wish {
	switch g {
	case groupPlan:
		return d.stage
	case groupResolution:
		return d.resolution
	case groupUnpack:
		return d.unpack
	case groupHealth:
		return d.health
	case groupDeprecation:
		return d.deprecation.wish(t)
	}
	return wish{keep: true}
}

// conditionsDiffer reports whether conditions would return another list, without
// making one. It is a good part of what a Subscription costs that nothing happens
// to, so it looks at each condition once.
func (d *verdict) conditionsDiffer() bool {
	have := d.sub.Status.Conditions
	found := 0
	for i := range have {
		c := &have[i]
		var w *wish
		switch groupOf(c.Type) {
		case groupPlan:
			w = &d.stage
		case groupResolution:
			w = &d.resolution
		case groupUnpack:
			w = &d.unpack
		case groupHealth:
			w = &d.health
		case groupDeprecation:
			if d.deprecation.judged && !d.deprecation.grants(c) || first(have, c.Type) != i {
				return true
			}
			continue
		default:
			continue
		}
		if first(have, c.Type) != i {
			return true // one of the two goes
		}
		if w.keep {
			continue
		}
		if !w.is(c) {
			return true
		}
		found++
	}
	wanted := d.stage.count() + d.resolution.count() + d.unpack.count() + d.health.count()
	return found < wanted || d.deprecation.judged && d.deprecation.lacks(have)
}

// conditions returns the wanted list: other writers' conditions as they are,
// ours replaced in place, at most one of each type. The transition time moves
// when status, reason or message change.
func (d *verdict) conditions(now time.Time) []v1alpha1.SubscriptionCondition {
	have := d.sub.Status.Conditions
	var out []v1alpha1.SubscriptionCondition
	for i := range have {
		g := groupOf(have[i].Type)
		if g == groupOther {
			out = append(out, *have[i].DeepCopy())
			continue
		}
		w := d.wishFor(g, have[i].Type)
		if i != first(have, have[i].Type) || !w.keep && w.conditionType != have[i].Type {
			continue
		}
		c := have[newest(have, have[i].Type)].DeepCopy()
		if !w.keep && !w.is(c) {
			*c = w.condition(now)
		}
		out = append(out, *c)
	}
	wishes := [...]wish{
		d.stage, d.resolution, d.unpack, d.health, d.deprecation.wish(v1alpha1.SubscriptionPackageDeprecated),
		d.deprecation.wish(v1alpha1.SubscriptionChannelDeprecated), d.deprecation.wish(v1alpha1.SubscriptionBundleDeprecated),
		d.deprecation.wish(v1alpha1.SubscriptionDeprecated),
	}
	for i := range wishes {
		if w := &wishes[i]; w.lacks(out) {
			out = append(out, w.condition(now))
		}
	}
	return out
}

func (w *wish) is(c *v1alpha1.SubscriptionCondition) bool {
	return c.Type == w.conditionType && c.Reason == w.reason && c.Message == w.message && c.Status == w.status()
}

// count returns how many conditions are to be there, 0 or 1.
func (w *wish) count() int {
	if w.keep || w.conditionType == "" {
		return 0
	}
	return 1
}

func (w *wish) status() corev1.ConditionStatus {
	if w.off {
		return corev1.ConditionFalse
	}
	return corev1.ConditionTrue
}

func (w *wish) lacks(have []v1alpha1.SubscriptionCondition) bool {
	return !w.keep && w.conditionType != "" && first(have, w.conditionType) < 0
}

func (w *wish) condition(now time.Time) v1alpha1.SubscriptionCondition {
	return v1alpha1.SubscriptionCondition{
		Type: w.conditionType, Status: w.status(), Reason: w.reason, Message: w.message,
		LastTransitionTime: new(olmcore.Timestamp(now)),
	}
}

func first(have []v1alpha1.SubscriptionCondition, t v1alpha1.SubscriptionConditionType) int {
	for i := range have {
		if have[i].Type == t {
			return i
		}
	}
	return -1
}

// newest returns the position of the condition of a type with the latest
// transition time, the first of equals; -1 when there is none.
func newest(have []v1alpha1.SubscriptionCondition, t v1alpha1.SubscriptionConditionType) int {
	best := -1
	for i := range have {
		if have[i].Type == t && (best < 0 || isEarlier(have[best].LastTransitionTime, have[i].LastTransitionTime)) {
			best = i
		}
	}
	return best
}

// isEarlier compares transition times; no time is earlier than any.
func isEarlier(a, b *metav1.Time) bool { return !b.IsZero() && (a.IsZero() || a.Time.Before(b.Time)) }

// wishOf returns the InstallPlan condition that shows a stage. plan is nil when
// it is not visible.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/subscription,
// CheckInstallPlanStatus and InstallPlanNotFound. Differs: an unknown phase
// keeps what is published instead of counting as installed; an empty failure
// reason becomes InstallPlanFailed.
func wishOf(stage Stage, plan *v1alpha1.InstallPlan, isNow bool) wish {
	var w wish
	switch stage {
	case StageNotYetReconciled:
		w.conditionType, w.reason = v1alpha1.SubscriptionInstallPlanPending, v1alpha1.InstallPlanNotYetReconciled
	case StagePlanning, StageRequiresApproval, StageInstalling:
		w.conditionType, w.reason = v1alpha1.SubscriptionInstallPlanPending, string(stage)
	case StageFailed:
		w.conditionType, w.reason = v1alpha1.SubscriptionInstallPlanFailed, failureReason(plan)
	case StageMissing:
		return wish{conditionType: v1alpha1.SubscriptionInstallPlanMissing, reason: v1alpha1.ReferencedInstallPlanNotFound}
	case StageUnknown, StageUnverified:
		return wish{keep: true}
	default:
		return w
	}
	if plan != nil && isNow {
		w.message = planMessage(plan)
	}
	return w
}

func failureReason(plan *v1alpha1.InstallPlan) string {
	if c := installed(plan); c != nil && c.Status == corev1.ConditionFalse && c.Reason != "" {
		return string(c.Reason)
	}
	return v1alpha1.InstallPlanFailed
}

// planMessage is what a plan says about itself: its Installed condition, else
// the bundle lookups that are pending.
func planMessage(plan *v1alpha1.InstallPlan) string {
	if c := installed(plan); c != nil && c.Message != "" && c.Status != corev1.ConditionUnknown {
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

// installed returns the plan's Installed condition, nil when there is none.
func installed(plan *v1alpha1.InstallPlan) *v1alpha1.InstallPlanCondition {
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

// installedAt returns when the plan's Installed condition was last written, the
// zero time when it never was. The transition time would not do: it is kept when
// a plan runs again and ends the same way.
func installedAt(plan *v1alpha1.InstallPlan) time.Time {
	if c := installed(plan); c != nil && c.LastUpdateTime != nil {
		return c.LastUpdateTime.Time
	}
	return time.Time{}
}

// showsPlan reports whether there is a condition about a plan, True or not.
func showsPlan(have []v1alpha1.SubscriptionCondition) bool {
	for i := range have {
		if groupOf(have[i].Type) == groupPlan {
			return true
		}
	}
	return false
}

// shownStage reads the stage that the conditions show; ok is false when they
// show none. The newest of several wins, then Missing, Failed, Pending.
func shownStage(have []v1alpha1.SubscriptionCondition) (stage Stage, since time.Time, ok bool) {
	best, rank := -1, 0
	for i := range have {
		r := 0
		switch have[i].Type {
		case v1alpha1.SubscriptionInstallPlanMissing:
			r = 3
		case v1alpha1.SubscriptionInstallPlanFailed:
			r = 2
		case v1alpha1.SubscriptionInstallPlanPending:
			r = 1
		}
		if r == 0 || have[i].Status != corev1.ConditionTrue {
			continue
		}
		if best < 0 || isEarlier(have[best].LastTransitionTime, have[i].LastTransitionTime) ||
			r > rank && !isEarlier(have[i].LastTransitionTime, have[best].LastTransitionTime) {
			best, rank = i, r
		}
	}
	if best < 0 {
		return "", since, false
	}
	if t := have[best].LastTransitionTime; t != nil {
		since = t.Time
	}
	switch rank {
	case 3:
		return StageMissing, since, true
	case 2:
		return StageFailed, since, true
	}
	switch reason := have[best].Reason; reason {
	case v1alpha1.InstallPlanNotYetReconciled:
		return StageNotYetReconciled, since, true
	case string(StagePlanning), string(StageRequiresApproval), string(StageInstalling):
		return Stage(reason), since, true
	}
	return StageUnknown, since, true
}
