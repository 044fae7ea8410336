// SPDX-License-Identifier: Apache-2.0

package olmcommand

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

const catalog = `{schema: olm.package, name: alpha, defaultChannel: stable}
---
{schema: olm.channel, package: alpha, name: stable, entries: [{name: alpha.v1}]}
---
{schema: olm.bundle, package: alpha, name: alpha.v1, image: i, properties: [{type: olm.package, value: {packageName: alpha, version: 1.0.0}}]}
`

// serve serves a cluster with an OperatorGroup and more, which KUBECONFIG names.
func serve(t *testing.T, objects ...olmcore.Object) *apiserver.Server {
	c := fake.NewCluster(time.Now())
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(append(objects, &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}})...))
	s := apiserver.New(c)
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	t.Setenv("KUBECONFIG", write(t, apiserver.Kubeconfig(front.URL)))
	return s
}

func write(t *testing.T, data []byte) string {
	path := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// works starts the program and stops it once the OperatorGroup is done.
func works(t *testing.T, s *apiserver.Server, args ...string) {
	p := start(t, args...)
	p.until(func() bool { return done(t, s) })
	p.stop()
}

// TestTheProgramWorksUntilItIsStopped starts it as one command does, with a kubeconfig and most of its flags.
func TestTheProgramWorksUntilItIsStopped(t *testing.T) {
	works(t, serve(t, apiserver.Definitions()...), "--catalog", "olm/community="+write(t, []byte(catalog)), "--namespaces", "ops,olm",
		"--field-validation", "Strict", "--node-unreachable-grace", "10s", "--zap-log-level", "error", "--only", "group,catalog", "--config", write(t, []byte("catalog: {spread: Require}")))
}

// TestTheProgramRefusesToStart where it cannot work, with one message, and starts when it is told to.
func TestTheProgramRefusesToStart(t *testing.T) {
	s := serve(t)
	require.NoError(t, s.With(func(c *fake.Cluster) error { return apiserver.RunOLM(c, "olm") }))
	s.Allowed = func(what authorizationv1.ResourceAttributes) bool { return what.Resource == "pods" }
	err := Run(t.Context(), []string{"--zap-log-level", "error"}, io.Discard)
	for _, want := range []string{
		"catalogsources.operators.coreos.com is missing; ", "(to start all the same: --ignore-checks=crds)",
		"may not get, list, watch, create, patch, delete configmaps; ", "(to start all the same: --ignore-checks=rights)",
		"an OLM runs in this cluster, and would undo what is written: Deployment olm/olm-operator: ", "(to start all the same: --ignore-checks=olm)",
	} {
		require.ErrorContains(t, err, want)
	}
	works(t, s, "--ignore-checks", "crds,rights,olm", "--zap-log-level", "error")
}

func TestWhatIsWrongIsSaidAtOnce(t *testing.T) {
	serve(t)
	for want, args := range map[string][]string{
		"flag provided but not defined: -no-such-flag": {"--no-such-flag"},
		`--only: "grop" is no controller`:              {"--only", "grop"},
		`--ignore-checks: "all" is no check`:           {"--ignore-checks", "all"},
		"no/such/file":                                 {"--kubeconfig", "no/such/file"},
		": catalog.replicas: is not between 1 and 5":   {"--kubeconfig", "no/such/file", "--config", write(t, []byte("catalog: {replicas: 6}"))},
		"https://127.0.0.1:1: ":                        {"--kubeconfig", write(t, apiserver.Kubeconfig("https://127.0.0.1:1"))},
	} {
		require.ErrorContains(t, Run(t.Context(), args, io.Discard), want)
	}
	for _, name := range []string{"KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"} {
		t.Setenv(name, "")
	}
	require.ErrorContains(t, Run(t.Context(), nil, io.Discard), "which cluster to use is not known: set KUBECONFIG or --kubeconfig, or run it in a Pod: ")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, Run(t.Context(), nil, io.Discard), "run it in a Pod: KUBECONFIG: stat "+os.Getenv("KUBECONFIG")+": no such file or directory")
	require.ErrorContains(t, Run(t.Context(), []string{"--ignore-checks", "crd"}, io.Discard), `--ignore-checks: "crd" is no check`)
	var out bytes.Buffer
	require.Error(t, Run(t.Context(), []string{"--version"}, &out))
	require.Contains(t, out.String(), "olm ")
}
