// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/resolution"
)

// Catalogs is the content of CatalogSources by namespace and name: the resolver
// of a world. Its method Resolve is a value for OLM.Resolve.
type Catalogs struct {
	// GlobalNamespace is the namespace whose CatalogSources all namespaces see.
	GlobalNamespace string
	Content         map[types.NamespacedName]*resolution.Catalog
	// Resolved, when set, hears what was asked and answered.
	Resolved func(resolution.Input, resolution.Result)
}

// Resolve answers what a namespace asks for.
func (c *Catalogs) Resolve(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest) (olmcore.Resolution, error) {
	in, err := resolution.Gather(ctx, r, request.Namespace, c.GlobalNamespace, c.Content)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	result := resolution.Resolve(in)
	if c.Resolved != nil {
		c.Resolved(in, result)
	}
	return result.Resolution, nil
}
