// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// TestControllersWithClientsOfTheirOwnComeToRest: whatever the clients of several
// controllers know, also of a time that is not over yet, the status that they share is
// written a few times and then stays.
func TestControllersWithClientsOfTheirOwnComeToRest(t *testing.T) {
	images, address := converged(t, catalog.Config{}, cool()), converged(t, catalog.Config{}, cool())
	edit(&address, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry:50051" })
	address.Pods.Items, address.Services.Items, address.ServiceAccounts.Items = nil, nil, nil
	states := []string{"IDLE", "CONNECTING", "READY", "TRANSIENT_FAILURE", "SHUTDOWN"}
	rapid.Check(t, func(t *rapid.T) {
		base, dial := images, "cool.olm.svc:50051"
		if rapid.Bool().Draw(t, "address") {
			base, dial = address, "registry:50051"
		}
		about := func(what string) time.Time {
			ago := rapid.SampledFrom([]time.Duration{-time.Hour, 0, 1500 * time.Millisecond, 59 * time.Second, time.Minute, time.Hour, 9e8 * time.Second}).Draw(t, what)
			if ago > 1000*time.Hour {
				return time.Time{}
			}
			return base.Now.Add(-ago)
		}
		cs := base.CatalogSource.DeepCopy()
		cs.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{
			Address: dial, LastObservedState: rapid.SampledFrom(append(states, "")).Draw(t, "recorded"), LastConnectTime: metav1.Time{Time: about("at")}.Rfc3339Copy(),
		}
		inputs := make([]catalog.Input, rapid.IntRange(1, 3).Draw(t, "controllers"))
		for i := range inputs {
			inputs[i] = base
			if inputs[i].Connection = nil; rapid.IntRange(0, 4).Draw(t, "has a client") > 0 {
				inputs[i].Connection = &catalog.Connection{
					Address: dial, State: rapid.SampledFrom(states).Draw(t, "state"), LastConnect: about("connected"), LastTransition: about("since"),
				}
			}
		}
		const rounds = 5
		for round := range rounds {
			written := false
			for i := range inputs {
				inputs[i].CatalogSource = cs
				out, err := catalog.Reconcile(inputs[i])
				require.NoError(t, err)
				after, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
				if ok {
					cs, written = after, true
				}
			}
			if !written {
				return
			}
			require.Less(t, round, rounds-1, "they write against each other")
		}
	})
}

// TestTheConnectionThatCounts: a client that knows later than the status says so, one
// that knows less takes over what is recorded.
func TestTheConnectionThatCounts(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	ago := func(seconds int) time.Time { return base.Now.Add(-time.Duration(seconds) * time.Second) }
	type state struct {
		state   string
		connect int // seconds ago; -1: never
	}
	for name, test := range map[string]struct {
		recorded, own state
		since         int
		want          state
		again         time.Duration
	}{
		"it connected later":                         {state{"READY", 100}, state{"READY", 50}, 50, state{"READY", 50}, 0},
		"it connected earlier":                       {state{"READY", 50}, state{"READY", 100}, 100, state{"READY", 50}, 0},
		"it lost its connection":                     {state{"READY", 100}, state{"TRANSIENT_FAILURE", 100}, 20, state{"TRANSIENT_FAILURE", 100}, 40 * time.Second},
		"it failed before another connected":         {state{"READY", 50}, state{"TRANSIENT_FAILURE", 100}, 70, state{"READY", 50}, 0},
		"it never connected, and starts only now":    {state{"READY", 50}, state{"CONNECTING", -1}, 10, state{"CONNECTING", 50}, 50 * time.Second},
		"it is connected, and another failed":        {state{"TRANSIENT_FAILURE", 50}, state{"READY", 50}, 50, state{"TRANSIENT_FAILURE", 50}, 10 * time.Second},
		"it is connected, and another failed before": {state{"TRANSIENT_FAILURE", 60}, state{"READY", 100}, 100, state{"READY", 0}, 0},
		"it connected after another failed":          {state{"TRANSIENT_FAILURE", 50}, state{"READY", 10}, 10, state{"READY", 10}, 0},
		"neither is connected":                       {state{"TRANSIENT_FAILURE", 50}, state{"CONNECTING", 50}, 10, state{"TRANSIENT_FAILURE", 50}, 50 * time.Second},
		"it fails where another only tries":          {state{"CONNECTING", 50}, state{"TRANSIENT_FAILURE", -1}, 10, state{"TRANSIENT_FAILURE", 50}, 50 * time.Second},
	} {
		in := base
		in.CatalogSource = base.CatalogSource.DeepCopy()
		at := func(seconds int) (t metav1.Time) {
			if seconds >= 0 {
				t = olmcore.Timestamp(ago(seconds))
			}
			return t
		}
		in.CatalogSource.Status.GRPCConnectionState.LastObservedState = test.recorded.state
		in.CatalogSource.Status.GRPCConnectionState.LastConnectTime = at(test.recorded.connect)
		in.Connection = &catalog.Connection{Address: "cool.olm.svc:50051", State: test.own.state, LastConnect: at(test.own.connect).Time, LastTransition: ago(test.since)}
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		got := in.CatalogSource.Status.GRPCConnectionState
		if after, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions); ok {
			got = after.Status.GRPCConnectionState
		}
		require.Equal(t, &v1alpha1.GRPCConnectionState{Address: "cool.olm.svc:50051", LastObservedState: test.want.state, LastConnectTime: at(test.want.connect)}, got, name)
		require.Equal(t, test.again, out.RequeueAfter, name)
	}
}
