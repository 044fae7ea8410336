// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"fmt"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/internal/operators"
)

// settleTime is how long a healed world has to come to rest, and how long it is watched then.
const settleTime = 3 * time.Hour

// Heal ends everything that goes wrong, and lets the world go on until nothing more happens: Pods run, every
// Subscription has the newest version, unless users deleted, and the managers write nothing any more, whatever they
// remember. The error says what is not so. Where users approve they do it until then.
func (h *History) Heal() error {
	h.heal()
	return h.problem
}

func (h *History) heal() {
	h.say("heal")
	for _, m := range h.managers {
		m.faults, m.down = nil, false
		if !h.Races { // clocks that differ no more than is tolerated need not be healed
			m.skew = 0
		}
	}
	h.endRollout()
	endRaces(h)
	for _, node := range []string{"a", "b"} {
		h.must(h.Cluster.Node(node).Heal())
	}
	for _, ns := range tenants {
		h.createGroup(ns)
	}
	repair(h)
	for range 2 * maxVersions {
		if h.Approves {
			stepApprove(h, nil)
		}
		deleteWedged(h)
		if h.runFor(settleTime / maxVersions); h.problem != nil {
			return
		}
	}
	renewNow(h)
	requireWanted(h)
	requireFollowed(h)
	requireFinishedPlans(h)
	requireServed(h)
	requireCopies(h)
	requireOwners(h)
	requireRights(h)
	for _, p := range listed[*v1alpha1.InstallPlan](h) {
		h.Figures.Plans++
		if p.Status.Phase == v1alpha1.InstallPlanPhaseComplete {
			h.Figures.Completed++
		}
	}
	requireRest(h, "the managers look at everything again", func() { h.managers[0].resync(); h.managers[1].resync() })
	requireRest(h, "a manager is new", func() { h.managers[1].start(); h.connects = true })
}

// requireRest requires that the managers write nothing any more: but for when a new one's clients connected.
func requireRest(h *History, when string, change func()) {
	from := h.Figures.Effects
	h.say("rest: %s", when)
	change()
	h.runFor(settleTime)
	if wrote := h.Figures.Effects - from; wrote > 0 {
		h.must(fmt.Errorf("the world stands still, and when %s there are %d writes", when, wrote))
	}
}

// requireWanted: the catalog serves, and where nothing was deleted every Subscription has the newest version, running.
func requireWanted(h *History) {
	cs := fake.Find[*v1alpha1.CatalogSource](h.Cluster, "olm", "community")
	if c := meta.FindStatusCondition(cs.Status.Conditions, "Available"); c == nil || c.Status != metav1.ConditionTrue {
		h.must(fmt.Errorf("the catalog is not available in the end: %+v", c))
	}
	if h.Deletes {
		return
	}
	for _, s := range listed[*v1alpha1.Subscription](h) {
		head := operators.Name(s.Spec.Package, h.offers[s.Spec.Package].head())
		if c := fake.Find[*v1alpha1.ClusterServiceVersion](h.Cluster, s.Namespace, head); c == nil ||
			c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
			if c != nil {
				h.must(fmt.Errorf("%s/%s is %s in the end: %s %s", s.Namespace, head, c.Status.Phase, c.Status.Reason, c.Status.Message))
			}
			h.must(fmt.Errorf("%s/%s is not installed in the end: %+v", s.Namespace, head, s.Status))
		}
		if s.Status.State != v1alpha1.SubscriptionStateAtLatest || s.Status.InstalledCSV != head {
			h.must(fmt.Errorf("%s/%s is %s with %s in the end: %+v", s.Namespace, s.Name, s.Status.State, s.Status.InstalledCSV, s.Status))
		}
	}
}

// maxWorks bounds what the managers do at one instant, maxWakes how often anything waits for a time in one runFor.
const (
	maxWorks = 4000
	maxWakes = 4000
)

// RunFor lets everything go on for a time, with caches that are never stale and with nothing that goes wrong by itself.
func (h *History) RunFor(d time.Duration) error {
	h.runFor(d)
	return h.problem
}

// runFor lets everything go on, with caches that are never stale.
func (h *History) runFor(d time.Duration) {
	h.wakes = 0
	for end := h.Cluster.Now().Add(d); h.problem == nil; h.wakes++ {
		if h.wakes == maxWakes {
			h.must(fmt.Errorf("waits %d times in %s", h.wakes, d))
		}
		h.workOff()
		next, ok := h.Cluster.NextDeadline()
		for _, m := range h.managers {
			if at, waits := m.nextTimer(); waits && (!ok || at.Before(next)) {
				next, ok = at, true
			}
		}
		if !ok || next.After(end) {
			h.Cluster.Advance(end.Sub(h.Cluster.Now()))
			h.workOff()
			return
		}
		h.Cluster.Advance(max(next.Sub(h.Cluster.Now()), time.Millisecond))
	}
}

// workOff empties the queues.
func (h *History) workOff() {
	for range maxWorks {
		h.must(h.Cluster.Settle())
		idle := true
		for _, m := range h.managers {
			m.view.Sync()
			m.readCatalog()
			m.due()
			if len(m.queue) > 0 {
				idle = false
				m.work(func(int) int { return 0 })
				h.check() // after each manager: the next one may repair a fault of this one
			}
		}
		if h.check(); idle || h.problem != nil {
			return
		}
	}
	h.must(fmt.Errorf("no rest after %d reconciles at one instant", maxWorks))
}
