// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/olmcore/olm/internal/nilcheck"
)

// Executor performs one write: no retries, no decisions. It returns the API server's error as it is. It must refuse an
// action whose Target names a UID or resourceVersion that the stored object does not have, run under the action's
// Identity, and leave the action's objects unchanged.
type Executor interface {
	Do(ctx context.Context, a Action) error
}

// Run performs actions in order. AlreadyExists on Create and NotFound on Delete count as done. A Conflict stops the run
// with an error that matches ErrStale: read again and reconcile again, without backoff. Other failures are collected as
// *ActionError, and the later actions still run; the result joins them. A context that ends stops the run with its
// error, as an *ActionError of the first action that did not run. A nil action is an *InputError, and skipped.
func Run(ctx context.Context, x Executor, actions []Action) error {
	var failed []error
	for i, a := range actions {
		if nilcheck.IsNil(a) {
			failed = append(failed, &InputError{Field: fmt.Sprintf("actions[%d]", i), Problem: "is nil"})
			continue
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, &ActionError{Action: a, Err: &notRunError{err}})...)
		}
		err := x.Do(ctx, a)
		if err == nil || isDone(a, err) {
			continue
		}
		if apierrors.IsConflict(err) {
			return errors.Join(append(failed, &ActionError{Action: a, Err: fmt.Errorf("%w: %w", ErrStale, err)})...)
		}
		failed = append(failed, &ActionError{Action: a, Err: err})
	}
	return errors.Join(failed...)
}

// RunResult runs the actions of a Result and returns what the next reconcile of the same key is to be told of them:
// last and what became of them, nil once the key converged. The error is Run's.
func RunResult(ctx context.Context, x Executor, result Result, last LastResults, now time.Time) (LastResults, error) {
	switch {
	case len(result.Actions) > 0:
		err := Run(ctx, x, result.Actions)
		return LastResultsOf(last, result.Actions, err, now), err
	case result.Empty() && result.RequeueAfter == 0:
		return nil, nil
	}
	return last, nil
}

// notRunError marks the action at which a run stopped before it was tried.
type notRunError struct{ cause error }

func (e *notRunError) Error() string { return "not run: " + e.cause.Error() }

func (e *notRunError) Unwrap() error { return e.cause }

func isDone(a Action, err error) bool {
	switch a.(type) {
	case Create:
		return apierrors.IsAlreadyExists(err)
	case Delete:
		return apierrors.IsNotFound(err)
	}
	return false
}
