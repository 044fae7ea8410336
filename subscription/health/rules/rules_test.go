// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/subscription/health/rules"
)

// TestTheFilesAreThoseOfTheTables compares the folders argocd and flux with what the tables come to; OLMCORE_UPDATE=1
// rewrites them.
func TestTheFilesAreThoseOfTheTables(t *testing.T) {
	config := `# Health of OLM's objects in Argo CD: merge data into the ConfigMap argocd-cm.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/name: argocd-cm
    app.kubernetes.io/part-of: argocd
data:
`
	flux := `# Health of OLM's objects in Flux: copy spec.healthCheckExprs into the Kustomization that applies them.
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: operators
  namespace: flux-system
spec:
  interval: 10m
  path: ./operators
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
  timeout: 10m
  wait: true
  healthCheckExprs:
`
	files := map[string]string{}
	for _, table := range rules.Tables() {
		script, err := rules.ArgoCD(table.Kind)
		require.NoError(t, err)
		files["argocd/"+table.Kind+".lua"] = script
		config += "  resource.customizations.health.operators.coreos.com_" + table.Kind + ": |\n" + indented(script, "    ")
		check, err := rules.Flux(table.Kind)
		require.NoError(t, err)
		flux += "    - apiVersion: " + check.APIVersion + "\n      kind: " + check.Kind + "\n"
		for _, e := range []struct{ name, text string }{{"inProgress", check.InProgress}, {"failed", check.Failed}, {"current", check.Current}} {
			flux += "      " + e.name + ": |-\n" + indented(e.text+"\n", "        ")
		}
	}
	files["argocd/argocd-cm.yaml"], files["flux/kustomization.yaml"] = config, flux
	for name, want := range files {
		if os.Getenv("OLMCORE_UPDATE") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
		}
		have, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(have), name)
	}
	for _, folder := range []string{"argocd", "flux"} {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, e := range entries {
			require.Contains(t, files, folder+"/"+e.Name(), "a file that nothing writes")
		}
	}
}

// TestTheYAMLHoldsTheScripts reads the two YAML files as Argo CD and Flux do.
func TestTheYAMLHoldsTheScripts(t *testing.T) {
	var config struct{ Data map[string]string }
	var flux struct {
		Spec struct{ HealthCheckExprs []rules.HealthCheck }
	}
	for name, into := range map[string]any{"argocd/argocd-cm.yaml": &config, "flux/kustomization.yaml": &flux} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(data, into))
	}
	require.Len(t, config.Data, len(rules.Tables()))
	require.Len(t, flux.Spec.HealthCheckExprs, len(rules.Tables()))
	for i, table := range rules.Tables() {
		script, err := rules.ArgoCD(table.Kind)
		require.NoError(t, err)
		require.Equal(t, script, config.Data["resource.customizations.health.operators.coreos.com_"+table.Kind])
		check, err := rules.Flux(table.Kind)
		require.NoError(t, err)
		require.Equal(t, check, flux.Spec.HealthCheckExprs[i])
	}
}

// indented puts spaces before each line that is not empty.
func indented(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}
