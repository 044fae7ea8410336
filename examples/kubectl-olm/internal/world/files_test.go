// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/olmcore"
)

const (
	subscription = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: a, namespace: ns}\n"
	list         = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"ns"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"ns"}}]}`
)

// TestFiles: a file, a folder with its folders, and stdin, in YAML, in JSON and as a list.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "deep", "deeper"), 0o755))
	for name, text := range map[string]string{
		"one.yaml": "# nothing\n", "deep/list.json": list, "deep/deeper/sub.yml": subscription, "deep/notes.txt": "not read", "deep/.hidden": "not read",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	var told []string
	secrets := corev1.SchemeGroupVersion.WithKind("Secret")
	maps := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	f := world.Files{
		Names: []string{dir, "-"}, Stdin: strings.NewReader("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, namespace: ns}\n"),
		Now: time.Date(2026, 1, 1, 12, 0, 0, 5, time.FixedZone("CET", 3600)), Kinds: []schema.GroupVersionKind{secrets, maps}, Progress: func(what string) { told = append(told, what) },
	}
	w, err := f.Load()
	require.NoError(t, err)
	var names []string
	for _, o := range w.Objects() {
		names = append(names, olmcore.KeyOf(o).String())
	}
	require.Equal(t, []string{"ConfigMap ns/b", "ConfigMap ns/c", "ConfigMap ns/d", "Subscription ns/a"}, names)
	require.Equal(t, time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC), w.Now)
	require.Equal(t, []string{dir, "stdin"}, told)
	require.False(t, w.Live)

	require.Equal(t, []string{"secrets"}, w.NotRead(), "the files have none")
	require.EqualError(t, w.Need(secrets), "secrets were not read: the input has none; with --complete there are none")
	require.NoError(t, w.Need(maps))
	_, err = w.List(t.Context(), secrets, "", nil)
	require.ErrorIs(t, err, olmcore.ErrNotRead)

	f.Names, f.Complete = []string{dir}, true
	w, err = f.Load()
	require.NoError(t, err)
	require.Empty(t, w.NotRead())
	found, err := w.List(t.Context(), secrets, "", nil)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestKeysInAnotherCaseAreNamed(t *testing.T) {
	f := world.Files{Names: []string{"-"}, Stdin: strings.NewReader(subscription + "spec: {Channel: stable}\n"), Progress: func(string) {}}
	w, err := f.Load()
	require.NoError(t, err)
	require.Len(t, w.Problems, 1)
	require.Contains(t, w.Problems[0], "spec.Channel is read as channel")
}

func TestResource(t *testing.T) {
	for want, kind := range map[string]schema.GroupKind{
		"subscriptions.operators.coreos.com": v1alpha1.SchemeGroupVersion.WithKind("Subscription").GroupKind(),
		"pods":                               {Kind: "Pod"},
		"packagemanifests.packages.operators.coreos.com": {Group: "packages.operators.coreos.com", Kind: "PackageManifest"},
	} {
		require.Equal(t, want, world.Resource(kind))
	}
}
