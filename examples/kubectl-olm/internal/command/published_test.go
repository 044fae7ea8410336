// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/rollback"
)

// written is what kubectl prints of a world, in a file.
func written(t *testing.T, w *upgradetest.World) string {
	t.Helper()
	var text []byte
	for _, o := range w.Cluster.Objects() {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		document, err := yaml.Marshal(m)
		require.NoError(t, err)
		text = append(append(text, "---\n"...), document...)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// TestPublishedOperators: the command is asked about each published operator before it is installed, once it is, when
// its upgrade waits, and when the images of the upgrade do not exist.
func TestPublishedOperators(t *testing.T) {
	all := realdata.Some(t, "snapscheduler", "etcd")
	for _, b := range all {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			first := upgradetest.BundleFrom(b.Objects)
			first.CSV.Spec.Replaces, first.CSV.Spec.Skips = "", nil
			w := upgradetest.Offering(t, []upgradetest.Bundle{first})
			file := written(t, w)
			answers(t, file, "WaitingForApproval")
			foreseen := asked(t, file, "approve", "vault", "--dry-run")
			require.NotEmpty(t, foreseen)

			w.Approve(t)
			if w.Phase(first.CSV.Name) != v1alpha1.CSVPhaseSucceeded { // it needs what is not there
				var p preview.Preview
				require.NoError(t, json.Unmarshal([]byte(asked(t, file, "approve", "vault", "--dry-run", "-o", "json")), &p))
				require.NotEmpty(t, p.Blocked, "%s is not foreseen", w.Phase(first.CSV.Name))
				answers(t, written(t, w), "")
				return
			}
			answers(t, written(t, w), "Installed")
			upgradeOf(t, w, first)
		})
	}
}

// upgradeOf has the next version come, whose images do not exist, and asks for the way back.
func upgradeOf(t *testing.T, w *upgradetest.World, first upgradetest.Bundle) {
	second := first
	second.CSV = first.CSV.DeepCopy()
	second.CSV.Name, second.CSV.Spec.Replaces = first.CSV.Name+"-next", first.CSV.Name
	second.CSV.Spec.Version.Major++
	deployments := second.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range deployments {
		for j := range deployments[i].Spec.Template.Spec.Containers {
			image := &deployments[i].Spec.Template.Spec.Containers[j].Image
			*image = "registry.example.com/none/" + deployments[i].Spec.Template.Spec.Containers[j].Name
			w.Cluster.Image(*image).Break("ImagePullBackOff")
		}
	}
	w.Offer(t, first, second)
	w.Run(t)
	answers(t, written(t, w), "WaitingForApproval")
	w.Approve(t)
	if len(deployments) == 0 {
		answers(t, written(t, w), "Installed")
		return
	}
	file := written(t, w)
	answers(t, file, "Degraded")
	var a rollback.Advice
	require.NoError(t, json.Unmarshal([]byte(asked(t, file, "rollback", "vault", "--dry-run", "-o", "json")), &a))
	require.Equal(t, first.CSV.Name, a.To)
	require.NotEmpty(t, a.Steps)
}

// asked returns what the command answers about a file that is all there is.
func asked(t *testing.T, file string, args ...string) string {
	t.Helper()
	code, out, errs := run(t, "", append(args, "-f", file, "--complete", "-n", upgradetest.Namespace, "--now", upgradetest.Epoch.Add(2*time.Hour).Format(time.RFC3339))...)
	require.Zero(t, code, "%v: %s", args, errs)
	return out
}

// answers asks every command that reads, in every form, and demands the phase that status and why tell.
func answers(t *testing.T, file, phase string) {
	t.Helper()
	require.Contains(t, asked(t, file, "status"), phase)
	require.Contains(t, asked(t, file, "why", "vault"), phase)
	for _, args := range [][]string{{"status", "-o", "wide"}, {"status", "-o", "html"}, {"why", "vault", "-o", "json"}, {"audit"}, {"next"}} {
		require.NotEmpty(t, asked(t, file, args...), args)
	}
}
