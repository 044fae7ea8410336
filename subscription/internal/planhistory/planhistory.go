// SPDX-License-Identifier: Apache-2.0

// Package planhistory follows the InstallPlan that a Subscription references. It decides in which stage the
// InstallPlan is, although caches may be stale and clocks may differ, and through which stages it went since the
// last call.
//
// A caller decides between two calls: which InstallPlan the Subscription should reference depends on the stage, and the
// transitions depend on that decision.
//
//	past := snapshot.Recall(subscription, history)   what is known from before
//	seen := snapshot.Observe(past, reference)        the stage of an InstallPlan
//	...                                              the caller decides about the Subscription
//	report := snapshot.Report(past, seen, decision)  what to publish, report and remember
//
// No function changes its arguments. Pointers only avoid copies.
package planhistory

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

const (
	// Recheck is the time after which an object is read again if its observed version may come from a stale cache.
	Recheck = time.Second
	// unknownPhaseRecheck is the time until an InstallPlan with an unknown phase is read again.
	unknownPhaseRecheck = 5 * time.Minute
)

// Snapshot contains the observed InstallPlans of a namespace. It is read-only, and all Subscriptions share it.
type Snapshot struct {
	Now       time.Time
	Namespace string
	// Plans contains the InstallPlans by name.
	Plans  map[string]*v1alpha1.InstallPlan
	Window Window
	// Grace is the grace period: the time for which a cache may be stale.
	Grace time.Duration
	// Live means that Plans was read from the API server and not from a cache. If an InstallPlan is not in Plans, it does
	// not exist.
	Live bool
	// KeepsHistories means that the caller stores histories and passes them to the next call.
	KeepsHistories bool
}

// Past contains the facts about one Subscription that were recorded before this call.
type Past struct {
	// Subscription is the observed Subscription.
	Subscription *v1alpha1.Subscription
	History      History
	// Remembers means that History contains the stage that was reported last.
	Remembers bool
	// Shown is the stage that the observed conditions show, or empty if they show none. ShownSince is the
	// lastTransitionTime of the condition that shows the stage.
	Shown      Stage
	ShownSince time.Time
	// Outlived means that the observed status records the version of the InstallPlan as installed.
	Outlived bool
}

// State is the state of the InstallPlan that a Subscription references. It has the fields of subscription.PlanState.
type State struct {
	// Stage is the observed stage of the InstallPlan.
	Stage Stage
	// Shown is the stage that the conditions of the Subscription should show. If Shown is StageUnverified or StageUnknown,
	// the conditions are not changed.
	Shown Stage
	// Recorded is the stage that the observed conditions show, or empty if they show none. RecordedAt is the
	// lastTransitionTime of the condition that shows the stage.
	Recorded   Stage
	RecordedAt time.Time
	// Plan is the InstallPlan. It is nil if the InstallPlan is not visible.
	Plan *v1alpha1.InstallPlan
	// UID and Name identify the InstallPlan. If the InstallPlan is not visible, they are copied from the reference.
	UID  types.UID
	Name string
	// Invalid means that the reference cannot name an InstallPlan of this namespace: it has no name, or it has another
	// kind or namespace.
	Invalid bool
	// Replaced means that the visible InstallPlan has another UID than the reference.
	Replaced bool
	// Lasting means that the InstallPlan has been missing for longer than the grace period, or that Proven is true.
	Lasting bool
	// Proven means that the InstallPlan does not exist. Either its deletion was observed, or the API server did not list
	// it.
	Proven bool
	// Outlived means that, according to the observed status, the InstallPlan had installed its version. If both are
	// missing now, a user deleted the version on purpose.
	Outlived bool
}

// Recall returns the recorded facts about a Subscription, from its status and its History. If the History is invalid,
// Recall ignores it and returns a Diagnostic.
func (s *Snapshot) Recall(sub *v1alpha1.Subscription, history History) (Past, olmcore.Result) {
	p := Past{Subscription: sub, History: history}
	p.Shown, p.ShownSince = ShownStage(sub.Status.Conditions)
	status := &sub.Status
	if status.CurrentCSV != "" && status.InstalledCSV == status.CurrentCSV {
		wasInstalled := p.Shown != StageFailed && status.State == v1alpha1.SubscriptionStateAtLatest
		p.Outlived = p.Shown == StageMissing || wasInstalled
	}
	var out olmcore.Result
	if !history.isValid() {
		p.History = History{}
		out = p.diagnose(out, olmcore.Info, ReasonHistoryInvalid, "", "the stored history names the unknown stage %s", history.LastStage)
	}
	p.Remembers = p.History.LastStage != ""
	return p, out
}

// diagnose returns a Result with a Diagnostic about the Subscription added.
func (p *Past) diagnose(
	r olmcore.Result, severity olmcore.Severity, reason, path, format string, args ...any,
) olmcore.Result {
	r.Diagnostics = append(r.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(p.Subscription), path, format, args...))
	return r
}

// Moved reports whether ref is another pointer than status.installPlanRef of the observed Subscription. It does not
// compare the contents.
func (p *Past) Moved(ref *corev1.ObjectReference) bool {
	return ref != p.Subscription.Status.InstallPlanRef
}

// position is a stage of an InstallPlan at which a list of transitions starts or ends.
type position struct {
	stage    Stage
	since    time.Time // zero if it is unknown
	planUID  types.UID
	planName string
	// installedAt is the last known lastUpdateTime of the Installed condition, if knowsInstalledAt.
	installedAt      time.Time
	knowsInstalledAt bool
}

// recordedPosition returns the stage of the referenced InstallPlan according to the observed status. If the status
// shows no stage, the history is used. A condition that is older than the InstallPlan describes another InstallPlan.
func (p *Past) recordedPosition(s *State) position {
	status, h := &p.Subscription.Status, &p.History
	ref := status.InstallPlanRef
	if ref == nil || s.Invalid {
		return position{stage: StageNoPlan}
	}
	isOlder := s.Plan != nil && !p.ShownSince.IsZero() && p.ShownSince.Before(s.Plan.CreationTimestamp.Time)
	at := position{stage: StageNoPlan, planUID: ref.UID, planName: ref.Name}
	switch {
	case p.Shown != "" && isOlder:
	case p.Shown != "":
		at.stage, at.since = p.Shown, p.ShownSince
	case p.Remembers && h.Published != "" && h.isAbout(ref.UID, ref.Name):
		at.stage, at.since = h.Published, h.PublishedAt
	case status.State == v1alpha1.SubscriptionStateAtLatest:
		at.stage, at.since = StageComplete, status.LastUpdated.Time
	}
	return at
}

// lastKnownStage returns the stage in which a visible InstallPlan was before, or "". The history takes precedence
// over the status, which other clients may have written.
func (p *Past) lastKnownStage(plan *v1alpha1.InstallPlan) Stage {
	if p.Remembers && p.History.isAbout(plan.UID, plan.Name) {
		return p.History.LastStage
	}
	ref := p.Subscription.Status.InstallPlanRef
	if ref == nil || !relation.SamePlan(ref, plan.UID, plan.Name) {
		return ""
	}
	if at := p.recordedPosition(&State{Plan: plan}); at.stage != StageNoPlan {
		return at.stage
	}
	return ""
}
