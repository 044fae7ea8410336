// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/examples/registry"
)

// TestTheCatalogsOfANamespaceShareItsRoom: many CatalogSources are no way around the limit of one, neither for other
// namespaces a reason to wait; what goes makes room.
func TestTheCatalogsOfANamespaceShareItsRoom(t *testing.T) {
	large := etcd(1)
	large.CsvJson = strings.Repeat("x", 10_000)
	w := newWorld(t, registry.Options{MaxBytes: 30_000, MaxNamespaceBytes: 30_000})
	w.leads(listen(t, sends(large)))
	source := func(namespace, name, uid string) catalog.Input {
		return catalog.Input{CatalogSource: &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}}
	}
	read := func(namespace, name string) *catalog.Connection {
		w.Connection(source(namespace, name, name), address)
		ctx, cancel := context.WithTimeout(t.Context(), testDeadline)
		defer cancel()
		require.NoError(t, w.Wait(ctx))
		return w.Connection(source(namespace, name, name), address)
	}
	require.Equal(t, "READY", read("tenant", "a").State)
	require.Equal(t, "READY", read("tenant", "b").State)
	require.Equal(t, "the catalogs of namespace tenant have more than 30000 bytes together: have fewer, or raise the limit (MaxNamespaceBytes, --registry-max-namespace-bytes)",
		read("tenant", "c").Problem)
	require.Equal(t, "READY", read("other", "c").State)

	require.Nil(t, w.Connection(source("tenant", "a", ""), ""))
	require.Eventually(t, func() bool { return read("tenant", "c").State == "READY" }, testDeadline, 10*time.Millisecond)
}

// TestContentThatIsReadAgainNeedsNoMoreRoom: what replaces content counts instead of it, also when reading fails.
func TestContentThatIsReadAgainNeedsNoMoreRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 100
		r := registry.NewRoom("tenant", most)
		parts := []*registry.Part{r.Part(), r.Part(), r.Part()}
		held, taken := make([]int64, len(parts)), make([]int64, len(parts))
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "catalog")
			switch rapid.SampledFrom([]string{"take", "kept", "failed", "drop"}).Draw(t, "step") {
			case "take":
				size := rapid.Int64Range(0, 70).Draw(t, "size")
				used := max(held[i], taken[i]+size)
				for j := range parts {
					if j != i {
						used += max(held[j], taken[j])
					}
				}
				err := parts[i].Take(size)
				require.Equal(t, used > most, err != nil)
				if err == nil {
					taken[i] += size
				}
			case "kept":
				parts[i].End(true)
				held[i], taken[i] = taken[i], 0
			case "failed":
				parts[i].End(false)
				taken[i] = 0
			case "drop":
				parts[i].Drop()
				held[i], taken[i] = 0, 0
			}
		}
	})
}
