// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func TestReconcileWithCheckpointAllocatesNothing(t *testing.T) {
	for name, in := range map[string]operatorcondition.Input{"of an operator": atRest(t), "by hand": converged(t, byHand("robot"))} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, invariant.CheckpointSound(operatorcondition.Reconcile, in))
			require.NoError(t, invariant.CheckpointCovers(operatorcondition.Reconcile, in))
			out := reconciled(t, in)
			require.Equal(t, olmcore.Result{}, out.Result)
			require.NotNil(t, out.Checkpoint)
			in.Checkpoint = out.Checkpoint
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = operatorcondition.Reconcile(in) }))
		})
	}
}

var vocabulary = gen.Vocabulary{
	Now: now, Namespace: "ns", Names: []string{"cool.v1", "cool.v2", "cool"},
	Words: map[string][]string{
		"phase": {"Succeeded", "Installing"}, "type": {"Upgradeable", "Degraded"}, "status": {"True", "False", "Unknown"},
		"kind": {"ClusterServiceVersion", "OperatorCondition"},
	},
}

// draw returns a random Input whose lists were read.
func draw(t *rapid.T) operatorcondition.Input {
	in := gen.Value[operatorcondition.Input](vocabulary).Draw(t, "in")
	in.Now, in.Checkpoint = now, nil
	in.Key = types.NamespacedName{Namespace: "ns", Name: "cool.v1"}
	for _, complete := range []*bool{&in.ClusterServiceVersions.Complete, &in.OperatorConditions.Complete, &in.Roles.Complete, &in.RoleBindings.Complete, &in.Deployments.Complete} {
		*complete = true // an incomplete list with items is an InputError
	}
	return in
}

func TestLawsHoldForRandomInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := draw(t)
		require.NoError(t, invariant.Laws(reconcile, in))
		require.NoError(t, invariant.CheckpointSound(operatorcondition.Reconcile, in))
	})
}

// TestRolesAllowOnlyTheOperatorCondition checks for random Inputs that the written Role allows only get, update and
// patch of the OperatorCondition, for ServiceAccounts of its namespace.
func TestRolesAllowOnlyTheOperatorCondition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := draw(t)
		res, err := reconcile(in)
		if err != nil {
			return
		}
		for _, a := range res.Actions {
			require.NoError(t, harmless(in, a))
		}
	})
}

func FuzzReconcile(f *testing.F) {
	for _, in := range []operatorcondition.Input{atRest(f), input(operator()), byHand("anybody", "a b")} {
		data, err := json.Marshal(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := operatorcondition.Input{}
		if json.Unmarshal(data, &in) != nil {
			return
		}
		in.Now, in.Checkpoint = now, nil
		require.NoError(t, invariant.Deterministic(reconcile, in))
		res, err := reconcile(in)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
		for _, a := range res.Actions {
			require.NoError(t, harmless(in, a))
		}
	})
}

// BenchmarkReconcile reconciles an operator at rest, with and without its Checkpoint.
func BenchmarkReconcile(b *testing.B) {
	in := atRest(b)
	out := reconciled(b, in)
	for name, checkpoint := range map[string]*olmcore.Checkpoint{"plain": nil, "checkpoint": out.Checkpoint} {
		in.Checkpoint = checkpoint
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out, err := operatorcondition.Reconcile(in); err != nil || !out.Empty() {
					b.Fatal(out, err)
				}
			}
		})
	}
}

// BenchmarkGather reads the Input of one key in clusters with more and more operators.
func BenchmarkGather(b *testing.B) {
	for _, operators := range []int{100, 10000} {
		var objects []olmcore.Object
		for i := range operators {
			c := operator()
			c.Name, c.UID = fmt.Sprintf("cool.v%d", i), types.UID(fmt.Sprint(i))
			objects = append(objects, c)
		}
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(b, err)
		b.Run(fmt.Sprint("operators=", operators), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := operatorcondition.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v7"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
