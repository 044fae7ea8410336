// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmcore/olm/olmcore"
)

var pods = schema.GroupResource{Resource: "pods"}

// scripted answers each object's write with an error of its own.
type scripted struct {
	answers map[string]error
	done    []string
}

func (s *scripted) Do(_ context.Context, a olmcore.Action) error {
	verb, target, _ := a.Describe()
	s.done = append(s.done, fmt.Sprint(verb, " ", target.Name))
	return s.answers[target.Name]
}

func create(name string) olmcore.Action { return olmcore.CreateOf(pod(name), because) }
func remove(name string) olmcore.Action { return olmcore.DeleteOf(pod(name), because) }
func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestRun(t *testing.T) {
	denied := apierrors.NewForbidden(pods, "b", errors.New("no"))
	for name, tt := range map[string]struct {
		actions []olmcore.Action
		answers map[string]error
		done    []string
		failed  []string
		stale   bool
	}{
		"in order": {actions: []olmcore.Action{create("a"), remove("b")}, done: []string{"create a", "delete b"}},
		"what is there or gone already counts as done": {
			actions: []olmcore.Action{create("a"), remove("b")},
			answers: map[string]error{"a": apierrors.NewAlreadyExists(pods, "a"), "b": apierrors.NewNotFound(pods, "b")},
			done:    []string{"create a", "delete b"}},
		"a failure does not stop the later ones": {
			actions: []olmcore.Action{create("a"), create("b"), create("c")}, answers: map[string]error{"b": denied},
			done: []string{"create a", "create b", "create c"}, failed: []string{"b"}},
		"a conflict does": {
			actions: []olmcore.Action{create("b"), remove("a"), create("c")},
			answers: map[string]error{"a": apierrors.NewConflict(pods, "a", errors.New("changed")), "b": denied},
			done:    []string{"create b", "delete a"}, failed: []string{"b", "a"}, stale: true},
		"NotFound on create is a failure": {
			actions: []olmcore.Action{create("a")}, answers: map[string]error{"a": apierrors.NewNotFound(pods, "a")},
			done: []string{"create a"}, failed: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &scripted{answers: tt.answers}
			err := olmcore.Run(t.Context(), x, tt.actions)
			require.Equal(t, tt.done, x.done)
			require.Equal(t, tt.stale, errors.Is(err, olmcore.ErrStale))
			var failed []string
			for _, e := range split(err) {
				var action *olmcore.ActionError
				require.ErrorAs(t, e, &action)
				_, target, _ := action.Action.Describe()
				failed = append(failed, target.Name)
			}
			require.Equal(t, tt.failed, failed)
		})
	}
}

func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return nil
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := &scripted{}
	actions := []olmcore.Action{create("a"), create("b")}
	err := olmcore.Run(ctx, x, actions)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "create Pod ns/a: not run: context canceled")
	require.Empty(t, x.done)
	require.Empty(t, olmcore.LastResultsOf(nil, actions, err, noon), "what did not run has no outcome")
}

func TestRunSkipsWhatIsNoAction(t *testing.T) {
	x := &scripted{}
	actions := []olmcore.Action{create("a"), nil, (*olmcore.Create)(nil), create("b")}
	err := olmcore.Run(t.Context(), x, actions)
	require.EqualError(t, err, "invalid input: actions[1] is nil\ninvalid input: actions[2] is nil")
	require.Equal(t, []string{"create a", "create b"}, x.done)
	require.Len(t, olmcore.LastResultsOf(nil, actions, err, noon), 2)
}

func TestClassify(t *testing.T) {
	terminating := apierrors.NewForbidden(pods, "a", errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	conflict := func(text string) error { return apierrors.NewConflict(pods, "a", errors.New(text)) }
	for name, tt := range map[string]struct {
		err  error
		want olmcore.ErrorClass
	}{
		"no error":            {nil, olmcore.ClassNone},
		"not found":           {apierrors.NewNotFound(pods, "a"), olmcore.Gone},
		"expired":             {apierrors.NewResourceExpired("gone"), olmcore.Gone},
		"another incarnation": {conflict("Precondition failed: UID in precondition: 1, UID in object meta: 2"), olmcore.Gone},
		"a patch of another incarnation": {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), "1", "field is immutable")}), olmcore.Gone},
		"unknown resource":             {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}}, olmcore.NoMatch},
		"no mapping":                   {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "X"}}, olmcore.NoMatch},
		"changed":                      {conflict("changed"), olmcore.Conflict},
		"name taken":                   {apierrors.NewAlreadyExists(pods, "a"), olmcore.Conflict},
		"stale":                        {fmt.Errorf("wrapped: %w", olmcore.ErrStale), olmcore.Conflict},
		"timeout":                      {apierrors.NewTimeoutError("slow", 1), olmcore.Transient},
		"overload":                     {apierrors.NewTooManyRequests("busy", 1), olmcore.Transient},
		"network":                      {errors.New("connection refused"), olmcore.Transient},
		"forbidden":                    {apierrors.NewForbidden(pods, "a", nil), olmcore.Forbidden},
		"unauthorized":                 {apierrors.NewUnauthorized("who"), olmcore.Forbidden},
		"namespace terminating":        {terminating, olmcore.Transient},
		"bad request":                  {apierrors.NewBadRequest("bad"), olmcore.Invalid},
		"invalid":                      {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), olmcore.Invalid},
		"too large":                    {apierrors.NewRequestEntityTooLargeError("big"), olmcore.Invalid},
		"denied by a webhook":          {apierrors.NewForbidden(pods, "a", errors.New(`admission webhook "w" denied the request`)), olmcore.Webhook},
		"webhook down":                 {apierrors.NewInternalError(errors.New(`failed calling webhook "w"`)), olmcore.Webhook},
		"wrapped":                      {fmt.Errorf("x: %w", apierrors.NewNotFound(pods, "a")), olmcore.Gone},
		"internal error is not for us": {apierrors.NewInternalError(errors.New("etcd")), olmcore.Transient},
	} {
		require.Equal(t, tt.want, olmcore.Classify(tt.err), name)
	}
}

func TestLastResultsCountTriesThatEndAlike(t *testing.T) {
	actions := []olmcore.Action{create("a"), create("b"), create("c")}
	run := func(previous olmcore.LastResults, at time.Time, answers map[string]error) olmcore.LastResults {
		return olmcore.LastResultsOf(previous, actions, olmcore.Run(t.Context(), &scripted{answers: answers}, actions), at)
	}
	key := func(name string) olmcore.Key { return olmcore.KeyOf(pod(name)) }
	forbidden := apierrors.NewForbidden(pods, "b", errors.New("no"))
	first := run(nil, noon, map[string]error{"b": forbidden})
	second := run(first, noon.Add(time.Minute), map[string]error{"b": forbidden})
	ok := olmcore.LastResult{Count: 1, First: noon.Add(time.Minute), Last: noon.Add(time.Minute)}
	require.Empty(t, cmp.Diff(olmcore.LastResults{
		key("a"): ok, key("c"): ok,
		key("b"): {Class: olmcore.Forbidden, Reason: metav1.StatusReasonForbidden, Code: 403, Message: forbidden.ErrStatus.Message,
			Count: 2, First: noon, Last: noon.Add(time.Minute)},
	}, second))
	third := run(second, noon.Add(time.Hour), map[string]error{"a": apierrors.NewConflict(pods, "a", errors.New("changed"))})
	require.Len(t, third, 1, "what did not run is not remembered")
	require.Equal(t, olmcore.Conflict, third[key("a")].Class)
	require.Equal(t, 2, second[key("b")].Count, "the previous outcomes are left alone")
}

// TestASeriesOfFailuresEndsWithASuccess alone, whatever the answers are.
func TestASeriesOfFailuresEndsWithASuccess(t *testing.T) {
	ill, webhook := apierrors.NewInternalError(errors.New("etcd is ill")), apierrors.NewInternalError(errors.New("failed calling webhook"))
	changed, forbidden := apierrors.NewConflict(pods, "a", errors.New("changed")), apierrors.NewForbidden(pods, "a", errors.New("no"))
	actions, key := []olmcore.Action{create("a")}, olmcore.KeyOf(pod("a"))
	var last olmcore.LastResults
	for i, step := range []struct {
		answer       error
		count, tries int
		since        int // the step
	}{
		{ill, 1, 1, 0}, {webhook, 1, 2, 0}, {webhook, 2, 3, 0}, {forbidden, 1, 3, 0}, {changed, 1, 3, 0}, {ill, 1, 4, 0}, {nil, 1, 0, -1},
		{forbidden, 1, 0, -1}, {changed, 1, 0, -1}, {webhook, 1, 1, 9}, {ill, 1, 2, 9},
	} {
		last = olmcore.LastResultsOf(last, actions, olmcore.Run(t.Context(), &scripted{answers: map[string]error{"a": step.answer}}, actions), noon.Add(time.Duration(i)*time.Minute))
		got := last[key]
		require.Equal(t, step.count, got.Count, i)
		require.Equal(t, step.tries, got.Tries, i)
		if step.since < 0 {
			require.Zero(t, got.Since, i)
		} else {
			require.Equal(t, noon.Add(time.Duration(step.since)*time.Minute), got.Since, i)
		}
	}
}

func TestErrorsNameTheirSubject(t *testing.T) {
	require.EqualError(t, &olmcore.InputError{Field: "spec.image", Problem: "is empty"}, "invalid input: spec.image is empty")
	require.EqualError(t, &olmcore.ActionError{Action: create("a"), Err: errors.New("no")}, "create Pod ns/a: no")
}

// TestConflictsLastKeepsTheOrderOfTheOthers checks that actions that met a Conflict come last, and that nothing else
// moves.
func TestConflictsLastKeepsTheOrderOfTheOthers(t *testing.T) {
	actions := []olmcore.Action{remove("a"), remove("b"), remove("c"), remove("d")}
	key := func(name string) olmcore.Key { return olmcore.KeyOf(pod(name)) }
	last := olmcore.LastResults{key("a"): {Class: olmcore.Conflict}, key("b"): {Class: olmcore.Forbidden}, key("c"): {Class: olmcore.Conflict}}
	last.ConflictsLast(actions)
	require.Equal(t, []olmcore.Action{remove("b"), remove("d"), remove("a"), remove("c")}, actions)
	olmcore.LastResults(nil).ConflictsLast(actions)
	require.Equal(t, []olmcore.Action{remove("b"), remove("d"), remove("a"), remove("c")}, actions)
}
