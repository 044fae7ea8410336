// SPDX-License-Identifier: Apache-2.0

// Under the race detector a sync.Pool forgets entries at random. Then the memory that
// a reconcile allocates changes from run to run.
//go:build !race

package controllers_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
)

// costs reconciles every key of a namespace once, in a cluster of two tenants. It returns the bytes allocated and a
// line for each action and Diagnostic.
func costs(t *testing.T, namespace string, objects []olmcore.Object) (allocated int, results []string) {
	r, set := cluster(t, objects)
	var before, after runtime.MemStats
	for _, c := range set.Controllers {
		keys, err := c.Keys(t.Context(), r)
		require.NoError(t, err)
		for _, key := range keys {
			if key.Namespace != namespace {
				continue
			}
			runtime.ReadMemStats(&before)
			result, err := c.Reconcile(t.Context(), r, key, noon, nil)
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			allocated += int(after.TotalAlloc - before.TotalAlloc)
			for _, a := range result.Actions {
				verb, target, cause := a.Describe()
				results = append(results, fmt.Sprint(c.Name, " ", key, " ", verb, " ", target, " ", cause.Message))
			}
			for _, d := range result.Diagnostics {
				results = append(results, fmt.Sprint(c.Name, " ", key, " ", d.Reason, " ", d.Message))
			}
		}
	}
	return allocated, results
}

// leastCosts returns the costs of the cheapest of three runs. The first run also pays for what the process allocates
// only once. Garbage collection is off and one processor is used, so that pools keep their entries.
func leastCosts(t *testing.T, namespace string, objects []olmcore.Object) (allocated int, results []string) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	allocated, results = costs(t, namespace, objects)
	for range 2 {
		again, same := costs(t, namespace, objects)
		require.Equal(t, results, same)
		allocated = min(allocated, again)
	}
	return allocated, results
}

// TestATenantsHugeInputGrowsLinearly checks that twice the input costs at most 2.5 times the memory in all reconciles
// of its namespace together. Where each object is judged by all others, it may cost 4.5 times.
func TestATenantsHugeInputGrowsLinearly(t *testing.T) {
	for _, h := range hugeInputs {
		t.Run(h.name, func(t *testing.T) {
			growth := 2.5
			if h.square {
				growth = 4.5
			}
			once, _ := leastCosts(t, "evil", h.objects(h.n))
			twice, _ := leastCosts(t, "evil", h.objects(2*h.n))
			t.Logf("%d: %d KB; %d: %d KB; %.2f times", h.n, once>>10, 2*h.n, twice>>10, float64(twice)/float64(once))
			require.LessOrEqual(t, float64(twice), growth*float64(once))
		})
	}
}

// TestATenantsHugeInputCostsOtherNamespacesNothing checks that another namespace gets the same results and allocates as
// much as without the input.
func TestATenantsHugeInputCostsOtherNamespacesNothing(t *testing.T) {
	without, want := leastCosts(t, "victim", nil)
	require.NotEmpty(t, want)
	for _, h := range hugeInputs {
		t.Run(h.name, func(t *testing.T) {
			with, got := leastCosts(t, "victim", h.objects(2*h.n))
			t.Logf("%d KB, with it %d KB", without>>10, with>>10)
			require.Equal(t, want, got)
			require.Less(t, with, without*3/2)
		})
	}
}
