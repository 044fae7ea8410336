// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

const catalog = `
schema: olm.package
name: alpha
defaultChannel: stable
---
schema: olm.channel
package: alpha
name: stable
entries: [{name: alpha.v1}]
---
schema: olm.bundle
package: alpha
name: alpha.v1
image: registry.example.com/alpha:1
properties: [{type: olm.package, value: {packageName: alpha, version: 1.0.0}}]
`

func TestCatalogsAreReadFromFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "catalog.yaml")
	require.NoError(t, os.WriteFile(file, []byte(catalog), 0o600))
	var c catalogs
	require.NoError(t, c.Set("olm/one="+file))
	require.NoError(t, c.Set("ops/two="+dir))
	for _, key := range []types.NamespacedName{{Namespace: "olm", Name: "one"}, {Namespace: "ops", Name: "two"}} {
		require.Equal(t, []string{"stable"}, c.Content[key].Channels("alpha"), key)
	}
	for _, bad := range []string{"", "olm/one", "one=" + file, "/one=" + file, "olm/=" + file, "olm/one=", "olm/one=" + file + ".none"} {
		require.Error(t, c.Set(bad), bad)
	}
}
