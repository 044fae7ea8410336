// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// eventLog is everything that changed, in the order in which it was noticed.
type eventLog struct {
	known  map[olmcore.Key]olmcore.Object
	events []event
	grown  chan struct{} // closed when there is more
}

type event struct {
	kind      string // ADDED, MODIFIED or DELETED
	version   uint64
	old, next olmcore.Object
}

// take compares the cluster with what is known of it: a stored object never changes, so that comparing pointers is
// enough.
func (l *eventLog) take(c *fake.Cluster) {
	before := len(l.events)
	current := map[olmcore.Key]olmcore.Object{}
	for _, o := range c.Objects() {
		key := olmcore.KeyOf(o)
		current[key] = o
		switch old := l.known[key]; {
		case old == o:
		case old != nil && old.GetUID() == o.GetUID():
			l.events = append(l.events, event{"MODIFIED", versionOf(o), old, o})
		default:
			if old != nil {
				l.events = append(l.events, event{"DELETED", versionOf(o) - 1, old, deleted(old, versionOf(o)-1)})
			}
			l.events = append(l.events, event{"ADDED", versionOf(o), nil, o})
		}
	}
	now, _ := strconv.ParseUint(c.ResourceVersion(), 10, 64)
	for _, key := range slices.SortedFunc(maps.Keys(l.known), olmcore.Key.Compare) {
		if old := l.known[key]; current[key] == nil {
			l.events = append(l.events, event{"DELETED", now, old, deleted(old, now)})
		}
	}
	if l.known = current; len(l.events) > before {
		slices.SortStableFunc(l.events[before:], func(a, b event) int { return cmp.Compare(a.version, b.version) })
		close(l.grown)
		l.grown = make(chan struct{})
	}
}

func deleted(o olmcore.Object, version uint64) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	o.SetResourceVersion(strconv.FormatUint(version, 10))
	return o
}

func versionOf(o olmcore.Object) uint64 {
	version, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return version
}

// watcher is one watch.
type watcher struct {
	s     *Server
	q     *request
	next  int // the first event that was not looked at
	first []event
	// marked: the client asked for the end of the initial events.
	marked  bool
	version uint64
	timeout time.Duration
}

func (s *Server) watch(q *request) (*watcher, error) {
	query := q.URL.Query()
	w := &watcher{s: s, q: q, marked: query.Get("sendInitialEvents") == "true", timeout: time.Hour}
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil {
		w.timeout = time.Duration(seconds) * time.Second
	}
	s.log.take(s.cluster)
	w.version, _ = strconv.ParseUint(s.cluster.ResourceVersion(), 10, 64)
	since := query.Get("resourceVersion")
	if since == "" || since == "0" || w.marked {
		objects, err := s.cluster.List(q.Context(), q.gvk, q.namespace, q.selector)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			w.first = append(w.first, event{"ADDED", versionOf(o), nil, o})
		}
		w.next = len(s.log.events)
		return w, nil
	}
	from, err := strconv.ParseUint(since, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for w.next < len(s.log.events) && s.log.events[w.next].version <= from {
		w.next++
	}
	return w, nil
}

// run sends events until the client or the time is gone.
func (w *watcher) run(out http.ResponseWriter) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusOK)
	timeout := time.NewTimer(w.timeout)
	defer timeout.Stop()
	encoder := json.NewEncoder(out)
	events := w.first
	for first := true; ; first = false {
		for _, e := range events {
			if w.send(encoder, e) != nil {
				return
			}
		}
		if first && w.marked && w.mark(encoder) != nil {
			return
		}
		_ = http.NewResponseController(out).Flush()
		w.s.mu.Lock()
		events, w.next = slices.Clone(w.s.log.events[w.next:]), len(w.s.log.events)
		grown := w.s.log.grown
		w.s.mu.Unlock()
		if len(events) > 0 {
			continue
		}
		select {
		case <-grown:
		case <-timeout.C:
			return
		case <-w.q.Context().Done():
			return
		}
	}
}

// send writes one event as this watch sees it: an object that the selector does not take any more is gone.
func (w *watcher) send(encoder *json.Encoder, e event) error {
	wanted := func(o olmcore.Object) bool {
		return o != nil && olmcore.GVKOf(o).GroupKind() == w.q.gvk.GroupKind() &&
			(w.q.namespace == "" || o.GetNamespace() == w.q.namespace) && w.q.selector.Matches(labelsOf(o))
	}
	kind, before := e.kind, wanted(e.old)
	switch after := wanted(e.next); {
	case !after && !before:
		return nil
	case kind == "MODIFIED" && !before:
		kind = "ADDED"
	case kind == "MODIFIED" && !after:
		kind = "DELETED"
	}
	o, err := w.s.encode(e.next)
	if err != nil {
		return err
	}
	o["apiVersion"] = w.q.gvk.GroupVersion().String()
	return encoder.Encode(map[string]any{"type": kind, "object": o})
}

// mark says that all that was there has been sent.
func (w *watcher) mark(encoder *json.Encoder) error {
	apiVersion, kind := w.q.gvk.ToAPIVersionAndKind()
	return encoder.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{
			"resourceVersion": strconv.FormatUint(w.version, 10),
			"annotations":     map[string]any{"k8s.io/initial-events-end": "true"},
		},
	}})
}
