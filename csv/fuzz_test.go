// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// FuzzClusterServiceVersion takes any bytes for a CSV: in a namespace that has everything, and while it is being
// deleted.
func FuzzClusterServiceVersion(f *testing.F) {
	for _, phase := range []phaseName{none, pending, installReady, installing, succeeded, failed, replacing, deleting} {
		data, err := json.Marshal(input(phase, "InstallSucceeded", "").ClusterServiceVersion)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"metadata":{"name":"a","namespace":"ns","uid":"1"},"spec":{"install":{"spec":{"deployments":[{"spec":{"selector":{"matchExpressions":[{}]}}}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &v1alpha1.ClusterServiceVersion{}
		if json.Unmarshal(data, c) != nil {
			return
		}
		in := input(pending, "", "")
		in.Neighbours.Items = append(in.Neighbours.Items, operator("cool.v2", 2))
		in.ClusterServiceVersion = c
		for _, deleted := range []bool{c.DeletionTimestamp != nil, true} {
			if deleted && c.DeletionTimestamp == nil {
				c.DeletionTimestamp = ago(0)
			}
			if err := invariant.Deterministic(reconcile, in); err != nil {
				t.Fatal(err)
			}
			if _, err := csv.Reconcile(in); err != nil && !errors.Is(err, olmcore.ErrInvalidInput) {
				t.Fatal(err)
			}
			_, _ = csv.Assess(in)
			csv.Affected(c)
		}
	})
}

// FuzzLaws searches for an input that breaks a law.
func FuzzLaws(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		if err := invariant.Laws(reconcile, arbitrary(t, false)); err != nil {
			t.Fatal(err)
		}
	}))
}
