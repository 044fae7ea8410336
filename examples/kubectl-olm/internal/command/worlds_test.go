// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
)

// noImage is an image that cannot be pulled.
const noImage = "registry.example.com/broken:2"

func breakSecond(_, second *upgradetest.Bundle) {
	second.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = noImage
}

// askMore has the second version ask for more, and store custom resources in another version.
func askMore(_, second *upgradetest.Bundle) {
	permissions := second.CSV.Spec.InstallStrategy.StrategySpec.Permissions
	permissions[0].Rules = append(permissions[0].Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}})
	second.CRD.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		upgradetest.Version("v1", false, "size", "rooms"), upgradetest.Version("v2", true, "size", "rooms"),
	}
}

// addField has the definition of the second version have a field more.
func addField(_, second *upgradetest.Bundle) {
	second.CRD.Spec.Versions[0] = upgradetest.Version("v1", true, "size", "rooms")
}

// TestTheFilesOfUpgradesAreThoseOfTheCluster: OLMCORE_UPDATE=1 writes them.
func TestTheFilesOfUpgradesAreThoseOfTheCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(first, second *upgradetest.Bundle)
		approves bool
		phases   [2]v1alpha1.ClusterServiceVersionPhase
	}{
		"upgrade":          {askMore, false, [2]v1alpha1.ClusterServiceVersionPhase{v1alpha1.CSVPhaseSucceeded, ""}},
		"upgrade-failed":   {breakSecond, true, [2]v1alpha1.ClusterServiceVersionPhase{v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseFailed}},
		"upgrade-done":     {nil, true, [2]v1alpha1.ClusterServiceVersionPhase{"", v1alpha1.CSVPhaseSucceeded}},
		"upgrade-of-field": {addField, true, [2]v1alpha1.ClusterServiceVersionPhase{"", v1alpha1.CSVPhaseSucceeded}},
	} {
		t.Run(name, func(t *testing.T) {
			w := upgradetest.New(t, func(first, second *upgradetest.Bundle) {
				if tt.change != nil {
					tt.change(first, second)
				}
			})
			w.Cluster.Image(noImage).Break("ImagePullBackOff")
			if tt.approves {
				w.Approve(t)
			}
			first, second := w.Phase(upgradetest.First), w.Phase(upgradetest.Second)
			require.Equal(t, tt.phases, [2]v1alpha1.ClusterServiceVersionPhase{first, second})
			var objects []any
			for _, o := range w.Cluster.Objects() {
				m, err := olmcore.ToMap(o)
				require.NoError(t, err)
				objects = append(objects, m)
			}
			head := fmt.Sprintf("at %s; %s: %q, %s: %q", w.Cluster.Now().Format(time.RFC3339), upgradetest.First, first, upgradetest.Second, second)
			requireFile(t, name+".yaml", head, objects)
		})
	}
}

// TestTheCatalogIsThatOfTheVersions: the third version takes a field away, asks for everything in the cluster and
// restarts.
func TestTheCatalogIsThatOfTheVersions(t *testing.T) {
	first, second, third := upgradetest.BundleOf(1), upgradetest.BundleOf(2), upgradetest.BundleOf(3)
	askMore(&first, &second)
	askMore(&first, &third)
	third.CSV.Name, third.CSV.Spec.Replaces = "vault.v3.0.0", upgradetest.Second
	third.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{
		ServiceAccountName: upgradetest.Deployment, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}}
	third.CRD.Spec.Versions[1] = upgradetest.Version("v2", true, "size")
	channel := map[string]any{"schema": "olm.channel", "package": "vault", "name": "stable"}
	documents := []any{map[string]any{"schema": "olm.package", "name": "vault", "defaultChannel": "stable"}, channel}
	var entries []any
	for _, b := range []upgradetest.Bundle{first, second, third} {
		entries = append(entries, map[string]any{"name": b.CSV.Name, "replaces": b.CSV.Spec.Replaces})
		properties := []any{map[string]any{"type": "olm.package", "value": map[string]any{"packageName": "vault", "version": b.CSV.Spec.Version.String()}}}
		for _, o := range []olmcore.Object{b.CSV, b.CRD} {
			data, err := json.Marshal(o)
			require.NoError(t, err)
			properties = append(properties, map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": data}})
		}
		documents = append(documents, map[string]any{"schema": "olm.bundle", "package": "vault", "name": b.CSV.Name, "image": "registry.example.com/vault-bundle:" + b.CSV.Spec.Version.String(), "properties": properties})
	}
	channel["entries"] = entries
	requireFile(t, "upgrade-catalog.yaml", "three versions with their manifests", documents)
}

// requireFile demands that a file of testdata has these documents. OLMCORE_UPDATE=1 writes it.
func requireFile(t *testing.T, name, head string, documents []any) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by %s: %s.\n", strings.Split(t.Name(), "/")[0], head)
	for _, d := range documents {
		document, err := yaml.Marshal(d)
		require.NoError(t, err)
		fmt.Fprintf(&b, "---\n%s", document)
	}
	file := filepath.Join("../../testdata", name)
	if os.Getenv("OLMCORE_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), b.String()))
}
