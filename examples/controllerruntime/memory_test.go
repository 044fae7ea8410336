// SPDX-License-Identifier: Apache-2.0

package olmruntime_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	olmruntime "github.com/olmcore/olm/examples/controllerruntime"
	"github.com/olmcore/olm/olmcore"
)

func configMap(name, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1", ResourceVersion: version}}
}

func shown(t *testing.T, objects ...olmcore.Object) *olmcore.Snapshot {
	s, err := olmcore.NewSnapshot(objects)
	require.NoError(t, err)
	return s
}

func TestAKeyWaitsUntilTheCacheShowsItsWrites(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	why := olmcore.Cause{Reason: "Test"}
	update := olmcore.UpdateOf(configMap("a", "3"), configMap("a", "3"), why)
	create := olmcore.CreateOf(configMap("a", ""), why)
	remove := olmcore.DeleteOf(configMap("a", "3"), why)
	failed := func(a olmcore.Action, err error) error { return &olmcore.ActionError{Action: a, Err: err} }
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", nil)
	untyped := olmcore.UpdateOf(configMap("a", "3"), configMap("a", "3"), why)
	untyped.Target.APIVersion, untyped.Target.Kind = "scheduling.k8s.io/v1", "PriorityClass"
	for name, tt := range map[string]struct {
		action olmcore.Action
		runErr error
		cache  *olmcore.Snapshot
		later  time.Duration
		want   bool
	}{
		"an update that is not there":              {action: update, cache: shown(t, configMap("a", "3")), want: true},
		"an update that is there":                  {action: update, cache: shown(t, configMap("a", "4"))},
		"an update of what is gone":                {action: update, cache: shown(t)},
		"an update that met another":               {action: update, runErr: failed(update, conflict), cache: shown(t, configMap("a", "3")), want: true},
		"an update that failed":                    {action: update, runErr: failed(update, apierrors.NewInternalError(conflict)), cache: shown(t, configMap("a", "3"))},
		"an update that changed nothing, later on": {action: update, cache: shown(t, configMap("a", "3")), later: 2 * time.Second},
		"an object that is not there yet":          {action: create, cache: shown(t), want: true},
		"an object that is there":                  {action: create, cache: shown(t, configMap("a", "1"))},
		"a delete":                                 {action: remove, cache: shown(t, configMap("a", "3"))},
		"a kind that is not cached":                {action: untyped, cache: shown(t)},
	} {
		t.Run(name, func(t *testing.T) {
			m := olmruntime.Remember(olmruntime.Remembered{}, olmcore.Result{Actions: []olmcore.Action{tt.action}}, tt.runErr, now)
			require.Equal(t, tt.want, m.Behind(t.Context(), tt.cache, now.Add(tt.later)))
		})
	}
}

func TestOutcomesAreKeptWhileThereIsSomethingToWaitFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	create := olmcore.CreateOf(configMap("a", ""), olmcore.Cause{Reason: "Test"})
	broken := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", nil)
	key := types.NamespacedName{Namespace: "ns", Name: "k"}
	var m olmruntime.Memory
	for range 2 {
		m.Set(key, olmruntime.Remember(m.Get(key), olmcore.Result{Actions: []olmcore.Action{create}}, &olmcore.ActionError{Action: create, Err: broken}, now))
		m.Set(key, olmruntime.Remember(m.Get(key), olmcore.Result{RequeueAfter: time.Second}, nil, now))
	}
	require.Equal(t, 2, m.Get(key).Outcomes()[create.Target.Key()].Count)
	m.Set(key, olmruntime.Remember(m.Get(key), olmcore.Result{}, nil, now))
	require.Zero(t, m.Len(), "nothing is kept about a key at rest")
}

func TestWhatIsSaidIsToldOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	told := func() []string {
		var all []string
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	target := olmcore.RefOf(configMap("a", "1"))
	result := olmcore.Result{
		Transitions: []olmcore.Transition{{Target: target, Type: "Phase", To: "Pending"}, {Target: target, Type: "Phase", From: "Pending", To: "Done", Reason: "Ready", Message: "it is"}},
		Diagnostics: []olmcore.Diagnostic{
			{Severity: olmcore.Warning, Reason: "Blocked", Message: "for 1s", Target: target},
			{Severity: olmcore.Info, Reason: "Long", Message: strings.Repeat("ä", olmruntime.MaxNote), Target: target},
		},
	}
	olmruntime.Tell(recorder, result, nil)
	got := told()
	require.Len(t, got, 4)
	require.Equal(t, []string{"Normal Pending Phase None -> Pending", "Normal Ready Phase Pending -> Done: it is", "Warning Blocked for 1s"}, got[:3])
	require.True(t, utf8.ValidString(got[3]))
	again := olmcore.Result{Diagnostics: append([]olmcore.Diagnostic{{Severity: olmcore.Error, Reason: "New", Message: "m", Target: target}}, result.Diagnostics...)}
	again.Diagnostics[1].Message = "for 2s"
	olmruntime.Tell(recorder, again, result.Diagnostics)
	require.Equal(t, []string{"Warning New m"}, told())
}
