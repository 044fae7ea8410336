// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
)

// Runner runs a Controller. For each key it remembers what the next reconcile of the key needs. Different keys may run
// concurrently. A Runner must not be copied.
type Runner struct {
	Controller
	Reader olmcore.Reader
	// Executor runs the actions. If it is nil, no actions are run, and Reports contain what a reconcile would do.
	Executor olmcore.Executor
	// Cached reports whether reads of this kind and namespace come from a cache and may lag behind writes. Run does not
	// reconcile a key until the cache contains the last writes of the key. nil means that no reads are cached.
	Cached func(kind schema.GroupVersionKind, namespace string) bool
	// AfterAction, if set, is called after each action, whether it succeeded or failed. If it returns an error, the
	// remaining actions of the reconcile are not run, and Run and RunOnce return the error.
	AfterAction func(Event) error
	// OnReport, if set, is called after each reconcile that had an action, Transition or Diagnostic.
	OnReport func(Report)

	memory memory
	passed []types.NamespacedName // by the last Pass
}

// Pass runs every key that exists once, one Runner after the other. It is for programs without watches. now is called
// for each key. A failure does not stop the other keys. The error joins all failures with their controllers and keys. A
// write that had a conflict is not a failure: the next Pass repeats it.
func Pass(ctx context.Context, runners []*Runner, now func() time.Time) error {
	var failed []error
	for _, r := range runners {
		keys, err := r.Keys(ctx, r.Reader)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", r.Name, err))
			continue
		}
		for _, key := range r.withGone(keys) {
			if _, err := r.Run(ctx, key, now()); err != nil {
				failed = append(failed, fmt.Errorf("%s %s: %w", r.Name, key, err))
			}
		}
	}
	return errors.Join(failed...)
}

// withGone adds the keys of the last Pass that no longer exist, so that their memory is dropped.
func (r *Runner) withGone(keys []types.NamespacedName) []types.NamespacedName {
	gone := slices.DeleteFunc(r.passed, sets.New(keys...).Has)
	r.passed = keys
	return slices.Concat(gone, keys)
}

// The delays after a reconcile. Written objects are reconciled again after afterWrites even if no watch reports them. A
// cache may lag behind a write for afterWrites, and behind a delete for afterDeletes: a decision that relies on a
// deleted object may delete the remaining ones, and a cache that still contains it is certainly stale. A stale cache is
// read again after staleRetry.
const (
	afterWrites  = time.Second
	afterDeletes = time.Minute
	staleRetry   = 10 * time.Millisecond
)

// Run reconciles a key, runs its actions, and returns the delay until the key must be reconciled again, or 0 if only a
// change requires that. The error is that of a read or a write, to be retried with backoff, or matches
// olmcore.ErrInvalidInput, which only a change can resolve. It is no error if the object or namespace of a read or
// write is gone or terminating, or if a write had a conflict: the returned delay is then short.
func (r *Runner) Run(ctx context.Context, key types.NamespacedName, now time.Time) (again time.Duration, err error) {
	ctx = withName(ctx, r.Name)
	if r.isStale(ctx, r.memory.get(key), now) {
		return staleRetry, nil
	}
	report, err := r.RunOnce(ctx, key, now)
	result := report.Result
	switch {
	case err != nil:
		return 0, err
	case report.isGone:
		return 0, nil
	case errors.Is(report.Err, olmcore.ErrStale) || ctx.Err() != nil:
		return staleRetry, nil
	case isMoot(report.Err):
		return mootRetry(r.memory.get(key).results), nil
	case report.Err != nil:
		return 0, report.Err
	case len(result.Actions) > 0:
		result.Requeue(afterWrites)
	}
	result.Requeue(r.Every)
	return result.RequeueAfter, nil
}

// RunOnce reconciles a key once and runs its actions, without the delays and the stale caches of Run. Failed writes are
// in the Report. The error is that of Reconcile or AfterAction. If the object of the key does not exist, RunOnce drops
// the memory of the key, and the Report is empty.
func (r *Runner) RunOnce(ctx context.Context, key types.NamespacedName, now time.Time) (Report, error) {
	ctx, now = withName(ctx, r.Name), now.UTC()
	report, last := Report{Controller: r.Name, Key: key}, r.memory.get(key)
	result, err := r.Reconcile(ctx, r.Reader, key, now, last.results)
	if olmcore.Classify(err) == olmcore.Gone {
		r.Forget(key)
		report.isGone = true
		return report, nil
	}
	if err != nil {
		return report, err
	}
	report.Result, report.News = result, news(last.reported, result.Diagnostics)
	next := remembered{results: last.results, reported: result.Diagnostics, at: now}
	x := &executor{runner: r, key: key, now: now}
	if r.Executor != nil {
		next.results, report.Err = olmcore.RunResult(ctx, x, result, last.results, now)
	}
	r.memory.set(key, next.after(result.Actions))
	if r.OnReport != nil && !result.Empty() {
		r.OnReport(report)
	}
	return report, x.stop
}

// Forget drops the memory of a key, as a restart does for all keys.
func (r *Runner) Forget(key types.NamespacedName) { r.memory.drop(key) }

// executor runs the actions of one reconcile and calls AfterAction.
type executor struct {
	runner *Runner
	key    types.NamespacedName
	now    time.Time
	// stop is the error of AfterAction.
	stop error
}

// Do implements olmcore.Executor.
func (x *executor) Do(ctx context.Context, a olmcore.Action) error {
	if x.stop != nil {
		return x.stop
	}
	err := x.runner.Executor.Do(ctx, a)
	if x.runner.AfterAction == nil {
		return err
	}
	e := Event{At: x.now, Controller: x.runner.Name, Key: x.key, Action: a, Err: err}
	if isDone(a, err) {
		e.Err = nil
	}
	if stop := x.runner.AfterAction(e); stop != nil {
		x.stop = fmt.Errorf("after %q: %w", e, stop)
	}
	return err
}

// isDone reports whether an action failed because it had been done before, which olmcore.Run counts as a success.
func isDone(a olmcore.Action, err error) bool {
	switch a.(type) {
	case olmcore.Create:
		return apierrors.IsAlreadyExists(err)
	case olmcore.Delete:
		return apierrors.IsNotFound(err)
	}
	return false
}

type nameKey struct{}

func withName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

// From returns the name of the controller for which a Runner reads or writes with this context, or "" if there is none.
// It is for code below Readers and Executors, such as handlers of the warnings of an API server.
func From(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
