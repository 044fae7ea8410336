// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/internal/share"
	"github.com/olmcore/olm/olmcore"
)

// published returns an original of the size of those in the community catalogs, about 50 KB.
func published() *version {
	c := source("")
	c.Spec.Description = strings.Repeat("An operator that does what operators do. ", 200)
	c.Spec.Icon = []v1alpha1.Icon{{Data: strings.Repeat("QUJD", 4000), MediaType: "image/png"}}
	c.Annotations["alm-examples"] = `[` + strings.Repeat(`{"apiVersion":"example.com/v1","kind":"Cool","metadata":{"name":"cool"}},`, 100) + `{}]`
	for i := range 15 {
		d := v1alpha1.CRDDescription{Name: fmt.Sprintf("kind%ds.example.com", i), Version: "v1", Kind: fmt.Sprint("Kind", i), Description: strings.Repeat("what it is. ", 20)}
		for j := range 5 {
			d.SpecDescriptors = append(d.SpecDescriptors, v1alpha1.SpecDescriptor{Path: fmt.Sprint("field", j), DisplayName: "A field", XDescriptors: []string{"urn:alm:descriptor:text"}})
		}
		c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, d)
		c.Labels[fmt.Sprintf("olm.api.%016x", i)] = "provided"
	}
	return c
}

// many returns an Input with the copies of a published original in n namespaces.
func many(n int, slim bool) copies.Input {
	in := world("")
	c := published()
	in.Sources, in.Namespaces, in.Copies = olmcore.Found(c), olmcore.Found(namespace("ns", nil)), olmcore.Found[*version]()
	for i := range n {
		name := fmt.Sprintf("n%05d", i)
		in.Namespaces.Items = append(in.Namespaces.Items, namespace(name, nil))
		o := copyOf(c, name)
		if slim {
			o = copies.Slim(o).(*version)
		}
		in.Copies.Items = append(in.Copies.Items, o)
	}
	return in
}

// BenchmarkReconcile reconciles an original with 1,000 slim copies, at rest and after a change.
func BenchmarkReconcile(b *testing.B) {
	in := many(1000, true)
	out := reconciled(b, in)
	require.NotNil(b, out.Checkpoint)
	changed := in.Sources.Items[0].DeepCopy()
	changed.Spec.Description, changed.ResourceVersion = "another", "11"
	status := in.Sources.Items[0].DeepCopy()
	status.Status.Phase, status.ResourceVersion = "Failed", "11"
	whole := many(1000, false)
	for name, change := range map[string]func() (copies.Input, int){
		"at_rest_with_checkpoint": func() (copies.Input, int) { in := in; in.Checkpoint = out.Checkpoint; return in, 0 },
		"at_rest":                 func() (copies.Input, int) { return in, 0 },
		"at_rest_whole_copies":    func() (copies.Input, int) { return whole, 0 },
		"spec_changed":            func() (copies.Input, int) { in := in; in.Sources = olmcore.Found(changed); return in, 1000 },
		"status_changed":          func() (copies.Input, int) { in := in; in.Sources = olmcore.Found(status); return in, 1000 },
		"all_missing":             func() (copies.Input, int) { in := in; in.Copies = olmcore.Found[*version](); return in, 1000 },
		"source_gone":             func() (copies.Input, int) { in := in; in.Sources = olmcore.Found[*version](); return in, 1000 },
	} {
		in, want := change()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out, err := copies.Reconcile(in); err != nil || len(out.Actions) != want {
					b.Fatal(out, err)
				}
			}
		})
	}
}

// BenchmarkWrites builds only the writes of BenchmarkReconcile/spec_changed.
func BenchmarkWrites(b *testing.B) {
	in := many(1000, true)
	changed := in.Sources.Items[0].DeepCopy()
	changed.Spec.Description = "another"
	in.Sources = olmcore.Found(changed)
	updates := copies.UpdatesOf(in)
	b.ReportAllocs()
	for b.Loop() {
		if actions := updates(); len(actions) != 1000 {
			b.Fatal(len(actions))
		}
	}
}

// BenchmarkGather reads the Input of one of 100 operators with copies in 1,000 namespaces, and reconciles it with its
// Checkpoint.
func BenchmarkGather(b *testing.B) {
	objects := []olmcore.Object{groupOf("")}
	in := many(1000, true)
	for _, n := range in.Namespaces.Items {
		objects = append(objects, n)
	}
	for i := range 100 {
		name := fmt.Sprintf("cool%02d.v1", i)
		for _, c := range append(in.Copies.Items, in.Sources.Items...) {
			o := *c
			o.Name, o.UID = name, types.UID(string(c.UID)+name)
			objects = append(objects, &o)
		}
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(b, err)
	key := types.NamespacedName{Namespace: "ns", Name: "cool50.v1"}
	var checkpoint *olmcore.Checkpoint
	b.ReportAllocs()
	for b.Loop() {
		in, err := copies.Gather(b.Context(), snapshot, key, copies.Config{})
		if err != nil || len(in.Copies.Items) != 1000 {
			b.Fatal(err)
		}
		in.Now, in.Checkpoint = now, checkpoint
		checkpoint = reconciled(b, in).Checkpoint
	}
}

// BenchmarkSlim measures Slim for each copy that a cache receives.
func BenchmarkSlim(b *testing.B) {
	c := copyOf(published(), "a")
	b.ReportAllocs()
	for b.Loop() {
		copies.Slim(c)
	}
}

// BenchmarkHeap measures the memory of a cache of whole and of slim copies, decoded as from an API server. It measures
// 1,000 whole copies, because 100,000 do not fit. Slim copies share the strings that controllers.Transform shares.
func BenchmarkHeap(b *testing.B) {
	data, err := json.Marshal(copyOf(published(), "namespace"))
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		n    int
		slim bool
	}{{"whole", 1000, false}, {"slim", 10_000, true}, {"slim_100_operators_1000_namespaces", 100_000, true}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				held, parts := make([]olmcore.Object, c.n), share.New()
				before := heap()
				for i := range held {
					var o version // decoded again, so that copies share no memory
					if err := json.Unmarshal(data, &o); err != nil {
						b.Fatal(err)
					}
					o.UID, o.ResourceVersion = types.UID(fmt.Sprintf("%08d-0000-0000-0000-%012d", i, i)), fmt.Sprint(1_000_000+i)
					o.Namespace = fmt.Sprintf("namespace-%05d", i%1000)
					if held[i] = &o; c.slim {
						held[i] = copies.Slim(&o)
						parts.Object(held[i])
					}
				}
				b.ReportMetric(float64(heap()-before)/float64(c.n), "heap-B/copy")
				b.ReportMetric(float64(heap()-before)/1e6, "heap-MB")
				runtime.KeepAlive(held)
			}
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
