// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// want is what a condition should be. The zero want keeps it as it is: nothing is known that would change it.
type want struct {
	decided         bool
	status          corev1.ConditionStatus // empty: the condition is to be absent
	reason, message string
}

var absent = want{decided: true}

// present is a condition that is True.
func present(reason, message string) want {
	return want{decided: true, status: corev1.ConditionTrue, reason: reason, message: message}
}

// facts are what the conditions of a Subscription follow from. Each is nil or zero where nothing is known.
type facts struct {
	*Verdict
	// resolution, unpacking and unpackFailed are what the answer to a ResolveRequest says.
	resolution, unpacking, unpackFailed want
	catalogs                            catalogsHealth
	deprecation                         deprecation
}

// conditionRow is a condition that this package writes. Everything that happens to the condition follows from its row: it
// is written, counts as the library's own, its change is reported as a Transition of its type, and Events are made of that.
type conditionRow struct {
	Type v1alpha1.SubscriptionConditionType
	// From names the fact that decides, as the table in the package comment does.
	From string
	// Want computes it from the facts.
	Want func(f *facts) want
	// OfPlan: the Transitions of the plan's stage report it, not one of its own.
	OfPlan bool
	// OfCatalogs: no resolution looks at it, so none has to wait for its write.
	OfCatalogs bool
	// Warning: it is bad news when it is True.
	Warning bool
}

// conditionTable has every condition that this package writes, in the order in which they are added and reported.
var conditionTable = []conditionRow{
	{Type: v1alpha1.SubscriptionInstallPlanMissing, From: "InstallPlan", Want: ofStage(v1alpha1.SubscriptionInstallPlanMissing), OfPlan: true, Warning: true},
	{Type: v1alpha1.SubscriptionInstallPlanPending, From: "InstallPlan", Want: ofStage(v1alpha1.SubscriptionInstallPlanPending), OfPlan: true},
	{Type: v1alpha1.SubscriptionInstallPlanFailed, From: "InstallPlan", Want: ofStage(v1alpha1.SubscriptionInstallPlanFailed), OfPlan: true, Warning: true},
	{Type: v1alpha1.SubscriptionResolutionFailed, From: "resolution", Want: func(f *facts) want { return f.resolution }, Warning: true},
	{Type: v1alpha1.SubscriptionBundleUnpacking, From: "unpacking", Want: func(f *facts) want { return f.unpacking }},
	{Type: v1alpha1.SubscriptionBundleUnpackFailed, From: "unpacking", Want: func(f *facts) want { return f.unpackFailed }, Warning: true},
	{Type: v1alpha1.SubscriptionCatalogSourcesUnhealthy, From: "catalogs", Want: ofCatalogs, OfCatalogs: true, Warning: true},
	{Type: v1alpha1.SubscriptionPackageDeprecated, From: "catalog content", Want: func(f *facts) want { return f.deprecation.pkg }, OfCatalogs: true},
	{Type: v1alpha1.SubscriptionChannelDeprecated, From: "catalog content", Want: func(f *facts) want { return f.deprecation.channel }, OfCatalogs: true},
	{Type: v1alpha1.SubscriptionBundleDeprecated, From: "catalog content", Want: func(f *facts) want { return f.deprecation.bundle }, OfCatalogs: true},
	{Type: v1alpha1.SubscriptionDeprecated, From: "catalog content", Want: func(f *facts) want { return f.deprecation.all }, OfCatalogs: true},
}

// ofStage is the rule of a condition about the plan: at most one of the three is there, the one that shows the stage.
func ofStage(t v1alpha1.SubscriptionConditionType) func(*facts) want {
	return func(f *facts) want {
		if f.Plan.Shown == StageUnverified || f.Plan.Shown == StageUnknown {
			return want{}
		}
		if c := conditionOf(f.Plan.Shown, f.Plan.Plan); c.Type == t {
			return present(c.Reason, c.Message)
		}
		return absent
	}
}

func ofCatalogs(f *facts) want {
	if !f.catalogs.isKnown {
		return want{}
	}
	return f.catalogs.condition(f.Subscription.Spec)
}

// Conditions returns the types of the conditions that this package writes, in the order in which it adds them. All
// others belong to other writers and stay as they are.
func Conditions() []v1alpha1.SubscriptionConditionType {
	types := make([]v1alpha1.SubscriptionConditionType, len(conditionTable))
	for i, row := range conditionTable {
		types[i] = row.Type
	}
	return types
}

// IsWarning reports whether a Transition of a Subscription is bad news: a plan that failed or is missing, or a
// condition that says so and becomes True.
func IsWarning(t olmcore.Transition) bool {
	if t.Type == TransitionInstallPlan {
		return t.To == string(StageFailed) || t.To == string(StageMissing)
	}
	return t.Status == metav1.ConditionTrue && slices.ContainsFunc(conditionTable, func(r conditionRow) bool {
		return r.Warning && string(r.Type) == t.Type
	})
}

// conditions makes the conditions of the Verdict as the table wants them: those of other writers as they are, ours
// replaced in place, at most one of each type, the newest. The transition time moves when status, reason or message
// change. It returns the transitions of those that change, but for the plan's stage, and whether more changes than what
// is said of catalogs.
func (j *judgement) conditions(f *facts) (moved []olmcore.Transition, held bool) {
	have := j.Subscription.Status.Conditions
	ours, placed := make([]*v1alpha1.SubscriptionCondition, len(j.table)), make([]bool, len(j.table))
	isChanged := false
	for i, row := range j.table {
		before := newest(have, row.Type)
		after, w := before, row.Want(f)
		recorded := ""
		if before != nil {
			recorded = before.Message
		}
		w.message = printable.Keep(recorded, w.message)
		switch {
		case !w.decided:
			j.Kept = append(slices.Grow(j.Kept, len(j.table)-i), row.Type)
		case w.status == "":
			after = nil
		case before == nil || before.Status != w.status || before.Reason != w.reason || before.Message != w.message:
			after = &v1alpha1.SubscriptionCondition{
				Type: row.Type, Status: w.status, Reason: w.reason, Message: w.message, LastTransitionTime: new(olmcore.Timestamp(j.now)),
			}
		}
		if ours[i] = after; after != before {
			isChanged, held = true, held || !row.OfCatalogs
			if !row.OfPlan {
				moved = append(moved, conditionMoved(olmcore.Moved(olmcore.RefOf(j.Subscription), string(row.Type), "", "", j.now), before, after))
			}
		}
	}
	var list []v1alpha1.SubscriptionCondition
	for _, c := range have {
		i := slices.IndexFunc(j.table, func(row conditionRow) bool { return row.Type == c.Type })
		switch {
		case i < 0:
			list = append(list, c)
			continue
		case placed[i]:
			isChanged, held = true, true // a double condition goes
		case ours[i] != nil:
			list = append(list, *ours[i])
		}
		placed[i] = true
	}
	for i, c := range ours {
		if c != nil && !placed[i] {
			list = append(list, *c)
		}
	}
	if isChanged {
		j.Status.Conditions, j.Writes = list, true
	}
	return moved, held
}

// conditionMoved completes the transition of a condition; nil is none.
func conditionMoved(t olmcore.Transition, before, after *v1alpha1.SubscriptionCondition) olmcore.Transition {
	t.Bound = olmcore.NotAfter
	if before != nil {
		t.From = string(before.Status)
	}
	if after != nil {
		t.To, t.Status, t.Reason, t.Message = string(after.Status), metav1.ConditionStatus(after.Status), after.Reason, after.Message
	}
	return t
}

// newest returns the condition of a type with the latest transition time, the first of equals; nil when there is none.
func newest(have []v1alpha1.SubscriptionCondition, t v1alpha1.SubscriptionConditionType) *v1alpha1.SubscriptionCondition {
	var best *v1alpha1.SubscriptionCondition
	for i := range have {
		if have[i].Type == t && (best == nil || relation.Time(best.LastTransitionTime).Before(relation.Time(have[i].LastTransitionTime))) {
			best = &have[i]
		}
	}
	return best
}
