// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// History is what a caller remembers of one Subscription between two calls. An Outcome carries the entries that
// changed; store them before running the actions, by UID, and hand all of them back. Losing them costs exactness, never
// correctness.
type History struct {
	// Seq counts the transitions that were reported.
	Seq int64 `json:"seq,omitempty"`
	// PlanUID and PlanName are the plan that the rest is about.
	PlanUID  types.UID `json:"planUID,omitempty"`
	PlanName string    `json:"planName,omitempty"`
	// LastStage is the last stage that was believed, LastAt its time.
	LastStage Stage     `json:"lastStage,omitempty"`
	LastAt    time.Time `json:"lastAt,omitzero"`
	// LastVersion is the resourceVersion of the newest version of the plan that was believed: Observations up to it are
	// known.
	LastVersion string `json:"lastVersion,omitempty"`
	// LastObserved is the time up to which Observations are known whose resourceVersions cannot be compared with
	// LastVersion: that of the newest one that was used, or of a look at a list that knew more.
	LastObserved time.Time `json:"lastObserved,omitzero"`
	// LastInstalledUpdate is the lastUpdateTime of the plan's Installed condition.
	LastInstalledUpdate time.Time `json:"lastInstalledUpdate,omitzero"`
	// LastMessage is a digest of the plan's status.message, 0 for none.
	LastMessage uint32 `json:"lastMessage,omitempty"`
	// Published is the stage that the conditions were made to show at PublishedAt.
	Published   Stage     `json:"published,omitempty"`
	PublishedAt time.Time `json:"publishedAt,omitzero"`
	// MissingSince is since when the plan has not been visible.
	MissingSince time.Time `json:"missingSince,omitzero"`
	// SuspectStage was seen first at SuspectSince and is not believed yet.
	SuspectStage Stage     `json:"suspectStage,omitempty"`
	SuspectSince time.Time `json:"suspectSince,omitzero"`
}

// Encode returns the history as one JSON string, e.g. for an annotation.
func (h History) Encode() string {
	data, err := json.Marshal(h)
	if err != nil { // a year beyond 9999: such a history is worth nothing
		return "{}"
	}
	return string(data)
}

// DecodeHistory is the inverse of History.Encode. The error is an *olmcore.InputError; go on without the history then.
func DecodeHistory(text string) (History, error) {
	var h History
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return History{}, &olmcore.InputError{Field: "history", Problem: "cannot be decoded: " + err.Error()}
	}
	if !h.isValid() {
		return History{}, &olmcore.InputError{Field: "history.lastStage", Problem: "is no stage"}
	}
	return h, nil
}

// isValid reports whether the last stage is one that is remembered.
func (h *History) isValid() bool {
	switch s := h.LastStage; s {
	case "", StageNoPlan, StageMissing, StageUnknown:
		return true
	default:
		return slices.ContainsFunc(Graph, func(e olmcore.Edge[Stage]) bool { return e.To == s })
	}
}

// isAbout reports whether the history is about a plan.
func (h *History) isAbout(uid types.UID, name string) bool {
	return relation.Same(h.PlanUID, h.PlanName, uid, name)
}

// digest is a short form of a message, 0 for none.
func digest(message string) uint32 {
	if message == "" {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(message)) // never fails
	return h.Sum32()
}

// instant is a time as a History holds it: the same after JSON.
func instant(t time.Time) time.Time { return t.UTC().Round(0) }

// since returns the time from then to now, never a negative one: clocks go back.
func since(then, now time.Time) time.Duration { return max(0, now.Sub(then)) }
