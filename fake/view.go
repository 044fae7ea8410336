// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/olmcore"
)

// maxLag is the number of events of one kind that a View can be behind. A View further back is brought to the present,
// as a watch that fell too far behind lists anew.
const maxLag = 1024

// View is a reconciler's cache of the cluster: an olmcore.Reader that is behind, for each kind by a number of events of
// its own, and only ever moves forward. A new View is up to date; from then on it moves when it is told to.
type View struct {
	// Watch, when set, is told each event that the view takes in after it did, as a watch is: old is nil for a new object,
	// next for one that is gone. A Restart tells nothing.
	Watch func(old, next olmcore.Object)

	name    string
	cluster *Cluster
	tables  map[schema.GroupKind]*store.Table
	// seen counts, for each kind, the events that the view has taken in.
	seen map[schema.GroupKind]int
	// moves counts what changed the view.
	moves uint64
}

// eventLog holds the changes of one kind that some View has not seen yet.
type eventLog struct {
	dropped int // events before the first one kept
	events  []change
}

type change struct {
	kind      *store.Kind
	old, next olmcore.Object // next is nil for a removal
}

var _ olmcore.Reader = (*View)(nil)

// View returns the view of that name, as it is when it exists already.
func (c *Cluster) View(name string) *View {
	for _, v := range c.views {
		if v.name == name {
			return v
		}
	}
	v := &View{name: name, cluster: c}
	c.views = append(c.views, v)
	v.Restart()
	return v
}

// Close forgets the view, so that the cluster keeps no events for it.
func (v *View) Close() {
	v.cluster.views = slices.DeleteFunc(v.cluster.views, func(w *View) bool { return w == v })
	v.cluster.compact()
}

// Restart makes the view start afresh at the present, as a controller that starts lists everything.
func (v *View) Restart() {
	v.moves++
	v.tables = map[schema.GroupKind]*store.Table{}
	v.seen = map[schema.GroupKind]int{}
	for k, t := range v.cluster.store.Tables() {
		if t.Count() > 0 {
			v.tables[k] = t.Clone()
		}
	}
	for k, log := range v.cluster.logs {
		v.seen[k] = log.end()
	}
}

// Sync brings every kind to the present, one after the other in their order.
func (v *View) Sync() {
	for _, gvk := range v.Behind() {
		v.syncKind(gvk.GroupKind())
	}
	v.cluster.compact()
}

// SyncKind brings one kind to the present.
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
	log := v.cluster.logs[k]
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

// Lag returns how many events of a kind the view has not taken in.
func (v *View) Lag(gvk schema.GroupVersionKind) int {
	k := gvk.GroupKind()
	if log := v.cluster.logs[k]; log != nil {
		return log.end() - v.seen[k]
	}
	return 0
}

// Behind returns the kinds with events that the view has not taken in, sorted.
func (v *View) Behind() []schema.GroupVersionKind {
	var behind []schema.GroupVersionKind
	for k, log := range v.cluster.logs {
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

// table returns the view's own contents of a kind. Which kinds are served is
// discovery, not cached content: there a view is never behind.
func (v *View) table(gvk schema.GroupVersionKind) (*store.Table, error) {
	served, err := v.cluster.store.Served(gvk)
	if err != nil {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	if t := v.tables[gvk.GroupKind()]; t != nil {
		return t, nil
	}
	return store.NewTable(served.Kind), nil
}

// record logs a change when some view may need it.
func (c *Cluster) record(t *store.Table, current, next olmcore.Object) {
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

// compact drops the events that every view has seen.
func (c *Cluster) compact() {
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
