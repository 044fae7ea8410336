// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
)

// serve serves a cluster with an OperatorGroup, and returns the file that names it, too.
func serve(t *testing.T, prepare func(c *fake.Cluster) error) (s *apiserver.Server, kubeconfig string) {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(append(apiserver.Definitions(), &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}})...))
	require.NoError(t, prepare(c))
	s = apiserver.New(c)
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, apiserver.Kubeconfig(front.URL), 0o600))
	return s, kubeconfig
}

func TestTheProgramRunsOnceOrUntilItIsStopped(t *testing.T) {
	_, kubeconfig := serve(t, func(*fake.Cluster) error { return nil })
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--only", "group,csv"}, nil, &out))
	require.Contains(t, out.String(), "group ops/group: create ClusterRole olm.og.group.admin-")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_ = run(ctx, []string{"--kubeconfig", kubeconfig, "--every", "1ms"}, nil, &out) // a read may be cut short
	require.Error(t, ctx.Err())
}

// TestTheProgramReadsItsFile checks that the file counts, and that a flag has priority over it.
func TestTheProgramReadsItsFile(t *testing.T) {
	_, kubeconfig := serve(t, func(*fake.Cluster) error { return nil })
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("namespaces: [elsewhere]\n"), 0o600))
	args := []string{"--kubeconfig", kubeconfig, "--only", "group", "--config", file}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, nil, &out))
	require.NotContains(t, out.String(), "group ops/group: ")
	require.NoError(t, run(t.Context(), append(args, "--namespaces", "ops"), nil, &out))
	require.Contains(t, out.String(), "group ops/group: create ClusterRole olm.og.group.admin-")
}

// TestAWrongFileIsReportedBeforeACluster checks that the cluster, which does not exist, is not what the error is about.
func TestAWrongFileIsReportedBeforeACluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("catalog: {replicas: 6}\n"), 0o600))
	err := run(t.Context(), []string{"--kubeconfig", "none", "--config", file}, nil, nil)
	require.EqualError(t, err, file+": catalog.replicas: is not between 1 and 5")
}

func TestTheProgramRefusesToStart(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, kubeconfig := serve(t, func(c *fake.Cluster) error { return apiserver.RunOLM(c, "olm") })
	var out bytes.Buffer
	for want, args := range map[string][]string{
		"an OLM runs in this cluster, and would undo what is written: Deployment olm/olm-operator: ": {"--kubeconfig", kubeconfig},
		"kubeconfig.none": {"--kubeconfig", kubeconfig + ".none"},
		"which cluster to use is not known: set KUBECONFIG or --kubeconfig, or run it in a Pod: ": nil,
		`--ignore-checks: "olms" is no check`:                                                     {"--ignore-checks", "olms"},
		"-no-such-flag":                                                                           {"--no-such-flag"},
		`for flag -every: it must be a time`:                                                      {"--every", "often"},
		`--only: "sweeps" is no controller`:                                                       {"--only", "sweeps"},
		`for flag -field-validation: it must`:                                                     {"--field-validation", "none"},
	} {
		require.ErrorContains(t, run(t.Context(), args, nil, &out), want)
	}
	t.Setenv("KUBECONFIG", kubeconfig+".none")
	require.ErrorContains(t, run(t.Context(), nil, nil, &out), "run it in a Pod: KUBECONFIG: stat "+kubeconfig+".none: no such file or directory")
	require.Empty(t, out.String())
	require.NoError(t, run(t.Context(), []string{"--kubeconfig", kubeconfig, "--ignore-checks", "olm"}, nil, &out))
}
