// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// counting counts the reads of a Reader.
type counting struct {
	olmcore.Reader
	reads *int
}

func (c counting) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	*c.reads++
	return c.Reader.Get(ctx, gvk, namespace, name)
}

func (c counting) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	*c.reads++
	return c.Reader.List(ctx, gvk, namespace, selector)
}

var tenantsKinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Service"),
}

// filled is an object with some content.
func filled(gvk schema.GroupVersionKind, meta metav1.ObjectMeta) olmcore.Object {
	meta.Annotations = map[string]string{"note": "long"}
	switch gvk.Kind {
	case "ConfigMap":
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": meta.Name}}
	case "Secret":
		return &corev1.Secret{ObjectMeta: meta, Type: "helm.sh/release.v1", Data: map[string][]byte{"k": []byte(meta.Name)}}
	case "Pod":
		return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ExternalName: meta.Name}}
}

// reduced are objects as a cache of some kinds holds them.
func reduced(t require.TestingT, w controllers.Watched, objects []olmcore.Object) (kept []olmcore.Object) {
	for _, o := range objects {
		o = o.DeepCopyObject().(olmcore.Object)
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		next, err := w.Transform(o)
		require.NoError(t, err)
		kept = append(kept, next.(olmcore.Object))
	}
	return kept
}

// labelSets are those that objects have and selectors ask for.
var labelSets = []labels.Set{
	nil, {"app": "web"}, {olmcore.LabelManaged: "true"}, {"olm.catalogSource": "community"}, {"job-name": "unpack"}, {olmcore.LabelOwner: "v1", "app": "web"},
	{olmcore.ComponentLabelPrefix + "web.a": ""},
}

// TestAWholeReadsAsTheAPIServerDoes: whatever the cache left out of objects, and asks the API server for nothing that a
// label which Gather functions look for selects.
func TestAWholeReadsAsTheAPIServerDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var objects []olmcore.Object
		for i := range rapid.IntRange(0, 8).Draw(t, "objects") {
			meta := metav1.ObjectMeta{Namespace: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "namespace"), Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1",
				Labels: rapid.SampledFrom(labelSets).Draw(t, "labels")}
			if owner := rapid.SampledFrom([]string{"", "apps/v1", v1alpha1.GroupName + "/v1alpha1"}).Draw(t, "owner"); owner != "" {
				meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner, Kind: "Any", Name: "o", UID: "o"}}
			}
			objects = append(objects, filled(rapid.SampledFrom(tenantsKinds).Draw(t, "kind"), meta))
		}
		live, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		cached, err := olmcore.NewSnapshot(reduced(t, controllers.Options{}.Watched(), objects), olmcore.Everything)
		require.NoError(t, err)
		reads := 0
		whole := controllers.Whole{Cached: cached, Live: counting{live, &reads}}
		ctx := context.Background()
		for _, o := range objects {
			got, err := whole.Get(ctx, olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(o, got))
		}
		for _, gvk := range tenantsKinds {
			for _, namespace := range []string{"", "a"} {
				for _, set := range labelSets {
					reads = 0
					want, err := live.List(ctx, gvk, namespace, labels.SelectorFromSet(set))
					require.NoError(t, err)
					got, err := whole.List(ctx, gvk, namespace, labels.SelectorFromSet(set))
					require.NoError(t, err)
					require.Empty(t, cmp.Diff(want, got))
					if olmcore.IndexTerm(gvk, labels.SelectorFromSet(set)) != "" {
						require.Zero(t, reads, set)
					}
					reads = 0
					metadata, err := whole.ListMetadata(ctx, gvk, namespace, labels.SelectorFromSet(set))
					require.NoError(t, err)
					require.Zero(t, reads)
					require.Len(t, metadata, len(want))
					for n, o := range metadata {
						require.Equal(t, olmcore.RefOf(want[n]), olmcore.RefOf(o))
						require.Equal(t, want[n].GetLabels(), o.GetLabels())
						require.Equal(t, want[n].GetOwnerReferences(), o.GetOwnerReferences())
					}
				}
			}
		}
	})
}

// TestAFailedReadOfTheAPIServerIsAnError, not an object without content.
func TestAFailedReadOfTheAPIServerIsAnError(t *testing.T) {
	cached, err := olmcore.NewSnapshot(reduced(t, controllers.Options{}.Watched(), []olmcore.Object{filled(tenantsKinds[0], metav1.ObjectMeta{Namespace: "a", Name: "o"})}))
	require.NoError(t, err)
	none, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	whole := controllers.Whole{Cached: cached, Live: none}
	_, err = olmcore.Get[*corev1.ConfigMap](t.Context(), whole, "a", "o")
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	_, err = olmcore.List[*corev1.ConfigMap](t.Context(), whole, "a", nil)
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	_, err = olmcore.Get[*corev1.ConfigMap](t.Context(), cached, "a", "o")
	require.ErrorContains(t, err, "PartialObjectMetadata", "who forgets a Whole takes nothing for empty")
}

// TestAShardsCacheHoldsAll: what is watched of some namespaces only is kept whole.
func TestAShardsCacheHoldsAll(t *testing.T) {
	watched := controllers.Options{Namespaces: []string{"a"}}.Watched()
	for _, gvk := range tenantsKinds {
		require.False(t, watched.Reduces(gvk))
		o := filled(gvk, metav1.ObjectMeta{Namespace: "a", Name: "o"})
		require.Empty(t, cmp.Diff([]olmcore.Object{o}, reduced(t, watched, []olmcore.Object{o})))
	}
	require.True(t, watched.Reduces(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)))
}

// TestChangesOfMetadataCount: as those of whole objects, for all controllers.
func TestChangesOfMetadataCount(t *testing.T) {
	options := controllers.Options{Sweeps: true}
	set := controllers.New(&options)
	for _, gvk := range tenantsKinds {
		for _, labels := range labelSets {
			old := filled(gvk, metav1.ObjectMeta{Namespace: "olm", Name: "web-cert", UID: "1", ResourceVersion: "1", Labels: labels})
			next := old.DeepCopyObject().(olmcore.Object)
			next.SetResourceVersion("2")
			kept := reduced(t, options.Watched(), []olmcore.Object{old, next})
			r, err := olmcore.NewSnapshot(nil, olmcore.Everything)
			require.NoError(t, err)
			for _, c := range set.Controllers {
				want, err := c.Changed(t.Context(), r, controller.Change{Old: old, New: next})
				require.NoError(t, err)
				got, err := c.Changed(t.Context(), r, controller.Change{Old: kept[0], New: kept[1]})
				require.NoError(t, err)
				require.Subset(t, got, want, "%s %s %v", c.Name, gvk.Kind, labels)
			}
		}
	}
}
