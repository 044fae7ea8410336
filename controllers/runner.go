// SPDX-License-Identifier: Apache-2.0

package controllers

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

// Runner runs a Controller, one key at a time: it reads, decides, acts, and remembers what the next reconcile of the
// key has to know. Different keys may run at the same time. A Runner must not be copied.
type Runner struct {
	Controller
	Reader   olmcore.Reader
	Executor olmcore.Executor
	// Cached reports whether Reader shows the objects of a kind in a namespace later than they are written, as a cache
	// does: a key whose writes are not seen yet is not reconciled. nil: never.
	Cached func(kind schema.GroupVersionKind, namespace string) bool
	// Told, when set, hears what each reconcile came to that did or said something.
	Told func(Report)

	keys   memory[types.NamespacedName, remembered]
	passed []types.NamespacedName // by the last Pass
}

// Runners returns a Runner for each controller of a Set, over one cluster.
func (s *Set) Runners(r olmcore.Reader, x olmcore.Executor) []*Runner {
	runners := make([]*Runner, len(s.Controllers))
	for i, c := range s.Controllers {
		runners[i] = &Runner{Controller: c, Reader: r, Executor: x}
	}
	return runners
}

// withGone adds the keys of the last Pass that are gone, so that what is remembered of them goes, too.
func (r *Runner) withGone(keys []types.NamespacedName) []types.NamespacedName {
	gone := slices.DeleteFunc(r.passed, sets.New(keys...).Has)
	r.passed = keys
	return slices.Concat(gone, keys)
}

// Pass runs every key that there is once, one Runner after the other: what a program without watches does. now is asked
// for the time of each key. What fails does not stop the rest; the error joins what failed, with its controller and
// key. A write that was refused because something else changed is none: the next Pass does it.
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

// What was written is looked at again after afterWrites, should no watch report it; a cache is waited for as long, and
// asked every staleRetry. A cache that does not show a deletion is stale for certain: it is waited for longer, since a
// decision that counts on what is gone may delete the rest.
const (
	afterWrites  = time.Second
	afterDeletes = time.Minute
	staleRetry   = 10 * time.Millisecond
)

// remembered is what is known of a key with something pending.
type remembered struct {
	lastRun olmcore.LastResults
	said    []olmcore.Diagnostic
	// over are the objects that were written last, as they were before, deleted those that were deleted, and at is when
	// that was.
	over, deleted []olmcore.Ref
	at            time.Time
}

// Run reconciles one key and runs what comes out. It returns when to do that again, 0 for after the next change. The
// error is of reading or of acting, to be tried again after a growing delay, or is an olmcore.ErrInvalidInput, which
// only a change can help. An object that is gone is no error, whether it is found so by reading or by writing, and
// neither is a namespace that is gone or terminating; a write that was refused because something else changed is none
// either: it is done again soon.
func (r *Runner) Run(ctx context.Context, key types.NamespacedName, now time.Time) (again time.Duration, err error) {
	ctx, now = context.WithValue(ctx, contextKey{}, r.Name), now.UTC()
	last := r.keys.get(key)
	if r.behind(ctx, last, now) {
		return staleRetry, nil
	}
	result, err := r.Reconcile(ctx, r.Reader, key, now, last.lastRun)
	if olmcore.Classify(err) == olmcore.Gone {
		r.keys.drop(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	lastRun, err := olmcore.RunResult(ctx, r.Executor, result, last.lastRun, now)
	r.remember(key, remembered{lastRun: lastRun, said: result.Diagnostics, at: now}, result.Actions)
	if r.Told != nil && !result.Empty() {
		r.Told(Report{Controller: r.Name, Key: key, Result: result, News: news(last.said, result.Diagnostics), Err: err})
	}
	switch {
	case errors.Is(err, olmcore.ErrStale) || ctx.Err() != nil:
		return staleRetry, nil
	case isMoot(err):
		return mootRetry(lastRun), nil
	case err != nil:
		return 0, err
	case len(result.Actions) > 0:
		result.Requeue(afterWrites)
	}
	result.Requeue(r.Every)
	return result.RequeueAfter, nil
}

type contextKey struct{}

// From returns the name of the controller for which a Runner reads or writes with this context, empty for none: for
// what sits below Readers and Executors, such as handlers of an API server's warnings.
func From(ctx context.Context) string {
	name, _ := ctx.Value(contextKey{}).(string)
	return name
}

// remember keeps what is known of a key and what was just written, if there is anything.
func (r *Runner) remember(key types.NamespacedName, next remembered, actions []olmcore.Action) {
	for _, a := range actions {
		verb, target, _ := a.Describe()
		became, ran := next.lastRun[target.Key()]
		written, met := ran && became.Class == olmcore.ClassNone, ran && became.Class == olmcore.Conflict
		switch {
		case verb == olmcore.VerbDelete && written:
			next.deleted = append(next.deleted, target)
		case verb == olmcore.VerbDelete && target.ResourceVersion == "":
		case written || met:
			next.over = append(next.over, target)
		}
	}
	if len(next.lastRun) == 0 && len(next.said) == 0 && len(next.over) == 0 && len(next.deleted) == 0 {
		r.keys.drop(key)
		return
	}
	r.keys.set(key, next)
}

// behind reports whether the cache still shows what was written over or deleted.
func (r *Runner) behind(ctx context.Context, last remembered, now time.Time) bool {
	if r.Cached == nil {
		return false
	}
	age := now.Sub(last.at)
	if age < 0 {
		return false // the clock was set back, and says nothing of how long it waits
	}
	return age <= afterWrites && slices.ContainsFunc(last.over, func(ref olmcore.Ref) bool { return r.showsOld(ctx, ref) }) ||
		age <= afterDeletes && slices.ContainsFunc(last.deleted, func(ref olmcore.Ref) bool { return r.showsDeleted(ctx, ref) })
}

// showsOld reports whether the cache shows an object as it was before a write.
func (r *Runner) showsOld(ctx context.Context, ref olmcore.Ref) bool {
	if !r.Cached(ref.GVK(), ref.Namespace) {
		return false
	}
	o, err := r.Reader.Get(ctx, ref.GVK(), ref.Namespace, ref.Name)
	if err != nil {
		return ref.ResourceVersion == "" && apierrors.IsNotFound(err) // it was created
	}
	return o.GetResourceVersion() == ref.ResourceVersion
}

// showsDeleted reports whether the cache is stale about a deletion: it shows the object without a deletionTimestamp.
func (r *Runner) showsDeleted(ctx context.Context, ref olmcore.Ref) bool {
	if !r.Cached(ref.GVK(), ref.Namespace) {
		return false
	}
	o, err := r.Reader.Get(ctx, ref.GVK(), ref.Namespace, ref.Name)
	return err == nil && o.GetUID() == ref.UID && o.GetDeletionTimestamp() == nil
}
