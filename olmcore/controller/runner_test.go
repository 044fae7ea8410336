// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

var (
	noon      = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	errUnread = errors.New("not read")
)

func configMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a", UID: "1", ResourceVersion: version}}
}

// runs is a Runner whose results and errors are set by a test.
type runs struct {
	controller.Runner
	result   olmcore.Result
	readErr  error
	writeErr error
	last     olmcore.LastResults
	count    int
	reports  []controller.Report
}

func newRuns() *runs {
	r := &runs{}
	r.Runner = controller.Runner{
		Controller: controller.Controller{Name: "test", Reconcile: r.reconcile},
		Executor:   r,
		Cached: func(kind schema.GroupVersionKind, namespace string) bool {
			return kind.Kind == "ConfigMap" && namespace == "ops"
		},
		OnReport: func(report controller.Report) { r.reports = append(r.reports, report) },
	}
	return r
}

func (r *runs) reconcile(
	_ context.Context, _ olmcore.Reader, _ types.NamespacedName, _ time.Time, last olmcore.LastResults,
) (olmcore.Result, error) {
	r.last = last
	r.count++
	return r.result, r.readErr
}

func (r *runs) Do(context.Context, olmcore.Action) error { return r.writeErr }

func (r *runs) shows(t *testing.T, objects ...olmcore.Object) {
	s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	r.Reader = s
}

var (
	aKey     = types.NamespacedName{Namespace: "ops", Name: "k"}
	why      = olmcore.Cause{Reason: "Test"}
	update   = olmcore.UpdateOf(configMap("3"), configMap("3"), why)
	create   = olmcore.CreateOf(configMap(""), why)
	resource = schema.GroupResource{Resource: "configmaps"}
	conflict = apierrors.NewConflict(resource, "a", nil)
)

func TestRunWaitsUntilTheCacheContainsTheWritesOfTheKey(t *testing.T) {
	uncached := olmcore.UpdateOf(configMap("3"), configMap("3"), why)
	uncached.Target.APIVersion, uncached.Target.Kind = "scheduling.k8s.io/v1", "PriorityClass"
	before, after := []olmcore.Object{configMap("3")}, []olmcore.Object{configMap("4")}
	remove, byUID := olmcore.DeleteOf(configMap("3"), why), olmcore.Delete{Target: olmcore.RefOf(configMap("3")).Unversioned(), Cause: why}
	going, newer := configMap("4"), configMap("4")
	going.DeletionTimestamp, newer.UID = new(metav1.NewTime(noon)), "2"
	terminating, another := []olmcore.Object{going}, []olmcore.Object{newer}
	for name, tt := range map[string]struct {
		action   olmcore.Action
		writeErr error
		cache    []olmcore.Object
		later    time.Duration
		waits    bool
	}{
		"an update that is not there":              {action: update, cache: before, waits: true},
		"an update that is there":                  {action: update, cache: after},
		"an update of what is gone":                {action: update},
		"an update that met another":               {action: update, writeErr: conflict, cache: before, waits: true},
		"an update that failed":                    {action: update, writeErr: apierrors.NewInternalError(errUnread), cache: before},
		"an update that changed nothing, later on": {action: update, cache: before, later: 2 * time.Second},
		"an update, and the clock is set back":     {action: update, cache: before, later: -time.Hour},
		"an object that is not there yet":          {action: create, waits: true},
		"an object that is there":                  {action: create, cache: after},
		"a delete that is not there":               {action: remove, cache: before, waits: true},
		"a delete that is not there, later on":     {action: remove, cache: before, later: 59 * time.Second, waits: true},
		"a delete of a cache that stands still":    {action: remove, cache: before, later: 61 * time.Second},
		"a delete that is under way":               {action: remove, cache: terminating},
		"a delete that is done":                    {action: remove},
		"a delete whose name was taken again":      {action: remove, cache: another},
		"a delete that met another write": {
			action: remove, writeErr: conflict, cache: before, waits: true,
		},
		"a delete that met another object": {action: byUID, writeErr: apierrors.NewConflict(resource, "a", nil)},
		"a delete that failed":             {action: remove, writeErr: apierrors.NewInternalError(errUnread), cache: before},
		"a kind that is not cached":        {action: uncached},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns()
			r.result, r.writeErr = olmcore.Result{Actions: []olmcore.Action{tt.action}}, tt.writeErr
			r.shows(t)
			_, _ = r.Run(t.Context(), aKey, noon)
			r.shows(t, tt.cache...)
			_, _ = r.Run(t.Context(), aKey, noon.Add(tt.later))
			require.Equal(t, tt.waits, r.count == 1)
		})
	}
}

func TestRunReturnsWhenTheKeyIsReconciledAgain(t *testing.T) {
	type answer struct {
		again time.Duration
		err   bool
	}
	creates := olmcore.Result{Actions: []olmcore.Action{create}, RequeueAfter: time.Hour}
	updates := olmcore.Result{Actions: []olmcore.Action{update}}
	invalid := &olmcore.InputError{Field: "spec", Problem: "is missing"}
	for name, tt := range map[string]struct {
		result            olmcore.Result
		readErr, writeErr error
		every             time.Duration
		want              answer
	}{
		"at rest":                        {want: answer{}},
		"at rest, but looked at anyway":  {every: time.Minute, want: answer{again: time.Minute}},
		"a deadline":                     {result: olmcore.Result{RequeueAfter: time.Hour}, want: answer{again: time.Hour}},
		"a deadline after the next look": {result: olmcore.Result{RequeueAfter: time.Hour}, every: time.Minute, want: answer{again: time.Minute}},
		"after a write":                  {result: creates, want: answer{again: time.Second}},
		"after a conflict":               {result: updates, writeErr: conflict, want: answer{again: 10 * time.Millisecond}},
		"after a failure":                {result: updates, writeErr: errUnread, want: answer{err: true}},
		"what cannot be read":            {readErr: errUnread, want: answer{err: true}},
		"what cannot be right":           {readErr: invalid, want: answer{err: true}},
		"what is gone":                   {readErr: apierrors.NewNotFound(resource, "a"), every: time.Minute, want: answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRuns()
			r.result, r.readErr, r.writeErr, r.Every = tt.result, tt.readErr, tt.writeErr, tt.every
			r.shows(t)
			again, err := r.Run(t.Context(), aKey, noon)
			require.Equal(t, tt.want, answer{again: again, err: err != nil})
			if err != nil && tt.readErr != nil {
				require.ErrorIs(t, err, tt.readErr)
			}
		})
	}
}

func TestLastResultsAreKeptUntilTheKeyConverges(t *testing.T) {
	r := newRuns()
	r.shows(t)
	run := func(result olmcore.Result) {
		r.result = result
		_, _ = r.Run(t.Context(), aKey, noon)
	}
	r.writeErr = apierrors.NewForbidden(resource, "a", nil)
	for range 2 {
		run(olmcore.Result{Actions: []olmcore.Action{create}})
		run(olmcore.Result{RequeueAfter: time.Second})
	}
	require.Equal(t, 2, r.last[create.Target.Key()].Count)
	run(olmcore.Result{})
	run(olmcore.Result{})
	require.Empty(t, r.last, "nothing is kept about a key at rest")
}

func TestReportContainsEachDiagnosticAsNewsOnce(t *testing.T) {
	r := newRuns()
	r.shows(t)
	target := olmcore.RefOf(configMap("1"))
	said := olmcore.Diagnostic{Severity: olmcore.Warning, Reason: "Blocked", Message: "for 1s", Target: target}
	longer, another := said, said
	longer.Message, another.Reason = "for 2s", "Another"
	for _, diagnostics := range [][]olmcore.Diagnostic{{said}, {longer, another}, nil, {said}} {
		r.result = olmcore.Result{Diagnostics: diagnostics}
		_, err := r.Run(t.Context(), aKey, noon)
		require.NoError(t, err)
	}
	var news [][]olmcore.Diagnostic
	for _, report := range r.reports {
		require.Equal(t, "test", report.Controller)
		require.Equal(t, aKey, report.Key)
		news = append(news, report.News)
	}
	require.Equal(t, [][]olmcore.Diagnostic{{said}, {another}, {said}}, news)
}

// TestContextNamesTheController checks that code below Readers and Executors can find out the controller.
func TestContextNamesTheController(t *testing.T) {
	var names []string
	r := &controller.Runner{Controller: controller.Controller{
		Name: "installplan",
		Reconcile: func(
			ctx context.Context, _ olmcore.Reader, _ types.NamespacedName, _ time.Time, _ olmcore.LastResults,
		) (olmcore.Result, error) {
			names = append(names, controller.From(ctx))
			return olmcore.Result{}, nil
		},
	}}
	_, err := r.Run(t.Context(), types.NamespacedName{Namespace: "ns", Name: "plan"}, noon)
	require.NoError(t, err)
	require.Equal(t, []string{"installplan"}, names)
	require.Empty(t, controller.From(t.Context()))
}
