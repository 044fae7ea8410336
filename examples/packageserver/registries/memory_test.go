// SPDX-License-Identifier: Apache-2.0

// With the race detector memory is another, and large texts take minutes.
//go:build !race

package registries_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/packageserver/registries"
	"github.com/olmcore/olm/examples/registry"
)

// peak returns the most memory that was in use until stop.
func peak() (stop func() uint64) {
	return peakOf(func(m *runtime.MemStats) uint64 { return m.HeapAlloc })
}

func peakOf(value func(*runtime.MemStats) uint64) (stop func() uint64) {
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), value(&m)))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return most.Load()
	}
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Two catalogs at once of 64 heads, each nearly as large as a message may be, are read a head at a time, and what is
// kept is cut. The figures have the servers' memory in them, and what the garbage collector leaves for later.
func TestLargeHeadsDoNotAddUp(t *testing.T) {
	address, _ := listen(t, &catalog{packages: 64, csv: csvOf(strings.Repeat("x", 3_900_000))}, "")
	w := newWorld(t, registries.Options{}, registry.Options{})
	before := inUse()
	stop := peak()
	w.know("olm", "a", address)
	w.know("team", "b", address)
	require.Empty(t, w.wait(t))
	most, kept := (stop()-before)>>20, (inUse()-before)>>20
	t.Logf("%d MiB at the peak, %d MiB kept", most, kept)
	require.Less(t, most, uint64(160))
	require.Less(t, kept, uint64(32))
	require.Len(t, w.catalog("olm", "a"), 64)
	require.Len(t, w.catalog("team", "b"), 64)
	require.Contains(t, w.log(), `level=INFO msg="the long description of p000.v1 has 3900000 bytes, and is cut after 131072" catalog=olm/a reason=TooLarge path="packages[\"p000\"].bundles[\"p000.v1\"]"`)
}

// Small values take many times their size in memory once they are decoded.
func TestManySmallValuesDoNotAddUp(t *testing.T) {
	many := func(count int) string {
		return `{"kind":"ClusterServiceVersion","spec":{"displayName":"x","customresourcedefinitions":{"owned":[` + strings.Repeat("{},", count-1) + `{}]}}}`
	}
	for want, c := range map[string]*catalog{
		"a description of p000.v1 has more than 100000 values, and is not read": {packages: 16, csv: many(1_200_000)},
		"p000.v1 is not described: that would take ":                            {packages: 16, csv: many(40_000)},
	} {
		t.Run(want, func(t *testing.T) {
			address, _ := listen(t, c, "")
			w := newWorld(t, registries.Options{}, registry.Options{})
			before := inUse()
			stop := peak()
			w.know("team", "a", address)
			require.Empty(t, w.wait(t))
			most := (stop() - before) >> 20
			t.Logf("%d MiB at the peak", most)
			require.Less(t, most, uint64(192))
			require.Contains(t, w.log(), want)
			require.Len(t, w.catalog("team", "a"), 16)
		})
	}
}

// skipping is a registry of bundles that skip very many versions.
type skipping struct{ catalog }

func (*skipping) ListBundles(_ *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	skips := make([]string, 9_000)
	for i := range skips {
		skips[i] = "x"
	}
	for i := range 2000 {
		if err := stream.Send(&api.Bundle{CsvName: fmt.Sprintf("p.v%d", i), PackageName: "p", ChannelName: "stable", BundlePath: "i", Version: "1.0.0", Skips: skips}); err != nil {
			return err
		}
	}
	return nil
}

func TestAnUpgradeGraphIsBounded(t *testing.T) {
	address, _ := listen(t, &skipping{}, "")
	w := newWorld(t, registries.Options{}, registry.Options{})
	before := inUse()
	stop := peak()
	w.know("team", "a", address)
	require.Equal(t, []string{"team/a: the catalog is larger than 67108864 bytes: raise the limit (MaxBytes, --registry-max-bytes), or serve less"}, w.wait(t))
	require.Less(t, (stop()-before)>>20, uint64(160))
}
