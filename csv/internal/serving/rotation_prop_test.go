// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// manager is a controller with its own cache, and the writes that it has not run yet.
type manager struct {
	view  state
	queue []write
	skew  time.Duration // how far its clock is ahead
}

// steps contains the steps of a history. A step that is listed more often occurs more often.
var steps = strings.Fields(`
	whole whole whole whole whole whole rollout rollout rollout mount mount startPod stopPod
	read read readSecret readDeployment readClients decide decide decide write write write write write lose repeat crash
	renewal renewal expiry minute minute second second learn deleteSecret upgrade`)

// TestClientsTrustEveryPod checks that every client trusts the certificate of every Pod, whatever happens in whatever
// order. In the end, there is nothing left to do, and one authority is left.
func TestClientsTrustEveryPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		managers := []*manager{{view: w.snapshot()}, {view: w.snapshot()}}
		for _, m := range managers {
			m.skew = rapid.SampledFrom([]time.Duration{0, olmcore.ClockTolerance / 2, olmcore.ClockTolerance}).Draw(t, "skew")
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			i := rapid.IntRange(0, 1).Draw(t, "manager")
			step := rapid.SampledFrom(steps).Draw(t, "step")
			w.said = append(w.said, fmt.Sprintf("%s (manager %d, %d left)", step, i, len(managers[i].queue)))
			w.step(step, managers[i])
			if problem := w.distrust(); problem != "" {
				t.Fatalf("%s\n%s", problem, strings.Join(w.said, "\n"))
			}
		}
		settle(t, w)
	})
}

func (w *world) step(step string, m *manager) {
	w.skew = m.skew
	switch step {
	case "whole":
		wholePass(w, m)
	case "rollout":
		w.rollout()
	case "mount":
		w.mount(w.version)
	case "startPod":
		w.startPod()
	case "stopPod":
		w.stopPod()
	case "read":
		m.view = w.snapshot()
	case "readSecret":
		m.view.secret = w.secret
	case "readDeployment":
		m.view.deployment = w.deployment
	case "readClients":
		m.view.clients = maps.Clone(w.clients)
	case "decide":
		m.queue, _ = w.pass(m.view)
	case "crash":
		m.queue = nil
	case "renewal": // the current certificate must be replaced
		if at := w.renewAt(); at.After(w.now) {
			w.advance(at.Add(time.Second).Sub(w.now))
		}
	case "expiry":
		w.advance(serving.Validity)
	case "minute":
		w.advance(time.Minute)
	case "second":
		w.advance(time.Second)
	case "learn": // the API server
		w.learn()
	case "deleteSecret":
		w.secret = nil
	case "upgrade":
		w.state.version = csvOf("cool.v2", "hook-b", "crd", "api")
	default:
		w.write(step, m)
	}
}

// write runs, loses or repeats the next action of a manager.
func (w *world) write(step string, m *manager) {
	if len(m.queue) == 0 {
		return
	}
	a := m.queue[0]
	if step != "repeat" {
		m.queue = m.queue[1:]
	}
	w.said = append(w.said, "  "+a.what)
	if step != "lose" && a.do(w) {
		m.queue = nil
	}
}

// wholePass reads, decides and writes without any other step in between.
func wholePass(w *world, m *manager) {
	m.view = w.snapshot()
	m.queue, _ = w.pass(m.view)
	for _, a := range m.queue {
		w.said = append(w.said, "  "+a.what)
		if a.do(w) {
			break
		}
	}
	m.queue = nil
}

// settle runs one manager until nothing is left to do.
func settle(t require.TestingT, w *world) {
	for round := range 30 {
		for range 2 + len(w.pods) {
			w.rollout()
			for i := range w.pods {
				w.mount(i)
			}
			require.Empty(t, w.distrust(), "Pods: %s", strings.Join(w.said, "\n"))
		}
		writes, plan := w.pass(w.snapshot())
		if len(writes) == 0 && plan.Wait > 0 {
			w.advance(plan.Wait)
			continue
		}
		if len(writes) == 0 && len(plan.Requests) == 0 {
			atRest(t, w, round)
			return
		}
		for _, a := range writes {
			if conflict := a.do(w); conflict {
				require.Fail(t, "conflict", a.what)
			}
			require.Empty(t, w.distrust(), "%s\n%s", a.what, strings.Join(w.said, "\n"))
		}
	}
	writes, _ := w.pass(w.snapshot())
	require.Fail(t, "not at rest", "%d writes left, the first: %+v", len(writes), writes[0].what)
}

func atRest(t require.TestingT, w *world, round int) {
	_, plan := w.pass(w.snapshot())
	require.Empty(t, plan.Renew)
	require.Empty(t, plan.Problem)
	require.Less(t, round, 20)
	require.True(t, w.secret.OwnerReferences[0].UID == w.state.version.UID && len(w.secret.OwnerReferences) == 1)
	for name, c := range w.clients {
		require.True(t, bytes.Equal(c.bundle, w.secret.Data[serving.CAKey]), "%s trusts %d authorities; Deployment %+v\n%s", name,
			len(parse(c.bundle)), w.deployment.Status, strings.Join(w.said, "\n"))
	}
	for _, name := range (*model.CSV)(w.state.version).Spec.Keywords {
		require.Contains(t, w.clients, name)
	}
}
