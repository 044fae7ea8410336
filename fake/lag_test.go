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

// watcher is a controller that notes at each turn what it reads of ConfigMap ns/cm and Secret ns/s, and writes nothing.
// The ConfigMap anchor, which is always there, is its key.
func watcher(name string, seen *[]string) controller.Controller {
	return controller.Controller{
		Name: name, Always: []types.NamespacedName{{Namespace: "ns", Name: "anchor"}},
		Reconcile: func(ctx context.Context, r olmcore.Reader, _ types.NamespacedName, _ time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			cm, err := olmcore.Get[*corev1.ConfigMap](ctx, r, "ns", "cm")
			secret, secretErr := olmcore.Get[*corev1.Secret](ctx, r, "ns", "s")
			*seen = append(*seen, fmt.Sprint(cm != nil, secret != nil))
			return olmcore.Result{}, errors.Join(err, secretErr)
		},
	}
}

func TestDriverLagsByKind(t *testing.T) {
	secretKind := schema.GroupKind{Kind: "Secret"}
	for name, tt := range map[string]struct {
		lag  fake.Lag
		want []string
	}{
		"none":                  {nil, []string{"true true"}},
		"one kind":              {fake.Lag{secretKind: 2}, []string{"true false", "true true"}},
		"all kinds":             {fake.Lag{{}: 1}, []string{"false false", "true true"}},
		"all kinds but one":     {fake.Lag{{}: 3, secretKind: 0}, []string{"false true", "true true"}},
		"each kind has its own": {fake.Lag{{}: 1, secretKind: 2}, []string{"false false", "true false", "true true"}},
		"negative is none":      {fake.Lag{{}: -1}, []string{"true true"}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			c, d := driver(t, watcher("watcher", &seen))
			d.Lags = map[string]fake.Lag{"watcher": tt.lag}
			require.NoError(t, d.Settle(t.Context()))
			seen = nil
			require.NoError(t, c.Create(configMap("cm"), &corev1.Secret{ObjectMeta: configMap("s").ObjectMeta}))
			require.NoError(t, d.Settle(t.Context()))
			require.Equal(t, tt.want, seen)
			seen = nil
			require.NoError(t, d.Settle(t.Context()))
			require.Empty(t, seen, "at rest no key is due")
		})
	}
}

// TestEachControllerHasALagOfItsOwn checks that controllers with different Lags read different states of the cluster,
// and that two controllers of one name have Views of their own.
func TestEachControllerHasALagOfItsOwn(t *testing.T) {
	secretKind := schema.GroupKind{Kind: "Secret"}
	var first, second, third, fourth []string
	c, d := driver(t, watcher("slow", &first), watcher("slower", &second), watcher("live", &third), watcher("slow", &fourth))
	d.Lags = map[string]fake.Lag{"slow": {secretKind: 2}, "slower": {{}: 1}}
	require.NoError(t, d.Settle(t.Context()))
	first, second, third, fourth = nil, nil, nil, nil
	require.NoError(t, c.Create(configMap("cm"), &corev1.Secret{ObjectMeta: configMap("s").ObjectMeta}))
	require.NoError(t, d.Settle(t.Context()))
	require.Equal(t, []string{"true false", "true true"}, first)
	require.Equal(t, []string{"false false", "true true"}, second)
	require.Equal(t, []string{"true true"}, third)
	require.Equal(t, first, fourth)
}

func TestDriverSettlesWithStaleReads(t *testing.T) {
	for lag := range 6 {
		c, d := driver(t, mirror(), mirror())
		d.Controllers[1].Name = "second"
		d.Lags = map[string]fake.Lag{"mirror": {{}: lag}, "second": {{Kind: "Pod"}: lag}}
		require.NoError(t, c.Create(configMap("cm")))
		require.NoError(t, d.Settle(t.Context()))
		require.NotEmpty(t, fake.Find[*corev1.ConfigMap](c, "ns", "cm").Data)
		require.Equal(t, lag > 0, len(d.Events) > 4, "stale reads show:\n%s", controller.Format(d.Events))
		for _, name := range []string{"controller 0, mirror", "controller 1, second"} {
			require.Empty(t, c.View(name).Behind())
		}
	}
}

func TestDriverListsAnewAfterACrash(t *testing.T) {
	for nth := range 3 {
		c, d := driver(t, mirror())
		d.Lags = map[string]fake.Lag{"mirror": {{}: 4}}
		require.NoError(t, c.Create(configMap("cm")))
		c.Faults().Inject(fake.Fault{Nth: nth + 1, Mode: fake.Crash})
		require.NoError(t, d.Settle(t.Context()))
		require.NotEmpty(t, fake.Find[*corev1.ConfigMap](c, "ns", "cm").Data)
	}
}

func TestDriverRefusesLagWithoutAView(t *testing.T) {
	c, d := driver(t, mirror())
	d.Readers = map[string]olmcore.Reader{"mirror": c}
	d.Lags = map[string]fake.Lag{"mirror": {{}: 1}}
	require.EqualError(t, d.Settle(t.Context()), "mirror: invalid input: Lags needs a Reader that is a *View, or none: it is a *fake.Cluster")
}

// TestDriverCallsAfterActionForEachAction checks that AfterAction is called for actions that succeeded and that failed,
// may change the cluster, and stops the run.
func TestDriverCallsAfterActionForEachAction(t *testing.T) {
	c, d := driver(t, mirror())
	require.NoError(t, c.Create(configMap("cm")))
	c.Faults().Inject(fake.Fault{Kind: "Pod", Mode: fake.FailWithoutEffect})
	var actions []string
	boom := errors.New("boom")
	d.AfterAction = func(e controller.Event) error {
		_, target, _ := e.Action.Describe()
		actions = append(actions, fmt.Sprint(target.Kind, " ", e.Err != nil))
		switch {
		case target.Kind == "ConfigMap":
			return fake.Edit(c, "ns", "cm", func(o *corev1.ConfigMap) { o.Data["done"] = "yes" })
		case e.Err == nil:
			return boom
		}
		return nil
	}
	err := d.Settle(t.Context())
	require.ErrorIs(t, err, boom)
	require.EqualError(t, err, `mirror ns/cm: after "mirror ns/cm: create Pod ns/cm (PodMissing)": boom`)
	require.Equal(t, []string{"Pod true", "Pod false"}, actions)
	require.NoError(t, d.Settle(t.Context()), "the next call goes on")
	require.Equal(t, "ConfigMap false", actions[2])
	require.Equal(t, "yes", fake.Find[*corev1.ConfigMap](c, "ns", "cm").Data["done"])
	_, waits := d.Deadline()
	require.False(t, waits, "the controller saw what the hook wrote")
}

// TestDriverStopsBetweenActions checks that no further action runs after an error of AfterAction.
func TestDriverStopsBetweenActions(t *testing.T) {
	stop := errors.New("stop")
	c, d := driver(t, controller.Controller{Name: "two", Kinds: []schema.GroupVersionKind{configMapGVK},
		Reconcile: func(ctx context.Context, r olmcore.Reader, _ types.NamespacedName, _ time.Time, _ olmcore.LastResults) (res olmcore.Result, err error) {
			for _, name := range []string{"one", "two"} {
				if pod, err := olmcore.Get[*corev1.Pod](ctx, r, "ns", name); err != nil || pod == nil {
					res.Actions = append(res.Actions, olmcore.CreateOf(newPod(name), olmcore.Cause{Reason: "PodMissing"}))
				}
			}
			return res, nil
		}})
	require.NoError(t, c.Create(configMap("cm")))
	d.AfterAction = func(controller.Event) error { return stop }
	require.ErrorIs(t, d.Settle(t.Context()), stop)
	require.True(t, exists(c, newPod("one")))
	require.False(t, exists(c, newPod("two")))
	d.AfterAction = nil
	require.NoError(t, d.Settle(t.Context()))
	require.True(t, exists(c, newPod("two")))
}
