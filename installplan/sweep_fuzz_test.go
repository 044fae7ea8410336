// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/installplan/unpack"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// FuzzLawsOfSweep is the laws of TestSweepIsSafe for the fuzzer.
func FuzzLawsOfSweep(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		if err := invariant.Laws(sweepResult, anySweepInput(t)); err != nil {
			t.Fatal(err)
		}
	}))
}

// FuzzBundle: arbitrary bytes as a file of a bundle, inflated or not.
func FuzzBundle(f *testing.F) {
	f.Add("csv.yaml", []byte(etcdCSV), false)
	f.Add("csv.yaml", zipped(f, etcdCSV), true)
	f.Add("x.json", []byte("--- \n---\nkind: {}\n"), false)
	f.Fuzz(func(t *testing.T, name string, data []byte, packed bool) {
		cm := filled(nil)
		cm.BinaryData = map[string][]byte{name: data}
		if packed {
			cm.Annotations["olm.contentEncoding"] = "gzip+base64"
		}
		bundle, _, err := unpack.LoadBundle(cm)
		if err != nil {
			return
		}
		out := unpackRound(t, unpacking(t, func(in *unpack.Input) { in.ConfigMap = cm }))
		if out.Bundle == nil {
			return
		}
		require.Equal(t, len(bundle.Objects), len(out.Bundle.Objects))
		require.NotEmpty(t, out.Digest)
		_, _, err = create.StepsFromBundle(olmcore.Operator{Name: "etcd.v1", Bundle: *out.Bundle}, ns)
		require.NoError(t, err)
	})
}

func TestANamespaceInOrderIsSweptForNothing(t *testing.T) {
	in := sweepInput(history(5, subscription("a"))...)
	in.InstallPlans.Items[4].Status.Plan = append(in.InstallPlans.Items[4].Status.Plan, roleStep("a.v1", "r"), crdStep("a.v1", "v1"))
	in.Steps = []sweep.StepObjects{{InstallPlan: "uid-install-5", Objects: []olmcore.Object{
		csv("a.v1"), installed(crdObject("v1"), true), &rbacv1.Role{ObjectMeta: meta("r")},
	}}}
	for _, p := range in.InstallPlans.Items {
		p.Annotations = map[string]string{"olmcore/content-hash": p.Name, "olmcore/packages": "a", "olmcore/contributors": "uid-a"}
	}
	require.True(t, swept(t, in).Empty())
	out, err := sweep.Reconcile(in)
	require.NoError(t, err)
	require.NotNil(t, out.Checkpoint)
	in.Checkpoint = out.Checkpoint
	require.Zero(t, testing.AllocsPerRun(100, func() { out, _ = sweep.Reconcile(in) }), "and costs nothing with its Checkpoint")
	require.True(t, swept(t, sweepInput()).Empty())
}

func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{5, 100, 10_000} {
		b.Run(fmt.Sprintf("plans=%d", n), func(b *testing.B) {
			in := sweepInput(history(n, subscription("a"))...)
			b.ReportAllocs()
			for b.Loop() {
				sink, _ = sweepResult(in)
			}
		})
	}
}

// BenchmarkSweepCrowded: as many Subscriptions as plans, each with its own.
func BenchmarkSweepCrowded(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("plans=%d", n), func(b *testing.B) {
			var objects []olmcore.Object
			for i := range n {
				s := subscription(fmt.Sprint("s", i), refersTo(fmt.Sprint("install-", i)))
				p := plan(complete, []*v1alpha1.Step{csvStep(fmt.Sprint("s", i, ".v1"))}, ownedBy(s))
				p.Name, p.UID, p.Spec.Generation = fmt.Sprint("install-", i), types.UID(fmt.Sprint("uid-install-", i)), i+1
				objects = append(objects, s, p)
			}
			in := sweepInput(objects...)
			for b.Loop() {
				sink, _ = sweepResult(in)
			}
		})
	}
}

func BenchmarkUnpackLoad(b *testing.B) {
	in := unpacking(b, loaded(map[string]string{"csv.yaml": etcdCSV}))
	b.ReportAllocs()
	for b.Loop() {
		out, _ := unpack.Bundle(allRead(in))
		sink = out.Result
	}
}

func Example_sweep() {
	sub := subscription("a")
	in := sweepInput(history(6, sub)...)
	in.InstallPlans.Items[5].OwnerReferences = nil
	result, err := sweepResult(in)
	if err != nil {
		panic(err)
	}
	for _, d := range result.Diagnostics {
		fmt.Printf("%s %s: %s\n", d.Severity, d.Reason, d.Message)
	}
	for _, line := range describe(result) {
		fmt.Println(line)
	}
	// Output:
	// Warning OwnerReferenceMissing: Subscription a refers to the plan and does not own it
	// Warning PlanWithoutOwner: no Subscription owns the plan
	// delete InstallPlan ops/install-1 (PlanHistory)
	// update InstallPlan ops/install-6 (RelationRepaired)
}

func Example_unpack() {
	o := olmcore.Operator{Name: "etcd.v1", Bundle: olmcore.Bundle{Image: bundleImage}}
	o.Catalog.Namespace, o.Catalog.Name = "olm", "cool"
	lookup, err := bundle.NewLookup(o, noon)
	if err != nil {
		panic(err)
	}
	source := &v1alpha1.CatalogSource{ObjectMeta: inOLM("cool")}
	out, err := unpack.Bundle(allRead(unpack.Input{Now: noon, Lookup: lookup, CatalogSource: source, Config: images}))
	if err != nil {
		panic(err)
	}
	for _, a := range out.Actions {
		record, err := olmcore.RecordOf(a)
		if err != nil {
			panic(err)
		}
		fmt.Println(record.Verb, record.Target, string(record.Object))
	}
	// Output:
	// create ConfigMap olm/fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0 {"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"olm.managed":"true"},"name":"fe3359f072ef3976d6cf0d56c20a540531916356d88290cd72c0b5916672ca0","namespace":"olm","ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","blockOwnerDeletion":false,"controller":false,"kind":"CatalogSource","name":"cool","uid":"uid-cool"}]}}
}
