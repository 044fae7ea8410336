// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/internal/manifest"
	"github.com/olmcore/olm/olmcore"
)

const catalogSource = `
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: community, namespace: olm, uid: "1", resourceVersion: "1", creationTimestamp: "2026-01-02T12:00:00Z"}
spec:
  sourceType: grpc
  image: registry.example.com/catalog:latest
  updateStrategy: {}
  grpcPodConfig: {securityContextConfig: restricted}
`

func TestAnExportBecomesAFolder(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	o := controllers.Options{KubernetesVersion: "v1.36.2", Sweeps: true}
	require.NoError(t, run(t.Context(), dir, true, false, &o, nil, strings.NewReader(catalogSource), &log))
	require.Contains(t, log.String(), "catalog olm/community: updateStatus CatalogSource olm/community (StatusChanged)\n")
	status, err := os.ReadFile(filepath.Join(dir, "status.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(status), "kind: CatalogSource")
	entries, err := os.ReadDir(filepath.Join(dir, "apply", "olm"))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Contains(t, names, "service_community.yaml")
	require.Contains(t, names, "serviceaccount_community.yaml")

	file := filepath.Join(dir, "in.yaml")
	require.NoError(t, os.WriteFile(file, []byte(catalogSource), 0o600))
	require.NoError(t, run(t.Context(), filepath.Join(dir, "again"), true, false, &o, []string{file}, nil, &log))
	require.ErrorContains(t, run(t.Context(), dir, true, false, &o, []string{"no/such/file"}, nil, &log), "no/such/file")
	require.ErrorContains(t, run(t.Context(), dir, true, false, &o, nil, strings.NewReader("kind: Pod"), &log), "document 1")
	require.ErrorContains(t, run(t.Context(), dir, true, false, &o, nil, strings.NewReader(catalogSource+"---"+catalogSource), &log), "stdin: document 2: CatalogSource olm/community stands in stdin, document 1, already")
}

// TestWhatIsNotExportedIsNotTakenForAbsent: nothing is planned for want of kinds that were left out.
func TestWhatIsNotExportedIsNotTakenForAbsent(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	err := run(t.Context(), dir, false, false, &controllers.Options{KubernetesVersion: "v1.36.2"}, nil, strings.NewReader(catalogSource), &log)
	if err != nil {
		require.ErrorIs(t, err, olmcore.ErrNotRead)
	}
	_, err = os.Stat(filepath.Join(dir, "apply"))
	require.ErrorIs(t, err, os.ErrNotExist)

	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "    "+manifest.KubectlGet()+" | go run ./cmd/olm --complete --out plan\n")
}
