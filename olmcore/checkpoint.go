// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Checkpoint remembers an Input for which a reconcile function had nothing to do: the identity and resourceVersion of
// every object, all else that the Input held, and until when the answer stands. Handed back in the next Input for the
// same key it lets the function answer at the cost of comparing versions, whatever the size of the objects. It is
// opaque, holds no objects, and may be shared and kept as long as the caller likes. A nil Checkpoint is always right:
// the answer is the same and takes longer.
type Checkpoint struct {
	from, until time.Time // until is zero for an answer without a deadline
	// What the Cover functions remember of the Input, in their order.
	versions []version
	lists    []list
	values   []any
}

// clipped returns the Checkpoint without room for more: callers keep one for each key of a cluster.
func (c *Checkpoint) clipped() *Checkpoint {
	return &Checkpoint{c.from, c.until, slices.Clone(c.versions), slices.Clone(c.lists), slices.Clone(c.values)}
}

// Outcome contains the Result of a reconcile function, and a Checkpoint that the caller passes to the next call.
type Outcome struct {
	Result
	// Checkpoint makes the next call cheap when nothing changed; nil when there is something to do.
	Checkpoint *Checkpoint
}

// Checkpointed returns the Outcome of a reconcile function. It skips validate and decide if the Input has not changed
// since last was made, and the deadline of last has not passed. The Outcome then contains last, and the time until that
// deadline as RequeueAfter.
//
// Otherwise, the Outcome contains the Result of decide. It also contains a new Checkpoint if that Result is empty, and
// all objects have a UID and a resourceVersion. now is the Now of the Input. cover passes every field of the Input to
// the Cover functions, and returns the Coverage. An error of validate or decide is returned unchanged.
func Checkpointed(now time.Time, last *Checkpoint, cover func(Coverage) Coverage, validate func() error, decide func() (Result, error)) (Outcome, error) {
	if wait, same := cover(last.Compare(now)).Holds(); same {
		return Outcome{Result{RequeueAfter: wait}, last}, nil
	}
	if err := validate(); err != nil {
		return Outcome{}, err
	}
	result, err := decide()
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{result, cover(NewCoverage(now, result)).Checkpoint()}, nil
}

// version is that of an object, empty for one that does not exist.
type version struct {
	uid             types.UID
	resourceVersion string
}

// list is a list without its objects: its length, below zero for one that was not read.
type list int32

func listOf(length int, complete bool) list {
	if complete {
		return list(length)
	}
	return list(-1 - length)
}

// Coverage goes through the fields of an Input, either to make a Checkpoint or to compare the Input with one. Each
// Input has one method that hands every field to the Cover functions, always in the same order: what the method leaves
// out is not compared, and the law invariant.CheckpointSound finds it.
type Coverage struct {
	made, compared          *Checkpoint // one of them is nil
	versions, lists, values int         // how many were compared
	left                    time.Duration
	failed                  bool
}

// Compare begins to compare an Input with the one of the Checkpoint, which may be nil. now is the Input's.
func (c *Checkpoint) Compare(now time.Time) Coverage {
	coverage := Coverage{compared: c, failed: c == nil || now.Before(c.from)}
	if !coverage.failed && !c.until.IsZero() {
		coverage.left = c.until.Sub(now)
		coverage.failed = coverage.left <= 0
	}
	return coverage
}

// NewCoverage begins a Checkpoint of an Input with this Now whose answer is r. Of an r that asks for something or says
// something none is made.
func NewCoverage(now time.Time, r Result) Coverage {
	if !r.Empty() {
		return Coverage{failed: true}
	}
	made := &Checkpoint{from: now}
	if r.RequeueAfter > 0 {
		made.until = now.Add(r.RequeueAfter)
	}
	return Coverage{made: made}
}

// Holds returns whether nothing changed, and then the time to the deadline of the answer, 0 for none: its RequeueAfter.
func (c Coverage) Holds() (requeueAfter time.Duration, same bool) {
	if c.failed || c.compared == nil || c.versions != len(c.compared.versions) ||
		c.lists != len(c.compared.lists) || c.values != len(c.compared.values) {
		return 0, false
	}
	return c.left, true
}

// Checkpoint returns the Checkpoint that was made; nil where there is something to do, and where an object has no UID
// or resourceVersion, by which a change of it could be told.
func (c Coverage) Checkpoint() *Checkpoint {
	if c.failed || c.made == nil {
		return nil
	}
	return c.made.clipped()
}

// CoverObject covers one object; nil is one that does not exist.
func CoverObject[O metav1.Object](c *Coverage, o O) {
	if isNil(o) {
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

// CoverObjects covers a list of objects and whether it was read.
func CoverObjects[O metav1.Object](c *Coverage, objects Observed[O]) {
	c.list(listOf(len(objects.Items), objects.Complete))
	for i := 0; i < len(objects.Items) && !c.failed; i++ {
		CoverObject(c, objects.Items[i])
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

// CoverValue covers a value that == compares. What it points to must not change.
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

// CoverObserved covers a list of values in their order, and whether it was read.
func CoverObserved[T comparable](c *Coverage, values Observed[T]) {
	c.list(listOf(len(values.Items), values.Complete))
	CoverValues(c, values.Items)
}

// CoverMap covers a map of values that == compares.
func CoverMap[K, V comparable](c *Coverage, m map[K]V) {
	if c.made != nil {
		m = maps.Clone(m)
	}
	CoverFunc(c, m, maps.Equal[map[K]V, map[K]V])
}

// CoverFunc covers a value that equal compares and that does not change afterwards.
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
