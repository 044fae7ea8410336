// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheManifestsNameTheVersion that is released, and so do the commands that build and push the images.
func TestTheManifestsNameTheVersion(t *testing.T) {
	source, err := git(".", "rev-parse", "--show-toplevel")
	require.NoError(t, err)
	root, _ := copyOf(t, source)
	const adapter, packageserver = "examples/controllerruntime/", "examples/packageserver/"
	for _, version := range []string{"v0.1.0", "v0.2.0-rc.1"} {
		changed, err := pinImages(root, version)
		require.NoError(t, err)
		for file, want := range map[string]string{
			adapter + "config/default/kustomization.yaml":       "\n- name: registry.example.com/olm\n  newTag: " + version + "\n",
			adapter + "config/manager/deployment.yaml":          " image: registry.example.com/olm:" + version + "\n",
			adapter + "Dockerfile":                              " docker build -t registry.example.com/olm:" + version + " -f ",
			adapter + "README.md":                               " docker push registry.example.com/olm:" + version + " ",
			packageserver + "config/clusterserviceversion.yaml": " image: registry.example.com/packageserver:" + version + "\n",
			packageserver + "Dockerfile":                        " docker build -t registry.example.com/packageserver:" + version + " -f ",
		} {
			require.Contains(t, changed, file)
			text, err := os.ReadFile(filepath.Join(root, file))
			require.NoError(t, err)
			require.Contains(t, string(text), want, file)
			require.NotRegexp(t, `registry\.example\.com/(olm|packageserver):dev`, string(text), file)
		}
		again, err := pinImages(root, version)
		require.NoError(t, err)
		require.Empty(t, again)
	}
}
