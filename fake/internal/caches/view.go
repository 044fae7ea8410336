// SPDX-License-Identifier: Apache-2.0

// Package caches contains the Views of a simulated cluster: caches that are stale, kind by kind.
package caches

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// maxLag is the number of events of one kind by which a View can be stale. An older View is brought up to date, as a
// watch that is too old lists again.
const maxLag = 1024

// Caches contains the Views of a cluster, and the changes that some View has not taken in yet.
type Caches struct {
	store *store.Store
	views []*View
	logs  map[schema.GroupKind]*eventLog
}

// New returns caches of a store, without a View.
func New(s *store.Store) *Caches { return &Caches{store: s, logs: map[schema.GroupKind]*eventLog{}} }

// View is the cache of a reconciler: an olmcore.Reader that is stale, for each kind by its own number of events. It
// only moves forward, when a method is called. A new View is up to date.
type View struct {
	// Watch, if set, is called after the view has taken in an event. old is nil for a new object, next for a removed one.
	// Restart does not call it.
	Watch func(old, next olmcore.Object)

	name   string
	caches *Caches
	tables map[schema.GroupKind]*store.Table
	// seen counts the events of each kind that the view has taken in.
	seen map[schema.GroupKind]int
	// moves counts the changes of the view.
	moves uint64
}

// eventLog contains the changes of one kind that some View has not taken in yet.
type eventLog struct {
	dropped int // events before the first one kept
	events  []change
}

type change struct {
	kind      *store.Kind
	old, next olmcore.Object // next is nil for a removal
}

var _ olmcore.Reader = (*View)(nil)

// View returns the view of a name. A new one is up to date.
func (c *Caches) View(name string) *View {
	for _, v := range c.views {
		if v.name == name {
			return v
		}
	}
	v := &View{name: name, caches: c}
	c.views = append(c.views, v)
	v.Restart()
	return v
}

// Close removes the view, so that no events are kept for it.
func (v *View) Close() {
	v.caches.views = slices.DeleteFunc(v.caches.views, func(w *View) bool { return w == v })
	v.caches.compact()
}

// Restart brings the view up to date, as the list of a controller that starts.
func (v *View) Restart() {
	v.moves++
	v.tables = map[schema.GroupKind]*store.Table{}
	v.seen = map[schema.GroupKind]int{}
	for k, t := range v.caches.store.All() {
		if t.Count() > 0 {
			v.tables[k] = t.Clone()
		}
	}
	for k, log := range v.caches.logs {
		v.seen[k] = log.end()
	}
}

// Sync takes in all events, one kind after the other in their order.
func (v *View) Sync() {
	for _, gvk := range v.Behind() {
		v.syncKind(gvk.GroupKind())
	}
	v.caches.compact()
}

// SyncKind takes in all events of one kind.
func (v *View) SyncKind(gvk schema.GroupVersionKind) {
	v.syncKind(gvk.GroupKind())
}

func (v *View) syncKind(k schema.GroupKind) {
	for v.next(k) {
	}
}

// Next takes in the next event of one kind and reports whether there was one.
func (v *View) Next(gvk schema.GroupVersionKind) bool { return v.next(gvk.GroupKind()) }

func (v *View) next(k schema.GroupKind) bool {
	log := v.caches.logs[k]
	if log == nil || v.seen[k] >= log.end() {
		return false
	}
	e := log.events[v.seen[k]-log.dropped]
	v.seen[k]++
	v.moves++
	t := v.tables[k]
	if t == nil {
		t = store.NewTable(e.kind)
		v.tables[k] = t
	}
	t.Kind = e.kind
	if e.next == nil {
		t.Remove(e.old.GetNamespace(), e.old.GetName())
	} else {
		t.Put(e.next)
	}
	if v.Watch != nil {
		v.Watch(e.old, e.next)
	}
	return true
}

// Lag returns the number of events of a kind that the view has not taken in.
func (v *View) Lag(gvk schema.GroupVersionKind) int {
	k := gvk.GroupKind()
	if log := v.caches.logs[k]; log != nil {
		return log.end() - v.seen[k]
	}
	return 0
}

// Behind returns the kinds with events that the view has not taken in, sorted.
func (v *View) Behind() []schema.GroupVersionKind {
	var behind []schema.GroupVersionKind
	for k, log := range v.caches.logs {
		if v.seen[k] < log.end() {
			behind = append(behind, log.events[len(log.events)-1].kind.GVK)
		}
	}
	slices.SortFunc(behind, func(a, b schema.GroupVersionKind) int {
		return olmcore.Key{Kind: a.Kind, Group: a.Group}.Compare(olmcore.Key{Kind: b.Kind, Group: b.Group})
	})
	return behind
}

// Get implements olmcore.Reader.
func (v *View) Get(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	t, err := v.table(gvk)
	if err != nil {
		return nil, err
	}
	return t.Read(gvk, namespace, name)
}

// List implements olmcore.Reader.
func (v *View) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	t, err := v.table(gvk)
	if err != nil {
		return nil, err
	}
	return t.ReadAll(gvk, namespace, selector), nil
}

// table returns the objects of a kind in the view. The served kinds are discovery and not cached, so they are never
// stale.
func (v *View) table(gvk schema.GroupVersionKind) (*store.Table, error) {
	served, err := v.caches.store.Served(gvk)
	if err != nil {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	if t := v.tables[gvk.GroupKind()]; t != nil {
		return t, nil
	}
	return store.NewTable(served.Kind), nil
}

// Record records a change, if there is a view.
func (c *Caches) Record(t *store.Table, current, next olmcore.Object) {
	if len(c.views) == 0 {
		return
	}
	k := t.Kind.GroupKind()
	log := c.logs[k]
	if log == nil {
		log = &eventLog{}
		c.logs[k] = log
	}
	log.events = append(log.events, change{t.Kind, current, next})
	if len(log.events) < 2*maxLag {
		return
	}
	for _, v := range c.views {
		for log.end()-v.seen[k] > maxLag && v.next(k) {
		}
	}
	c.compact()
}

func (l *eventLog) end() int { return l.dropped + len(l.events) }

// compact drops the events that every view has taken in.
func (c *Caches) compact() {
	for k, log := range c.logs {
		least := log.end()
		for _, v := range c.views {
			least = min(least, v.seen[k])
		}
		if n := least - log.dropped; n > 0 {
			log.events = slices.Clone(log.events[n:])
			log.dropped = least
		}
	}
}

// Moves returns the number of changes of the view. Equal numbers mean that the view did not change in between.
func (v *View) Moves() uint64 { return v.moves }

// Seen returns the number of events of a kind that the view has taken in, since the first View of the cluster.
func (v *View) Seen(k schema.GroupKind) int { return v.seen[k] }

// SyncUntil takes in events of a kind until Seen returns at least a number, or no event is left.
func (v *View) SyncUntil(k schema.GroupKind, seen int) {
	for v.seen[k] < seen && v.next(k) {
	}
	v.caches.compact()
}
