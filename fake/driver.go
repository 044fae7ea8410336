// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Controller is one reconciler that a Driver runs over a cluster.
type Controller struct {
	// Name stands in front of what the controller does, e.g. "catalog".
	Name string
	// Kind is what is reconciled; keys of it are printed as namespace/name.
	Kind schema.GroupKind
	// Keys returns the keys to reconcile; KeysOf and NamespacesOf make such a function.
	Keys func(r olmcore.Reader) []types.NamespacedName
	// Reconcile gathers and reconciles one key. NotFound means that the object went
	// in the meantime, and is no error to the Driver.
	Reconcile func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error)
	// Reader is what the controller reads from; nil means the cluster itself or, with a Lag, a View of its own. A View is
	// brought as near to the present as Lag lets it before each turn of the controller.
	Reader olmcore.Reader
	// Lag is how stale that View is; nil means that it is not.
	Lag Lag
}

// KeysOf returns a Controller's Keys: every object of a kind.
func KeysOf(gvk schema.GroupVersionKind) func(olmcore.Reader) []types.NamespacedName {
	return func(r olmcore.Reader) []types.NamespacedName {
		objects, err := r.List(context.Background(), gvk, "", nil)
		if err != nil {
			return nil // a kind that is not served has no objects
		}
		keys := make([]types.NamespacedName, len(objects))
		for i, o := range objects {
			keys[i] = types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		}
		return keys
	}
}

// NamespacesOf returns a Controller's Keys: every namespace with an object of a kind, as a key without a name.
func NamespacesOf(gvk schema.GroupVersionKind) func(olmcore.Reader) []types.NamespacedName {
	all := KeysOf(gvk)
	return func(r olmcore.Reader) []types.NamespacedName {
		keys := all(r)
		for i := range keys {
			keys[i].Name = ""
		}
		return slices.Compact(keys)
	}
}

// DefaultMaxRounds is the number of rounds that Driver.Settle allows.
const DefaultMaxRounds = 200

// A run that failed and changed nothing is tried again failureRetries times at the same instant, enough for what needs
// a second look, and then after a delay that doubles from firstRetry to lastRetry, as a work queue does.
const (
	failureRetries = 3
	firstRetry     = 10 * time.Second
	lastRetry      = 5 * time.Minute
)

// Driver runs controllers over a cluster until nothing changes any more: what watches, work queues and timers do for a
// real one. It keeps what their Inputs may remember (LastRun), and records what they do. The zero value with Cluster
// and Controllers set is ready; a Driver must not be copied.
type Driver struct {
	Cluster     *Cluster
	Controllers []Controller
	// MaxRounds bounds Settle; 0 means DefaultMaxRounds.
	MaxRounds int
	// Events is everything that was done and said, oldest first. The caller may cut it at any time.
	Events []Event
	// AfterAction, when set, is called after each action of a controller, done or failed. It may check what must hold,
	// and change the cluster as a person does. An error stops Settle or RunFor, which return it with the action in front;
	// the next call goes on from there.
	AfterAction func(Event) error

	memory map[driverKey]*keyMemory
	turns  map[int][]logEnds // of controllers with a Lag, the last turn last
}

type driverKey struct {
	controller int
	key        types.NamespacedName
}

// keyMemory is what a Driver knows about one key of one controller.
type keyMemory struct {
	last     olmcore.LastResults
	seen     sight     // what there was when the key was last reconciled
	deadline time.Time // of the last RequeueAfter; zero: none
	fails    int       // runs in a row that failed and changed nothing
	said     []string  // diagnostics of the last result, which are not repeated
	result   olmcore.Result
}

// Settle lets the cluster and the controllers go on until nothing changes at this instant: the cluster settles, each
// key that may have work is reconciled and its actions run, and so on. A key is reconciled when anything in the cluster
// changed since it last was, its View took in anything, or its deadline has come. In the end all Views that lag are at
// the present. The error is the first of a Reconcile or of AfterAction, or names what still changes after MaxRounds.
func (d *Driver) Settle(ctx context.Context) error {
	rounds := d.MaxRounds
	if rounds <= 0 {
		rounds = DefaultMaxRounds
	}
	from := len(d.Events)
	for range rounds {
		from = len(d.Events)
		if err := d.Cluster.Settle(); err != nil {
			return err
		}
		again, err := d.round(ctx)
		if err != nil || !again {
			return err
		}
	}
	return fmt.Errorf("no fixed point after %d rounds; the last one did:\n%s", rounds, Format(d.Events[min(from, len(d.Events)):]))
}

// Round reconciles each key that may have work once, without letting the
// cluster go on, and reports whether there may be more to do.
func (d *Driver) Round(ctx context.Context) (bool, error) { return d.round(ctx) }

func (d *Driver) round(ctx context.Context) (again bool, err error) {
	if d.memory == nil {
		d.memory = map[driverKey]*keyMemory{}
	}
	before := d.Cluster.store.Version()
	for i := range d.Controllers {
		more, err := d.runController(ctx, i)
		if err != nil {
			return false, err
		}
		again = again || more
	}
	return again || d.Cluster.store.Version() != before, nil
}

func (d *Driver) runController(ctx context.Context, index int) (again bool, err error) {
	c := &d.Controllers[index]
	reader, behind, err := d.readerOf(index)
	if err != nil {
		return false, fmt.Errorf("%s: %w", c.Name, err)
	}
	keys := slices.Clone(c.Keys(reader))
	slices.SortFunc(keys, compareKeys)
	d.forget(index, keys)
	for _, key := range keys {
		more, err := d.reconcile(ctx, c, reader, driverKey{index, key})
		if err != nil {
			return false, fmt.Errorf("%s %s: %w", c.Name, keyString(key), err)
		}
		again = again || more
	}
	return again || behind, nil
}

// forget drops the memory of keys that do not exist any more.
func (d *Driver) forget(index int, keys []types.NamespacedName) {
	for k := range d.memory {
		if k.controller != index {
			continue
		}
		if _, exists := slices.BinarySearchFunc(keys, k.key, compareKeys); !exists {
			delete(d.memory, k)
		}
	}
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (d *Driver) due(m *keyMemory, seen sight) bool {
	return m.seen != seen || !m.deadline.IsZero() && !d.Cluster.Now().Before(m.deadline)
}

func (d *Driver) reconcile(ctx context.Context, c *Controller, reader olmcore.Reader, k driverKey) (again bool, err error) {
	m := d.memory[k]
	if m == nil {
		m = &keyMemory{seen: unseen}
		d.memory[k] = m
	}
	seen := sightOf(d.Cluster, reader)
	if !d.due(m, seen) {
		return false, nil
	}
	now, before := d.Cluster.Now(), d.Cluster.store.Version()
	m.seen, m.deadline = seen, time.Time{}
	result, err := c.Reconcile(ctx, reader, k.key, now, m.last)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if result.RequeueAfter > 0 {
		m.deadline = now.Add(result.RequeueAfter)
	}
	m.result = result
	d.say(c, k.key, m, result)
	run := &recorder{driver: d, controller: c, key: k.key}
	last, runErr := olmcore.RunResult(ctx, run, result, m.last, now)
	m.last = last
	if run.stop != nil {
		m.seen = unseen
		return false, run.stop
	}
	if len(result.Actions) == 0 {
		m.fails = 0
		return false, nil
	}
	if d.Cluster.Faults().Crashed() {
		d.restart(k.controller)
		return true, nil
	}
	switch {
	case d.Cluster.store.Version() != before:
		m.fails = 0
		// The key's own writes are a change that it has to look at again.
		return true, nil
	case runErr == nil:
		return false, nil
	}
	m.fails++
	if late := m.fails - failureRetries; late >= 0 {
		delay := olmcore.Backoff{Base: firstRetry, Max: lastRetry}.After(late + 1)
		if retry := now.Add(delay); m.deadline.IsZero() || retry.Before(m.deadline) {
			m.deadline = retry
		}
		return false, nil
	}
	m.seen = unseen
	return true, nil
}

// restart makes a controller begin anew after a crash: its memory is gone, and a View that lags is filled anew.
func (d *Driver) restart(index int) {
	d.Cluster.Faults().RestartController()
	if len(d.Controllers[index].Lag) > 0 {
		d.lagging(index).Restart()
		delete(d.turns, index)
	}
	for k := range d.memory {
		if k.controller == index {
			delete(d.memory, k)
		}
	}
}

func ignoreNotFound(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// Deadline is a time that a controller waits for with one key.
type Deadline struct {
	Controller string
	Key        types.NamespacedName
	At         time.Time
}

// Deadlines returns every time that a controller waits for, sorted by controller, in their order, and key.
func (d *Driver) Deadlines() []Deadline {
	var deadlines []Deadline
	order := map[Deadline]int{}
	for k, m := range d.memory {
		if !m.deadline.IsZero() {
			deadline := Deadline{d.Controllers[k.controller].Name, k.key, m.deadline}
			deadlines, order[deadline] = append(deadlines, deadline), k.controller
		}
	}
	slices.SortFunc(deadlines, func(a, b Deadline) int { return cmp.Or(cmp.Compare(order[a], order[b]), compareKeys(a.Key, b.Key)) })
	return deadlines
}

// Deadline returns the earliest time that a controller waits for; ok is false when none does.
func (d *Driver) Deadline() (at time.Time, ok bool) {
	for _, m := range d.memory {
		if !m.deadline.IsZero() && (!ok || m.deadline.Before(at)) {
			at, ok = m.deadline, true
		}
	}
	return at, ok
}

func (d *Driver) nextDeadline() (at time.Time, ok bool) {
	at, ok = d.Deadline()
	if world, waits := d.Cluster.NextDeadline(); waits && (!ok || world.Before(at)) {
		return world, true
	}
	return at, ok
}

// maxStops bounds the deadlines that one RunFor or RunUntilIdle stops at.
const maxStops = 100_000

// RunFor settles and lets time pass until duration is over, settling at every
// deadline of a controller or of the simulation on the way.
func (d *Driver) RunFor(ctx context.Context, duration time.Duration) error {
	end := d.Cluster.Now().Add(max(0, duration))
	if err := d.runUntil(ctx, end, d.nextDeadline); err != nil {
		return err
	}
	d.Cluster.advanceTo(end)
	return d.Settle(ctx)
}

// RunUntilIdle settles and moves the clock from deadline to deadline until no controller waits for one within limit
// from now. The clock ends at the last deadline that was reached.
func (d *Driver) RunUntilIdle(ctx context.Context, limit time.Duration) error {
	end := d.Cluster.Now().Add(max(0, limit))
	return d.runUntil(ctx, end, func() (time.Time, bool) {
		at, ok := d.Deadline()
		if world, waits := d.Cluster.NextDeadline(); ok && waits && world.Before(at) {
			return world, true
		}
		return at, ok
	})
}

func (d *Driver) runUntil(ctx context.Context, end time.Time, next func() (time.Time, bool)) error {
	for range maxStops {
		if err := d.Settle(ctx); err != nil {
			return err
		}
		at, ok := next()
		if !ok || at.After(end) {
			return nil
		}
		if !at.After(d.Cluster.Now()) {
			return errors.New("a deadline does not pass: a controller waits for a time that has come")
		}
		d.Cluster.advanceTo(at)
	}
	return fmt.Errorf("more than %d deadlines until %s", maxStops, end.Format(time.RFC3339))
}

// Result returns the last result for a key of a controller, for callers that look at the requests or the deadline in
// it; ok is false when the key was never reconciled or its object is gone.
func (d *Driver) Result(controller string, key types.NamespacedName) (result olmcore.Result, ok bool) {
	for i := range d.Controllers {
		if d.Controllers[i].Name == controller {
			if m := d.memory[driverKey{i, key}]; m != nil {
				return m.result, true
			}
		}
	}
	return olmcore.Result{}, false
}
