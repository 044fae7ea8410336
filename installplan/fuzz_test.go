// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// FuzzManifest: whatever stands in a step, the plan goes on or fails, nothing
// panics, and what is written has a name and a kind.
func FuzzManifest(f *testing.F) {
	for _, s := range []*v1alpha1.Step{csvStep("a.v1"), crdStep("a.v1", "v1"), roleStep("a.v1", "r")} {
		f.Add(s.Resource.Kind, s.Resource.Name, s.Resource.Manifest)
	}
	f.Add("sterServiceVers\x9c", "a.v1", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`)
	f.Add("Service", "x", "kind: Service\nmetadata: {name: x}\n---\n{}")
	f.Add("ServiceAccount", "x", `{"metadata":{"name":"x","ownerReferences":[{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","name":"a.v1"}]}}`)
	f.Add("RoleBinding", "x", `{"metadata":{"name":"x","labels":{"a":1}},"roleRef":[],"subjects":{}}`)
	f.Add("NetworkPolicy", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"}}`)
	f.Add("BundleSecret", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm"}`)
	f.Fuzz(func(t *testing.T, kind, name, manifest string) {
		p := plan(installing, []*v1alpha1.Step{step("a.v1", "", "v1", kind, name, manifest)}, started(time.Second))
		in := input(p, with(csv("a.v1")))
		r := reconcile(t, in)
		if err := invariant.Separate(r); err != nil {
			t.Fatal(err)
		}
		if err := invariant.Recordable(r); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Actions {
			if c, ok := a.(olmcore.Create); ok {
				again := input(plan(installing, []*v1alpha1.Step{step("a.v1", "", "v1", kind, name, manifest)}, started(time.Second)), with(csv("a.v1"), seen(c.Object)))
				if got := describe(reconcile(t, again)); len(got) != 1 || got[0] != status {
					t.Fatalf("what was made is not what was wanted: %v", got)
				}
			}
		}
	})
}

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
