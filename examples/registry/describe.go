// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
// not changed. A head that the registry says again not to have stays as it is, and all of them where it cannot be asked.
func (o *Options) describe(ctx context.Context, conn grpc.ClientConnInterface, in *part, packages []resolution.Package, missing *absences) ([]resolution.Package, error) {
	index, _ := resolution.Build(packages)
	out := slices.Clone(packages)
	err := o.ask(ctx, conn, describedMost*o.MaxBytes, in, func(ctx context.Context, r *reader) error {
		var doubt error
		for i := range out {
			if err := r.heads(ctx, &out[i], index, missing, &doubt); err != nil {
				return err
			}
		}
		return doubt
	})
	return out, err
}

// heads asks for the head of each channel of a package, once.
func (r *reader) heads(ctx context.Context, p *resolution.Package, index *resolution.Catalog, missing *absences, doubt *error) error {
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
			head, err := r.head(ctx, p.Name, channel, name, missing)
			var unsure *absent
			if errors.As(err, &unsure) {
				*doubt = cmp.Or(*doubt, err)
			} else if err != nil {
				return err
			}
			if text := head.GetCsvJson(); text != "" {
				value, err := json.Marshal(map[string][]byte{"data": []byte(text)})
				if err != nil {
					return err
				}
				if err := r.limit.keep(int64(len(value)-len(text)) + propertySize); err != nil {
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

// head asks for one bundle; nil when the registry says again that it has none, or can say of none.
func (r *reader) head(ctx context.Context, pkg, channel, name string, missing *absences) (head *api.Bundle, err error) {
	err = call(ctx, func(ctx context.Context) (err error) {
		head, err = r.client.GetBundle(ctx, &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: name}, r.codec)
		return err
	})
	r.alive()
	why, gone := absentHead(err, pkg, channel, name)
	switch {
	case err == nil:
		return head, nil
	case status.Code(err) == codes.Unimplemented, gone && missing.again("bundle "+pkg+" "+name):
		return nil, nil
	case gone:
		return nil, &absent{fmt.Sprintf("bundle %s of package %s was listed, and is not sent: %s", quoted(name), quoted(pkg), why)}
	}
	return nil, err
}
