// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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

func TestTheProgramRunsOnceOrUntilItIsStopped(t *testing.T) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}))
	front := httptest.NewServer(apiserver.New(c))
	defer front.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: s, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: s, user: u}}], users: [{name: u}]}`, front.URL), 0o600))

	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--only", "group,csv"}, &out))
	require.Contains(t, out.String(), "group ops/group: create ClusterRole olm.og.group.admin-")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = run(ctx, []string{"--kubeconfig", kubeconfig, "--every", "1ms"}, &out) // a read may be cut short
	require.Error(t, ctx.Err())
	require.Error(t, run(t.Context(), []string{"--kubeconfig", kubeconfig + ".none"}, &out))
	require.Error(t, run(t.Context(), []string{"--no-such-flag"}, &out))
}
