// SPDX-License-Identifier: Apache-2.0

// Package checkpoint makes a call at rest cheap: a Checkpoint remembers an Input by the versions of its objects, and
// Coverage compares the next Input with it.
package checkpoint

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/nilcheck"
)

// Checkpoint is documented as olmcore.Checkpoint.
type Checkpoint struct {
	from, until time.Time // until is zero for an answer without a deadline
	// The fields of the Input that the Cover functions recorded, in the order of the calls.
	versions []version
	lists    []list
	values   []any
}

// clipped returns the Checkpoint without spare capacity, because callers keep one for each key of a cluster.
func (c *Checkpoint) clipped() *Checkpoint {
	return &Checkpoint{c.from, c.until, slices.Clone(c.versions), slices.Clone(c.lists), slices.Clone(c.values)}
}

// version identifies the observed version of an object. It is empty if the object does not exist.
type version struct {
	uid             types.UID
	resourceVersion string
}

// list is the length of a list. It is negative if the list was not read.
type list int32

func listOf(length int, complete bool) list {
	if complete {
		return list(length)
	}
	return list(-1 - length)
}

// Coverage records the fields of an Input for a new Checkpoint, or compares them with an existing one. Each Input has
// one method that passes every field to the Cover functions, always in the same order. A field that the method omits is
// not compared; the law invariant.CheckpointSound finds it.
type Coverage struct {
	made, compared          *Checkpoint // one of them is nil
	versions, lists, values int         // how many were compared
	left                    time.Duration
	failed                  bool
}

// Compare starts the comparison of an Input with the Checkpoint, which may be nil. now is the Now of the Input.
func (c *Checkpoint) Compare(now time.Time) Coverage {
	coverage := Coverage{compared: c, failed: c == nil || now.Before(c.from)}
	if !coverage.failed && !c.until.IsZero() {
		coverage.left = c.until.Sub(now)
		coverage.failed = coverage.left <= 0
	}
	return coverage
}

// NewCoverage starts a Checkpoint of an Input with this Now. requeueAfter is the time until which the answer stands, 0
// for an answer without a deadline.
func NewCoverage(now time.Time, requeueAfter time.Duration) Coverage {
	made := &Checkpoint{from: now}
	if requeueAfter > 0 {
		made.until = now.Add(requeueAfter)
	}
	return Coverage{made: made}
}

// NoCoverage returns a Coverage that makes no Checkpoint.
func NoCoverage() Coverage { return Coverage{failed: true} }

// Holds reports whether the Input is unchanged. If so, requeueAfter is the time until the deadline of the answer, 0 if
// it has none.
func (c Coverage) Holds() (requeueAfter time.Duration, same bool) {
	if c.failed || c.compared == nil || c.versions != len(c.compared.versions) ||
		c.lists != len(c.compared.lists) || c.values != len(c.compared.values) {
		return 0, false
	}
	return c.left, true
}

// Checkpoint returns the new Checkpoint. It returns nil for a Coverage that only compares, and if an object has no UID
// or no resourceVersion, because a change of such an object would not be noticed.
func (c Coverage) Checkpoint() *Checkpoint {
	if c.failed || c.made == nil {
		return nil
	}
	return c.made.clipped()
}

// CoverObject covers one object, which is nil if it does not exist.
func CoverObject[O metav1.Object](c *Coverage, o O) {
	if nilcheck.IsNil(o) {
		c.version(version{})
		return
	}
	v := version{o.GetUID(), o.GetResourceVersion()}
	if v.uid == "" || v.resourceVersion == "" {
		c.failed = true
	}
	c.version(v)
}

func (c *Coverage) version(v version) {
	switch {
	case c.failed:
	case c.made != nil:
		c.made.versions = append(c.made.versions, v)
	case c.versions >= len(c.compared.versions) || c.compared.versions[c.versions] != v:
		c.failed = true
	default:
		c.versions++
	}
}

// CoverObjects covers a list of objects, and whether it was read.
func CoverObjects[O metav1.Object](c *Coverage, objects []O, complete bool) {
	c.list(listOf(len(objects), complete))
	for i := 0; i < len(objects) && !c.failed; i++ {
		CoverObject(c, objects[i])
	}
}

func (c *Coverage) list(l list) {
	switch {
	case c.failed:
	case c.made != nil:
		c.made.lists = append(c.made.lists, l)
	case c.lists >= len(c.compared.lists) || c.compared.lists[c.lists] != l:
		c.failed = true
	default:
		c.lists++
	}
}

// CoverValue covers a value that is compared with ==. If it is a pointer, its target must not change.
func CoverValue[T comparable](c *Coverage, v T) {
	CoverFunc(c, v, func(a, b T) bool { return a == b })
}

// CoverValues covers a list of values in their order.
func CoverValues[T comparable](c *Coverage, values []T) {
	if c.made != nil {
		values = slices.Clone(values)
	}
	CoverFunc(c, values, slices.Equal[[]T])
}

// CoverList covers a list of values in their order, and whether it was read.
func CoverList[T comparable](c *Coverage, values []T, complete bool) {
	c.list(listOf(len(values), complete))
	CoverValues(c, values)
}

// CoverMap covers a map of values that are compared with ==.
func CoverMap[K, V comparable](c *Coverage, m map[K]V) {
	if c.made != nil {
		m = maps.Clone(m)
	}
	CoverFunc(c, m, maps.Equal[map[K]V, map[K]V])
}

// CoverFunc covers a value that is compared with equal. The value must not change afterwards.
func CoverFunc[T any](c *Coverage, v T, equal func(a, b T) bool) {
	switch {
	case c.failed:
	case c.made != nil:
		c.made.values = append(c.made.values, v)
	case c.values >= len(c.compared.values):
		c.failed = true
	default:
		before, ok := c.compared.values[c.values].(T)
		c.failed = !ok || !equal(before, v)
		c.values++
	}
}
