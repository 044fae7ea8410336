// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/internal/apiserver"
	"github.com/olmcore/olm/fake"
)

const catalog = `{schema: olm.package, name: alpha, defaultChannel: stable}
---
{schema: olm.channel, package: alpha, name: stable, entries: [{name: alpha.v1}]}
---
{schema: olm.bundle, package: alpha, name: alpha.v1, image: i, properties: [{type: olm.package, value: {packageName: alpha, version: 1.0.0}}]}
`

// TestTheProgramWorksUntilItIsStopped starts it as one command does, with a kubeconfig and most of its flags.
func TestTheProgramWorksUntilItIsStopped(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}))
	s := apiserver.New(c)
	front := httptest.NewServer(s)
	defer front.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	t.Setenv("KUBECONFIG", write("kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: s, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: s, user: u}}], users: [{name: u}]}`, front.URL)))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--catalog", "olm/community=" + write("catalog.yaml", catalog), "--namespaces", "ops,olm",
			"--field-validation", "Strict", "--node-unreachable-grace", "10s", "--zap-log-level", "error"})
	}()
	for done := false; !done; time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-ended:
			t.Fatal(err)
		default:
		}
		require.NoError(t, s.With(func(c *fake.Cluster) error {
			done = !fake.Find[*operatorsv1.OperatorGroup](c, "ops", "group").Status.LastUpdated.IsZero()
			return nil
		}))
	}
	cancel()
	require.NoError(t, <-ended)
}
