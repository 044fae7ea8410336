// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/subscription/resolution"
)

// BenchmarkRead reads a catalog of the size of OperatorHub's community catalog, 5,600 bundles in 7,700 entries: what is
// sent, what of it is kept, and what counts for the limits.
func BenchmarkRead(b *testing.B) {
	bundles, sent := community5600()
	server := listen(b, sends(bundles...))
	conn, err := grpc.NewClient(server.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	defer conn.Close()
	_, taken, err := registry.Taken(b.Context(), conn, registry.Options{})
	require.NoError(b, err)
	before, kept := live(), int64(0)
	for b.Loop() {
		packages, problems, err := registry.Read(b.Context(), conn, registry.Options{})
		require.NoError(b, err)
		require.Empty(b, problems)
		content, _ := resolution.Build(packages)
		b.StopTimer()
		packages = nil
		kept = max(kept, live()-before)
		runtime.KeepAlive(content)
		b.StartTimer()
	}
	b.ReportMetric(float64(sent)/(1<<20), "sent-MiB")
	b.ReportMetric(float64(taken)/(1<<20), "counted-MiB")
	b.ReportMetric(float64(kept)/(1<<20), "kept-MiB")
}

func community5600() (bundles []*api.Bundle, sent int) {
	for p := range 320 {
		pkg := fmt.Sprintf("operator-%d", p)
		for i := range 24 {
			version := fmt.Sprintf("1.%d.0", i%18)
			x := &api.Bundle{
				CsvName: pkg + ".v" + version, PackageName: pkg, ChannelName: []string{"stable", "candidate"}[i/18], Version: version,
				BundlePath: fmt.Sprintf("registry.example.com/community/%s-bundle@sha256:%064d", pkg, i%18), SkipRange: "<" + version,
				Properties: []*api.Property{{Type: "olm.package", Value: fmt.Sprintf(`{"packageName":%q,"version":%q}`, pkg, version)}},
			}
			for kind := range 6 {
				x.Properties = append(x.Properties, &api.Property{Type: "olm.gvk", Value: fmt.Sprintf(`{"group":"%s.example.com","kind":"Kind%d","version":"v1alpha1"}`, pkg, kind)})
			}
			if i%18 > 0 {
				x.Replaces = fmt.Sprintf("%s.v1.%d.0", pkg, i%18-1)
			}
			sent += proto.Size(x)
			bundles = append(bundles, x)
		}
	}
	return bundles, sent
}
