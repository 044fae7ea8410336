// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// memory contains what a Runner remembers of its keys. It is safe for concurrent use.
type memory struct {
	mu   sync.RWMutex
	keys map[types.NamespacedName]remembered
}

// remembered is what a Runner remembers of a key between two reconciles.
type remembered struct {
	results  olmcore.LastResults
	reported []olmcore.Diagnostic
	// replaced and deleted contain the objects of the last writes, as they were before. at is when they were written.
	replaced, deleted []olmcore.Ref
	at                time.Time
}

func (m *memory) get(key types.NamespacedName) remembered {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.keys[key]
}

// set replaces the memory of a key. A key without results, Diagnostics or writes needs none.
func (m *memory) set(key types.NamespacedName, next remembered) {
	if len(next.results) == 0 && len(next.reported) == 0 && len(next.replaced) == 0 && len(next.deleted) == 0 {
		m.drop(key)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys = map[types.NamespacedName]remembered{}
	}
	m.keys[key] = next
}

func (m *memory) drop(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.keys, key)
}

// after adds the objects that the actions wrote or deleted.
func (m remembered) after(actions []olmcore.Action) remembered {
	for _, a := range actions {
		verb, target, _ := a.Describe()
		result, ran := m.results[target.Key()]
		written, met := ran && result.Class == olmcore.ClassNone, ran && result.Class == olmcore.Conflict
		switch {
		case verb == olmcore.VerbDelete && written:
			m.deleted = append(m.deleted, target)
		case verb == olmcore.VerbDelete && target.ResourceVersion == "":
		case written || met:
			m.replaced = append(m.replaced, target)
		}
	}
	return m
}

// isStale reports whether the cache still contains an object as it was before the last writes of the key.
func (r *Runner) isStale(ctx context.Context, last remembered, now time.Time) bool {
	if r.Cached == nil {
		return false
	}
	age := now.Sub(last.at)
	if age < 0 {
		return false // the clock was set back, so that the age is unknown
	}
	return age <= afterWrites && slices.ContainsFunc(last.replaced, func(ref olmcore.Ref) bool { return r.containsOld(ctx, ref) }) ||
		age <= afterDeletes && slices.ContainsFunc(last.deleted, func(ref olmcore.Ref) bool { return r.containsDeleted(ctx, ref) })
}

// containsOld reports whether the cache contains an object as it was before a write.
func (r *Runner) containsOld(ctx context.Context, ref olmcore.Ref) bool {
	if !r.Cached(ref.GVK(), ref.Namespace) {
		return false
	}
	o, err := r.Reader.Get(ctx, ref.GVK(), ref.Namespace, ref.Name)
	if err != nil {
		return ref.ResourceVersion == "" && apierrors.IsNotFound(err) // the object was created
	}
	return o.GetResourceVersion() == ref.ResourceVersion
}

// containsDeleted reports whether the cache contains an object that was deleted, without a deletionTimestamp.
func (r *Runner) containsDeleted(ctx context.Context, ref olmcore.Ref) bool {
	if !r.Cached(ref.GVK(), ref.Namespace) {
		return false
	}
	o, err := r.Reader.Get(ctx, ref.GVK(), ref.Namespace, ref.Name)
	return err == nil && o.GetUID() == ref.UID && o.GetDeletionTimestamp() == nil
}
