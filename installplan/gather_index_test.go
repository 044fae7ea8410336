// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// keeper is a Reader that keeps indexes.
type keeper struct {
	*olmcore.Snapshot
	kept map[string]any
}

func (k keeper) Index(key string, build func() any) any {
	if k.kept[key] == nil {
		k.kept[key] = build()
	}
	return k.kept[key]
}

// TestReconcileDecidesTheSameWithAnIndex: of plans that are done and of others.
func TestReconcileDecidesTheSameWithAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, others := drawRelations(t)
		snapshot, err := olmcore.NewSnapshot(append(objects, others...), olmcore.Everything)
		require.NoError(t, err)
		indexed := keeper{snapshot, map[string]any{}}
		for _, name := range []string{"p0", "p1"} {
			decide := func(r olmcore.Reader) (olmcore.Result, int) {
				in, err := installplan.Gather(t.Context(), r, types.NamespacedName{Namespace: "ns", Name: name}, installplan.Config{})
				require.NoError(t, err)
				in.Now = noon
				result, err := reconcileResult(in)
				require.NoError(t, err)
				return result, len(in.Subscriptions.Items)
			}
			want, _ := decide(snapshot)
			got, looked := decide(indexed)
			require.Empty(t, cmp.Diff(want, got))
			require.LessOrEqual(t, looked, 4, "the others have nothing to do with the plan")
		}
	})
}
