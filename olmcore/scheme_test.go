// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

func TestToMapRejectsValuesThatJSONCannotHold(t *testing.T) {
	untyped := func(v any) olmcore.Object { return &unstructured.Unstructured{Object: map[string]any{"spec": v}} }
	for name, tt := range map[string]struct {
		object olmcore.Object
		field  string
	}{
		"nil":              {nil, "object"},
		"a nil pointer":    {(*corev1.Pod)(nil), "object"},
		"a nil untyped":    {(*unstructured.Unstructured)(nil), "object"},
		"no JSON value":    {untyped(map[string]any{"list": []any{1, map[string]any{"a": pod("p")}}}), "spec.list[1].a"},
		"several of those": {untyped(map[string]any{"c": pod("p"), "b": pod("p"), "d": pod("p")}), "spec.b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := olmcore.ToMap(tt.object)
			var input *olmcore.InputError
			require.ErrorAs(t, err, &input)
			require.Equal(t, tt.field, input.Field)
		})
	}

	// Values as Go programs write them give the same result as decoded values.
	got, err := olmcore.ToMap(&unstructured.Unstructured{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"apiVersion": "", "kind": ""}, got)
	manifest := map[string]any{"metadata": map[string]any{"creationTimestamp": nil}, "status": map[string]any{},
		"spec": map[string]any{"templates": []any{map[string]any{"metadata": map[string]any{"creationTimestamp": nil, "name": "n"}}}}}
	got, err = olmcore.ToMap(&unstructured.Unstructured{Object: manifest})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"apiVersion": "", "kind": "", "metadata": map[string]any{},
		"spec": map[string]any{"templates": []any{map[string]any{"metadata": map[string]any{"name": "n"}}}}}, got, "what kubectl create --dry-run adds")
	written := map[string]any{"a": []any{1, int32(2), nil, map[string]any(nil), []any(nil)}}
	got, err = olmcore.ToMap(untyped(written))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"apiVersion": "", "kind": "", "spec": map[string]any{"a": []any{int64(1), int64(2), nil, nil, nil}}}, got)
	require.Equal(t, map[string]any{"a": []any{1, int32(2), nil, map[string]any(nil), []any(nil)}}, written)
}

func TestRefs(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1", ResourceVersion: "2"}}
	ref := olmcore.RefOf(node)
	require.Equal(t, olmcore.Ref{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1", ResourceVersion: "2"}, ref)
	require.Equal(t, "Node n", ref.String())
	require.Equal(t, "Pod ns/a", olmcore.RefOf(pod("a")).String())
	require.Equal(t, olmcore.KeyOf(node), ref.Key())
	require.Equal(t, "Node n", ref.Key().String())
	require.Empty(t, ref.Unversioned().ResourceVersion)
	require.Equal(t, schema.GroupVersionKind{Version: "v1", Kind: "Node"}, ref.GVK())
	require.Negative(t, ref.Compare(olmcore.RefOf(pod("a"))))
	require.Negative(t, olmcore.KeyOf(pod("a")).Compare(olmcore.KeyOf(pod("b"))))
	require.Zero(t, olmcore.RefOf(nil))
	require.Zero(t, olmcore.RefOf((*corev1.Pod)(nil)))
	require.Zero(t, olmcore.KeyOf(nil))
	o := &v1alpha1.Subscription{}
	sub := olmcore.RefOf(o)
	require.Equal(t, olmcore.Key{Group: "operators.coreos.com", Kind: "Subscription"}, sub.Key())
	require.Zero(t, testing.AllocsPerRun(100, func() { sub = olmcore.RefOf(o) }))
	require.IsType(t, &unstructured.Unstructured{}, olmcore.NewObject(schema.GroupVersionKind{Kind: "X", Version: "v1"}))
}

func TestTimestampsAreWholeSecondsInUTC(t *testing.T) {
	berlin := time.FixedZone("berlin", 3600)
	got := olmcore.Timestamp(time.Date(2026, 1, 2, 13, 0, 0, 999, berlin))
	require.Equal(t, time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), got.Time)
}
