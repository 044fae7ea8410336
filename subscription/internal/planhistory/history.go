// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// History contains the facts about one Subscription that a caller stores between two calls. It has the fields of
// subscription.History, which documents how callers store it.
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

// isValid reports whether LastStage is a stage that is ever remembered.
func (h *History) isValid() bool {
	switch h.LastStage {
	case "", StageNoPlan, StageMissing, StageUnknown:
		return true
	}
	return slices.ContainsFunc(Graph, func(e olmcore.Edge[Stage]) bool { return e.To == h.LastStage })
}

// isAbout reports whether the history describes an InstallPlan.
func (h *History) isAbout(uid types.UID, name string) bool {
	return relation.Same(h.PlanUID, h.PlanName, uid, name)
}

// Unconfirmed contains the parts of a History that may come from a stale cache: a missing InstallPlan, or a stage that
// contradicts the rest of the History.
type Unconfirmed struct {
	// MissingSince is the time of the first call that did not find the InstallPlan. MissingPlan is the UID or the name of
	// that InstallPlan.
	MissingSince time.Time
	MissingPlan  string
	// Stage is an observed stage that contradicts the History, or empty if there is none. StageSince is the time at which
	// Stage was first observed.
	Stage      Stage
	StageSince time.Time
}

// withoutMissing returns an Unconfirmed according to which the InstallPlan is visible.
func (u Unconfirmed) withoutMissing() Unconfirmed {
	u.MissingSince, u.MissingPlan = time.Time{}, ""
	return u
}

// withStage returns an Unconfirmed with another stage.
func (u Unconfirmed) withStage(stage Stage, since time.Time) Unconfirmed {
	u.Stage, u.StageSince = stage, since
	return u
}

func (h *History) unconfirmed() Unconfirmed {
	return Unconfirmed{
		MissingSince: h.MissingSince, MissingPlan: h.MissingPlan, Stage: h.SuspectStage, StageSince: h.SuspectSince,
	}
}

// with returns the history with another Unconfirmed.
func (h History) with(u Unconfirmed) History {
	h.MissingSince, h.MissingPlan = u.MissingSince, u.MissingPlan
	h.SuspectStage, h.SuspectSince = u.Stage, u.StageSince
	return h
}

// stored returns a time as a History contains it. Writing it as JSON and reading it again does not change it.
func stored(t time.Time) time.Time { return t.UTC().Round(0) }

// elapsed returns the time from start to now. It is never negative, because clocks may be set back.
func elapsed(start, now time.Time) time.Duration { return max(0, now.Sub(start)) }
