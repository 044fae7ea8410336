// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake/invariant"
)

// TestTheCheckpointIsSound for a CSV in each phase, with all that it has to do with.
func TestTheCheckpointIsSound(t *testing.T) {
	given := 0
	for _, phase := range knownPhases {
		in := input(phase, "InstallSucceeded", "install strategy completed with no errors")
		deploy(t, &in)
		versioned(in)
		if checkpointOf(in) != nil {
			given++
		}
		require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in), "%s", phase)
	}
	require.NotZero(t, given)
	in := converged(t, small(t), 3)
	require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in))
	// While the CSV is not being deleted, nothing looks at Deletion.
	require.NoError(t, invariant.CheckpointCovers(csv.Reconcile, in, "Deletion"))
}

func TestTheCheckpointIsSoundInRandomWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		versioned(in)
		require.NoError(t, invariant.CheckpointSound(csv.Reconcile, in))
	})
}

// versioned gives the objects of a fixture a resourceVersion, as all have that were read.
func versioned(in csv.Input) {
	var objects []metav1.Object
	for _, o := range in.ServiceAccounts.Items {
		objects = append(objects, o)
	}
	for _, o := range in.Roles.Items {
		objects = append(objects, o)
	}
	for _, o := range in.RoleBindings.Items {
		objects = append(objects, o)
	}
	for _, o := range objects {
		o.SetResourceVersion("1")
	}
}
