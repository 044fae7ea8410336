// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/internal/upgradetest"
)

// TestEveryHopOfALiveCluster: nothing is written, and custom resources are held against the schemas that can be asked
// about.
func TestEveryHopOfALiveCluster(t *testing.T) {
	u := newUpgrade(t, askMore)
	require.NoError(t, u.Cluster.Create(upgradetest.Vault("v1", "gold", map[string]any{"rooms": int64(3)})))
	flags := append([]string{"path", "vault", "--preview", "--catalog", "olm/community=../../testdata/upgrade-catalog.yaml"}, u.flags...)
	u.server.Requests()
	code, out, errs := run(t, "", append(flags, "-o", "json")...)
	require.Zero(t, code, errs)
	var all report.Hops
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Equal(t, []string{"ops", "vault"}, []string{all.Namespace, all.Subscription})
	require.Len(t, all.Hops, 2)
	require.Equal(t, u.plan, all.Hops[0].Plan.Name, "the plan that waits is the first")
	require.Empty(t, all.Hops[0].Blocked)
	require.Empty(t, all.Hops[1].Blocked)
	require.Equal(t, "vault.v3.0.0", all.Hops[1].Versions[0].Name)
	require.True(t, all.Hops[0].CustomResourceDefinitions[0].Judged)
	require.False(t, all.Hops[1].CustomResourceDefinitions[0].Judged, "the first one brings what would have to be listed")
	for verb := range u.server.Requests() {
		require.Contains(t, []string{"discovery", "get", "list"}, verb)
	}

	code, out, errs = run(t, "", append(flags, "-o", "html")...)
	require.Zero(t, code, errs)
	graph, first, second := strings.Index(out, "<svg"), strings.Index(out, "<h2>Approval 1: vault.v2.0.0</h2>"), strings.Index(out, "<h2>Approval 2: vault.v3.0.0</h2>")
	require.True(t, 0 < graph && graph < first && first < second, "%d %d %d", graph, first, second)
	require.Contains(t, out, "look twice: secrets")
	require.Contains(t, out, "vault.v3.0.0: no newer version is offered")
}
