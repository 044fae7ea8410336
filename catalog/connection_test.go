// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestControllersWithDifferentClientsConverge checks that several controllers stop to write the status after a few
// reconciles, whatever the states of their clients are.
func TestControllersWithDifferentClientsConverge(t *testing.T) {
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
					Problem: rapid.SampledFrom([]string{"", "connection refused", "no such host; at all"}).Draw(t, "problem"),
				}
			}
		}
		const rounds = 5
		for round := range rounds {
			written := false
			for i := range inputs {
				inputs[i].CatalogSource = cs
				out := answer(t, inputs[i])
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

// TestNewestConnectionIsRecorded checks that a client that changed after the recorded connection is recorded, and
// that an older client is not.
func TestNewestConnectionIsRecorded(t *testing.T) {
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
		"it connected later":   {state{"READY", 100}, state{"READY", 50}, 50, state{"READY", 50}, 0},
		"it connected earlier": {state{"READY", 50}, state{"READY", 100}, 100, state{"READY", 50}, 0},
		"it lost its connection": {
			state{"READY", 100}, state{"TRANSIENT_FAILURE", 100}, 20, state{"TRANSIENT_FAILURE", 100}, 40 * time.Second,
		},
		"it failed before another connected": {state{"READY", 50}, state{"TRANSIENT_FAILURE", 100}, 70, state{"READY", 50}, 0},
		"it never connected, and starts only now": {
			state{"READY", 50}, state{"CONNECTING", -1}, 10, state{"CONNECTING", 50}, 50 * time.Second,
		},
		"it is connected, and another failed": {
			state{"TRANSIENT_FAILURE", 50}, state{"READY", 50}, 50, state{"TRANSIENT_FAILURE", 50}, 10 * time.Second,
		},
		"it is connected, and another failed before": {state{"TRANSIENT_FAILURE", 60}, state{"READY", 100}, 100, state{"READY", 0}, 0},
		"it connected after another failed":          {state{"TRANSIENT_FAILURE", 50}, state{"READY", 10}, 10, state{"READY", 10}, 0},
		"neither is connected": {
			state{"TRANSIENT_FAILURE", 50}, state{"CONNECTING", 50}, 10, state{"TRANSIENT_FAILURE", 50}, 50 * time.Second,
		},
		"it fails while another only connects": {state{"CONNECTING", 50}, state{"TRANSIENT_FAILURE", -1}, 10, state{"TRANSIENT_FAILURE", 50}, 50 * time.Second},
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
		out := answer(t, in)
		got := in.CatalogSource.Status.GRPCConnectionState
		if after, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions); ok {
			got = after.Status.GRPCConnectionState
		}
		require.Equal(t, &v1alpha1.GRPCConnectionState{Address: "cool.olm.svc:50051", LastObservedState: test.want.state, LastConnectTime: at(test.want.connect)}, got, name)
		require.Equal(t, test.again, out.RequeueAfter, name)
	}
}

// TestConnectionIsWrittenOnlyWhenItChanges checks that the connection is only written if it changed, and that an
// idle client that was connected counts as connected.
func TestConnectionIsWrittenOnlyWhenItChanges(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	require.True(t, catalog.Assess(base).Connected)
	in := invariant.Clone(base)
	in.Now = in.Now.Add(500 * time.Millisecond)
	out := answer(t, in)
	require.Empty(t, out.Result)
	in.Connection.State = "IDLE"
	require.True(t, catalog.Assess(in).Connected)
	in.Connection.State, in.Connection.LastConnect = "IDLE", time.Time{}
	require.False(t, catalog.Assess(in).Connected)
	out = reconcile(t, base, func(in *catalog.Input) { in.CatalogSource.Status.GRPCConnectionState.Address = "stale:1" })
	status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, "cool.olm.svc:50051", status.Status.GRPCConnectionState.Address)
}

// TestWhichNamespacesAreNotified checks that a catalog of the global namespace notifies the namespaces of its
// Subscriptions, and any other catalog its own namespace.
func TestWhichNamespacesAreNotified(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, global := range []string{"olm", "elsewhere"} {
		for what, change := range map[string]func(*catalog.Input){
			"the client connects": func(in *catalog.Input) { in.CatalogSource.Status.GRPCConnectionState.LastObservedState = "CONNECTING" },
			"new content":         pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "repo@sha256:new" })),
			"it is deleted":       func(in *catalog.Input) { in.CatalogSource.DeletionTimestamp = new(metav1.NewTime(in.Now)) },
		} {
			out := reconcile(t, base, func(in *catalog.Input) {
				in.Config.GlobalCatalogNamespace, in.Subscribers = global, []string{"team-b", "team-a", "team-b"}
				change(in)
			})
			want := []string{"olm"}
			if global == "olm" {
				want = append(want, "team-a", "team-b")
			}
			require.Equal(t, catalog.Notify{InvalidateSnapshot: true, ResolveNamespaces: want}, out.Notify, fmt.Sprint(what, global))
		}
	}
	require.Zero(t, reconcile(t, base, func(*catalog.Input) {}).Notify)
}

// TestClientConnectsToAChangedAddress checks that a CatalogSource with an address needs no objects, and that the
// client connects to the new address after a change.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_test.go.
func TestClientConnectsToAChangedAddress(t *testing.T) {
	cs := cool()
	cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "one:50051"}
	w := newWorld(t, catalog.Config{}, cs)
	in := w.input(t)
	out := answer(t, in)
	require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: "one:50051"}, out.Connection)
	require.Len(t, out.Actions, 1)
	status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, &v1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: olmcore.Timestamp(start)}, status.Status.RegistryServiceStatus)

	in.Connection = &catalog.Connection{Address: "one:50051", State: "READY", LastConnect: start, LastTransition: start}
	out = answer(t, in)
	require.Zero(t, out.Connection)
	require.NoError(t, olmcore.Run(t.Context(), w.Cluster, out.Actions))
	require.Equal(t, catalog.Notify{InvalidateSnapshot: true, ResolveNamespaces: []string{"olm"}}, out.Notify)

	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Address = "two:50051" }))
	connection := in.Connection
	in = w.input(t)
	in.Connection = connection
	out = answer(t, in)
	require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: "two:50051"}, out.Connection)
	status, _ = olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, "two:50051", status.Status.GRPCConnectionState.Address)
	require.Equal(t, metav1.ConditionUnknown, meta.FindStatusCondition(status.Status.Conditions, "Available").Status)
}

func TestUnreachableAddressIsUnavailable(t *testing.T) {
	cs := cool()
	cs.Spec.Image, cs.Spec.Address, cs.UID = "", "registry:50051", "uid"
	for state, test := range map[string]struct {
		last   time.Time
		status metav1.ConditionStatus
		reason string
		state  catalog.State
	}{
		"READY":             {start, metav1.ConditionTrue, catalog.ReasonConnectionReady, catalog.StateServing},
		"IDLE":              {start, metav1.ConditionTrue, catalog.ReasonConnectionReady, catalog.StateServing},
		"IDLE ":             {time.Time{}, metav1.ConditionUnknown, catalog.ReasonConnecting, catalog.StateUnknown},
		"CONNECTING":        {start, metav1.ConditionUnknown, catalog.ReasonConnecting, catalog.StateUnknown},
		"TRANSIENT_FAILURE": {start, metav1.ConditionFalse, catalog.ReasonConnectionFailed, catalog.StateUnavailable},
		"SHUTDOWN":          {start, metav1.ConditionFalse, catalog.ReasonConnectionFailed, catalog.StateUnavailable},
	} {
		in := emptyNamespace(catalog.Input{Now: start.Add(time.Minute), CatalogSource: cs, Connection: &catalog.Connection{
			Address: "registry:50051", State: strings.TrimSpace(state), LastConnect: test.last, LastTransition: start,
		}})
		a := catalog.Assess(in)
		require.Equal(t, test.state, a.State, state)
		require.Equal(t, test.status, a.Conditions[0].Status, state)
		require.Equal(t, test.reason, a.Conditions[0].Reason, state)
		require.Equal(t, test.status == metav1.ConditionTrue, a.Healthy && a.Connected, state)
		failing := a.Conditions[2].Reason == catalog.ReasonConnectionFailed
		require.Equal(t, test.status != metav1.ConditionTrue && state != "IDLE ", failing, state)
		in.Now = in.Now.Add(-time.Second)
		a = catalog.Assess(in)
		require.Equal(t, catalog.ReasonAsExpected, a.Conditions[2].Reason, "%s, within the grace", state)
		require.Equal(t, failing, !a.NextDeadline.IsZero(), state)
	}
}
