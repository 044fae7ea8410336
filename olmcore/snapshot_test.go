// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/olmcore"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func TestNewSnapshotRefusesWhatItCannotIndex(t *testing.T) {
	nameless := pod("")
	for field, objects := range map[string][]olmcore.Object{
		"objects[1]":               {pod("a"), nil},
		"objects[0]":               {(*corev1.Pod)(nil)},
		"objects[0].metadata.name": {nameless},
		"objects[0].kind":          {&unstructured.Unstructured{Object: map[string]any{}}},
		"objects[2]":               {pod("a"), pod("b"), pod("a")},
	} {
		_, err := olmcore.NewSnapshot(objects)
		var input *olmcore.InputError
		require.True(t, errors.As(err, &input), field)
		require.Equal(t, field, input.Field)
	}
	empty, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	require.Zero(t, empty.Len())
	require.Nil(t, empty.FindUID(""))
}

// drawObjects draws objects with few distinct names, so that they meet.
func drawObjects(t *rapid.T) []olmcore.Object {
	word := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	seen := map[olmcore.Key]bool{}
	var out []olmcore.Object
	for i := range rapid.IntRange(0, 30).Draw(t, "count") {
		m := metav1.ObjectMeta{
			Namespace: word.Draw(t, "namespace"), Name: word.Draw(t, "name"), UID: types.UID(fmt.Sprint("u", i)),
			Labels: rapid.MapOfN(word, word, 0, 3).Draw(t, "labels"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "owners") {
			m.OwnerReferences = append(m.OwnerReferences, owner("o", fmt.Sprint("u", rapid.IntRange(0, 5).Draw(t, "owner"))))
		}
		var o olmcore.Object
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			o = &corev1.Pod{ObjectMeta: m}
		case 1:
			o = &v1alpha1.Subscription{ObjectMeta: m}
		default:
			m.Namespace = ""
			o = &corev1.Node{ObjectMeta: m}
		}
		if key := olmcore.KeyOf(o); !seen[key] {
			seen[key] = true
			out = append(out, o)
		}
	}
	return out
}

func TestSnapshotAgreesWithAScan(t *testing.T) {
	selectors := []string{"", "a", "!a", "a=b", "a==c,b", "a in (b,c)", "a in (b)", "b notin (a)", "c!=d", "a=b,b=c"}
	rapid.Check(t, func(t *rapid.T) {
		objects := drawObjects(t)
		s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		require.Equal(t, len(objects), s.Len())
		sorted := slices.Clone(objects)
		slices.SortFunc(sorted, func(a, b olmcore.Object) int { return olmcore.RefOf(a).Compare(olmcore.RefOf(b)) })
		require.Empty(t, gocmp.Diff(sorted, s.Objects(), cmpopts.EquateEmpty()))
		scan := func(keep func(olmcore.Object) bool) []olmcore.Object {
			var out []olmcore.Object
			for _, o := range sorted {
				if keep(o) {
					out = append(out, o)
				}
			}
			return out
		}
		same := func(want, got []olmcore.Object) {
			require.Equal(t, len(want), len(got))
			for i := range want {
				require.Same(t, want[i], got[i])
			}
		}
		for _, o := range objects {
			got, err := s.Get(t.Context(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
			require.NoError(t, err)
			require.Same(t, o, got)
			require.Same(t, o, s.FindUID(o.GetUID()))
		}
		for i := range 7 {
			uid := types.UID(fmt.Sprint("u", i))
			same(scan(func(o olmcore.Object) bool { return olmcore.OwnedBy(o, uid) }), s.Owned(uid))
		}
		namespace := rapid.SampledFrom([]string{"", "a", "d", "absent"}).Draw(t, "list namespace")
		selector, err := labels.Parse(rapid.SampledFrom(selectors).Draw(t, "selector"))
		require.NoError(t, err)
		got, err := s.List(t.Context(), podKind, namespace, selector)
		require.NoError(t, err)
		same(scan(func(o olmcore.Object) bool {
			return olmcore.GVKOf(o) == podKind && cmp.Or(namespace, o.GetNamespace()) == o.GetNamespace() &&
				selector.Matches(labels.Set(o.GetLabels()))
		}), got)
	})
}

func TestSnapshotMisses(t *testing.T) {
	s, err := olmcore.NewSnapshot([]olmcore.Object{pod("a")}, olmcore.Everything)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), podKind, "ns", "b")
	require.True(t, apierrors.IsNotFound(err))
	_, err = s.Get(t.Context(), schema.GroupVersionKind{Kind: "Nothing"}, "ns", "b")
	require.True(t, apierrors.IsNotFound(err))
	nothing, err := s.List(t.Context(), podKind, "", labels.Nothing())
	require.NoError(t, err)
	require.Empty(t, nothing)
}

func TestSnapshotListsAnObjectOnceWhateverItsLabels(t *testing.T) {
	twice := pod("twice")
	twice.Labels = map[string]string{"a": "b", "a=b": "c"} // the key of one reads like the other
	s, err := olmcore.NewSnapshot([]olmcore.Object{twice})
	require.NoError(t, err)
	got, err := s.List(t.Context(), podKind, "", labels.SelectorFromSet(labels.Set{"a": "b"}))
	require.NoError(t, err)
	require.Equal(t, []olmcore.Object{twice}, got)

	twice.OwnerReferences = []metav1.OwnerReference{owner("a", "1"), owner("b", "1")}
	s, err = olmcore.NewSnapshot([]olmcore.Object{twice})
	require.NoError(t, err)
	require.Equal(t, []olmcore.Object{twice}, s.Owned("1"))
}

func TestSnapshotTellsTextsOfOneHashApart(t *testing.T) {
	const one, other = "costarring", "liquid" // their 32-bit FNV-1a hashes are equal
	a, b := pod("a"), pod("b")
	a.UID, b.UID = one, other
	a.Labels, b.Labels = map[string]string{one: ""}, map[string]string{other: ""}
	a.OwnerReferences, b.OwnerReferences = []metav1.OwnerReference{owner("o", one)}, []metav1.OwnerReference{owner("o", other)}
	s, err := olmcore.NewSnapshot([]olmcore.Object{a, b})
	require.NoError(t, err)
	require.Same(t, olmcore.Object(b), s.FindUID(other))
	require.Equal(t, []olmcore.Object{b}, s.Owned(other))
	selector, err := labels.Parse(other)
	require.NoError(t, err)
	got, err := s.List(t.Context(), podKind, "", selector)
	require.NoError(t, err)
	require.Equal(t, []olmcore.Object{b}, got)
}

func TestTypedReads(t *testing.T) {
	s, err := olmcore.NewSnapshot([]olmcore.Object{pod("a"), pod("b")}, olmcore.Everything)
	require.NoError(t, err)
	got, err := olmcore.Get[*corev1.Pod](t.Context(), s, "ns", "a")
	require.NoError(t, err)
	require.Equal(t, "a", got.Name)
	absent, err := olmcore.Get[*corev1.Pod](t.Context(), s, "ns", "c")
	require.NoError(t, err)
	require.Nil(t, absent)
	all, err := olmcore.List[*corev1.Pod](t.Context(), s, "", nil)
	require.NoError(t, err)
	require.Len(t, all, 2)
	none, err := olmcore.List[*corev1.Node](t.Context(), s, "", nil)
	require.NoError(t, err)
	require.Nil(t, none)

	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(podKind)
	untyped.SetName("u")
	s, err = olmcore.NewSnapshot([]olmcore.Object{untyped})
	require.NoError(t, err)
	_, err = olmcore.Get[*corev1.Pod](t.Context(), s, "", "u")
	require.ErrorContains(t, err, "want *v1.Pod")
	_, err = olmcore.List[*corev1.Pod](t.Context(), s, "", nil)
	require.ErrorContains(t, err, "want *v1.Pod")
}

// manyPods makes n Pods with the labels and owner that a real one has.
func manyPods(n int) []olmcore.Object {
	objects := make([]olmcore.Object, n)
	for i := range objects {
		p := pod(fmt.Sprint("p", i))
		p.Namespace = fmt.Sprint("ns", i%100)
		p.UID = types.UID(fmt.Sprint("uid-", i))
		p.Labels = map[string]string{"app": fmt.Sprint("app", i%1000), "pod-template-hash": fmt.Sprint(i), "olm.managed": "true"}
		p.OwnerReferences = []metav1.OwnerReference{owner("rs", fmt.Sprint("uid-", i/3))}
		objects[i] = p
	}
	return objects
}

func TestSnapshotIndexIsSmall(t *testing.T) {
	const n = 40_000
	objects := manyPods(n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	runtime.ReadMemStats(&before)
	s, err := olmcore.NewSnapshot(objects)
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perObject := (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / n
	runtime.KeepAlive(objects)
	t.Logf("%.0f bytes an object over %d objects", perObject, s.Len())
	require.Less(t, perObject, 256.0)
}

func BenchmarkSnapshot(b *testing.B) {
	objects := manyPods(100_000)
	s, err := olmcore.NewSnapshot(objects)
	require.NoError(b, err)
	one, err := labels.Parse("pod-template-hash=77777")
	require.NoError(b, err)
	b.Run("build100000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := olmcore.NewSnapshot(objects); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Find(podKind.GroupKind(), "ns77", "p77777")
		}
	})
	b.Run("owned", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Owned("uid-777")
		}
	})
	b.Run("label", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if found, _ := s.List(b.Context(), podKind, "", one); len(found) != 1 {
				b.Fatal(len(found))
			}
		}
	})
}
