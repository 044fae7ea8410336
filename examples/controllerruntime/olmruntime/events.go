// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
)

// eventWriter writes Events as the manager's own recorders do, except that an Event which the API server rejects is
// logged at verbosity 1 and not as an error: its namespace may be terminating, or the account may not create Events.
type eventWriter struct {
	broadcaster events.EventBroadcaster
	scheme      *runtime.Scheme
	log         logr.Logger
	starting    sync.Once
	// ended is set before the broadcaster is shut down: an Event after that is dropped.
	ended atomic.Bool
	ctx   context.Context
	stop  context.CancelFunc
}

// newEvents returns the eventWriter of a manager, which ends with the manager.
func newEvents(mgr ctrl.Manager) (*eventWriter, error) {
	client, err := eventsclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	w := &eventWriter{scheme: mgr.GetScheme(), log: mgr.GetLogger().WithName("events")}
	w.ctx, w.stop = context.WithCancel(logr.NewContext(context.Background(), w.log))
	w.broadcaster = events.NewBroadcaster(&eventSink{EventSink: &events.EventSinkImpl{Interface: client}, log: w.log})
	return w, mgr.Add(w)
}

// Start implements manager.Runnable.
func (w *eventWriter) Start(ctx context.Context) error {
	<-ctx.Done()
	w.ended.Store(true)
	w.broadcaster.Shutdown()
	w.stop()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: it ends after the controllers.
func (w *eventWriter) NeedLeaderElection() bool { return false }

// recorder returns the recorder of a controller.
func (w *eventWriter) recorder(name string) events.EventRecorder {
	return &lazyRecorder{EventRecorder: w.broadcaster.NewRecorder(w.scheme, name), start: w.start}
}

// start begins to write, with the first Event: a manager that is never started has no goroutines.
func (w *eventWriter) start() {
	w.starting.Do(func() {
		_, err := w.broadcaster.StartLogging(w.log.V(1))
		if err := errors.Join(err, w.broadcaster.StartRecordingToSinkWithContext(w.ctx)); err != nil && !w.ended.Load() {
			w.log.Error(err, "Events cannot be recorded")
		}
	})
}

// lazyRecorder calls start before each Event.
type lazyRecorder struct {
	events.EventRecorder
	start func()
}

// Eventf implements events.EventRecorder.
func (r *lazyRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.start()
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
}

// eventSink passes no rejection on.
type eventSink struct {
	events.EventSink
	log logr.Logger
}

// Create implements events.EventSink.
func (s *eventSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.accepted(ctx, e)(s.EventSink.Create(ctx, e))
}

// Patch implements events.EventSink. NotFound is passed on: the Event is created again then.
func (s *eventSink) Patch(ctx context.Context, e *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	written, err := s.EventSink.Patch(ctx, e, patch)
	if apierrors.IsNotFound(err) {
		return written, err
	}
	return s.accepted(ctx, e)(written, err)
}

// accepted returns a function that replaces the error of a rejection, and of a write that the end of the program
// interrupts.
func (s *eventSink) accepted(ctx context.Context, e *eventsv1.Event) func(*eventsv1.Event, error) (*eventsv1.Event, error) {
	return func(written *eventsv1.Event, err error) (*eventsv1.Event, error) {
		var status *apierrors.StatusError
		isRejection := errors.As(err, &status) && !apierrors.IsAlreadyExists(err)
		if !isRejection && ctx.Err() == nil {
			return written, err
		}
		if err != nil {
			s.log.V(1).Info("An Event was not written", "kind", e.Regarding.Kind, "namespace", e.Regarding.Namespace, "name", e.Regarding.Name,
				"reason", e.Reason, "error", err.Error())
		}
		return e, nil
	}
}
