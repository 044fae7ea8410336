// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/share"
	"github.com/olmcore/olm/olmcore"
)

// figures are what was measured. Sizes are in bytes after a garbage collection.
type figures struct {
	Sizes  []sizeFigures  `json:"sizes"`
	Shards []shardFigures `json:"shards"`
}

// sizeFigures are those of one manager for all namespaces.
type sizeFigures struct {
	Namespaces    int `json:"namespaces"`
	Objects       int `json:"objects"`
	Subscriptions int `json:"subscriptions"`
	Copies        int `json:"copies"`
	// Content is the size of the catalog's content, Cache that of the manager's cache with its indexes, Memory that of
	// what the controllers remember.
	Content int64 `json:"contentBytes"`
	Cache   int64 `json:"cacheBytes"`
	Memory  int64 `json:"memoryBytes"`
	List    spent `json:"list"` // to decode and to keep what there is
	Start   cost  `json:"start"`
	Rest    cost  `json:"anHourAtRest"`
	Update  cost  `json:"catalogUpdate"`
	Node    cost  `json:"nodeFailure"`
}

// cost is what something takes.
type cost struct {
	// Concerned are the Subscriptions that it concerns.
	Concerned  int            `json:"concerned"`
	Reconciles int            `json:"reconciles"`
	Resolves   int            `json:"resolves"`
	Reads      int            `json:"reads"` // of the API server
	Writes     int            `json:"writes"`
	ByVerb     map[string]int `json:"writesByKind,omitempty"`
	ByName     map[string]int `json:"reconcilesByController,omitempty"`
	// Delivered are the changes that watches delivered.
	Delivered int   `json:"delivered"`
	Time      spent `json:"time"`
}

// shardFigures are those of several managers that have the namespaces between them.
type shardFigures struct {
	Shards int `json:"shards"`
	// Largest is what the manager that holds most holds, and Slowest the time of the slowest start, with its lists.
	Largest int64 `json:"largestBytes"`
	Slowest spent `json:"slowest"`
	// Keys are how many keys all managers reconciled at their start, Writes what they wrote then.
	Keys   int `json:"keys"`
	Writes int `json:"writes"`
}

// measurement measures in one world that grows.
type measurement struct {
	size
	progress io.Writer
	// files of profiles, "" for none
	heapProfile, startProfile, updateProfile string

	world *world
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// others is the heap without a manager. What objects of an earlier one had in common with those to come counts as
// theirs.
func others() int64 {
	share.InCommon.Forget()
	size, next := heap(), heap()
	for next < size { // what an object had is let go of some time after it is
		size, next = next, heap()
	}
	return next
}

func (m *measurement) figures(ctx context.Context, tenants, shards []int) (f figures, err error) {
	empty := heap()
	if m.world, err = newWorld(m.size); err != nil {
		return f, err
	}
	content := heap() - empty
	if tenants[0] < m.world.templates() {
		return f, fmt.Errorf("--sizes %d: want at least %d, which have all packages between them", tenants[0], m.world.templates())
	}
	m.say("install the operators of the first %d tenants", m.world.templates())
	builder := newManager(m.world.server, m.world.options())
	builder.cache.shared = true
	if err := builder.load(); err != nil {
		return f, err
	}
	if err := builder.start(ctx); err != nil {
		return f, err
	}
	if err := m.world.install(ctx); err != nil {
		return f, err
	}
	m.world.server.managers, builder = nil, nil
	for i, n := range tenants {
		if err := m.world.grow(ctx, n); err != nil {
			return f, err
		}
		of, err := m.one(ctx, i, n == tenants[len(tenants)-1])
		if err != nil {
			return f, err
		}
		of.Namespaces, of.Content = n, content
		f.Sizes = append(f.Sizes, of)
	}
	for _, n := range shards {
		of, err := m.shards(ctx, n)
		if err != nil {
			return f, err
		}
		f.Shards = append(f.Shards, of)
	}
	return f, nil
}

func (m *measurement) say(format string, args ...any) { fmt.Fprintf(m.progress, format+"\n", args...) }

// converge tells a manager what its cache holds, and lets it reconcile until nothing is left to do.
func (m *measurement) converge(ctx context.Context, manager *manager) error {
	if err := manager.start(ctx); err != nil {
		return err
	}
	return m.world.settle(ctx)
}

// settles is how long after a change a manager looks once more.
const settles = 10 * time.Minute

// one measures a manager of all namespaces in the world as it is. Each has another package of the catalog move on.
func (m *measurement) one(ctx context.Context, round int, last bool) (f sizeFigures, err error) {
	w := m.world
	f.Objects = len(w.server.Objects())
	csvs, err := olmcore.List[*v1alpha1.ClusterServiceVersion](ctx, w.server.Cluster, "", nil)
	if err != nil {
		return f, err
	}
	for _, c := range csvs {
		if c.IsCopied() {
			f.Copies++
		}
	}
	f.Subscriptions = m.subscribed("")
	m.say("%d objects, %d Subscriptions: start a manager", f.Objects, f.Subscriptions)
	before := others()
	manager := newManager(w.server, w.options())
	stop, err := profileCPU(m.startProfile, last)
	if err != nil {
		return f, err
	}
	defer stop()
	if err := manager.load(); err != nil {
		return f, err
	}
	f.List = manager.listing
	cached := heap()
	f.Cache = cached - before
	if f.Start, err = m.cost(ctx, manager, func() error { return m.converge(ctx, manager) }); err != nil {
		return f, err
	}
	stop()
	f.Memory = heap() - cached
	if err := m.profile(); err != nil {
		return f, err
	}
	m.say("let it rest")
	if err := w.runFor(ctx, settles); err != nil {
		return f, err
	}
	if f.Rest, err = m.cost(ctx, manager, func() error { return w.runFor(ctx, time.Hour) }); err != nil {
		return f, err
	}
	m.say("publish a version")
	moved := w.pkg(round)
	if stop, err = profileCPU(m.updateProfile, last); err != nil {
		return f, err
	}
	defer stop()
	if f.Update, err = m.cost(ctx, manager, func() error { return m.update(ctx, manager, moved) }); err != nil {
		return f, err
	}
	stop()
	f.Update.Concerned = m.subscribed(moved)
	m.say("let a node fail")
	f.Node, err = m.cost(ctx, manager, func() error { return m.failNode(ctx) })
	w.server.managers = nil
	return f, err
}

// subscribed is how many Subscriptions there are to a package, or to all.
func (m *measurement) subscribed(pkg string) (n int) {
	subs, err := olmcore.List[*v1alpha1.Subscription](context.Background(), m.world.server.Cluster, "", nil)
	if err != nil {
		return -1
	}
	for _, s := range subs {
		if pkg == "" || s.Spec.Package == pkg {
			n++
		}
	}
	return n
}

// cost counts what a manager does.
func (m *measurement) cost(_ context.Context, manager *manager, do func() error) (c cost, err error) {
	writes, reads, resolves, reconciles := maps.Clone(m.world.server.writes), manager.cache.reads, m.world.resolves, maps.Clone(manager.reconciles)
	delivered, encoding, began := manager.delivered, manager.encoding, now()
	err = do()
	c.Time = now().minus(began).minus(manager.encoding.minus(encoding))
	c.Delivered = manager.delivered - delivered
	c.Reads, c.Resolves = manager.cache.reads-reads, m.world.resolves-resolves
	c.ByVerb, c.Writes = difference(writes, m.world.server.writes)
	c.ByName, c.Reconciles = difference(reconciles, manager.reconciles)
	return c, err
}

func difference(before, after map[string]int) (of map[string]int, sum int) {
	of = map[string]int{}
	for key, n := range after {
		if n != before[key] {
			of[key] = n - before[key]
			sum += n - before[key]
		}
	}
	return of, sum
}

// update publishes a version of a package: the catalog's image moves on, and with it its content.
func (m *measurement) update(ctx context.Context, manager *manager, pkg string) error {
	w := m.world
	w.heads[pkg]++
	if err := w.publish(); err != nil {
		return err
	}
	err := fake.Edit(w.server.Cluster, catalog.Namespace, catalog.Name, func(cs *v1alpha1.CatalogSource) {
		cs.Spec.Image += "0"
	})
	if err != nil {
		return err
	}
	return w.runFor(ctx, 15*time.Minute)
}

// failNode makes the node of the registry Pod silent: its Pods are not ready any more, and those of operators go.
func (m *measurement) failNode(ctx context.Context) error {
	name := ""
	for _, o := range m.world.server.Objects() {
		if pod := registryPod(o); pod != nil {
			name = pod.Spec.NodeName
		}
	}
	if err := m.world.server.Node(name).Fail(); err != nil {
		return err
	}
	if err := m.world.runFor(ctx, 15*time.Minute); err != nil {
		return err
	}
	if err := m.world.server.Node(name).Heal(); err != nil { // what follows counts, too
		return err
	}
	return m.world.runFor(ctx, 15*time.Minute)
}

// shards measures managers that have the namespaces between them, one after the other.
func (m *measurement) shards(ctx context.Context, count int) (f shardFigures, err error) {
	w := m.world
	f.Shards = count
	m.say("%d managers", count)
	for _, namespaces := range m.split(count) {
		before, written := others(), total(w.server.writes)
		manager := newManager(w.server, w.options(namespaces...))
		if err := manager.load(); err != nil {
			return f, err
		}
		start, err := m.cost(ctx, manager, func() error { return m.converge(ctx, manager) })
		if err != nil {
			return f, err
		}
		if took := manager.listing.plus(start.Time); took.Wall > f.Slowest.Wall {
			f.Slowest = took
		}
		f.Largest = max(f.Largest, heap()-before)
		f.Keys += total(manager.reconciles)
		f.Writes += total(w.server.writes) - written
		w.server.managers = nil
		runtime.KeepAlive(manager)
	}
	return f, nil
}

// split returns the namespaces of each shard; one shard has no list, and with it all that is the cluster's.
func (m *measurement) split(count int) [][]string {
	if count == 1 {
		return [][]string{nil}
	}
	all := []string{catalogNamespace, globalNamespace}
	for n := range m.world.tenants {
		all = append(all, tenant(n))
	}
	parts := make([][]string, count)
	for i, namespace := range all {
		parts[i%count] = append(parts[i%count], namespace)
	}
	return parts
}

func total(counts map[string]int) (sum int) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		sum += counts[key]
	}
	return sum
}
