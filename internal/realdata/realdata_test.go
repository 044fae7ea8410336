// SPDX-License-Identifier: Apache-2.0

package realdata_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/internal/realdata"
)

func TestEveryBundleDecodesAndHasOneClusterServiceVersion(t *testing.T) {
	for _, b := range realdata.Bundles(t) {
		var csvs int
		for _, o := range b.Objects {
			if _, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
				csvs++
			}
		}
		if csvs != 1 {
			t.Errorf("%s %s: %d ClusterServiceVersions, want 1", b.Operator, b.Version, csvs)
		}
	}
}
