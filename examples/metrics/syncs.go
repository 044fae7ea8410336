// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"maps"
	"slices"
	"sync"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// syncs is behind OLM's subscription_sync_total, whose labels say nothing of namespaces: Subscriptions with equal
// labels share a series. It never goes down while one of them is there.
type syncs struct {
	writes *tally
	// counted is how many writes of a Subscription are in the series that its labels had, totals the series by labels.
	counted map[types.UID]counted
	totals  map[syncOf]float64
}

// syncOf are the values of syncLabels.
type syncOf [5]string

type counted struct {
	of     syncOf
	writes float64
}

func newSyncs() syncs {
	return syncs{writes: newTally(), counted: map[types.UID]counted{}, totals: map[syncOf]float64{}}
}

func (y *syncs) told(report controller.Report) {
	if report.Controller != controllers.Subscription {
		return
	}
	became := became(report)
	for _, a := range report.Result.Actions {
		_, target, _ := a.Describe()
		if last, ran := became[target.Key()]; ran && last.Class == olmcore.ClassNone && target.Kind == subscriptions && target.UID != "" {
			y.writes.add(target.UID)
		}
	}
}

// take adds what was written since the last time. A Subscription counts once more where its labels are new.
func (y *syncs) take(subs []*v1alpha1.Subscription) {
	there := make(map[types.UID]bool, len(subs))
	for _, s := range subs {
		there[s.UID] = true
	}
	writes := y.writes.of(there)
	held := map[syncOf]bool{}
	for _, s := range subs {
		of, before := syncLabelsOf(s), y.counted[s.UID]
		held[of] = true
		more := max(writes[s.UID]-before.writes, 0)
		if before.of != of {
			more = max(more, 1)
		}
		y.totals[of] += more
		y.counted[s.UID] = counted{of, writes[s.UID]}
	}
	maps.DeleteFunc(y.counted, func(uid types.UID, _ counted) bool { return !there[uid] })
	maps.DeleteFunc(y.totals, func(of syncOf, _ float64) bool { return !held[of] })
}

func syncLabelsOf(s *v1alpha1.Subscription) syncOf {
	of := syncOf{s.Name, s.Status.InstalledCSV, "", "", string(v1alpha1.ApprovalAutomatic)}
	if s.Spec != nil {
		of[2], of[3] = s.Spec.Channel, s.Spec.Package
		if s.Spec.InstallPlanApproval == v1alpha1.ApprovalManual {
			of[4] = string(v1alpha1.ApprovalManual)
		}
	}
	for i := range of {
		of[i] = clean(of[i])
	}
	return of
}

// lookAtSyncs leaves out Subscriptions beyond the limit of their namespace, so that one tenant's cannot be all there
// are.
func (m *Metrics) lookAtSyncs(s *scrape) {
	if !s.subscriptions.Complete {
		return
	}
	m.syncs.take(s.subscriptions.Items)
	added := map[syncOf]bool{}
	for _, sub := range s.subscriptions.Items {
		of := syncLabelsOf(sub)
		if !added[of] {
			added[of] = s.add(sub.Namespace, "subscription_sync_total", m.syncs.totals[of], slices.Clone(of[:])...)
		}
	}
}

// tally counts by UID.
type tally struct {
	mu     sync.Mutex
	counts map[types.UID]float64
}

func newTally() *tally { return &tally{counts: map[types.UID]float64{}} }

func (t *tally) add(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[uid]++
}

// of returns the counts of the objects that there are, and forgets the others.
func (t *tally) of(there map[types.UID]bool) map[types.UID]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.counts, func(uid types.UID, _ float64) bool { return !there[uid] })
	return maps.Clone(t.counts)
}
