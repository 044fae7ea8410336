// SPDX-License-Identifier: Apache-2.0

package planhistory

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/internal/relation"
)

// Observation is one version of an InstallPlan that a watch or a direct read delivered. An Observation has the fields
// of subscription.Observation.
type Observation struct {
	// At is the time at which the version was observed.
	At time.Time
	// Plan is the observed version. If Deleted is true, only the name and the UID of Plan are needed. The caller must not
	// change Plan.
	Plan *v1alpha1.InstallPlan
	// Deleted means that the InstallPlan with this UID does not exist any more.
	Deleted bool
}

// Window contains the Observations of one namespace. It is read-only.
type Window struct {
	namespace    string
	observations []Observation // those of each InstallPlan oldest first
}

// NewWindow returns a Window that contains the given Observations. It sorts the versions of each InstallPlan by
// resourceVersion, oldest first. A version whose resourceVersion cannot be compared keeps its position. NewWindow does
// not use the times, because clocks may be set back.
func NewWindow(namespace string, arrived []Observation) Window {
	w := Window{namespace, slices.Clone(arrived)}
	comparable := map[olmcore.Ref][]int{} // indexes into arrived
	for i, o := range arrived {
		if _, ok := compareVersions(o.Plan.ResourceVersion, o.Plan.ResourceVersion); ok {
			plan := olmcore.Ref{Namespace: o.Plan.Namespace, Name: o.Plan.Name, UID: o.Plan.UID}
			comparable[plan] = append(comparable[plan], i)
		}
	}
	for _, indexes := range comparable {
		sorted := slices.Clone(indexes)
		slices.SortStableFunc(sorted, func(i, j int) int {
			order, _ := compareVersions(arrived[i].Plan.ResourceVersion, arrived[j].Plan.ResourceVersion)
			return cmp.Or(order, cmp.Compare(i, j))
		})
		for i, from := range sorted {
			w.observations[indexes[i]] = arrived[from]
		}
	}
	return w
}

// Foreign returns the number of Observations of InstallPlans in other namespaces, which are ignored.
func (w *Window) Foreign() (n int) {
	for i := range w.observations {
		if w.isForeign(&w.observations[i]) {
			n++
		}
	}
	return n
}

// HasDeletion reports whether the deletion of an InstallPlan was observed. If uid is empty, it checks only the last
// Observation with the given name.
func (w *Window) HasDeletion(uid types.UID, name string) bool {
	deleted := false
	for i := range w.observations {
		o := &w.observations[i]
		switch {
		case w.isForeign(o):
		case uid != "" && o.Plan.UID == uid && o.Deleted:
			return true
		case uid == "" && name != "" && o.Plan.Name == name:
			deleted = o.Deleted
		}
	}
	return deleted
}

func (w *Window) isForeign(o *Observation) bool {
	return o.Plan.Namespace != w.namespace && o.Plan.Namespace != ""
}

// shows reports whether an Observation shows an InstallPlan that exists.
func (w *Window) shows(o *Observation, uid types.UID, name string) bool {
	return !o.Deleted && o.Plan.Namespace == w.namespace && o.Plan.Name == name && (uid == "" || o.Plan.UID == uid)
}

// last returns the newest Observation that shows an InstallPlan, or nil.
func (w *Window) last(uid types.UID, name string) *Observation {
	for i := len(w.observations) - 1; i >= 0; i-- {
		if w.shows(&w.observations[i], uid, name) {
			return &w.observations[i]
		}
	}
	return nil
}

// contains reports whether the window contains this version of an InstallPlan.
func (w *Window) contains(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(w.observations, func(o Observation) bool {
		return w.shows(&o, plan.UID, plan.Name) && isSameVersion(o.Plan, plan)
	})
}

// isSameVersion compares the contents, too, because the resourceVersion may be empty.
func isSameVersion(a, b *v1alpha1.InstallPlan) bool {
	return a.ResourceVersion == b.ResourceVersion && a.Generation == b.Generation && a.Status.Phase == b.Status.Phase &&
		relation.InstalledAt(a).Equal(relation.InstalledAt(b))
}

// isStale reports whether version a must be older than version b, by resourceVersion or else by content.
func isStale(a, b *v1alpha1.InstallPlan) bool {
	order, ok := compareVersions(a.ResourceVersion, b.ResourceVersion)
	if ok && order != 0 {
		return order < 0
	}
	stageA, stageB := StageOf(a), StageOf(b)
	installedA, installedB := relation.InstalledAt(a), relation.InstalledAt(b)
	isRetry := stageA == StageFailed && stageB == StageInstalling && relation.HasFailed(b)
	switch {
	case isRetry && installedA.Equal(installedB): // b still carries the failure of a
		return true
	case a.Generation < b.Generation || installedA.Before(installedB):
		return true
	}
	return stageA != stageB && CanReach(stageA, stageB) && !CanReach(stageB, stageA)
}

// compareVersions compares two resourceVersions of InstallPlans. ok is false if they cannot be compared.
func compareVersions(a, b string) (order int, ok bool) {
	if a == "" || b == "" {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// isOlderVersion reports whether resourceVersion a is certainly older than b.
func isOlderVersion(a, b string) bool {
	order, ok := compareVersions(a, b)
	return ok && order < 0
}
