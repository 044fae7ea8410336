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

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// defaultMaxRounds is the default of Driver.MaxRounds.
const defaultMaxRounds = 200

// If all writes of a reconcile failed, the key is retried failureRetries times at the same instant, and then after a
// delay that doubles from firstRetry to lastRetry, as in a work queue.
const (
	failureRetries = 3
	firstRetry     = 10 * time.Second
	lastRetry      = 5 * time.Minute
)

// Driver runs controllers over a cluster until nothing changes. It takes the place of the watches, work queues and
// timers of a program: each controller runs in a controller.Runner, on the clock of the cluster, and the Driver decides
// which keys are due. It ignores Controller.Every, so that a cluster can come to rest. The zero value with Cluster and
// Controllers set is ready. A Driver must not be copied.
type Driver struct {
	Cluster     *Cluster
	Controllers []controller.Controller
	// Readers contains the Readers of controllers by name. A controller without an entry reads from the cluster or, if it
	// has a Lag, from a View of its own. A View is updated before each turn of the controller, as far as Lag allows.
	Readers map[string]olmcore.Reader
	// Lags contains how far the Views of controllers lag behind the cluster, by name.
	Lags map[string]Lag
	// MaxRounds limits the rounds of Settle. 0 means 200.
	MaxRounds int
	// Events contains all actions, Transitions and new Diagnostics, oldest first. The caller may shorten it at any time.
	Events []controller.Event
	// AfterAction, if set, is called after each action of a controller, whether it succeeded or failed. It may check
	// invariants, and change the cluster as a user does. If it returns an error, Settle and RunFor stop and return it with
	// the action. The next call continues.
	AfterAction func(controller.Event) error

	memory  map[driverKey]*keyMemory
	runners map[int]*controller.Runner // by the index of the controller
	turns   map[int][]logEnds          // of controllers with a Lag, the last turn last
}

type driverKey struct {
	controller int
	key        types.NamespacedName
}

// keyMemory is what a Driver remembers of one key of one controller.
type keyMemory struct {
	seen     sight     // what the cluster was when the key was last reconciled
	deadline time.Time // of the last RequeueAfter; zero: none
	fails    int       // consecutive reconciles whose writes all failed
	reported []string  // Diagnostics of the last result, which are not repeated
	result   olmcore.Result
}

// Settle runs the cluster and the controllers until nothing changes at this instant. In each round the cluster settles,
// and each key that is due is reconciled. A key is due if the cluster or its View has changed since its last reconcile,
// or if its deadline has passed. At the end no View lags. The error is the first of a Reconcile or of AfterAction, or
// contains the changes of the last round if the rounds exceed MaxRounds.
func (d *Driver) Settle(ctx context.Context) error {
	rounds := d.MaxRounds
	if rounds <= 0 {
		rounds = defaultMaxRounds
	}
	from := len(d.Events)
	for range rounds {
		from = len(d.Events)
		if err := d.Cluster.Settle(); err != nil {
			return err
		}
		again, err := d.Round(ctx)
		if err != nil || !again {
			return err
		}
	}
	last := controller.Format(d.Events[min(from, len(d.Events)):])
	return fmt.Errorf("no fixed point after %d rounds; the last one did:\n%s", rounds, last)
}

// Round reconciles each key that is due once, and reports whether more keys may be due. The cluster does not settle.
func (d *Driver) Round(ctx context.Context) (again bool, err error) {
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
	name := d.Controllers[index].Name
	reader, behind, err := d.readerOf(index)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	r := d.runner(index, reader)
	keys, err := r.Keys(ctx, reader)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	d.forget(index, keys)
	for _, key := range keys {
		more, err := d.reconcile(ctx, r, driverKey{index, key})
		if err != nil {
			return false, fmt.Errorf("%s %s: %w", name, strings.Trim(key.String(), "/"), err)
		}
		again = again || more
	}
	return again || behind, nil
}

// runner returns the Runner of a controller. It records what the controller does as Events.
func (d *Driver) runner(index int, reader olmcore.Reader) *controller.Runner {
	r := d.runners[index]
	if r == nil {
		r = &controller.Runner{Executor: d.Cluster, AfterAction: d.afterAction}
		if d.runners == nil {
			d.runners = map[int]*controller.Runner{}
		}
		d.runners[index] = r
	}
	r.Controller, r.Reader = d.Controllers[index], reader
	reconcile := r.Reconcile
	r.Reconcile = func(
		ctx context.Context, reader olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults,
	) (olmcore.Result, error) {
		result, err := reconcile(ctx, reader, key, now, last)
		if err == nil {
			d.record(r.Name, key, d.memory[driverKey{index, key}], result)
		}
		return result, err
	}
	return r
}

// record adds the Transitions of a result to Events, and the Diagnostics that the last result of the key did not have.
func (d *Driver) record(name string, key types.NamespacedName, m *keyMemory, result olmcore.Result) {
	for i := range result.Transitions {
		e := controller.Event{At: d.Cluster.Now(), Controller: name, Key: key, Transition: &result.Transitions[i]}
		d.Events = append(d.Events, e)
	}
	var reported []string
	for i := range result.Diagnostics {
		e := controller.Event{At: d.Cluster.Now(), Controller: name, Key: key, Diagnostic: &result.Diagnostics[i]}
		reported = append(reported, e.String())
		if !slices.Contains(m.reported, e.String()) {
			d.Events = append(d.Events, e)
		}
	}
	m.reported = reported
}

// afterAction adds an action to Events and calls AfterAction.
func (d *Driver) afterAction(e controller.Event) error {
	e.At = d.Cluster.Now()
	d.Events = append(d.Events, e)
	if d.AfterAction == nil {
		return nil
	}
	return d.AfterAction(e)
}

// forget drops the memory of keys that no longer exist.
func (d *Driver) forget(index int, keys []types.NamespacedName) {
	for k := range d.memory {
		if k.controller != index {
			continue
		}
		if _, exists := slices.BinarySearchFunc(keys, k.key, compareKeys); !exists {
			delete(d.memory, k)
			d.runners[index].Forget(k.key)
		}
	}
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func (d *Driver) due(m *keyMemory, seen sight) bool {
	return m.seen != seen || !m.deadline.IsZero() && !d.Cluster.Now().Before(m.deadline)
}

// reconcile reconciles a key if it is due, and reports whether it may be due again at this instant.
func (d *Driver) reconcile(ctx context.Context, r *controller.Runner, k driverKey) (again bool, err error) {
	m := d.memory[k]
	if m == nil {
		m = &keyMemory{seen: unseen}
		d.memory[k] = m
	}
	seen := sightOf(d.Cluster, r.Reader)
	if !d.due(m, seen) {
		return false, nil
	}
	now, before := d.Cluster.Now(), d.Cluster.store.Version()
	m.seen, m.deadline = seen, time.Time{}
	report, err := r.RunOnce(ctx, k.key, now)
	if err != nil && len(report.Result.Actions) == 0 {
		return false, err
	}
	m.result = report.Result
	if report.Result.RequeueAfter > 0 {
		m.deadline = now.Add(report.Result.RequeueAfter)
	}
	switch {
	case err != nil: // AfterAction stopped the reconcile, and the next call continues it
		m.seen = unseen
		return false, err
	case len(report.Result.Actions) == 0:
		m.fails = 0
		return false, nil
	case d.Cluster.Faults().Crashed():
		d.restart(k.controller)
		return true, nil
	case d.Cluster.store.Version() != before:
		m.fails = 0
		return true, nil // the writes of the key are a change that it must reconcile
	case report.Err == nil:
		return false, nil
	}
	return d.retry(m, now), nil
}

// retry decides when a key whose writes all failed is due again, and reports whether that is at this instant.
func (d *Driver) retry(m *keyMemory, now time.Time) (again bool) {
	m.fails++
	late := m.fails - failureRetries
	if late < 0 {
		m.seen = unseen
		return true
	}
	delay := olmcore.Backoff{Base: firstRetry, Max: lastRetry}.After(late + 1)
	if at := now.Add(delay); m.deadline.IsZero() || at.Before(m.deadline) {
		m.deadline = at
	}
	return false
}

// restart restarts a controller after a crash: its memory is dropped, and a View that lags is filled again.
func (d *Driver) restart(index int) {
	d.Cluster.Faults().RestartController()
	if len(d.Lags[d.Controllers[index].Name]) > 0 {
		d.lagging(index).Restart()
		delete(d.turns, index)
	}
	delete(d.runners, index)
	for k := range d.memory {
		if k.controller == index {
			delete(d.memory, k)
		}
	}
}

// Deadline is the time at which a key of a controller is due without a change.
type Deadline struct {
	Controller string
	Key        types.NamespacedName
	At         time.Time
}

// Deadlines returns all deadlines, in the order of Controllers and then by key.
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

// Deadline returns the earliest deadline. ok is false if there is none.
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

// maxStops limits the deadlines of one RunFor or RunUntilIdle.
const maxStops = 100_000

// RunFor settles, moves the clock by duration, and settles at each deadline of a controller or of the cluster that it
// passes.
func (d *Driver) RunFor(ctx context.Context, duration time.Duration) error {
	end := d.Cluster.Now().Add(max(0, duration))
	if err := d.runUntil(ctx, end, d.nextDeadline); err != nil {
		return err
	}
	d.Cluster.advanceTo(end)
	return d.Settle(ctx)
}

// RunUntilIdle settles and moves the clock from deadline to deadline until no controller has a deadline before limit
// from now has passed. The clock ends at the last deadline that was reached.
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

// Result returns the last result for a key of a controller. ok is false if the key was never reconciled, or if its
// object no longer exists.
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
