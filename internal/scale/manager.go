// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	catalogs "github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// manager runs the controllers over one server with a cache of its own, one reconcile after the other.
type manager struct {
	cache   *cache
	set     *controllers.Set
	runners []*controller.Runner
	queues  []queue
	server  *server
	// clients are the gRPC clients of CatalogSources.
	clients map[types.NamespacedName]*catalogs.Connection
	// reconciles are counted by controller, delivered are the changes that watches delivered.
	reconciles map[string]int
	delivered  int
	// listing is what decoding of the lists took, encoding that in which the server made texts of changes, which is not
	// the manager's.
	listing, encoding spent
	failure           error
}

// queue is a work queue with timers: the keys that wait, in their order, and when others are to be looked at again.
type queue struct {
	keys   []types.NamespacedName
	queued map[types.NamespacedName]bool
	timers map[types.NamespacedName]time.Time
	fails  map[types.NamespacedName]int
}

func (q *queue) add(keys ...types.NamespacedName) {
	for _, key := range keys {
		if !q.queued[key] {
			q.queued[key] = true
			q.keys = append(q.keys, key)
		}
	}
}

func (q *queue) pop() types.NamespacedName {
	key := q.keys[0]
	q.keys = q.keys[1:]
	delete(q.queued, key)
	delete(q.timers, key)
	return key
}

// newManager makes a manager that has not read anything.
func newManager(s *server, o controllers.Options) *manager {
	m := &manager{server: s, reconciles: map[string]int{}, clients: map[types.NamespacedName]*catalogs.Connection{}}
	o.Connection = m.connection
	m.cache = newCache(o.Watched(), s.Cluster)
	m.set = controllers.New(&o)
	m.runners = m.set.Runners(m.cache, s)
	m.queues = make([]queue, len(m.runners))
	for i, r := range m.runners {
		r.Cached = m.cache.watched.Holds
		m.queues[i] = queue{queued: map[types.NamespacedName]bool{}, timers: map[types.NamespacedName]time.Time{}, fails: map[types.NamespacedName]int{}}
	}
	return m
}

// connection plays the gRPC client of a CatalogSource, which is connected while its Pod is ready.
func (m *manager) connection(in catalogs.Input, address string) *catalogs.Connection {
	key := types.NamespacedName{Namespace: in.CatalogSource.Namespace, Name: in.CatalogSource.Name}
	if address == "" {
		delete(m.clients, key)
		return nil
	}
	state := "TRANSIENT_FAILURE"
	if slices.ContainsFunc(in.Pods.Items, ready) {
		state = "READY"
	}
	c := m.clients[key]
	if c == nil || c.Address != address || c.State != state {
		c = &catalogs.Connection{Address: address, State: state, LastTransition: in.Now, LastConnect: in.Now}
		m.clients[key] = c
	}
	return c
}

func ready(pod *corev1.Pod) bool {
	return registryPod(pod) != nil && pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// listed is how many objects a list has at most, as those of informers.
const listed = 500

// load fills the cache with what there is, as the lists of informers do: what the server encodes is decoded on all
// processors, as that of different kinds is by a client. Watches go on from there.
func (m *manager) load() error {
	m.server.view.Sync()
	held := slices.DeleteFunc(m.server.Objects(), func(o olmcore.Object) bool { return !m.cache.watched.Holds(olmcore.GVKOf(o), o.GetNamespace()) })
	for objects := range slices.Chunk(held, listed) {
		kept := objects
		if !m.cache.shared {
			texts, err := each(objects, encoded)
			if err != nil {
				return err
			}
			began := now()
			kept, err = each(texts, m.cache.received)
			m.listing = m.listing.plus(now().minus(began))
			if err != nil {
				return err
			}
		}
		began := now()
		for _, o := range kept {
			m.cache.put(o)
		}
		m.listing = m.listing.plus(now().minus(began))
	}
	return nil
}

// each calls a function of each value, as many at a time as there are processors.
func each[From, To any](from []From, of func(From) (To, error)) ([]To, error) {
	to, failed, next := make([]To, len(from)), make([]error, len(from)), atomic.Int64{}
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(from); i = int(next.Add(1)) - 1 {
				to[i], failed[i] = of(from[i])
			}
		})
	}
	all.Wait()
	return to, errors.Join(failed...)
}

// start tells the controllers of all that the cache holds, and hears of changes from then on.
func (m *manager) start(ctx context.Context) error {
	m.server.managers = append(m.server.managers, m)
	for i, r := range m.runners {
		m.queues[i].add(r.Always...)
	}
	for _, informer := range m.cache.kinds {
		for _, o := range informer.objects {
			if err := m.tell(ctx, controller.Change{New: o, Initial: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *manager) tell(ctx context.Context, change controller.Change) error {
	change.At = m.server.Now()
	for i, r := range m.runners {
		keys, err := r.Changed(ctx, m.cache, change)
		if err != nil {
			return err
		}
		m.queues[i].add(keys...)
	}
	return nil
}

// changed is what a watch delivers.
func (m *manager) changed(old, next olmcore.Object) {
	m.delivered++
	change := controller.Change{Old: old, New: next}
	if next == nil {
		change = controller.Change{New: old, Deleted: true}
	}
	if err := m.tell(context.Background(), change); err != nil {
		m.failure = errors.Join(m.failure, err)
	}
}

// run reconciles until all queues are empty at this instant, a key of each controller in turn, and reports whether
// there was any.
func (m *manager) run(ctx context.Context) (any bool, err error) {
	for again := true; again; {
		again = false
		for i, r := range m.runners {
			q := &m.queues[i]
			if len(q.keys) == 0 {
				continue
			}
			again, any = true, true
			key := q.pop()
			m.reconciles[r.Name]++
			now := m.server.Now()
			wait, err := r.Run(ctx, key, now)
			switch {
			case errors.Is(err, olmcore.ErrInvalidInput):
				return any, fmt.Errorf("%s %s: %w", r.Name, key, err)
			case err != nil:
				q.fails[key]++
				wait = min(30*time.Second, 50*time.Millisecond<<min(q.fails[key], 10))
			default:
				delete(q.fails, key)
			}
			if wait > 0 {
				q.timers[key] = now.Add(wait)
			}
		}
	}
	return any, errors.Join(m.failure, m.server.failure)
}

// due queues the keys whose time has come, and returns when the next one's does; zero for none.
func (m *manager) due(now time.Time) (next time.Time) {
	for i := range m.queues {
		q := &m.queues[i]
		var keys []types.NamespacedName
		for key, at := range q.timers {
			switch {
			case !at.After(now):
				keys = append(keys, key)
			case next.IsZero() || at.Before(next):
				next = at
			}
		}
		slices.SortFunc(keys, func(a, b types.NamespacedName) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		q.add(keys...)
	}
	return next
}
