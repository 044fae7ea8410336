// SPDX-License-Identifier: Apache-2.0

// See memory_test.go.
//go:build !race

package registries_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/packageserver/registries"
	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// The manifest's limits fit what catalogs may show at most, all read and read again: the process needs three quarters
// of its memory limit, and the garbage collector knows of that. The registries run in it, too.
func TestTheManifestsLimitsFitFullRooms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "config", "clusterserviceversion.yaml"))
	require.NoError(t, err)
	csv := &v1alpha1.ClusterServiceVersion{}
	require.NoError(t, yaml.UnmarshalStrict(text, csv))
	container := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
	limit := uint64(container.Resources.Limits.Memory().Value())
	require.Equal(t, "GOMEMLIMIT", container.Env[0].Name)
	soft, err := strconv.Atoi(strings.TrimSuffix(container.Env[0].Value, "MiB"))
	require.NoError(t, err)
	require.LessOrEqual(t, uint64(soft)<<20, limit*9/10)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(soft) << 20))

	const size = 120 << 10
	full := &catalog{packages: packages.DefaultMaxBytes/size + 20, csv: csvOf(strings.Repeat("x", size))}
	address, server := listen(t, full, "")
	w := newWorld(t, registries.Options{}, registry.Options{})
	stop := peakOfProcess()
	for i := range 3 {
		w.know("olm", strconv.Itoa(i), address)
	}
	for i := range 6 {
		w.know(fmt.Sprintf("team-%d", i), "a", address)
	}
	require.Empty(t, w.wait(t))
	reads := w.reads()
	server.Stop()
	_, _ = listen(t, full, address)
	require.Eventually(t, func() bool { return w.reads() >= 2*reads }, time.Minute, 20*time.Millisecond)
	kept, most := inUse()>>20, stop()>>20
	t.Logf("%d MiB kept, %d MiB for the process at the peak, of %d MiB", kept, most, limit>>20)
	require.Greater(t, kept, uint64(220), "the rooms are full")
	require.Less(t, most<<20, limit*3/4)
}

// peakOfProcess is peak for all that the runtime has of the system.
func peakOfProcess() (stop func() uint64) {
	return peakOf(func(m *runtime.MemStats) uint64 { return m.Sys - m.HeapReleased })
}
