// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/operator-framework/operator-registry/pkg/api"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// describedMost is how many times MaxBytes, and MaxNamespaceBytes, the descriptions of heads may have: each is a whole
// ClusterServiceVersion.
const describedMost = 4

// describe returns the packages with the ClusterServiceVersions of the heads of their channels; what was read is shared, and
// not changed. A head that the registry does not know, or that is too large, stays as it is.
func (o *Options) describe(ctx context.Context, conn grpc.ClientConnInterface, in *part, packages []resolution.Package) ([]resolution.Package, error) {
	index, _ := resolution.Build(packages)
	out := slices.Clone(packages)
	err := o.ask(ctx, conn, describedMost*o.MaxBytes, in, func(ctx context.Context, r *reader) error {
		for i := range out {
			if err := r.heads(ctx, &out[i], index); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// heads asks for the head of each channel of a package, once.
func (r *reader) heads(ctx context.Context, p *resolution.Package, index *resolution.Catalog) error {
	p.Bundles = slices.Clone(p.Bundles)
	asked := map[string]bool{}
	for _, channel := range index.Channels(p.Name) {
		for _, name := range index.Chain(p.Name, channel) {
			i := slices.IndexFunc(p.Bundles, func(b resolution.Bundle) bool { return b.Name == name })
			if i < 0 {
				continue // the next one is shown instead
			}
			if asked[name] {
				break
			}
			asked[name] = true
			var head *api.Bundle
			err := call(ctx, func(ctx context.Context) (err error) {
				head, err = r.client.GetBundle(ctx, &api.GetBundleRequest{PkgName: p.Name, ChannelName: channel, CsvName: name}, r.codec)
				return err
			})
			r.alive()
			if err != nil && !unknown(err) && status.Code(err) != codes.Unimplemented {
				return err
			}
			if text := head.GetCsvJson(); text != "" {
				value, err := json.Marshal(map[string][]byte{"data": []byte(text)})
				if err != nil {
					return err
				}
				b := &p.Bundles[i]
				b.Properties = append(slices.Clone(b.Properties), olmcore.Property{Type: resolution.PropertyBundleObject, Value: value})
			}
			break
		}
	}
	return nil
}
