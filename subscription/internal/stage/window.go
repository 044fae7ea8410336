// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// Observation is one version of an InstallPlan that a watch or a direct read
// delivered.
type Observation struct {
	// At is when it was seen.
	At time.Time
	// Plan is the version, which must not be changed; for a deletion its name and UID
	// are enough.
	Plan *v1alpha1.InstallPlan
	// Deleted says that the plan with this UID does not exist any more.
	Deleted bool
}

// Window is the observations of one namespace, those of each plan oldest first.
type Window struct {
	namespace string
	list      []Observation
}

// NewWindow returns the observations with the versions of each plan in the order in
// which they were written, which the resourceVersions tell. Versions that cannot be
// compared stay where they arrived; times order nothing, because clocks are set back.
func NewWindow(namespace string, arrived []Observation) Window {
	w := Window{namespace, slices.Clone(arrived)}
	type identity struct {
		namespace, name string
		uid             types.UID
	}
	slots := map[identity][]int{}
	for i, o := range arrived {
		if _, ok := compareVersions(o.Plan.ResourceVersion, o.Plan.ResourceVersion); ok {
			id := identity{o.Plan.Namespace, o.Plan.Name, o.Plan.UID}
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
func (w Window) shows(o *Observation, uid types.UID, name string) bool {
	return !o.Deleted && o.Plan.Namespace == w.namespace && o.Plan.Name == name && (uid == "" || o.Plan.UID == uid)
}

// last returns the newest Observation of a plan that exists, nil for none.
func (w Window) last(uid types.UID, name string) *Observation {
	for i := len(w.list) - 1; i >= 0; i-- {
		if w.shows(&w.list[i], uid, name) {
			return &w.list[i]
		}
	}
	return nil
}

// holds reports whether the window has a version.
func (w Window) holds(plan *v1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(w.list, func(o Observation) bool {
		return w.shows(&o, plan.UID, plan.Name) && sameVersion(o.Plan, plan)
	})
}

// Gone reports whether the deletion of a plan was witnessed. Without a UID the last
// word about the name counts.
func (w Window) Gone(uid types.UID, name string) bool {
	gone := false
	for i := range w.list {
		o := &w.list[i]
		switch {
		case o.Plan.Namespace != w.namespace && o.Plan.Namespace != "":
		case uid != "" && o.Plan.UID == uid:
			if o.Deleted {
				return true
			}
		case uid == "" && name != "" && o.Plan.Name == name:
			gone = o.Deleted
		}
	}
	return gone
}

// Ignored returns how many observations are of other namespaces.
func (w Window) Ignored() int {
	count := 0
	for _, o := range w.list {
		if o.Plan.Namespace != w.namespace && o.Plan.Namespace != "" {
			count++
		}
	}
	return count
}
