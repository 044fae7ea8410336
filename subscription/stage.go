// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/subscription/internal/planhistory"
)

// Stage is the phase of the InstallPlan that a Subscription references. It also has values for a missing reference, a
// missing InstallPlan and a stale cache.
type Stage = planhistory.Stage

// Stages. The first eight are the states of Graph. StageUnverified and StageUnknown mean that the state is not known.
// The value of each constant is its name without the prefix Stage.
const (
	// StageNoPlan means that the Subscription references no InstallPlan.
	StageNoPlan Stage = planhistory.StageNoPlan
	// StageNotYetReconciled means that the InstallPlan has no phase yet.
	StageNotYetReconciled Stage = planhistory.StageNotYetReconciled
	// StagePlanning means that the InstallPlan has the phase Planning. Only old OLM releases set this phase.
	StagePlanning Stage = planhistory.StagePlanning
	// StageRequiresApproval means that the InstallPlan waits for its approval.
	StageRequiresApproval Stage = planhistory.StageRequiresApproval
	// StageInstalling means that the steps of the InstallPlan are being applied.
	StageInstalling Stage = planhistory.StageInstalling
	// StageComplete means that all steps of the InstallPlan were applied.
	StageComplete Stage = planhistory.StageComplete
	// StageFailed means that the InstallPlan failed.
	StageFailed Stage = planhistory.StageFailed
	// StageMissing means that the InstallPlan was deleted.
	StageMissing Stage = planhistory.StageMissing
	// StageUnverified means that the InstallPlan is not visible, or that its visible version seems to be older than a
	// known version. The cause may be a stale cache.
	StageUnverified Stage = planhistory.StageUnverified
	// StageUnknown means that the InstallPlan has an unknown phase.
	StageUnknown Stage = planhistory.StageUnknown
)

// Graph contains the edges between stages that a controller takes. Every stage can also change to StageMissing (the
// InstallPlan is deleted) and StageNoPlan (the reference is cleared, or names another InstallPlan). Every other edge is
// out of band: a user edited a status. The package comment shows the edges.
var Graph = planhistory.Graph

// PlanState is the state of the InstallPlan that a Subscription references.
type PlanState struct {
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

// History contains the facts about one Subscription that a caller stores between two calls of Reconcile.
// Outcome.Histories contains each History that changed. Store it by the UID of the Subscription before running the
// actions, for example as JSON in an annotation. Pass all stored Histories to the next call. If a History is lost,
// transitions may be reported twice or with less certainty.
type History struct {
	// Seq is the number of transitions that were reported.
	Seq int64 `json:"seq,omitempty"`
	// PlanUID and PlanName identify the InstallPlan that the following fields describe.
	PlanUID  types.UID `json:"planUID,omitempty"`
	PlanName string    `json:"planName,omitempty"`
	// LastStage is the last stage that was reported. LastAt is the time at which the InstallPlan entered that stage.
	LastStage Stage     `json:"lastStage,omitempty"`
	LastAt    time.Time `json:"lastAt,omitzero"`
	// LastVersion is the resourceVersion of the newest version of the InstallPlan that was used. Transitions up to this
	// version have been reported.
	LastVersion string `json:"lastVersion,omitempty"`
	// LastObserved is the time up to which Observations of the InstallPlan have been used. It replaces LastVersion if
	// resourceVersions cannot be compared.
	LastObserved time.Time `json:"lastObserved,omitzero"`
	// LastInstalledUpdate is the lastUpdateTime of the InstallPlan's Installed condition.
	LastInstalledUpdate time.Time `json:"lastInstalledUpdate,omitzero"`
	// LastMessage is a hash of the InstallPlan's status.message. It is 0 if the message is empty.
	LastMessage uint32 `json:"lastMessage,omitempty"`
	// Published is the stage that an earlier call decided to show in the conditions. PublishedAt is the time of that
	// decision.
	Published   Stage     `json:"published,omitempty"`
	PublishedAt time.Time `json:"publishedAt,omitzero"`
	// MissingSince is the time of the first call that did not find the referenced InstallPlan. It is zero while the
	// InstallPlan is visible. MissingPlan is the UID of the referenced InstallPlan, or its name if the reference has no
	// UID.
	MissingSince time.Time `json:"missingSince,omitzero"`
	MissingPlan  string    `json:"missingPlan,omitempty"`
	// SuspectStage is an observed stage that may come from a stale cache. SuspectSince is the time at which SuspectStage
	// was first observed.
	SuspectStage Stage     `json:"suspectStage,omitempty"`
	SuspectSince time.Time `json:"suspectSince,omitzero"`
}

// Types of the Transitions that this package reports. The changes of conditions are reported, too. Their type is
// the type of the condition, and From and To are its status, or empty if the condition does not exist.
const (
	// TransitionInstallPlan means that From and To are Stages of the referenced InstallPlan.
	TransitionInstallPlan = planhistory.TransitionType
	// TransitionState means that From and To are values of status.state.
	TransitionState = "State"
)
