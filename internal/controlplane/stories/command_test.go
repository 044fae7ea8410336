// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/preview"
)

// plugin is the command of examples/kubectl-olm, built once.
var plugin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kubectl-olm")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "kubectl-olm")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "../../../examples/kubectl-olm"
	text, err := build.CombinedOutput()
	return binary, errors.Join(err, problemOf(err, text))
})

func problemOf(err error, text []byte) error {
	if err == nil {
		return nil
	}
	return errors.New(string(text))
}

// kubectl runs the command in the story's namespace, as the administrator.
func (s *story) kubectl(args ...string) (code int, stdout, stderr string) {
	binary, err := plugin()
	require.NoError(s, err)
	config := world.plane.Config
	of := clientcmdapi.NewConfig()
	of.Clusters["here"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	of.AuthInfos["me"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	of.Contexts["it"] = &clientcmdapi.Context{Cluster: "here", AuthInfo: "me", Namespace: s.ns}
	of.CurrentContext = "it"
	file := filepath.Join(s.TempDir(), "kubeconfig")
	require.NoError(s, clientcmd.WriteToFile(*of, file))
	cmd := exec.CommandContext(s.Context(), binary, append(args, "--kubeconfig", file, "--cache-dir", s.TempDir())...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(s, err)
	}
	s.Logf("kubectl olm %s: %d\n%s%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), errs.String(), out.String())
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestPeopleAskTheCommand(t *testing.T) {
	t.Parallel()
	tell(t, "what an approval would do, approve it, and see that it is installed", func(s *story) {
		s.waiting(upgraded())
		code, out, _ := s.kubectl("status", "alpha", "--exit-code")
		require.Equal(s, 1, code)
		require.Contains(s, out, "WaitingForApproval")
		_, out, _ = s.kubectl("why", "alpha")
		require.Contains(s, out, "spec.approved")
		code, out, errs := s.kubectl("approve", "alpha", "--dry-run", "-o", "json")
		require.Zero(s, code, errs)
		var p preview.Preview
		require.NoError(s, json.Unmarshal([]byte(out), &p))
		require.Equal(s, "get secrets", p.Permissions.Added[0].String())
		require.False(s, s.plan("alpha").Spec.Approved)
		code, _, errs = s.kubectl("approve", "alpha", "--yes")
		require.Zero(s, code, errs)
		s.installed("alpha", "alpha.v1.1.0")
		code, out, _ = s.kubectl("status", "alpha", "--exit-code")
		require.Zero(s, code, out)
		code, out, _ = s.kubectl("audit")
		require.Zero(s, code, out)
	})
	tell(t, "why an upgrade does not come, and go back", func(s *story) {
		s.imageIs("alpha:v1.1.0", controlplane.Image{NeverReady: true})
		s.waiting(pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
		code, _, errs := s.kubectl("approve", "alpha", "--yes")
		require.Zero(s, code, errs)
		eventually(s, "version 1.1.0 has failed", func() v1alpha1.ClusterServiceVersionPhase { return s.csv("alpha.v1.1.0").Status.Phase }, v1alpha1.CSVPhaseFailed)
		code, out, _ := s.kubectl("why", "alpha")
		require.Zero(s, code)
		require.Contains(s, out, "alpha.v1.1.0")
		require.Contains(s, out, "To do")
		code, _, errs = s.kubectl("rollback", "alpha", "--yes")
		require.Zero(s, code, errs)
		require.Contains(s, errs, "is back at alpha.v1.0.0")
		require.Equal(s, v1alpha1.CSVPhaseSucceeded, s.csv("alpha.v1.0.0").Status.Phase)
		require.False(s, exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.1.0"))
	})
}
