// SPDX-License-Identifier: Apache-2.0

package packages_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/packages"
)

// describeByHead describes a catalog as who reads it head by head: packages have no descriptions until these are asked
// for.
func describeByHead(d *packages.Describer, list []resolution.Package) (out packages.Catalog, said []olmcore.Diagnostic) {
	for _, p := range list {
		whole := map[string]resolution.Bundle{}
		lean := p
		lean.Bundles = slices.Clone(p.Bundles)
		for i, b := range p.Bundles {
			whole[b.Name] = b
			lean.Bundles[i].Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(p olmcore.Property) bool { return p.Type != resolution.PropertyPackage })
		}
		pending := d.Begin(lean)
		for _, head := range pending.Heads() {
			pending.Describe(whole[head.Name])
		}
		m, problems := pending.End()
		if said = append(said, problems...); m != nil {
			out.Packages = append(out.Packages, *m)
		}
	}
	return out.WithSource(nil), said
}

// Head by head the same is shown as of the whole.
func TestDescriptionHeadByHeadEqualsTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := content(t)
		slices.SortFunc(list, func(a, b resolution.Package) int { return strings.Compare(a.Name, b.Name) })
		want, wantSaid := packages.Describe(nil, list)
		got, said := describeByHead(&packages.Describer{}, list)
		if diff := cmp.Diff(want, got) + cmp.Diff(ours(wantSaid), ours(said)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// many is a catalog of packages like etcd, whose heads have so long a description.
func many(t testing.TB, count, long int) (list []resolution.Package) {
	for i := range count {
		text := strings.ReplaceAll(etcd, "etcd", fmt.Sprintf("p%04d", i))
		text = strings.Replace(text, `"displayName"`, `"description":"`+strings.Repeat("x", long)+`","displayName"`, 1)
		list = append(list, read(t, text)...)
	}
	return list
}

// What is shown of a catalog takes no more memory than it may: first heads are not described, then packages are
// left out.
func TestDescriptionOfACatalogIsLimited(t *testing.T) {
	list := many(t, 20, 50_000)
	var room packages.Describer
	describeByHead(&room, list[:10])
	few := &packages.Describer{MaxBytes: room.Kept() + 20_000}
	got, said := describeByHead(few, list)
	require.LessOrEqual(t, few.Kept(), few.MaxBytes)
	described := 0
	for _, m := range got.Packages {
		if m.Head().CurrentCSVDesc.DisplayName != "" {
			described++
		}
	}
	require.Equal(t, 10, described)
	require.Greater(t, len(got.Packages), 10)
	require.Less(t, len(got.Packages), 20)
	text := fmt.Sprintf("what is shown of the catalog has %d bytes of memory, and takes them", few.MaxBytes)
	for path, message := range map[string]string{
		`packages["p0010"].bundles["p0010.v2"]`: "p0010.v2 is not described: " + text,
		`packages["p0019"]`:                     "package p0019 is not shown: " + text,
	} {
		require.Contains(t, said, olmcore.Diagnostic{Severity: olmcore.Warning, Reason: packages.ReasonTooLarge, Path: path, Message: message})
	}
	none := &packages.Describer{MaxBytes: -1}
	got, _ = describeByHead(none, list)
	require.Empty(t, got.Packages)
	require.Zero(t, none.Kept())
}

// The estimate of the memory is no smaller than it is, and not much larger.
func TestMemoryEstimateIsCloseToTheMeasuredSize(t *testing.T) {
	for _, long := range []int{10, 50_000} {
		list := many(t, 200, long)
		var d packages.Describer
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		before := m.HeapAlloc
		catalog, _ := describeByHead(&d, list)
		runtime.GC()
		runtime.ReadMemStats(&m)
		held := int(m.HeapAlloc - before)
		t.Logf("%d kB are estimated, %d kB are held", d.Kept()>>10, held>>10)
		require.Greater(t, d.Kept(), held*9/10)
		require.Less(t, d.Kept(), held*4)
		runtime.KeepAlive(catalog)
		runtime.KeepAlive(list)
	}
}

// Each package has what is told of its CatalogSource: of very much of it, some.
func TestDescriptionOfACatalogSourceIsLimited(t *testing.T) {
	source := catalogSource("olm", "c")
	for i := range 50_000 {
		source.Labels[fmt.Sprintf("label-%05d", i)] = "x"
	}
	source.Spec.DisplayName, source.Spec.Publisher = strings.Repeat("n", 1<<20), strings.Repeat("p", 1<<20)
	catalog, _ := packages.Describe(source, read(t, etcd))
	require.Less(t, len(catalog.Packages[0].Labels), 110)
	require.Equal(t, "c", catalog.Packages[0].Labels["catalog"])
	text, err := json.Marshal(catalog)
	require.NoError(t, err)
	require.Less(t, len(text), 16<<10)
	again, _ := packages.Describe(source, read(t, etcd))
	require.Equal(t, catalog, again)
}
