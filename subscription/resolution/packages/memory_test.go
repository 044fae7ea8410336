// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// A community catalog as `opm render` writes it: each version of each operator with a summary, here those of published
// versions in turn, and each package with an icon. What stays of it is the heads'. Without OLMCORE_BUNDLES=all it is
// one package of twenty.
func TestACommunityCatalogStaysWithinBounds(t *testing.T) {
	rendered := render(t)
	bound := []string{resolution.PropertyCSVMetadata, resolution.PropertyBundleObject}
	load := func(o fbc.Options) []resolution.Package {
		list, _, err := fbc.Read("community", bytes.NewReader(rendered), o)
		require.NoError(t, err)
		return list
	}
	heads := packages.Heads(load(fbc.Options{OmitProperties: bound}))
	before := inUse()
	catalog, _ := packages.Describe(nil, load(fbc.Options{OmitProperties: bound, OmitNothingOf: heads}))
	held := inUse() - before
	before = inUse()
	all := load(fbc.Options{})
	t.Logf("%d packages, %d heads: %d MB are held of the %d MB that the whole catalog takes (%d MB of gzip)", len(catalog.Packages), len(heads), held>>20, (inUse()-before)>>20, len(rendered)>>20)
	require.Len(t, catalog.Packages, len(all))
	require.Less(t, held, uint64(len(heads)*192<<10))
	runtime.KeepAlive(catalog)
	runtime.KeepAlive(all)
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// render is the community catalog with the summaries that the one for tests lacks.
func render(t *testing.T) []byte {
	path := filepath.Join(realdata.Dir(t), "catalogs", "community-prod-ocp4.19.fbc.jsonl.gz")
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	list, _, err := fbc.Read(path, f, fbc.Options{})
	require.NoError(t, err)
	if os.Getenv("OLMCORE_BUNDLES") != "all" {
		list = list[:len(list)/20]
	}
	var summaries []json.RawMessage
	var icons []v1alpha1.Icon
	for _, b := range realdata.ClusterServiceVersions(t) {
		csv := b.Objects[0].(*v1alpha1.ClusterServiceVersion)
		s := csv.Spec
		text, err := json.Marshal(map[string]any{"annotations": csv.Annotations, "labels": csv.Labels, "description": s.Description, "displayName": s.DisplayName,
			"apiServiceDefinitions": s.APIServiceDefinitions, "crdDescriptions": s.CustomResourceDefinitions, "installModes": s.InstallModes, "keywords": s.Keywords,
			"links": s.Links, "maintainers": s.Maintainers, "maturity": s.Maturity, "minKubeVersion": s.MinKubeVersion, "nativeAPIs": s.NativeAPIs, "provider": s.Provider})
		require.NoError(t, err)
		summaries, icons = append(summaries, text), append(icons, s.Icon...)
	}
	for i := range list {
		list[i].Icon = icons[i%len(icons)]
		for j := range list[i].Bundles {
			b := &list[i].Bundles[j]
			b.Properties = append(b.Properties, olmcore.Property{Type: resolution.PropertyCSVMetadata, Value: summaries[(i+j)%len(summaries)]})
		}
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	require.NoError(t, err)
	require.NoError(t, fbc.Write(w, list))
	require.NoError(t, w.Close())
	return out.Bytes()
}
