// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/preview"
)

// BenchmarkUpgrade is Of for the upgrade of the small operator of the tests, beside others in the namespace.
func BenchmarkUpgrade(b *testing.B) {
	for _, n := range []int{0, 1000, 10000} {
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			w := upgradetest.New(b, nil)
			in, err := preview.Gather(context.Background(), w.Cluster, w.Plan(b), w.Cluster.Now(), w.OLM.Options)
			require.NoError(b, err)
			for i := range n {
				in.Objects = append(in.Objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: fmt.Sprint("c", i)}})
			}
			run(b, in)
		})
	}
}

// BenchmarkPublished is Of for the installation of every published operator, one after another.
func BenchmarkPublished(b *testing.B) {
	for _, published := range realdata.Bundles(b) {
		first := upgradetest.BundleFrom(published.Objects)
		first.CSV.Spec.Replaces, first.CSV.Spec.Skips = "", nil
		w := upgradetest.Offering(b, []bundle{first})
		if w.Subscribed().Status.InstallPlanRef == nil {
			continue // it needs others
		}
		in, err := preview.Gather(context.Background(), w.Cluster, w.Plan(b), w.Cluster.Now(), w.OLM.Options)
		require.NoError(b, err)
		b.Run(published.Operator+"/"+published.Version, func(b *testing.B) { run(b, in) })
	}
}

func run(b *testing.B, in preview.Input) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := preview.Simulate(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
}
