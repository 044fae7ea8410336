// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPlanThatIsTooLarge checks that a dry run reports that a bundle is unpacked from its image because the plan would
// be too large, and for a bundle without an image the size of the plan and its largest step.
func TestAPlanThatIsTooLarge(t *testing.T) {
	const (
		input = `
apiVersion: v1
kind: Namespace
metadata: {name: tools, uid: namespace-uid}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {namespace: olm, name: community, uid: c}
spec: {sourceType: grpc, address: "community.olm:50051"}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {namespace: tools, name: g, uid: g}
spec: {targetNamespaces: [tools]}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {namespace: tools, name: a, uid: a}
spec: {name: a, channel: s, source: community, sourceNamespace: olm}
`
		unpacked = "  not shown    the InstallPlan: its bundles are unpacked from their images first, which a dry run does not pull\n"
		tooLarge = "PlanTooLarge: the plan's steps take "
	)
	dir := t.TempDir()
	object := func(value any) map[string]any {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": base64.StdEncoding.EncodeToString(text)}}
	}
	world := filepath.Join(dir, "world.yaml")
	require.NoError(t, os.WriteFile(world, []byte(input), 0o600))
	for image, want := range map[string]string{"registry.example.com/a:1": unpacked, "": tooLarge} {
		bundle, err := json.Marshal(map[string]any{"schema": "olm.bundle", "package": "a", "name": "a.v1.0.0", "image": image})
		require.NoError(t, err)
		properties, err := json.Marshal([]any{
			map[string]any{"type": "olm.package", "value": map[string]any{"packageName": "a", "version": "1.0.0"}},
			object(map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
				"metadata": map[string]any{"name": "a.v1.0.0"},
				"spec":     map[string]any{"version": "1.0.0", "install": map[string]any{"strategy": "deployment"}}}),
			object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "large"},
				"data": map[string]any{"x": strings.Repeat("x", 1<<20)}}),
		})
		require.NoError(t, err)
		file := filepath.Join(dir, "catalog.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"schema":"olm.package","name":"a","defaultChannel":"s"}
{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1.0.0"}]}
`+strings.TrimSuffix(string(bundle), "}")+`,"properties":`+string(properties)+`}`), 0o600))
		for _, settle := range []bool{false, true} {
			args := []string{"--complete", "--catalog", "olm/community=" + file, world}
			if settle {
				args = append([]string{"--settle"}, args...)
			}
			code, got, errs := runDry(t, "", args...)
			require.Zero(t, code, errs)
			require.Contains(t, got, want, "image %q, settle %v", image, settle)
			if image != "" {
				require.NotContains(t, got, tooLarge)
			}
		}
	}
}
