// SPDX-License-Identifier: Apache-2.0

package olmdynamic

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// Bounds of what is remembered about kinds that are not served. The names of kinds come from bundles and
// ClusterServiceVersions, so a tenant can choose any.
const (
	firstUnserved = time.Second
	maxUnserved   = time.Minute
	// maxUnservedKinds bounds the number of kinds, maxUnservedName the length of a group, a version and a kind together.
	maxUnservedKinds = 1000
	maxUnservedName  = 512
)

// unserved remembers the kinds that the API server does not serve. The first answer holds for firstUnserved, and each
// repeated one for twice as long, up to maxUnserved: this bounds how long a kind stays hidden if the change of its
// CustomResourceDefinition or APIService is missed. The zero value is empty. It is safe for concurrent use.
type unserved struct {
	// now returns the time; nil means time.Now.
	now func() time.Time

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]refusal
	// changes counts the calls of forget. An answer to a question that was asked before a change is not remembered.
	changes int
}

// refusal is the answer that a kind is not served.
type refusal struct {
	err   error
	until time.Time
	lasts time.Duration
}

func (u *unserved) time() time.Time {
	if u.now != nil {
		return u.now()
	}
	return time.Now()
}

// recall returns the number of changes so far, and the remembered error of a kind: nil if the API server must be asked.
func (u *unserved) recall(gvk schema.GroupVersionKind) (changes int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r, known := u.kinds[gvk]; known && u.time().Before(r.until) {
		return u.changes, r.err
	}
	return u.changes, nil
}

// learn takes the answer about a kind to a question that was asked after a number of changes.
func (u *unserved) learn(gvk schema.GroupVersionKind, err error, changes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.kinds, gvk)
	}
	if olmcore.Classify(err) != olmcore.NoMatch {
		return
	}
	if changes != u.changes || len(gvk.Group)+len(gvk.Version)+len(gvk.Kind) > maxUnservedName {
		return
	}
	now, before := u.time(), u.kinds[gvk]
	if now.Before(before.until) {
		return // another question was answered meanwhile
	}
	if before.lasts == 0 {
		u.makeRoom(now)
	}
	if u.kinds == nil {
		u.kinds = map[schema.GroupVersionKind]refusal{}
	}
	lasts := min(max(2*before.lasts, firstUnserved), maxUnserved)
	u.kinds[gvk] = refusal{err: err, until: now.Add(lasts), lasts: lasts}
}

// makeRoom drops what no longer holds if there are as many kinds as there may be, or any kind if all hold.
func (u *unserved) makeRoom(now time.Time) {
	if len(u.kinds) < maxUnservedKinds {
		return
	}
	for gvk, r := range u.kinds {
		if !now.Before(r.until) {
			delete(u.kinds, gvk)
		}
	}
	for gvk := range u.kinds {
		if len(u.kinds) < maxUnservedKinds {
			return
		}
		delete(u.kinds, gvk)
	}
}

// forget drops what is remembered about a group.
func (u *unserved) forget(group string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changes++
	for gvk := range u.kinds {
		if gvk.Group == group {
			delete(u.kinds, gvk)
		}
	}
}

// asked returns the answer of the API server about a kind. It does not ask while the kind is known not to be served.
func asked[T any](c *Cluster, gvk schema.GroupVersionKind, ask func(*meta.RESTMapping) (T, error)) (answer T, err error) {
	changes, err := c.unserved.recall(gvk)
	if err != nil {
		return answer, err
	}
	mapping, err := c.mapping(gvk)
	if err == nil {
		answer, err = ask(mapping)
	}
	c.unserved.learn(gvk, err, changes)
	return answer, err
}

// Changed takes note that an object was added, changed or deleted. After a change of a CustomResourceDefinition or an
// APIService, the next read of a kind of its group asks the API server again. A program that watches these kinds calls
// it; without it a kind that was not served is read again after at most a minute.
func (c *Cluster) Changed(o olmcore.Object) {
	key := olmcore.KeyOf(o)
	c.changed(schema.GroupKind{Group: key.Group, Kind: key.Kind}, key.Name)
}

// changed is Changed for an object of a kind and a name. Both kinds have names that end with a dot and their group.
func (c *Cluster) changed(kind schema.GroupKind, name string) {
	switch kind {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		_, group, _ := strings.Cut(name, ".")
		c.unserved.forget(group)
	}
}
