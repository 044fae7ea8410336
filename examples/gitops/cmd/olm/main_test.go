// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
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

// plan runs the command on a file of objects.
func plan(t *testing.T, dir, objects string, args ...string) (log string, err error) {
	var out bytes.Buffer
	args = append([]string{"--out", dir, "--kubernetes-version", "v1.36.2", "--operators=false"}, args...)
	err = run(t.Context(), args, strings.NewReader(objects), &out)
	return out.String(), err
}

// TestTheFileOfOptionsCounts checks that the folder has what the file asks for.
func TestTheFileOfOptionsCounts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("namespaces: [elsewhere]\n"), 0o600))
	log, err := plan(t, filepath.Join(dir, "plan"), catalogSource, "--complete", "--ignore-checks", "crds", "--config", file)
	require.NoError(t, err)
	require.NotContains(t, log, "catalog olm/community: ")
}

func TestAnExportBecomesAFolder(t *testing.T) {
	dir := t.TempDir()
	all := []string{"--complete", "--ignore-checks", "crds"}
	log, err := plan(t, dir, catalogSource, all...)
	require.NoError(t, err)
	require.Contains(t, log, "catalog olm/community: updateStatus CatalogSource olm/community (StatusChanged)\n")
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
	log, err = plan(t, filepath.Join(dir, "again"), "", append(all, "--only", "catalog", file)...)
	require.NoError(t, err)
	require.Contains(t, log, "catalog olm/community: ")
	log, err = plan(t, filepath.Join(dir, "other"), "", append(all, "--only", "group", file)...)
	require.NoError(t, err)
	require.Empty(t, log)
	for want, args := range map[string][]string{
		"no/such/file": {"no/such/file"},
		"the CustomResourceDefinitions of OLM are not of the version that is needed: catalogsources.operators.coreos.com is missing; ": {"--complete", file},
		"the API server is Kubernetes 1.20.0, and 1.21 is the oldest":                                                                  {"--kubernetes-version", "v1.20.0", file},
		`--only: "catalogs" is no controller: did you mean "catalog"?`:                                                                 {"--only", "catalogs", file},
	} {
		_, err = plan(t, dir, "", args...)
		require.ErrorContains(t, err, want)
	}
	_, err = plan(t, dir, "kind: Pod", all...)
	require.ErrorContains(t, err, "document 1")
	_, err = plan(t, dir, catalogSource+"---"+catalogSource, all...)
	require.ErrorContains(t, err, "stdin: document 2: CatalogSource olm/community stands in stdin, document 1, already")
}

// TestWhatIsNotExportedIsNotTakenForAbsent: nothing is planned for want of kinds that were left out.
func TestWhatIsNotExportedIsNotTakenForAbsent(t *testing.T) {
	dir := t.TempDir()
	_, err := plan(t, dir, catalogSource)
	if err != nil {
		require.ErrorIs(t, err, olmcore.ErrNotRead)
	}
	_, err = os.Stat(filepath.Join(dir, "apply"))
	require.ErrorIs(t, err, os.ErrNotExist)

	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "    "+decode.KubectlGet()+" | go run ./cmd/olm --complete --out plan\n")
}

// TestTheDocumentShowsWhatIsPrinted by the command of docs/embed.md.
func TestTheDocumentShowsWhatIsPrinted(t *testing.T) {
	document, err := os.ReadFile("../../../../docs/embed.md")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{
		"--complete", "--ignore-checks=crds", "--out", t.TempDir(), "../../../dryrun/testdata/catalog.yaml",
	}, nil, &out))
	require.NotEmpty(t, out.String())
	require.Contains(t, string(document), "```text\n"+out.String()+"```\n")
}
