// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// podWrites are the times and causes of all writes to Pods since an event.
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

// unknownSince returns since when a node is silent, as its condition says.
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

// TestANodeIsGivenItsGraceAndNoMore draws histories of one silent node: when it
// falls silent, for how long, and how long it is waited for. The first action comes
// when the grace is over and not before, none comes when the node is back within
// it, and the catalog serves again at once as soon as a node can run the Pod.
func TestANodeIsGivenItsGraceAndNoMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := func(least, most int, label string) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(t, label)) * time.Second
		}
		grace := second(1, 150, "grace")
		silence := second(1, 400, "silence")
		restart := rapid.Bool().Draw(t, "the controller restarts")
		replicas := rapid.IntRange(1, 2).Draw(t, "replicas")
		others := rapid.SampledFrom([]string{"healthy", "full", "healthy"}).Draw(t, "the other nodes")
		w := graceWorld(t, catalog.Config{Replicas: replicas, NodeUnreachableGrace: grace, IgnoreNodes: false}, others)
		run := func(d time.Duration) { require.NoError(t, w.Driver.RunFor(context.Background(), d)) }
		run(time.Minute + second(0, 3600, "calm"))
		in := gathered(t, w)
		node := in.Pods[0].Spec.NodeName
		from := len(w.Events)
		require.NoError(t, w.FailNode(node))
		failed := w.Cluster.Now()
		run(min(silence, 40*time.Second))
		since, silent := unknownSince(t, w, node)
		if restart {
			w.Driver = &fake.Driver{Cluster: w.Cluster, Controllers: w.Controllers, Events: w.Events}
		}
		if rest := failed.Add(silence).Sub(w.Cluster.Now()); rest > 0 {
			run(rest)
		}
		at, what := podWrites(w, from)
		acted := silent && !w.Cluster.Now().Before(since.Add(grace))
		if !acted {
			require.Empty(t, what, "within the grace")
		} else {
			require.NotEmpty(t, what, "the grace is over")
			require.Equal(t, since.Add(grace), at[0], "%v", what)
			require.Equal(t, "create "+catalog.ReasonNodeUnreachable, what[0])
			state := catalog.Assess(gathered(t, w)).Conditions[0].Status
			require.Equal(t, others == "healthy" || replicas == 2, state == "True", "it serves where a node can run the Pod")
		}
		require.NoError(t, w.HealNode(node))
		if !acted {
			run(time.Hour)
			_, what = podWrites(w, from)
			require.Empty(t, what, "the node was back in time")
			return
		}
		if others == "full" {
			for _, name := range []string{"b", "c", "d"} {
				_ = w.Uncordon(name)
			}
		}
		run(time.Hour)
		a := catalog.Assess(gathered(t, w))
		require.Equal(t, catalog.StateServing, a.State)
		require.Len(t, a.Pods, replicas)
		creates := slices.DeleteFunc(slices.Clone(what), func(s string) bool { return s != "create "+catalog.ReasonNodeUnreachable })
		require.Len(t, creates, 1, "one Pod was lost, one replaces it: %v", what)
	})
}

// graceWorld has four nodes; the last three may be full once the Pods run.
func graceWorld(t require.TestingT, config catalog.Config, others string) *world {
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	for _, node := range []string{"a", "b", "c", "d"} {
		require.NoError(t, c.AddNode(node, nil))
	}
	require.NoError(t, c.Create(cool()))
	w := &world{Cluster: c, Driver: &fake.Driver{Cluster: c, Controllers: []fake.Controller{controller(config)}}, config: config}
	require.NoError(t, w.Driver.RunFor(context.Background(), 0))
	if others == "full" {
		for _, node := range []string{"a", "b", "c", "d"} {
			require.NoError(t, c.Cordon(node))
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

// TestAFlappingNodeCausesNoStorm: while each silence is shorter than the grace
// nothing is moved at all; else replacements keep their distance, Pods do not pile
// up, and nothing moves back.
func TestAFlappingNodeCausesNoStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short := rapid.Bool().Draw(t, "short silences")
		w := graceWorld(t, catalog.Config{}, "healthy")
		run := func(d time.Duration) { require.NoError(t, w.Driver.RunFor(context.Background(), d)) }
		run(10 * time.Minute)
		node := gathered(t, w).Pods[0].Spec.NodeName
		from, begin := len(w.Events), w.Cluster.Now()
		for w.Cluster.Now().Sub(begin) < time.Hour {
			// The node controller needs 40 s to notice, the grace is 30 s.
			silence := rapid.IntRange(1, 69).Draw(t, "silence")
			if !short {
				silence = rapid.IntRange(71, 300).Draw(t, "long silence")
			}
			require.NoError(t, w.FailNode(node))
			run(time.Duration(silence) * time.Second)
			require.NoError(t, w.HealNode(node))
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
				require.True(t, last.IsZero() || at[i].Sub(last) >= catalog.DefaultFailoverCooldown, "%v", what)
				last = at[i]
			}
		}
		require.LessOrEqual(t, len(what), 3, "the Pod left the node once, and stays where it went: %v", what)
		run(time.Hour)
		require.Len(t, gathered(t, w).Pods, 1)
	})
}

// TestAPolledCatalogDoesNothingButPoll for a day.
func TestAPolledCatalogDoesNothingButPoll(t *testing.T) {
	for interval, polls := range map[string]int{"45m": 32, "1s": 2880, "nonsense": 96} {
		cs := cool()
		cs.Spec.UpdateStrategy = polling(interval)
		w := newWorld(t, catalog.Config{}, cs)
		w.run(t, time.Second)
		from := len(w.Events)
		w.run(t, 24*time.Hour)
		_, what := podWrites(w, from)
		created := 0
		for _, verb := range what {
			switch verb {
			case "create " + catalog.ReasonPollDue:
				created++
			case "delete " + catalog.ReasonUpToDate:
			default:
				require.Fail(t, verb)
			}
		}
		require.InDelta(t, polls, created, 1, interval)
	}
}
