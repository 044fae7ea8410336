// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

var catalogSourceKind = v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.CatalogSourceKind)

// controller is what a program around this package does, without a gRPC client.
func controller(config catalog.Config) fake.Controller {
	return fake.Controller{
		Name: "catalog",
		Kind: schema.GroupKind{Group: v1alpha1.GroupName, Kind: v1alpha1.CatalogSourceKind},
		Keys: fake.KeysOf(catalogSourceKind),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := catalog.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun = now, last
			out, err := catalog.Reconcile(in)
			return out.Result, err
		},
	}
}
