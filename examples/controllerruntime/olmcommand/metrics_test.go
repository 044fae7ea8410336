// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
)

// emptyRegistry serves a catalog that has no bundles.
type emptyRegistry struct {
	api.UnimplementedRegistryServer
}

func (emptyRegistry) ListBundles(*api.ListBundlesRequest, api.Registry_ListBundlesServer) error {
	return nil
}

// free is an address that nothing listens on.
func free(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// TestTheProgramExportsMetrics of the library, once it works: among them those of catalogs that it read from a
// registry.
func TestTheProgramExportsMetrics(t *testing.T) {
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	api.RegisterRegistryServer(server, emptyRegistry{})
	go server.Serve(listening)
	t.Cleanup(server.Stop)
	serve(t, append(apiserver.Definitions(), &v1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"},
		Spec:       v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: listening.Addr().String()},
	})...)
	address := free(t)
	p := start(t, "--metrics-bind-address", address, "--zap-log-level", "error")
	wanted := []string{`olm_kind_readable{kind="Subscription"} 1`, `catalog_source_snapshots_total{name="community",namespace="olm"} 1`}
	isMissing := func(text string) func(string) bool {
		return func(line string) bool { return !strings.Contains(text, line) }
	}
	text := ""
	p.until(func() bool {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return false // it does not listen yet
		}
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.Equal(t, http.StatusOK, response.StatusCode, string(body))
		text = string(body)
		return !slices.ContainsFunc(wanted, isMissing(text))
	}, func() string { return text })
	p.stop()
}
