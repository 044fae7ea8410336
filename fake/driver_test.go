// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

const ready = "ready"

// mirror is a small controller: each ConfigMap gets a Pod of its name, and data "ready" once the Pod is; after that it
// wants to look again every minute until data "done" is set.
func mirror() controller.Controller {
	return controller.Controller{
		Name: "mirror", Kinds: []schema.GroupVersionKind{configMapGVK},
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (res olmcore.Result, err error) {
			cm, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, key.Name)
			if err != nil {
				return res, err
			}
			pod, err := olmcore.Get[*corev1.Pod](ctx, r, key.Namespace, key.Name)
			if err != nil {
				return res, err
			}
			switch {
			case pod == nil:
				res.Actions = append(res.Actions, olmcore.CreateOf(newPod(key.Name), olmcore.Cause{Reason: "PodMissing"}))
			case cm.Data[ready] == "" && condition(pod, corev1.PodReady).Status == corev1.ConditionTrue:
				after := cm.DeepCopy()
				after.Data = map[string]string{ready: now.Format(time.TimeOnly)}
				res.Actions = append(res.Actions, olmcore.UpdateOf(cm, after, olmcore.Cause{Reason: "PodReady"}))
				res.Transitions = append(res.Transitions, olmcore.Transition{From: "CONNECTING", To: "READY", Reason: "PodReady", Certainty: olmcore.CertaintyObserved})
			case cm.Data[ready] == "":
				res.Diagnostics = append(res.Diagnostics, olmcore.Diagnostic{Severity: olmcore.Info, Reason: "Waiting", Message: "the Pod is not ready"})
			case cm.Data["done"] == "":
				res.RequeueAfter = time.Minute
			}
			return res, nil
		},
	}
}

func driver(t testing.TB, controllers ...controller.Controller) (*fake.Cluster, *fake.Driver) {
	c := newCluster(t, "a")
	return c, &fake.Driver{Cluster: c, Controllers: controllers}
}

func lines(d *fake.Driver) (out []string) {
	for _, e := range d.Events {
		out = append(out, e.At.Sub(start).String()+" "+e.String())
	}
	d.Events = nil
	return out
}

func TestDriverSettles(t *testing.T) {
	c, d := driver(t, mirror())
	require.NoError(t, c.Create(configMap("cm")))
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, []string{
		"0s mirror ns/cm: create Pod ns/cm (PodMissing)",
		"0s mirror ns/cm: CONNECTING -> READY (PodReady)",
		"0s mirror ns/cm: update ConfigMap ns/cm (PodReady)",
	}, lines(d))
	require.Equal(t, []fake.Deadline{{Controller: "mirror", Key: types.NamespacedName{Namespace: "ns", Name: "cm"}, At: start.Add(time.Minute)}}, d.Deadlines())

	require.NoError(t, c.Delete(refTo(newPod("cm")), grace(0)))
	c.Image("registry.example/app:v1").Break("")
	require.NoError(t, fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Data = nil }))
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, []string{
		"0s mirror ns/cm: create Pod ns/cm (PodMissing)",
		"0s mirror ns/cm: Info Waiting: the Pod is not ready",
	}, lines(d), "a diagnostic is told once")
}

func TestDriverMovesTheClock(t *testing.T) {
	c, d := driver(t, mirror())
	require.NoError(t, c.Create(configMap("cm")))
	require.NoError(t, d.RunUntilIdle(t.Context(), 150*time.Second))
	require.Equal(t, start.Add(2*time.Minute), c.Now(), "the last deadline within the limit")
	require.NoError(t, d.RunFor(t.Context(), 30*time.Second))
	require.Equal(t, start.Add(150*time.Second), c.Now())
	require.NoError(t, fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Data["done"] = "yes" }))
	require.NoError(t, d.RunUntilIdle(t.Context(), time.Hour))
	require.Equal(t, start.Add(150*time.Second), c.Now(), "nothing waits any more")
	_, waits := d.Deadline()
	require.False(t, waits)
	result, known := d.Result("mirror", types.NamespacedName{Namespace: "ns", Name: "cm"})
	require.True(t, known)
	require.Equal(t, olmcore.Result{}, result)
	_, known = d.Result("mirror", types.NamespacedName{Namespace: "ns", Name: "other"})
	require.False(t, known)
}

func TestDriverRetriesAndRemembers(t *testing.T) {
	var seen []olmcore.LastResult
	m := mirror()
	inner := m.Reconcile
	m.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
		if o, ok := last[olmcore.Key{Kind: "Pod", Namespace: "ns", Name: "cm"}]; ok {
			seen = append(seen, o)
		}
		return inner(ctx, r, key, now, last)
	}
	c, d := driver(t, m)
	require.NoError(t, c.Create(configMap("cm")))
	for range 5 {
		c.Faults().Inject(fake.Fault{Kind: "Pod", Mode: fake.FailWithoutEffect})
	}
	require.NoError(t, d.Settle(t.Context()))
	require.Len(t, c.Faults().Pending(), 2, "three tries at one instant")
	at, waits := d.Deadline()
	require.True(t, waits)
	require.Equal(t, start.Add(10*time.Second), at)
	require.NoError(t, d.RunFor(t.Context(), 10*time.Second))
	require.Len(t, c.Faults().Pending(), 1)
	require.NoError(t, d.RunFor(t.Context(), 20*time.Second))
	require.NoError(t, d.RunFor(t.Context(), 40*time.Second))
	require.True(t, exists(c, newPod("cm")))
	last := seen[len(seen)-1]
	require.Equal(t, olmcore.ClassNone, last.Class)
	worst := seen[len(seen)-2]
	require.Equal(t, 5, worst.Count)
	require.Equal(t, start, worst.First)
	require.Equal(t, start.Add(30*time.Second), worst.Last)
}

func TestDriverSurvivesCrashesAndConflicts(t *testing.T) {
	for _, mode := range []fake.FaultMode{fake.Crash, fake.Conflict, fake.FailAfterEffect, fake.FailWithoutEffect} {
		for nth := 1; nth <= 3; nth++ {
			c, d := driver(t, mirror())
			require.NoError(t, c.Create(configMap("cm")))
			c.Faults().Inject(fake.Fault{Nth: nth, Mode: mode})
			require.NoError(t, d.Settle(t.Context()))
			require.NotEmpty(t, fake.Find[*corev1.ConfigMap](c, "ns", "cm").Data, "%s %d", mode, nth)
			require.False(t, c.Faults().Crashed())
		}
	}
}

func TestDriverReadsThroughAView(t *testing.T) {
	c, d := driver(t, mirror())
	d.Readers = map[string]olmcore.Reader{"mirror": c.View("mirror")}
	require.NoError(t, c.Create(configMap("cm")))
	require.NoError(t, d.Settle(t.Context()))
	require.NotEmpty(t, fake.Find[*corev1.ConfigMap](c, "ns", "cm").Data)
}

func TestDriverNamesWhatDoesNotSettle(t *testing.T) {
	n := 0
	c, d := driver(t, controller.Controller{Name: "flap", Kinds: []schema.GroupVersionKind{configMapGVK}, KeysOf: controller.NamespaceKey,
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, _ time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			require.Empty(t, key.Name)
			before, err := olmcore.Get[*corev1.ConfigMap](ctx, r, key.Namespace, "cm")
			if err != nil {
				return olmcore.Result{}, err
			}
			after := before.DeepCopy()
			n++
			after.Data = map[string]string{"n": fmt.Sprint(n)}
			return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(before, after, olmcore.Cause{Reason: "Again"})}}, nil
		}})
	require.NoError(t, c.Create(configMap("cm"), configMap("other")))
	d.MaxRounds = 5
	err := d.Settle(t.Context())
	require.ErrorContains(t, err, "no fixed point after 5 rounds")
	require.ErrorContains(t, err, "flap ns: update ConfigMap ns/cm (Again)")
}

func TestDriverReportsErrors(t *testing.T) {
	boom := errors.New("boom")
	c, d := driver(t, controller.Controller{Name: "bad", Kinds: []schema.GroupVersionKind{configMapGVK},
		Reconcile: func(context.Context, olmcore.Reader, types.NamespacedName, time.Time, olmcore.LastResults) (olmcore.Result, error) {
			return olmcore.Result{}, boom
		}})
	require.NoError(t, c.Create(configMap("cm")))
	err := d.Settle(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "bad ns/cm: ")
}
