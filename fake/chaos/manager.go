// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// manager is one process that runs all controllers: with a cache of its own, which is stale until it is synced, a queue
// that the cache's watch fills, a memory that goes with the process, and a clock that may be wrong.
type manager struct {
	history *History
	name    string
	set     *controllers.Set
	runners []*controller.Runner
	view    *fake.View

	queue  []item
	queued map[item]bool
	timers map[item]time.Time
	fails  map[item]int

	down bool
	skew time.Duration
	// isSeparate is the value of the option SeparatePlans that the process was started with.
	isSeparate bool
	faults     []writeFault
	crashed    bool
	// catalogs has the content of the catalog that this manager has read.
	catalogs controllers.Catalogs
	// frozen are the kinds whose cache stands still, until when.
	frozen map[schema.GroupKind]time.Time
	// current is when the cache was seen to be up to date the last time.
	current time.Time
}

// item is one key of one of a manager's controllers.
type item struct {
	runner int
	key    types.NamespacedName
}

// writeFault makes the manager's write after the next after ones go wrong.
type writeFault struct {
	after int
	mode  fake.FaultMode
}

// start gives the manager a new process: nothing is remembered, the cache is filled anew, and every key is looked at.
func (m *manager) start() {
	h := m.history
	player := &olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2", Sweeps: true, Operators: true,
		Issuer: issuer{m, olm.Issuer{Seed: m.name}}}}
	player.CSV.Cleanup.SweepDelete = h.Sweeps
	m.isSeparate = h.isSeparate
	player.InstallPlan.SeparatePlans = m.isSeparate
	m.catalogs.Serve(&player.Options)
	player.Controllers() // plays the gRPC clients
	m.set = controllers.New(&player.Options)
	for i := range m.set.Controllers {
		withinRights(player.Options, &m.set.Controllers[i], h.must)
	}
	if h.Options.Controllers != nil {
		m.set.Controllers = append(m.set.Controllers, h.Options.Controllers()...)
	}
	m.frozen = map[schema.GroupKind]time.Time{}
	m.view.Restart()
	m.current = h.Cluster.Now()
	m.view.Watch = m.watch
	m.runners = m.set.Runners(m.view, m)
	for _, r := range m.runners {
		r.Cached = func(schema.GroupVersionKind, string) bool { return true }
		r.AfterAction = m.afterAction
	}
	m.catalogs.Content[catalogKey] = h.content
	m.queue, m.queued, m.timers, m.fails = nil, map[item]bool{}, map[item]time.Time{}, map[item]int{}
	m.faults, m.crashed = nil, false
	m.resync()
}

// resync puts every key into the queue.
func (m *manager) resync() {
	for i, r := range m.runners {
		keys, err := r.Keys(context.Background(), m.view)
		m.history.must(err)
		for _, key := range keys {
			m.push(item{i, key})
		}
	}
}

func (m *manager) push(it item) {
	delete(m.timers, it)
	if !m.queued[it] {
		m.queued[it] = true
		m.queue = append(m.queue, it)
	}
}

// watch hears what the cache takes in.
func (m *manager) watch(old, next olmcore.Object) {
	if m.down {
		return
	}
	change := controller.Change{Old: old, New: next, At: m.now()}
	if next == nil {
		change.New, change.Deleted = old, true
	}
	for i, r := range m.runners {
		keys, err := r.Changed(context.Background(), m.view, change)
		m.history.must(err)
		for _, key := range keys {
			m.push(item{i, key})
		}
	}
}

func (m *manager) now() time.Time { return m.history.Cluster.Now().Add(m.skew) }

// behind returns the kinds of which the cache can take in an event now.
func (m *manager) behind() []schema.GroupVersionKind {
	if len(m.frozen) == 0 {
		return m.view.Behind()
	}
	return slices.DeleteFunc(m.view.Behind(), func(gvk schema.GroupVersionKind) bool {
		return m.frozen[gvk.GroupKind()].After(m.history.Cluster.Now())
	})
}

// sync brings the cache to the present, except for the kinds that stand still.
func (m *manager) sync() {
	if len(m.frozen) == 0 {
		m.view.Sync()
		return
	}
	for _, gvk := range m.behind() {
		m.view.SyncKind(gvk)
	}
}

// readCatalog reads the content that the catalog has now.
func (m *manager) readCatalog() {
	if m.catalogs.Content[catalogKey] != m.history.content {
		m.catalogs.Content[catalogKey] = m.history.content
		m.resync()
	}
}

// due moves what waited for a time into the queue.
func (m *manager) due() {
	now, due := m.history.Cluster.Now(), map[item]time.Time{}
	for it, at := range m.timers {
		if !at.After(now) {
			due[it] = at
		}
	}
	for _, it := range sortedItems(due) {
		m.push(it)
	}
}

// work reconciles one key of the queue, the one that pick says.
func (m *manager) work(pick func(n int) int) {
	if m.due(); len(m.queue) == 0 {
		return
	}
	i := pick(len(m.queue))
	it := m.queue[i]
	m.queue = append(m.queue[:i], m.queue[i+1:]...)
	delete(m.queued, it)
	h := m.history
	h.Figures.Reconciles++
	if h.wakes > maxWakes-20 {
		defer func() {
			h.say("  manager %d: %s %s: again at %s", h.number(m), m.runners[it.runner].Name, it.key, m.timers[it])
		}()
	}
	again, err := m.runners[it.runner].Run(context.Background(), it.key, m.now())
	switch {
	case m.crashed:
		h.Figures.Crashes++
		m.start()
	case errors.Is(err, olmcore.ErrInvalidInput):
		h.Figures.InvalidInputs++ // a change of the object asks again
	case err != nil:
		m.fails[it]++
		h.Figures.Errors++
		m.timers[it] = h.Cluster.Now().Add(min(5*time.Minute, time.Second<<min(m.fails[it], 12)))
	default:
		delete(m.fails, it)
		if again > 0 {
			m.timers[it] = h.Cluster.Now().Add(again)
		}
	}
}

// Do implements olmcore.Executor: one write of the manager, which may go wrong.
func (m *manager) Do(ctx context.Context, a olmcore.Action) error {
	h := m.history
	verb, target, _ := a.Describe()
	if m.crashed {
		return fake.ErrCrashed
	}
	mode := m.fault()
	before := h.Cluster.ResourceVersion()
	var err error
	switch {
	case isRefused(h, verb, target.Kind):
		err = errPolicy
	case h.races.refuses(h, verb, target) != nil:
		err = h.races.refuses(h, verb, target)
	case mode == fake.FailWithoutEffect:
		err = apierrors.NewInternalError(fmt.Errorf("injected failure of %s %s", verb, target))
	case mode == fake.Conflict:
		err = apierrors.NewConflict(schema.GroupResource{Resource: target.Kind}, target.Name, errors.New("injected"))
	default:
		pod, problem := checkDeletion(m, a)
		if err = h.Cluster.Do(ctx, a); err == nil {
			h.must(problem)
			h.must(noteDeletion(m, a, pod))
		}
	}
	switch mode {
	case fake.Crash:
		m.crashed = true
	case fake.FailAfterEffect:
		if err == nil {
			err = apierrors.NewTimeoutError("injected timeout", 1)
		}
	}
	if mode != "" {
		h.Figures.Faults++
	}
	h.Figures.Writes++
	if h.Cluster.ResourceVersion() != before && !(h.connects && target.Kind == v1alpha1.CatalogSourceKind) {
		h.Figures.Effects++
	}
	h.note(m, a, err)
	return err
}

// afterAction calls Options.AfterAction, unless the write was lost in a crash of the manager. An error ends the
// history, and not the reconcile.
func (m *manager) afterAction(e controller.Event) error {
	if m.history.Options.AfterAction != nil && !errors.Is(e.Err, fake.ErrCrashed) {
		m.history.must(m.history.Options.AfterAction(e))
	}
	return nil
}

func (m *manager) fault() fake.FaultMode {
	for i := range m.faults {
		if m.faults[i].after--; m.faults[i].after < 0 {
			mode := m.faults[i].mode
			m.faults = append(m.faults[:i], m.faults[i+1:]...)
			return mode
		}
	}
	return ""
}

// nextTimer is the earliest time that the manager waits for.
func (m *manager) nextTimer() (at time.Time, ok bool) {
	for _, t := range m.timers {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}
