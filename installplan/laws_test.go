// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func reconcileLaws(t *rapid.T) {
	in := eitherInput(t)
	if err := invariant.Laws(reconcileResult, in); err != nil {
		t.Fatal(err)
	}
	requests := func(in installplan.Input) (olmcore.Result, error) {
		changes, err := schemaChanges(in)
		if err != nil {
			return olmcore.Result{}, err
		}
		lost, err := lostBundles(in)
		return olmcore.Result{Diagnostics: []olmcore.Diagnostic{{Message: fmt.Sprint(len(changes), lost)}}}, err
	}
	if err := invariant.Deterministic(requests, in); err != nil {
		t.Fatal(err)
	}
	if err := invariant.Pure(requests, in); err != nil {
		t.Fatal(err)
	}
}

func TestLawsOfReconcile(t *testing.T) { rapid.Check(t, reconcileLaws) }
