// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/olmcore/olm/examples/registry"
	"github.com/olmcore/olm/subscription/resolution"
)

// FuzzConvert: whatever bytes a registry sends as two bundles and a package, what comes out can be built, resolved and
// written as JSON.
func FuzzConvert(f *testing.F) {
	encode := func(m proto.Message) []byte {
		text, err := proto.Marshal(m)
		require.NoError(f, err)
		return text
	}
	odd := etcd(2)
	odd.BundlePath, odd.Object, odd.Replaces, odd.Skips = "", []string{"{}"}, "etcd.v1.0.0", []string{"", "x"}
	odd.Dependencies = []*api.Dependency{{Type: "olm.package", Value: `{"packageName":"etcd","version":"<1"}`}, {Type: "olm.gvk", Value: "{}"}}
	f.Add(encode(etcd(1)), encode(odd), encode(&api.Package{Name: "etcd", DefaultChannelName: "stable", Channels: []*api.Channel{{Name: "stable", Deprecation: &api.Deprecation{Message: "m"}}}}))
	f.Add([]byte{}, []byte{0xff}, []byte{})
	f.Fuzz(func(t *testing.T, first, second, pkg []byte) {
		bundles, packages := []*api.Bundle{{}, {}}, []*api.Package{{}}
		for i, text := range [][]byte{first, second} {
			if proto.Unmarshal(text, bundles[i]) != nil {
				return
			}
		}
		if proto.Unmarshal(pkg, packages[0]) != nil {
			return
		}
		converted, _ := registry.Convert(bundles, packages)
		for _, p := range converted {
			for _, b := range p.Bundles {
				_, err := json.Marshal(b.Properties)
				require.NoError(t, err)
			}
		}
		content, _ := resolution.Build(converted)
		for _, p := range converted {
			resolution.Resolve(namespace(p.Name, content))
		}
		again, _ := registry.Convert(bundles, packages)
		rebuilt, _ := resolution.Build(again)
		require.Equal(t, content.Digest(), rebuilt.Digest())
	})
}
