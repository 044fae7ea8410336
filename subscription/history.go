// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// History is what a caller remembers of one Subscription between two calls. An Outcome carries the entries that
// changed; store them before running the actions, by UID, e.g. as JSON in an annotation, and hand all of them back. Losing
// them costs exactness, never correctness.
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
	// MissingSince is the time since which the referenced plan has not been visible, MissingPlan the UID of that plan, or its
	// name if the reference has no UID.
	MissingSince time.Time `json:"missingSince,omitzero"`
	MissingPlan  string    `json:"missingPlan,omitempty"`
	// SuspectStage was seen first at SuspectSince and is not believed yet.
	SuspectStage Stage     `json:"suspectStage,omitempty"`
	SuspectSince time.Time `json:"suspectSince,omitzero"`
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

// window is the Observations of one namespace, those of each plan oldest first.
type window struct {
	namespace string
	list      []Observation
}

// newWindow returns the Observations with the versions of each plan in the order in which they were written, which the
// resourceVersions tell. Versions that cannot be compared stay where they arrived; times order nothing, because clocks
// are set back.
func newWindow(namespace string, arrived []Observation) window {
	w := window{namespace, slices.Clone(arrived)}
	slots := map[olmcore.Ref][]int{}
	for i, o := range arrived {
		if _, ok := compareVersions(o.Plan.ResourceVersion, o.Plan.ResourceVersion); ok {
			id := olmcore.Ref{Namespace: o.Plan.Namespace, Name: o.Plan.Name, UID: o.Plan.UID}
			slots[id] = append(slots[id], i)
		}
	}
	for _, at := range slots {
		sorted := slices.Clone(at)
		slices.SortStableFunc(sorted, func(i, j int) int {
			order, _ := compareVersions(arrived[i].Plan.ResourceVersion, arrived[j].Plan.ResourceVersion)
			return cmp.Or(order, cmp.Compare(i, j))
		})
		for i, from := range sorted {
			w.list[at[i]] = arrived[from]
		}
	}
	return w
}

// shows reports whether an Observation shows a plan that exists.
func (w *window) shows(o *Observation, uid types.UID, name string) bool {
	return !o.Deleted && o.Plan.Namespace == w.namespace && o.Plan.Name == name && (uid == "" || o.Plan.UID == uid)
}

// last returns the newest Observation of a plan that exists, nil for none.
func (w *window) last(uid types.UID, name string) *Observation {
	for i := len(w.list) - 1; i >= 0; i-- {
		if w.shows(&w.list[i], uid, name) {
			return &w.list[i]
		}
	}
	return nil
}

// holds reports whether the window has a version.
func (w *window) holds(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(w.list, func(o Observation) bool { return w.shows(&o, plan.UID, plan.Name) && sameVersion(o.Plan, plan) })
}

// isForeign reports whether an Observation is of another namespace.
func (w *window) isForeign(o Observation) bool {
	return o.Plan.Namespace != w.namespace && o.Plan.Namespace != ""
}

// gone reports whether the deletion of a plan was witnessed. Without a UID the last word about the name counts.
func (w *window) gone(uid types.UID, name string) bool {
	gone := false
	for _, o := range w.list {
		switch {
		case w.isForeign(o):
		case uid != "" && o.Plan.UID == uid && o.Deleted:
			return true
		case uid == "" && name != "" && o.Plan.Name == name:
			gone = o.Deleted
		}
	}
	return gone
}

// sameVersion compares more than the resourceVersion, which may not be known.
func sameVersion(a, b *v1alpha1.InstallPlan) bool {
	return a.ResourceVersion == b.ResourceVersion && a.Generation == b.Generation && a.Status.Phase == b.Status.Phase &&
		relation.InstalledAt(a).Equal(relation.InstalledAt(b))
}

// isStale reports whether a version must be older than another: by resourceVersion, else by what is in it.
func isStale(a, b *v1alpha1.InstallPlan) bool {
	if order, ok := compareVersions(a.ResourceVersion, b.ResourceVersion); ok && order != 0 {
		return order < 0
	}
	from, to, at, then := stageOf(a), stageOf(b), relation.InstalledAt(a), relation.InstalledAt(b)
	if from == StageFailed && to == StageInstalling && relation.HasFailed(b) && at.Equal(then) {
		return true // b carries the failure that a is
	}
	return a.Generation < b.Generation || at.Before(then) || from != to && reachable(from, to) && !reachable(to, from)
}

// compareVersions compares two resourceVersions of InstallPlans; ok is false where that cannot be done.
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
