// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/planhistory"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// want is a desired condition. The zero value leaves the condition as it is, because nothing is known that would
// change it.
type want struct {
	decided         bool
	status          corev1.ConditionStatus // empty: the condition should be absent
	reason, message string
}

var absent = want{decided: true}

// present returns a condition that is True.
func present(reason, message string) want {
	return want{decided: true, status: corev1.ConditionTrue, reason: reason, message: message}
}

// conditionFacts is what the conditions of a Subscription follow from. Fields are zero if nothing is known. It is
// read-only.
type conditionFacts struct {
	spec *v1alpha1.SubscriptionSpec
	// shown is the stage that the conditions should show, and plan the InstallPlan, if it is visible.
	shown Stage
	plan  *v1alpha1.InstallPlan
	csv   *v1alpha1.ClusterServiceVersion
	// resolution, unpacking and unpackFailed are the conditions that follow from the answer to a ResolveRequest.
	resolution, unpacking, unpackFailed want
	catalogs                            catalogFacts
}

// catalogFacts is what is known of the catalogs of a Subscription.
type catalogFacts struct {
	health      catalogsHealth
	deprecation deprecation
}

// conditionChanges is what becomes of the conditions of a Subscription.
type conditionChanges struct {
	list    []v1alpha1.SubscriptionCondition // all conditions, of other writers too
	changed bool
	// deferResolution means that a condition changed that a resolution reads.
	deferResolution bool
	// resolutionFails means that ResolutionFailed should be set.
	resolutionFails bool
	// transitions are the changes, except those of the stage of the InstallPlan.
	transitions []olmcore.Transition
	// kept are the types of the conditions that stay because nothing is known that would change them.
	kept []v1alpha1.SubscriptionConditionType
}

// conditionRow is a condition that this package writes. A condition needs only its row: the row says when it is
// written, and its changes are reported as Transitions of its type, from which Events are made.
type conditionRow struct {
	Type v1alpha1.SubscriptionConditionType
	// From names the fact that decides, as in the table of the package comment.
	From string
	// Want returns the desired condition.
	Want func(f *conditionFacts) want
	// OfPlan means that it shows the stage of the InstallPlan, whose Transitions report it.
	OfPlan bool
	// OfCatalogs means that no resolution reads it, so that a resolution does not have to wait until it is written.
	OfCatalogs bool
	// Warning means that True is a problem.
	Warning bool
}

// conditionTable contains every condition that this package writes, in the order in which they are added and reported.
var conditionTable = []conditionRow{
	{
		Type: v1alpha1.SubscriptionInstallPlanMissing, From: "InstallPlan", OfPlan: true, Warning: true,
		Want: ofStage(v1alpha1.SubscriptionInstallPlanMissing),
	},
	{
		Type: v1alpha1.SubscriptionInstallPlanPending, From: "InstallPlan", OfPlan: true,
		Want: ofStage(v1alpha1.SubscriptionInstallPlanPending),
	},
	{
		Type: v1alpha1.SubscriptionInstallPlanFailed, From: "InstallPlan", OfPlan: true, Warning: true,
		Want: ofStage(v1alpha1.SubscriptionInstallPlanFailed),
	},
	{
		Type: v1alpha1.SubscriptionResolutionFailed, From: "resolution", Warning: true,
		Want: func(f *conditionFacts) want { return f.resolution },
	},
	{
		Type: v1alpha1.SubscriptionBundleUnpacking, From: "unpacking",
		Want: func(f *conditionFacts) want { return f.unpacking },
	},
	{
		Type: v1alpha1.SubscriptionBundleUnpackFailed, From: "unpacking", Warning: true,
		Want: func(f *conditionFacts) want { return f.unpackFailed },
	},
	{
		Type: v1alpha1.SubscriptionCatalogSourcesUnhealthy, From: "catalogs", OfCatalogs: true, Warning: true,
		Want: ofCatalogs,
	},
	{
		Type: v1alpha1.SubscriptionPackageDeprecated, From: "catalog content", OfCatalogs: true,
		Want: func(f *conditionFacts) want { return f.catalogs.deprecation.pkg },
	},
	{
		Type: v1alpha1.SubscriptionChannelDeprecated, From: "catalog content", OfCatalogs: true,
		Want: func(f *conditionFacts) want { return f.catalogs.deprecation.channel },
	},
	{
		Type: v1alpha1.SubscriptionBundleDeprecated, From: "catalog content", OfCatalogs: true,
		Want: func(f *conditionFacts) want { return f.catalogs.deprecation.bundle },
	},
	{
		Type: v1alpha1.SubscriptionDeprecated, From: "catalog content", OfCatalogs: true,
		Want: func(f *conditionFacts) want { return f.catalogs.deprecation.all },
	},
}

// ofStage returns the rule for a condition about the InstallPlan. At most one of the three is set: the one that
// shows the stage.
func ofStage(t v1alpha1.SubscriptionConditionType) func(*conditionFacts) want {
	return func(f *conditionFacts) want {
		if f.shown == StageUnverified || f.shown == StageUnknown {
			return want{}
		}
		if c := planhistory.Condition(f.shown, f.plan); c.Type == t {
			return present(c.Reason, c.Message)
		}
		return absent
	}
}

func ofCatalogs(f *conditionFacts) want {
	if !f.catalogs.health.isKnown {
		return want{}
	}
	return f.catalogs.health.condition(f.spec)
}

// Conditions returns the types of the conditions that this package writes, in the order in which it adds them. This
// package does not change other conditions.
func Conditions() []v1alpha1.SubscriptionConditionType {
	types := make([]v1alpha1.SubscriptionConditionType, len(conditionTable))
	for i, row := range conditionTable {
		types[i] = row.Type
	}
	return types
}

// IsWarning reports whether a Transition of a Subscription reports a problem: an InstallPlan that failed or is missing,
// or a condition for a problem that is True.
func IsWarning(t olmcore.Transition) bool {
	if t.Type == TransitionInstallPlan {
		return t.To == string(StageFailed) || t.To == string(StageMissing)
	}
	return t.Status == metav1.ConditionTrue && slices.ContainsFunc(conditionTable, func(r conditionRow) bool {
		return r.Warning && string(r.Type) == t.Type
	})
}

// conditionFactsOf returns what the conditions of a Subscription follow from.
func conditionFactsOf(f *facts, d draft, shown Stage) *conditionFacts {
	known := &conditionFacts{spec: f.sub.Spec, shown: shown, plan: d.plan.Plan, csv: d.csv, catalogs: catalogFactsOf(f, d)}
	known.resolution, known.unpacking, known.unpackFailed = answeredConditions(f)
	return known
}

// setConditions sets the conditions.
func setConditions(d draft, changes *conditionChanges) draft {
	if changes.changed {
		d.status.Conditions = changes.list
	}
	return d
}

// changeConditions returns the conditions that the Subscription should have. Those of other writers stay as they
// are. Those of the table are replaced in place, and only the newest of each type stays.
func changeConditions(f *facts, known *conditionFacts) (c conditionChanges) {
	c.resolutionFails = known.resolution.status != ""
	observed := f.sub.Status.Conditions
	desired := make([]*v1alpha1.SubscriptionCondition, len(f.n.table)) // nil: absent
	for i, row := range f.n.table {
		before, w := newest(observed, row.Type), row.Want(known)
		desired[i] = w.apply(row.Type, before, f.n.now)
		if !w.decided {
			c.kept = append(slices.Grow(c.kept, len(f.n.table)-i), row.Type)
		}
		if desired[i] == before {
			continue
		}
		c.changed = true
		c.deferResolution = c.deferResolution || !row.OfCatalogs
		if !row.OfPlan {
			t := olmcore.Moved(olmcore.RefOf(f.sub), string(row.Type), "", "", f.n.now)
			c.transitions = append(c.transitions, conditionMoved(t, before, desired[i]))
		}
	}
	list, hasDuplicates := placeConditions(f.n.table, observed, desired)
	if hasDuplicates {
		c.changed, c.deferResolution = true, true
	}
	c.list = list
	return c
}

// apply returns the desired condition. It is the condition before if that one is the same, so that the transition time
// only changes with the status, the reason or the message.
func (w want) apply(
	t v1alpha1.SubscriptionConditionType, before *v1alpha1.SubscriptionCondition, now time.Time,
) *v1alpha1.SubscriptionCondition {
	switch {
	case !w.decided:
		return before
	case w.status == "":
		return nil
	}
	recorded := ""
	if before != nil {
		recorded = before.Message
	}
	message := printable.Keep(recorded, w.message)
	if before != nil && before.Status == w.status && before.Reason == w.reason && before.Message == message {
		return before
	}
	return &v1alpha1.SubscriptionCondition{
		Type: t, Status: w.status, Reason: w.reason, Message: message, LastTransitionTime: new(olmcore.Timestamp(now)),
	}
}

// placeConditions returns the observed conditions with those of the table replaced by the desired ones. New
// conditions are added at the end. hasDuplicates reports whether a type of the table was observed more than once.
func placeConditions(
	table []conditionRow, observed []v1alpha1.SubscriptionCondition, desired []*v1alpha1.SubscriptionCondition,
) (list []v1alpha1.SubscriptionCondition, hasDuplicates bool) {
	placed := make([]bool, len(table))
	for _, c := range observed {
		i := slices.IndexFunc(table, func(row conditionRow) bool { return row.Type == c.Type })
		switch {
		case i < 0:
			list = append(list, c)
			continue
		case placed[i]:
			hasDuplicates = true
		case desired[i] != nil:
			list = append(list, *desired[i])
		}
		placed[i] = true
	}
	for i, c := range desired {
		if c != nil && !placed[i] {
			list = append(list, *c)
		}
	}
	return list, hasDuplicates
}

// conditionMoved returns the Transition of a condition, completed. before and after are nil if the condition is absent.
func conditionMoved(t olmcore.Transition, before, after *v1alpha1.SubscriptionCondition) olmcore.Transition {
	t.Bound = olmcore.NotAfter
	if before != nil {
		t.From = string(before.Status)
	}
	if after != nil {
		t.To = string(after.Status)
		t.Status = metav1.ConditionStatus(after.Status)
		t.Reason = after.Reason
		t.Message = after.Message
	}
	return t
}

// newest returns the condition of a type with the latest transition time, or nil. The first one is used if several
// have that time.
func newest(have []v1alpha1.SubscriptionCondition, t v1alpha1.SubscriptionConditionType) *v1alpha1.SubscriptionCondition {
	var best *v1alpha1.SubscriptionCondition
	for i := range have {
		if have[i].Type == t && (best == nil || relation.Time(best.LastTransitionTime).Before(relation.Time(have[i].LastTransitionTime))) {
			best = &have[i]
		}
	}
	return best
}
