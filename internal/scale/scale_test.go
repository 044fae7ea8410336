// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
)

// TestWhatAManagerCostsFollowsWhatItConcerns counts in a world of a few tenants what the command measures in a large
// one.
func TestWhatAManagerCostsFollowsWhatItConcerns(t *testing.T) {
	small := size{Each: 1, Global: 1, Packages: 2, Published: 3, Versions: 3, Nodes: 3}
	m := &measurement{size: small, progress: io.Discard}
	f, err := m.figures(context.Background(), []int{2, 4}, []int{1, 2, 3})
	require.NoError(t, err)
	for i, s := range f.Sizes {
		require.Equal(t, []int{2, 4}[i]*small.Each+small.Global, s.Subscriptions)
		require.Equal(t, []int{2, 4}[i]+1, s.Copies, "in each tenant's namespace and in that of OLM")
		require.Equal(t, map[string]int{"updateStatus CatalogSource": 1}, s.Start.ByVerb,
			"what was made tenant by tenant is what the controllers want, but this manager's client connected later than the last one's")
		require.Equal(t, 1, s.Start.Delivered, "but for that the world stands still, and watches go on from the lists")
		require.Zero(t, s.Rest.Writes, "%v", s.Rest.ByVerb)
		require.Equal(t, 6, s.Rest.ByName[controllers.CSVSweep])
		require.Zero(t, s.Rest.Reads)
		require.Equal(t, []int{1, 2}[i], s.Update.Concerned)
		require.Equal(t, s.Update.Concerned, s.Update.ByVerb["create ClusterServiceVersion"])
		require.Equal(t, s.Update.Concerned, s.Update.ByVerb["delete ClusterServiceVersion"])
		for name, most := range map[string]int{controllers.CSV: 30, controllers.InstallPlan: 16, controllers.Permissions: 18, controllers.Copies: 14, controllers.Group: 14, controllers.Condition: 20} {
			require.LessOrEqual(t, s.Update.ByName[name], most*s.Update.Concerned, "%s looks at what it concerns", name)
		}
		for _, name := range []string{controllers.Subscription, controllers.Sweep} {
			require.LessOrEqual(t, s.Update.ByName[name], 16*s.Update.Concerned+6*(s.Namespaces+2), "%s looks at what it concerns, and at each namespace a few times", name)
		}
		require.NotZero(t, s.Node.Writes, "the registry Pod is replaced")
		require.Zero(t, s.Node.Reads)
	}
	first, large := f.Sizes[0], f.Sizes[1]
	require.LessOrEqual(t, large.Start.Reconciles, 2*first.Start.Reconciles, "a start is linear")
	require.LessOrEqual(t, large.Update.Reconciles, 2*first.Update.Reconciles, "an update costs what it concerns")
	for _, s := range f.Sizes {
		require.Equal(t, 2*s.Subscriptions, s.Node.ByVerb["updateStatus Subscription"], "each says that its catalog is unhealthy, and that it is not any more")
	}
	require.LessOrEqual(t, large.Node.Writes-2*large.Subscriptions, first.Node.Writes-2*first.Subscriptions)

	one, two, three := f.Shards[0], f.Shards[1], f.Shards[2]
	require.Equal(t, 1, one.Writes+two.Writes+three.Writes, "when the client connected, for which the next ones are not later")
	require.Equal(t, two.Keys+1, three.Keys, "each key belongs to one shard, but that of the catalog, of which each has a client")
	require.LessOrEqual(t, two.Keys, one.Keys, "what is the whole cluster's is no shard's")
}

// TestShardsHaveEachNamespaceOnce: a split leaves out no namespace and has none twice.
func TestShardsHaveEachNamespaceOnce(t *testing.T) {
	m := &measurement{world: &world{tenants: 5}}
	for _, count := range []int{2, 3, 7} {
		var all []string
		for _, part := range m.split(count) {
			all = append(all, part...)
		}
		slices.Sort(all)
		require.Equal(t, []string{"olm", "operators", "team-000", "team-001", "team-002", "team-003", "team-004"}, all)
	}
	require.Equal(t, [][]string{nil}, m.split(1))
}

var drawn = figures{
	Sizes: []sizeFigures{
		{Namespaces: 1, Objects: 10, Subscriptions: 25, Cache: 1e6, Memory: 1e6, Content: 5e6, List: spent{time.Second, 2 * time.Second}, Start: cost{Time: spent{time.Second, time.Second}}},
		{Namespaces: 2, Objects: 20, Subscriptions: 50, Cache: 2e6, Memory: 2e6, Content: 5e6, List: spent{2 * time.Second, 3 * time.Second}, Start: cost{Time: spent{3 * time.Second, 3 * time.Second}}},
	},
	Shards: []shardFigures{{Shards: 1, Largest: 4e6, Slowest: spent{time.Second, time.Second}, Keys: 7}},
}

func TestThePictureIsTheSameOfTheSameFigures(t *testing.T) {
	text := picture(drawn)
	require.Equal(t, text, picture(drawn))
	require.NoError(t, xml.Unmarshal([]byte(text), new(any)))
	require.Contains(t, text, ">9 MB<")
	require.Contains(t, text, ">5 s<")
	require.NoError(t, xml.Unmarshal([]byte(picture(figures{})), new(any)))
}

func TestTheTableTakesThePlaceOfTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+beginMark+"\nthe last one\n"+endMark+"\nafter\n"), 0o600))
	for range 2 {
		require.NoError(t, rewrite(path, table(drawn)))
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "before\n"+beginMark+"\n\n"+table(drawn)+"\n"+endMark+"\nafter\n", string(data))
	require.NotContains(t, string(data), "the last one")
	require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
	require.ErrorContains(t, rewrite(path, ""), "has no lines "+beginMark)
}

func TestBadFlagsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--sizes 2,1": "--sizes 2,1: want numbers from 1 on that rise", "--sizes x": "--sizes x", "--shards 0": "--shards 0", "more": `"more" is no flag`,
	} {
		require.ErrorContains(t, run(t.Context(), strings.Fields(args), io.Discard, io.Discard), want)
	}
}
