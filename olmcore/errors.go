// SPDX-License-Identifier: Apache-2.0

package olmcore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/nilcheck"
)

// ErrInvalidInput is what every *InputError wraps.
var ErrInvalidInput = errors.New("invalid input")

// ErrStale stops a Run: an object changed since it was read. Read again and reconcile again, without backoff.
var ErrStale = errors.New("observed state is stale")

// InputError says that the caller broke a function's contract: Field is the path of the input field, Problem what is
// wrong with it. errors.Is(err, ErrInvalidInput) holds.
type InputError struct {
	Field, Problem string
}

// Error implements error.
func (e *InputError) Error() string { return fmt.Sprintf("invalid input: %s %s", e.Field, e.Problem) }

// Unwrap returns ErrInvalidInput.
func (e *InputError) Unwrap() error { return ErrInvalidInput }

// ActionError is one action that failed in a Run.
type ActionError struct {
	Action Action
	Err    error
}

// Error implements error.
func (e *ActionError) Error() string {
	verb, target, _ := e.Action.Describe()
	return fmt.Sprintf("%s %s: %v", verb, target, e.Err)
}

// Unwrap returns the executor's error.
func (e *ActionError) Unwrap() error { return e.Err }

// ErrorClass sorts the errors of an API server by what can be done about them. The class is decided once, here; each
// package decides what it means for it.
type ErrorClass string

// Error classes.
const (
	// ClassNone: no error.
	ClassNone ErrorClass = ""
	// Gone: the object, or this incarnation of it, does not exist any more.
	Gone ErrorClass = "Gone"
	// NoMatch: the API server does not serve the kind.
	NoMatch ErrorClass = "NoMatch"
	// Conflict: the object changed since it was read, or the name is taken.
	Conflict ErrorClass = "Conflict"
	// Transient: timeouts, overload, network; unknown errors count as transient.
	Transient ErrorClass = "Transient"
	// Forbidden: the identity may not do it.
	Forbidden ErrorClass = "Forbidden"
	// Invalid: the API server will never accept this object.
	Invalid ErrorClass = "Invalid"
	// Webhook: an admission webhook denied the write or could not be called.
	Webhook ErrorClass = "Webhook"
)

// Classify returns the class of an executor's error, looking through wrapped errors; nil is ClassNone. Forbidden
// because the namespace is terminating is Transient: it passes by itself, one way or the other.
func Classify(err error) ErrorClass {
	if err == nil {
		return ClassNone
	}
	if errors.Is(err, ErrStale) {
		return Conflict
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if meta.IsNoMatchError(err) {
			return NoMatch
		}
		return Transient
	}
	return classifyStatus(status.Status())
}

// classOfReason contains the reasons whose class depends on nothing else, and the usual class of the others.
var classOfReason = map[metav1.StatusReason]ErrorClass{
	metav1.StatusReasonNotFound:              Gone,
	metav1.StatusReasonGone:                  Gone,
	metav1.StatusReasonExpired:               Gone,
	metav1.StatusReasonConflict:              Conflict,
	metav1.StatusReasonAlreadyExists:         Conflict,
	metav1.StatusReasonForbidden:             Forbidden,
	metav1.StatusReasonUnauthorized:          Forbidden,
	metav1.StatusReasonInvalid:               Invalid,
	metav1.StatusReasonBadRequest:            Invalid,
	metav1.StatusReasonMethodNotAllowed:      Invalid,
	metav1.StatusReasonNotAcceptable:         Invalid,
	metav1.StatusReasonUnsupportedMediaType:  Invalid,
	metav1.StatusReasonRequestEntityTooLarge: Invalid,
}

// classifyStatus returns the class of an error of the API server. Only this function reads the text of such errors.
func classifyStatus(s metav1.Status) ErrorClass {
	usual := cmp.Or(classOfReason[s.Reason], Transient)
	switch {
	case strings.Contains(s.Message, "admission webhook") || strings.Contains(s.Message, "failed calling webhook"):
		return Webhook
	case s.Reason == metav1.StatusReasonNotFound && (s.Details == nil || s.Details.Name == ""):
		return NoMatch // the server does not know the resource
	case s.Reason == metav1.StatusReasonConflict && strings.Contains(s.Message, "UID in precondition"):
		return Gone
	case usual == Forbidden && hasCause(s, func(c metav1.StatusCause) bool { return c.Type == corev1.NamespaceTerminatingCause }):
		return Transient
	case s.Reason == metav1.StatusReasonInvalid && hasCause(s, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }):
		return Gone // a patch for an object of the same name that was deleted
	}
	return usual
}

func hasCause(s metav1.Status, is func(metav1.StatusCause) bool) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, is)
}

// LastResult is what became of the last actions on one object.
type LastResult struct {
	// Class is ClassNone after a success.
	Class ErrorClass
	// Reason and Code are the API server's, empty for other errors.
	Reason  metav1.StatusReason
	Code    int32
	Message string
	// Count is the number of tries in a row that ended in this class; First and Last are the times of the first and the
	// last of them.
	Count       int
	First, Last time.Time
	// Tries is the number of tries in a row that failed, of whatever class, and Since the time of the first of them.
	// Conflicts, which are no failures, and missing permissions, which others have to grant, are not counted and end no
	// series.
	Tries int
	Since time.Time
}

// LastResults is an adapter's memory of its last Run, by object. It is optional input everywhere: without it the
// functions converge too, they know less.
type LastResults map[Key]LastResult

// LastResultsOf folds the result of Run into what was known before: the actions that ran, the error that Run returned,
// and the time of the run. previous is not changed and may be nil. Objects that actions does not name are forgotten,
// and those of actions that did not run: the ones behind a conflict (ErrStale), and the rest when the context ended.
func LastResultsOf(previous LastResults, actions []Action, runErr error, now time.Time) LastResults {
	failed := failures(runErr)
	next := make(LastResults, len(actions))
	var notRun *notRunError
	for _, a := range actions {
		if nilcheck.IsNil(a) {
			continue
		}
		_, target, _ := a.Describe()
		key := target.Key()
		err, bad := failed[key]
		if errors.As(err, &notRun) {
			break
		}
		next[key] = lastResultOf(previous[key], err, now)
		if bad && errors.Is(err, ErrStale) {
			break
		}
	}
	return next
}

// ConflictsLast moves the actions whose last try met a Conflict behind the others, and keeps the order otherwise. A
// Conflict stops Run, so an object that changes all the time would keep the actions behind it from running. Use
// it for actions that do not depend on each other.
func (r LastResults) ConflictsLast(actions []Action) {
	met := func(a Action) int {
		_, target, _ := a.Describe()
		if r[target.Key()].Class == Conflict {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(actions, func(a, b Action) int { return met(a) - met(b) })
}

func lastResultOf(last LastResult, err error, now time.Time) LastResult {
	o := LastResult{Class: Classify(err), Count: 1, First: now, Last: now}
	switch {
	case err == nil:
	case o.Class == Conflict, o.Class == Forbidden:
		o.Tries, o.Since = last.Tries, last.Since
	case last.Tries > 0:
		o.Tries, o.Since = last.Tries+1, last.Since
	default:
		o.Tries, o.Since = 1, now
	}
	if err == nil {
		return o
	}
	o.Message = err.Error()
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		o.Reason, o.Code, o.Message = s.Reason, s.Code, s.Message
	}
	if last.Class == o.Class && last.Count > 0 {
		o.Count, o.First = last.Count+1, last.First
	}
	return o
}

func failures(err error) map[Key]error {
	found := map[Key]error{}
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) {
		case nil:
		case *ActionError:
			_, target, _ := e.Action.Describe()
			found[target.Key()] = e.Err
		case interface{ Unwrap() []error }:
			for _, sub := range e.Unwrap() {
				walk(sub)
			}
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		}
	}
	walk(err)
	return found
}

// UnfitError is the error of a read of an object whose content does not fit its Go type. An API server stores such
// objects of custom kinds, because their schemas do not restrict versions, quantities and ports.
type UnfitError struct {
	// Object contains the metadata, and the fields that fit. It is valid input for decisions about other objects, such as
	// CSVs of other namespaces. No decision is made about the object itself.
	Object Object
	// Err reports the first field that does not fit.
	Err error
}

// Error implements error.
func (e *UnfitError) Error() string { return fmt.Sprintf("read %s: %v", KeyOf(e.Object), e.Err) }

// Unwrap returns Err.
func (e *UnfitError) Unwrap() error { return e.Err }

// Fitting returns the result of a read. If the error is an *UnfitError, Fitting returns the object of that error and no
// error. Use it to read objects of others, which must not block the caller.
func Fitting[T Object](o T, err error) (T, error) {
	var unfit *UnfitError
	if !errors.As(err, &unfit) {
		return o, err
	}
	return typed[T](unfit.Object)
}
