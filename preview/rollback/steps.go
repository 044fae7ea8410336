// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Reasons of the actions.
const (
	// ReasonHeld: the Subscription must not bring the newer version again.
	ReasonHeld = "HeldBack"
	// ReasonPlanObsolete: an InstallPlan would bring the newer version again.
	ReasonPlanObsolete = "PlanObsolete"
	// ReasonOperandsKept: the cleanup of the newer version would delete custom resources.
	ReasonOperandsKept = "OperandsKept"
	// ReasonRolledBack: a version gives way to the one before.
	ReasonRolledBack = "RolledBack"
	// ReasonStartAgain: the Subscription says what it has from now on.
	ReasonStartAgain = "StartAgain"
	// ReasonApproved: the InstallPlan brings the version back.
	ReasonApproved = "Approved"
)

// step is what is to be done next: an action, or a wait; neither when the way is at its end.
type step struct {
	action olmcore.Action
	wait   string
}

func do(a olmcore.Action) step { return step{action: a} }

// rules are asked in order; the first that has something to do or to wait for answers. Each looks at the cluster as it
// is alone, so that a way can be gone on with from anywhere.
var rules = []func(w world, to string) step{holdBack, dropPlans, removeNewer, awaitRemoval, startAgain, approve, awaitVersion}

// next returns what is to be done next in a world. anew: the version to go back to is installed anew although it
// exists.
func next(w world, to string, anew bool) step {
	if anew {
		if c := w.csvs[to]; c != nil {
			w = w.without(c)
			if s := first(w, to, holdBack, dropPlans, removeNewer, awaitRemoval); s != (step{}) {
				return s
			}
			return remove(c)
		}
	}
	return first(w, to, rules...)
}

func first(w world, to string, rules ...func(world, string) step) step {
	for _, rule := range rules {
		if s := rule(w, to); s != (step{}) {
			return s
		}
	}
	return step{}
}

func (w world) without(c *v1alpha1.ClusterServiceVersion) world {
	csvs := map[string]*v1alpha1.ClusterServiceVersion{}
	for name, have := range w.csvs {
		if have != c {
			csvs[name] = have
		}
	}
	w.csvs = csvs
	return w
}

// holdBack keeps the Subscription from bringing the newer version by itself, and has it start from the older one.
func holdBack(w world, to string) step {
	if w.sub.Spec.InstallPlanApproval == v1alpha1.ApprovalManual && w.sub.Spec.StartingCSV == to {
		return step{}
	}
	after := w.sub.DeepCopy()
	after.Spec.InstallPlanApproval, after.Spec.StartingCSV = v1alpha1.ApprovalManual, to
	return do(olmcore.UpdateOf(w.sub, after, olmcore.Cause{Reason: ReasonHeld,
		Message: "newer versions wait for approval, and " + to + " is where to start from"}))
}

// dropPlans deletes what was approved and would bring a newer version, again or at last.
func dropPlans(w world, to string) step {
	newer := w.newer(to)
	for _, name := range slices.Sorted(maps.Keys(w.plans)) {
		p := w.plans[name]
		names := p.Spec.ClusterServiceVersionNames
		isOurs := slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(newer, func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == name })
		}) ||
			w.sub.Status.InstallPlanRef != nil && w.sub.Status.InstallPlanRef.Name == name
		if isOurs && p.Spec.Approved && p.Status.Phase != v1alpha1.InstallPlanPhaseComplete && !slices.Contains(names, to) &&
			p.DeletionTimestamp == nil {
			return do(olmcore.DeleteOf(p, olmcore.Cause{Reason: ReasonPlanObsolete,
				Message: "it would bring " + strings.Join(names, ", ") + " again"}))
		}
	}
	return step{}
}

// newer are the versions to be taken away, newest first.
func (w world) newer(to string) (all []*v1alpha1.ClusterServiceVersion) {
	target := w.csvs[to]
	for _, c := range w.line(to) {
		if c.Name != to && (target == nil || !w.isBefore(c.Name, target)) {
			all = append(all, c)
		}
	}
	return all
}

// removeNewer deletes the newer versions, newest first, after it has made sure that their custom resources stay.
func removeNewer(w world, to string) step {
	for _, c := range w.newer(to) {
		if c.DeletionTimestamp == nil {
			return remove(c)
		}
	}
	return step{}
}

func remove(c *v1alpha1.ClusterServiceVersion) step {
	switch {
	case c.DeletionTimestamp != nil:
		return step{wait: "ClusterServiceVersion " + c.Name + " is gone"}
	case c.Spec.Cleanup.Enabled:
		after := c.DeepCopy()
		after.Spec.Cleanup.Enabled = false
		return do(olmcore.UpdateOf(c, after, olmcore.Cause{Reason: ReasonOperandsKept, Message: "its cleanup would delete the custom resources"}))
	}
	return do(olmcore.DeleteOf(c, olmcore.Cause{Reason: ReasonRolledBack, Message: "an earlier version takes its place"}))
}

func awaitRemoval(w world, to string) step {
	for _, c := range w.newer(to) {
		return step{wait: "ClusterServiceVersion " + c.Name + " is gone"}
	}
	return step{}
}

// startAgain has the Subscription say what it has: the version that is there again or, where that is gone, nothing, so
// that it is resolved anew.
func startAgain(w world, to string) step {
	s := &w.sub.Status
	exists := w.csvs[to] != nil
	if exists && s.InstalledCSV == to || !exists && (s.CurrentCSV == to || s.CurrentCSV == "" && s.InstalledCSV == "") {
		return step{}
	}
	after := w.sub.DeepCopy()
	after.Status = v1alpha1.SubscriptionStatus{LastUpdated: s.LastUpdated, CatalogHealth: s.CatalogHealth}
	why := to + " is to be installed again"
	if exists {
		after.Status.CurrentCSV, after.Status.InstalledCSV, why = to, to, to+" is there again"
	}
	return do(olmcore.UpdateStatusOf(w.sub, after, olmcore.Cause{Reason: ReasonStartAgain, Message: why}))
}

// approve approves the plan that brings a version that is gone back.
func approve(w world, to string) step {
	if w.csvs[to] != nil {
		return step{}
	}
	ref := w.sub.Status.InstallPlanRef
	if ref == nil || w.plans[ref.Name] == nil {
		return step{wait: "the Subscription is resolved to " + to}
	}
	p := w.plans[ref.Name]
	switch {
	case !slices.Contains(p.Spec.ClusterServiceVersionNames, to):
		return step{wait: "the Subscription is resolved to " + to + ", and not to " + strings.Join(p.Spec.ClusterServiceVersionNames, ", ")}
	case p.Spec.Approved:
		return step{wait: "InstallPlan " + p.Name + " is carried out"}
	}
	after := p.DeepCopy()
	after.Spec.Approved = true
	return do(olmcore.UpdateOf(p, after, olmcore.Cause{Reason: ReasonApproved, Message: "it brings " + to + " back"}))
}

func awaitVersion(w world, to string) step {
	c := w.csvs[to]
	if c == nil || c.Status.Phase != v1alpha1.CSVPhaseSucceeded || w.sub.Status.InstalledCSV != to {
		return step{wait: "ClusterServiceVersion " + to + " runs again"}
	}
	return step{}
}
