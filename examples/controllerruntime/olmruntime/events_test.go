// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/controllerruntime/olmruntime"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// lines is a logr.LogSink that keeps each line. It does not implement logr.CallDepthLogSink, so it records no call
// stack.
type lines struct {
	*kept
	name   string
	values []any
}

type kept struct {
	mu             sync.Mutex
	errors, others []string
}

func (l lines) Init(logr.RuntimeInfo)  {}
func (l lines) Enabled(level int) bool { return level <= 1 }

func (l lines) WithName(name string) logr.LogSink {
	l.name += "/" + name
	return l
}

func (l lines) WithValues(values ...any) logr.LogSink {
	l.values = append(l.values[:len(l.values):len(l.values)], values...)
	return l
}

func (l lines) Info(level int, message string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others = append(l.others, fmt.Sprint(level, " ", l.name, ": ", message, " ", append(l.values[:len(l.values):len(l.values)], values...)))
}

func (l lines) Error(err error, message string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors = append(l.errors, fmt.Sprint(l.name, ": ", message, ": ", err, " ", append(l.values[:len(l.values):len(l.values)], values...)))
}

// refusing is a transport that answers some requests with an error.
type refusing struct {
	http.RoundTripper
	refuse func(r *http.Request) error
}

// RoundTrip implements http.RoundTripper.
func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	err := f.refuse(r)
	if err == nil {
		return f.RoundTripper.RoundTrip(r)
	}
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return nil, err
	}
	status := refused.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	return &http.Response{StatusCode: int(status.Code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

// TestExpectedErrorsAreNotLogged runs a manager while the API server answers writes with errors that need no attention.
// It counts the lines at error level, with which a logger prints a stack trace: there are none, and the operator is
// installed.
func TestExpectedErrorsAreNotLogged(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "things"}
	terminating := apierrors.NewForbidden(resource, "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	writes := func(r *http.Request) bool { return r.Method != http.MethodGet && !isEvent(r) }
	creates := func(r *http.Request) bool {
		return writes(r) && r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/namespaces/ops/")
	}
	for name, test := range map[string]struct {
		err     error
		selects func(r *http.Request) bool
		times   int
	}{
		"a status of an object that is gone": {apierrors.NewNotFound(resource, "x"),
			func(r *http.Request) bool { return writes(r) && strings.HasSuffix(r.URL.Path, "/status") }, 5},
		"an object that is gone": {apierrors.NewNotFound(resource, "x"),
			func(r *http.Request) bool { return writes(r) && r.Method != http.MethodPost }, 5},
		"a conflict": {apierrors.NewConflict(resource, "x", errors.New("it changed")),
			func(r *http.Request) bool { return writes(r) && r.Method != http.MethodPost }, 5},
		"a namespace that terminates":        {terminating, creates, 5},
		"a namespace that is gone":           {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), creates, 5},
		"Events without permission":          {apierrors.NewForbidden(resource, "x", errors.New("no rule")), isEvent, 1000},
		"Events of a terminating namespace":  {terminating, isEvent, 1000},
		"Events of a namespace that is gone": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), isEvent, 1000},
		"invalid Events":                     {apierrors.NewBadRequest("the Event is invalid"), isEvent, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := 0
			var mu sync.Mutex
			s, start := logging(t, func(r *http.Request) error {
				mu.Lock()
				defer mu.Unlock()
				if refused == test.times || !test.selects(r) {
					return nil
				}
				refused++
				return test.err
			})
			log, stop := start()
			do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("alpha", v1alpha1.ApprovalAutomatic)) })
			until(t, s, "alpha is installed", succeeded("alpha"))
			stop()
			require.Empty(t, log.errors)
			require.NotZero(t, refused)
			if test.times == 1000 {
				require.Contains(t, strings.Join(log.others, "\n"), "1 /events: An Event was not written")
			}
		})
	}
}

func isEvent(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/events")
}

// TestOtherErrorsAreLogged checks that the count of TestExpectedErrorsAreNotLogged can fail.
func TestOtherErrorsAreLogged(t *testing.T) {
	t.Parallel()
	_, start := logging(t, func(r *http.Request) error {
		if r.Method == http.MethodGet || isEvent(r) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "x", errors.New("no rule"))
	})
	log, stop := start()
	defer stop()
	require.Eventually(t, func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(log.errors) > 0
	}, time.Minute, 10*time.Millisecond)
}

// TestTheEndOfANamespaceIsNotLogged deletes the namespace of an operator at work, and then stops the manager.
func TestTheEndOfANamespaceIsNotLogged(t *testing.T) {
	t.Parallel()
	s, start := logging(t, func(*http.Request) error { return nil })
	log, stop := start()
	do(t, s, func(c *fake.Cluster) error { return c.Create(subscription("alpha", v1alpha1.ApprovalAutomatic)) })
	until(t, s, "alpha is being installed", func(c *fake.Cluster) bool {
		return fake.Find[*v1alpha1.ClusterServiceVersion](c, "ops", "alpha.v1.0.0") != nil
	})
	do(t, s, func(c *fake.Cluster) error {
		c.AutoCreateNamespaces = false
		return c.Delete(olmcore.RefOf(fake.Find[*corev1.Namespace](c, "", "ops")).Unversioned())
	})
	until(t, s, "the namespace is gone", func(c *fake.Cluster) bool { return fake.Find[*corev1.Namespace](c, "", "ops") == nil })
	stop()
	require.Empty(t, log.errors)
}

// TestAShutdownIsNotLogged stops managers whose writes hang, so that the end of the program interrupts them.
func TestAShutdownIsNotLogged(t *testing.T) {
	t.Parallel()
	hanging := make(chan struct{}, 1000)
	var hang atomic.Bool
	s, start := logging(t, func(r *http.Request) error {
		if r.Method == http.MethodGet || !hang.Load() {
			return nil
		}
		select {
		case hanging <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return r.Context().Err()
	})
	for _, name := range []string{"alpha", "beta"} {
		hang.Store(false)
		log, stop := start()
		atRest(t, s) // a manager that stops before its caches are filled logs that
		hang.Store(true)
		do(t, s, func(c *fake.Cluster) error { return c.Create(subscription(name, v1alpha1.ApprovalAutomatic)) })
		<-hanging
		stop()
		require.Empty(t, log.errors)
		for len(hanging) > 0 {
			<-hanging
		}
	}
}

// logging returns a cluster, and a function that starts a manager whose log lines are kept and some of whose requests
// are refused. stop ends it and waits until it has.
func logging(t *testing.T, refuse func(r *http.Request) error) (s *apiserver.Server, start func() (*kept, func())) {
	s, config := serve(t, newCluster(t, time.Now()))
	live(t, s)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return refusing{next, refuse} })
	return s, func() (*kept, func()) {
		log := lines{kept: &kept{}}
		mgr, err := olmruntime.New(config, ctrl.Options{
			Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(5 * time.Second), Logger: logr.New(log),
			BaseContext: func() context.Context { return logr.NewContext(context.Background(), logr.New(log)) },
		}, olmruntime.Options{Options: controllers.Options{Resolve: catalogs(t).Resolve, Sweeps: true, Operators: true}})
		require.NoError(t, err)
		return log.kept, run(t, mgr)
	}
}
