// SPDX-License-Identifier: Apache-2.0

package backend_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/internal/owned"
)

// manager is a controller with a cache of its own, and the writes that it has not run yet.
type manager struct {
	view  state
	queue []write
}

// TestNoClientEverDistrustsAPod: whatever happens in whatever order, every client trusts the certificate of every Pod, and
// in the end there is nothing to do and one authority.
func TestNoClientEverDistrustsAPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		managers := []*manager{{view: w.snapshot()}, {view: w.snapshot()}}
		say := func(format string, args ...any) { w.said = append(w.said, fmt.Sprintf(format, args...)) }
		pick := func(t *rapid.T) (*manager, int) {
			i := rapid.IntRange(0, 1).Draw(t, "manager")
			return managers[i], i
		}
		run := func(m *manager, i int, a write) {
			if conflict := a.do(w); conflict {
				say("manager %d: conflict: %s", i, a.what)
				m.queue = nil
				return
			}
			say("manager %d: %s", i, a.what)
		}
		steps := map[string]func(*rapid.T){
			"refresh": func(t *rapid.T) { m, i := pick(t); m.view = w.snapshot(); say("manager %d: reads", i) },
			"decide": func(t *rapid.T) {
				m, i := pick(t)
				m.queue, _ = w.pass(m.view)
				say("manager %d: decides %d", i, len(m.queue))
			},
			"write": func(t *rapid.T) {
				if m, i := pick(t); len(m.queue) > 0 {
					a := m.queue[0]
					m.queue = m.queue[1:]
					run(m, i, a)
				}
			},
			"lose": func(t *rapid.T) {
				if m, i := pick(t); len(m.queue) > 0 {
					say("manager %d: loses %s", i, m.queue[0].what)
					m.queue = m.queue[1:]
				}
			},
			"repeat": func(t *rapid.T) {
				if m, i := pick(t); len(m.queue) > 0 {
					run(m, i, m.queue[0])
				}
			},
			"crash":    func(t *rapid.T) { m, i := pick(t); m.queue = nil; say("manager %d: crashes", i) },
			"whole":    func(t *rapid.T) { wholePass(w, managers[rapid.IntRange(0, 1).Draw(t, "manager")]); say("a whole pass") },
			"startPod": func(*rapid.T) { w.startPod() },
			"mount":    func(t *rapid.T) { w.mount(rapid.IntRange(0, 3).Draw(t, "pod")); say("a Pod mounts") },
			"stopPod":  func(*rapid.T) { w.stopPod() },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, 12 * time.Hour, certificate.Validity - 13*time.Hour, certificate.Validity}).Draw(t, "time"))
				say("it is %s", w.now)
			},
			"deleteSecret": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "sure") == 0 {
					w.secret = nil
					say("the Secret is deleted")
				}
			},
			"upgrade": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "sure") == 0 && w.state.version.Name == "cool.v1" {
					w.state.version = csvOf("cool.v2", "hook-b", "crd", "api")
					say("the next version takes over")
				}
			},
			"": func(t *rapid.T) {
				if problem := w.distrust(); problem != "" {
					t.Fatalf("%s\n%s", problem, strings.Join(w.said, "\n"))
				}
			},
		}
		t.Repeat(steps)
		settle(t, w)
	})
}

// wholePass reads, decides and writes without a pause.
func wholePass(w *world, m *manager) {
	m.view = w.snapshot()
	m.queue, _ = w.pass(m.view)
	for _, a := range m.queue {
		if a.do(w) {
			break
		}
	}
	m.queue = nil
}

// settle lets one manager run until nothing is left to do.
func settle(t require.TestingT, w *world) {
	for round := range 30 {
		for range 4 {
			w.startPod()
			for i := range w.pods {
				w.mount(i)
				require.Empty(t, w.distrust(), "a kubelet")
			}
			w.stopPod()
		}
		writes, plan := w.pass(w.snapshot())
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
		require.True(t, bytes.Equal(c.bundle, w.secret.Data[certificate.CAKey]), "%s: %+v\nretired: %v\nDeployment: %+v %+v\n%s", name,
			certificate.ParseBundle(c.bundle), w.secret.Annotations, w.deployment.Spec.Template.Annotations, w.deployment.Status, strings.Join(w.said, "\n"))
	}
	for _, name := range (*owned.CSV)(w.state.version).Spec.Keywords {
		require.Contains(t, w.clients, name)
	}
}
