// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/subscription/resolution"
)

// live is how much of the heap is in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// small is the i-th of many bundles that say little.
func small(i int) *api.Bundle {
	return &api.Bundle{CsvName: fmt.Sprintf("%x", i), PackageName: "p", ChannelName: "c", BundlePath: "x"}
}

// texts makes so many texts from numbers.
func texts(n int, text func(j int) string) (list []string) {
	for j := range n {
		list = append(list, text(j))
	}
	return list
}

func properties(kind string, values []string) (list []*api.Property) {
	for _, value := range values {
		list = append(list, &api.Property{Type: kind, Value: value})
	}
	return list
}

// shapes are bundles that are small on the wire and large in memory.
var shapes = map[string]struct {
	count  int
	change func(b *api.Bundle, i int)
}{
	"small bundles":                {2000, func(*api.Bundle, int) {}},
	"bundles of their own package": {2000, func(b *api.Bundle, i int) { b.PackageName = fmt.Sprintf("%x", i) }},
	"bundles of their own channel": {2000, func(b *api.Bundle, i int) { b.ChannelName = fmt.Sprintf("%x", i) }},
	"one bundle in many channels":  {2000, func(b *api.Bundle, i int) { b.CsvName, b.ChannelName = "a", fmt.Sprintf("%x", i) }},
	"skips of one letter": {10, func(b *api.Bundle, _ int) {
		b.Skips = texts(9900, func(j int) string { return string(rune('a' + j%26)) })
	}},
	"skips of all kinds": {4, func(b *api.Bundle, i int) {
		b.Skips = texts(9900, func(j int) string { return fmt.Sprintf("%x", i*9900+j) })
	}},
	"APIs": {2, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.gvk", texts(9900, func(j int) string { return fmt.Sprintf(`{"kind":"%x"}`, i*9900+j) }))
	}},
	"the same APIs": {4, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.gvk", texts(9900, func(j int) string { return fmt.Sprintf(`{"kind":"%x"}`, j) }))
	}},
	"labels": {2, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.label", texts(9900, func(j int) string { return fmt.Sprintf(`{"label":"%x"}`, i*9900+j) }))
	}},
	"required APIs": {2, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.gvk.required", texts(9900, func(j int) string { return fmt.Sprintf(`{"kind":"%x"}`, i*9900+j) }))
	}},
	"required packages": {2, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.package.required", texts(9900, func(j int) string {
			return fmt.Sprintf(`{"packageName":"%x","versionRange":"<1.%d.0"}`, i*9900+j, i*9900+j)
		}))
	}},
	"required labels": {2, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.label.required", texts(9900, func(j int) string { return fmt.Sprintf(`{"label":"%x"}`, i*9900+j) }))
	}},
	"the same required labels": {4, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.label.required", texts(9900, func(j int) string { return fmt.Sprintf(`{"label":"%x"}`, j) }))
	}},
	"constraints of many parts": {8, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.constraint", []string{fmt.Sprintf(`{"failureMessage":"%d","all":{"constraints":[%s{"gvk":{"kind":"a"}}]}}`, i, strings.Repeat(`{"gvk":{"kind":"a"}},`, 5000))})
	}},
	"constraints of ranges": {8, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.constraint", []string{fmt.Sprintf(`{"failureMessage":"%d","package":{"packageName":"a","versionRange":"<1.0.%d%s"}}`, i, i, strings.Repeat(` <1.0.0`, 2000))})
	}},
	"constraints of rules": {8, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.constraint", []string{fmt.Sprintf(`{"failureMessage":"%d","all":{"constraints":[%s{"gvk":{"kind":"a"}}]}}`, i, strings.Repeat(`{"cel":{"rule":"true"}},`, 5000))})
	}},
	"long versions": {8, func(b *api.Bundle, i int) {
		b.Properties = properties("olm.package", []string{fmt.Sprintf(`{"packageName":"p","version":"1.0.%d-a%s+a%s"}`, i, strings.Repeat(".a", 20_000), strings.Repeat(".b", 20_000))})
	}},
	"long versions of old servers": {8, func(b *api.Bundle, i int) { b.Version = fmt.Sprintf("1.0.%d-a%s", i, strings.Repeat(".a", 40_000)) }},
	"ranges of many parts":         {20, func(b *api.Bundle, i int) { b.SkipRange = fmt.Sprintf("<1.0.%d%s", i, strings.Repeat(" <1.0.0", 2000)) }},
	"ranges of long versions":      {20, func(b *api.Bundle, i int) { b.SkipRange = fmt.Sprintf("<1.0.%d-a%s", i, strings.Repeat(".a", 7000)) }},
	"deprecations":                 {2000, func(b *api.Bundle, _ int) { b.Deprecation = &api.Deprecation{Message: "a"} }},
	"objects": {10, func(b *api.Bundle, i int) {
		b.BundlePath, b.Object = "", texts(9000, func(int) string { return "1" })
	}},
	"large objects": {4, func(b *api.Bundle, i int) {
		b.BundlePath, b.Object = "", []string{`"` + strings.Repeat("x", 500_000) + `"`}
	}},
	"other properties": {4, func(b *api.Bundle, i int) {
		b.Properties = properties("x", texts(9900, func(j int) string { return fmt.Sprint(i*9900 + j) }))
	}},
	"dependencies": {4, func(b *api.Bundle, i int) {
		for _, p := range properties("olm.label", texts(9900, func(j int) string { return fmt.Sprintf(`{"label":"%x"}`, i*9900+j) })) {
			b.Dependencies = append(b.Dependencies, &api.Dependency{Type: p.Type, Value: p.Value})
		}
	}},
	"provided APIs of old servers": {2, func(b *api.Bundle, i int) {
		for j := range 9900 {
			b.ProvidedApis = append(b.ProvidedApis, &api.GroupVersionKind{Kind: fmt.Sprintf("%x", i*9900+j)})
		}
	}},
}

// TestTheLimitsAreThoseOfMemory: whatever a catalog is made of, what counts is about what its content takes, and no
// less.
func TestTheLimitsAreThoseOfMemory(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			server := &script{bundles: func(send func(*api.Bundle) error, _ context.Context) error {
				for i := range shape.count {
					b := small(i)
					shape.change(b, i)
					if err := send(b); err != nil {
						return err
					}
				}
				return nil
			}}
			ctx, conn := dialed(t, server)
			before := live()
			packages, taken, err := registry.Taken(ctx, conn, registry.Options{MaxBytes: 1 << 30})
			require.NoError(t, err)
			read := live()
			content, problems := resolution.Build(packages)
			runtime.KeepAlive(problems)
			packages, problems = nil, nil
			kept := live() - before
			t.Logf("%d bytes count, %d are kept: %.2f", taken, kept, float64(kept)/float64(taken))
			require.Less(t, max(kept, read-before), taken+taken/4, "what it takes")
			runtime.KeepAlive(content)
		})
	}
}
