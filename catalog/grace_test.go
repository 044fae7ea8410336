// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// podWrites returns the times and causes of all writes to Pods since an event.
func podWrites(w *world, from int) (at []time.Time, what []string) {
	for _, e := range w.Events[from:] {
		if e.Action == nil {
			continue
		}
		if verb, target, cause := e.Action.Describe(); target.Kind == "Pod" {
			at, what = append(at, e.At), append(what, string(verb)+" "+cause.Reason)
		}
	}
	return at, what
}

// unknownSince returns since when the Ready condition of a Node is Unknown.
func unknownSince(t require.TestingT, w *world, name string) (since time.Time, silent bool) {
	node, err := olmcore.Get[*corev1.Node](context.Background(), w.Cluster, "", name)
	require.NoError(t, err)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionUnknown
		}
	}
	return since, false
}

// TestUnreachableNodeGetsExactlyItsGracePeriod draws histories of unreachable Nodes, with different grace periods
// and free Nodes. It checks that the first action follows the end of the grace period, that there is none if the
// Node recovers earlier or runs no Pod, and that the catalog serves again as soon as a Node can run the Pod.
func TestUnreachableNodeGetsExactlyItsGracePeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := graceHistory{
			grace: seconds(t, 1, 150, "grace"), replicas: rapid.IntRange(1, 2).Draw(t, "replicas"),
			full: rapid.IntRange(0, 2).Draw(t, "the other nodes are full") == 0,
		}
		h.world = graceWorld(t, catalog.Config{Replicas: h.replicas, NodeUnreachableGrace: h.grace}, h.full)
		h.run(t, time.Minute+seconds(t, 0, 3600, "calm"))
		for range rapid.IntRange(1, 3).Draw(t, "silences") {
			h.silence(t)
		}
	})
}

func seconds(t *rapid.T, least, most int, label string) time.Duration {
	return time.Duration(rapid.IntRange(least, most).Draw(t, label)) * time.Second
}

type graceHistory struct {
	*world
	grace    time.Duration
	replicas int
	full     bool
}

func (h *graceHistory) run(t require.TestingT, d time.Duration) {
	require.NoError(t, h.Driver.RunFor(context.Background(), d))
}

// makeRoom makes another Node schedulable, which runs the Pod at once.
func (h *graceHistory) makeRoom(t require.TestingT) {
	if !h.full {
		return
	}
	h.full = false
	for _, name := range []string{"a", "b", "c", "d"} {
		require.NoError(t, h.Node(name).Uncordon())
	}
	h.run(t, 0)
	require.Equal(t, h.replicas, catalog.Assess(gathered(t, h.world)).Ready, "there is room, and it does not serve")
}

// graceWorld returns a world with four Nodes. If full is true, they accept no more Pods once the first Pods run.
func graceWorld(t require.TestingT, config catalog.Config, full bool) *world {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	for _, node := range []string{"a", "b", "c", "d"} {
		require.NoError(t, c.Node(node).Create(nil))
	}
	require.NoError(t, c.Create(cool()))
	w := &world{Cluster: c, Driver: &fake.Driver{Cluster: c, Controllers: []controller.Controller{catalogController(config)}}, config: config}
	require.NoError(t, w.Driver.RunFor(context.Background(), 0))
	if full {
		for _, node := range []string{"a", "b", "c", "d"} {
			require.NoError(t, c.Node(node).Cordon())
		}
	}
	return w
}

func gathered(t require.TestingT, w *world) catalog.Input {
	in, err := catalog.Gather(context.Background(), w.Cluster, coolKey, w.config)
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	return in
}

// TestFlappingNodeCausesFewReplacements checks that no Pod is replaced while each outage is shorter than the grace
// period. If the outages are longer, replacements respect the cooldown, Pods do not accumulate, and no Pod moves
// back.
func TestFlappingNodeCausesFewReplacements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short := rapid.Bool().Draw(t, "short silences")
		w := graceWorld(t, catalog.Config{}, false)
		run := func(d time.Duration) { require.NoError(t, w.Driver.RunFor(context.Background(), d)) }
		run(10 * time.Minute)
		node := gathered(t, w).Pods.Items[0].Spec.NodeName
		from, begin := len(w.Events), w.Cluster.Now()
		for w.Cluster.Now().Sub(begin) < time.Hour {
			// The node controller needs 40 s to notice, the grace is 30 s.
			silence := rapid.IntRange(1, 69).Draw(t, "silence")
			if !short {
				silence = rapid.IntRange(71, 300).Draw(t, "long silence")
			}
			require.NoError(t, w.Node(node).Fail())
			run(time.Duration(silence) * time.Second)
			require.NoError(t, w.Node(node).Heal())
			run(time.Duration(rapid.IntRange(1, 300).Draw(t, "pause")) * time.Second)
		}
		at, what := podWrites(w, from)
		if short {
			require.Empty(t, what)
			return
		}
		var last time.Time
		for i := range what {
			if what[i] == "create "+catalog.ReasonNodeUnreachable {
				require.True(t, last.IsZero() || at[i].Sub(last) >= time.Minute, "%v", what)
				last = at[i]
			}
		}
		require.LessOrEqual(t, len(what), 3, "the Pod left the node once, and stays where it went: %v", what)
		run(time.Hour)
		require.Len(t, gathered(t, w).Pods.Items, 1)
	})
}
