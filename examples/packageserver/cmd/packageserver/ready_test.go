// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// slow is a registry that answers once it may.
type slow struct {
	oneBundle
	may chan struct{}
}

func (s slow) ListBundles(r *api.ListBundlesRequest, stream api.Registry_ListBundlesServer) error {
	<-s.may
	return s.oneBundle.ListBundles(r, stream)
}

// A replica that starts is live, and ready only when it has read what there is.
func TestAReplicaIsReadyOnceTheCatalogsAreRead(t *testing.T) {
	s := slow{may: make(chan struct{})}
	cluster := fake.NewCluster(time.Now())
	cluster.AutoCreateNamespaces = true
	source := sourceAt("olm", "community", registryOf(t, s))
	source.UID = ""
	err := cluster.Create(source)
	require.NoError(t, err)
	front := httptest.NewServer(apiserver.New(cluster))
	defer front.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, apiserver.Kubeconfig(front.URL), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--kubeconfig=" + kubeconfig, "--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + t.TempDir()}, io.Discard)
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer := func(path string) (code int, text string) {
		response, err := client.Get("https://127.0.0.1:" + port + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	answers := func(path string, want int) {
		require.Eventually(t, func() bool {
			code, _ := answer(path)
			return code == want
		}, 20*time.Second, 20*time.Millisecond, path)
	}
	answers("/livez", http.StatusOK)
	code, text := answer("/readyz?verbose")
	require.Equal(t, http.StatusInternalServerError, code, text)
	require.Contains(t, text, "[-]catalogs failed")
	close(s.may)
	answers("/readyz", http.StatusOK)
	cancel()
	require.NoError(t, <-ended)
}

// A registry that does not answer keeps a replica from being ready for a while only, and is named then.
func TestADeadRegistryKeepsNobodyWaiting(t *testing.T) {
	var out bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	g := newGate()
	require.ErrorContains(t, g.Check(nil), "the catalogs are not read yet")
	begin := time.Now()
	g.open(t.Context(), func(ctx context.Context) []string {
		<-ctx.Done()
		return []string{"olm/dead: connection refused"}
	}, 50*time.Millisecond)
	require.NoError(t, g.Check(nil))
	require.Less(t, time.Since(begin), 10*time.Second)
	require.Contains(t, out.String(), `level=WARN msg="ready without a catalog that is not read: olm/dead: connection refused"`)
}

// TestALogEntryIsOneLine checks that line ends of a catalog do not end a log entry.
func TestALogEntryIsOneLine(t *testing.T) {
	var out bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	report(types.NamespacedName{Namespace: "ops", Name: "a"}, []olmcore.Diagnostic{{Reason: "Left", Message: "x\nforged"}})
	require.Contains(t, out.String(), `msg="x forged"`)
}
