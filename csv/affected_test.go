// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// outcomeIn is what Reconcile says about a CSV in a world of objects.
func outcomeIn(t *testing.T, objects []olmcore.Object, key types.NamespacedName, now time.Time) csv.Outcome {
	t.Helper()
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	in, err := csv.Gather(context.Background(), snapshot, key, csv.Config{})
	require.NoError(t, err)
	in.Now, in.KubernetesVersion = now, kubernetesVersion
	out, err := outcome(in)
	require.NoError(t, err)
	return out
}

// TestWhatChangesTheResultIsAffected takes the objects of a world away, one after the other: when the result of a CSV
// changes, the object must have named it.
func TestWhatChangesTheResultIsAffected(t *testing.T) {
	steps := map[string]struct {
		do   func(c *fake.Cluster, d *fake.Driver)
		want int // how many objects matter to any CSV
	}{
		"installed": {func(*fake.Cluster, *fake.Driver) {}, 5},
		"in mid-upgrade": {func(c *fake.Cluster, d *fake.Driver) {
			more, err := fromFiles("rbac-v2.yaml", "v2.yaml")
			require.NoError(t, err)
			require.NoError(t, c.Create(more...))
			for range 3 {
				_, err = d.Round(context.Background())
				require.NoError(t, err)
			}
		}, 3},
		"in mid-clean-up": {func(c *fake.Cluster, d *fake.Driver) {
			require.NoError(t, c.Delete(refOf(fake.Find[*v1alpha1.ClusterServiceVersion](c, "ns", "cool.v1"))))
		}, 1},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			cluster, driver := install(t, small(t))
			step.do(cluster, driver)
			all := cluster.Objects()
			var keys []types.NamespacedName
			for _, v := range csvs(cluster) {
				keys = append(keys, types.NamespacedName{Namespace: v.Namespace, Name: v.Name})
			}
			now := cluster.Now().Add(time.Second)
			mattered := map[olmcore.Key]bool{}
			for _, key := range keys {
				want := outcomeIn(t, all, key, now)
				for i, o := range all {
					if k := olmcore.KeyOf(o); k.Kind == "ClusterServiceVersion" && k.Name == key.Name {
						continue
					}
					got := outcomeIn(t, slices.Delete(slices.Clone(all), i, i+1), key, now)
					if cmp.Equal(want, got) {
						continue
					}
					mattered[olmcore.KeyOf(o)] = true
					require.Contains(t, olmcore.ExpandKeys(csv.Affected(o), append(keys, types.NamespacedName{Namespace: "x", Name: "x"})), key, "%s", olmcore.KeyOf(o))
				}
			}
			require.GreaterOrEqual(t, len(mattered), step.want, "%v", mattered)
		})
	}
}
