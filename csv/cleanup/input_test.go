// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

func TestInputErrorsNameTheField(t *testing.T) {
	for field, change := range map[string]func(in *cleanup.Input){
		"ClusterServiceVersion":                    func(in *cleanup.Input) { in.ClusterServiceVersion = nil },
		"ClusterServiceVersion.metadata.name":      func(in *cleanup.Input) { in.ClusterServiceVersion.Name = "" },
		"ClusterServiceVersion.metadata.namespace": func(in *cleanup.Input) { in.ClusterServiceVersion.Namespace = "" },
		"ClusterServiceVersion.metadata.uid":       func(in *cleanup.Input) { in.ClusterServiceVersion.UID = "" },
		"Now":                                      func(in *cleanup.Input) { in.Now = time.Time{} },
		"Config.Cleanup.OperandTimeout":            func(in *cleanup.Input) { in.Config.OperandTimeout = -1 },
		"Neighbours[0]":                            func(in *cleanup.Input) { in.Neighbours = olmcore.Found[*v1alpha1.ClusterServiceVersion](nil) },
		"Deletion.Peers[2]": func(in *cleanup.Input) {
			in.Peers = olmcore.Found(operator("x", 1), operator("a", 1), operator("x", 1))
		},
		"Deletion.Copies": func(in *cleanup.Input) {
			in.Copies = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{Items: in.Copies.Items[:1]}
		},
		"Deletion.ClusterObjects[0]": func(in *cleanup.Input) { in.ClusterObjects = olmcore.Found[olmcore.Object](nil) },
		"Deletion.Operands[0]": func(in *cleanup.Input) {
			in.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{{}: olmcore.Found[olmcore.Object](nil)}
		},
	} {
		in := leaving()
		in.Copies = olmcore.Found(copied("elsewhere"))
		change(&in)
		_, err := cleanup.Reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

// TestLaws hold at every step of any cleanup, in whatever order its lists come.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		for range 9 {
			require.NoError(t, invariant.Laws(reconcile, in))
			out := reconciled(t, in)
			var gone bool
			if in, gone = applied(t, in, out.Actions); gone || len(out.Actions) == 0 {
				return
			}
		}
	})
}
