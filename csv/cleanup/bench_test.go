// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv/cleanup"
)

// dependants returns a deletion that leaves n cluster-scoped objects.
func dependants(n int) cleanup.Input {
	in := leaving()
	in.Deployments.Items = nil
	for i := range n {
		in.ClusterObjects.Items = append(in.ClusterObjects.Items, &rbacv1.ClusterRole{ObjectMeta: ours(fmt.Sprintf("role-%04d", i))})
	}
	return in
}

func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{0, 10, 1000} {
		in := dependants(n)
		b.Run(fmt.Sprintf("dependants=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				reconciled(b, in)
			}
		})
	}
}

func TestStageIsWrittenInOneCall(t *testing.T) {
	require.Len(t, reconciled(t, dependants(10)).Actions, 11, "all of a stage at once, and the status")
}
