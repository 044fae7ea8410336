// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

func seen(o olmcore.Object) olmcore.Object {
	o = o.DeepCopyObject().(olmcore.Object)
	o.SetUID("uid-seen")
	o.SetResourceVersion("1")
	return o
}

// FuzzPlan: arbitrary bytes as a plan.
func FuzzPlan(f *testing.F) {
	for _, p := range []*v1alpha1.InstallPlan{
		plan(installing, []*v1alpha1.Step{csvStep("a.v1"), nil}, started(time.Second)), plan(requiresApproval, []*v1alpha1.Step{roleStep("", "r")}),
		plan(failed, nil), plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(subscription("a"))),
	} {
		data, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &v1alpha1.InstallPlan{}
		if json.Unmarshal(data, p) != nil {
			return
		}
		p.Namespace = ns
		in := input(p, with(csv("a.v1"), subscription("a", refersTo(p.Name))))
		r, err := reconcileResult(in)
		if err != nil {
			return
		}
		_, _ = installplan.Assess(in)
		for _, a := range r.Actions {
			if _, err := olmcore.RecordOf(a); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzLawsOfReconcile is TestLawsOfReconcile for the fuzzer.
func FuzzLawsOfReconcile(f *testing.F) { f.Fuzz(rapid.MakeFuzz(reconcileLaws)) }
