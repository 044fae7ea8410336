// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// TestAnIndexIsKeptUntilOneOfItsObjectsChanges, and one that was made while that happened is not kept.
func TestAnIndexIsKeptUntilOneOfItsObjectsChanges(t *testing.T) {
	secrets, pods := corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Pod")
	x := controllers.Indexes{Watched: controllers.Watched{secrets: nil, pods: {"a"}}}
	made := 0
	index := func(namespace string) int {
		return *x.Index(secrets, namespace, "k", func() any { made++; return new(made) }).(*int)
	}
	secret := func(namespace string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}}
	}
	require.Equal(t, []int{1, 2, 3, 1, 2, 3}, []int{index("a"), index("b"), index(""), index("a"), index("b"), index("")})
	x.Drop(secret("a"))
	require.Equal(t, []int{4, 2, 5}, []int{index("a"), index("b"), index("")})
	x.Drop(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}})
	require.Equal(t, 4, index("a"))

	x.Index(secrets, "c", "k", func() any { x.Drop(secret("c")); return new(-1) })
	require.Equal(t, 6, index("c"), "the change came while it was made")
	x.Index(secrets, "d", "k", func() any { return nil })
	require.Equal(t, 7, index("d"), "nil is no index")
	for range 2 {
		x.Index(pods, "b", "k", func() any { made++; return &made })
	}
	require.Equal(t, 9, made, "what the cache does not hold")

	read, lists := indexedSnapshot{snapshot(t, secret("a")), &x}, 0
	named := olmcore.Lookup{Kind: secrets, Key: "named", TermsOf: func(o olmcore.Object, add func(olmcore.Term)) { add(olmcore.Term{Value: o.GetName()}) }}
	for _, want := range []int{1, 2, 0} {
		found, err := x.Find(t.Context(), counted{read, &lists}, named, olmcore.Term{Value: "s"})
		require.NoError(t, err)
		require.Len(t, found, want)
		next := []olmcore.Object{secret("a"), secret("b")}
		if want == 2 {
			next = nil
		}
		read.Snapshot = snapshot(t, next...)
		x.Drop(secret("a"))
		x.Drop(secret("b"))
	}
	require.Equal(t, 1, lists, "it takes the changes in")
	_, err := x.Find(t.Context(), withoutGet{read}, named)
	require.ErrorIs(t, err, errUnread)
	read.Snapshot = snapshot(t, secret("a"))
	found, err := x.Find(t.Context(), read, named, olmcore.Term{Value: "s"})
	require.NoError(t, err)
	require.Len(t, found, 1, "what could not be read is read again")
	named.Key = "other"
	_, err = x.Find(t.Context(), &failing{Reader: read, times: 1}, named)
	require.ErrorIs(t, err, errUnread)
}

// withoutGet has lists alone.
type withoutGet struct{ olmcore.Reader }

func (withoutGet) Get(context.Context, schema.GroupVersionKind, string, string) (olmcore.Object, error) {
	return nil, errUnread
}

// counted counts lists.
type counted struct {
	olmcore.Reader
	lists *int
}

func (c counted) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	*c.lists++
	return c.Reader.List(ctx, gvk, namespace, selector)
}

func snapshot(t *testing.T, objects ...olmcore.Object) *olmcore.Snapshot {
	s, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return s
}

// TestIndexesOfManyNamespacesAreNotAllKept: those of the whole cluster and of the namespaces that were asked for last
// are.
func TestIndexesOfManyNamespacesAreNotAllKept(t *testing.T) {
	secrets := corev1.SchemeGroupVersion.WithKind("Secret")
	x := controllers.Indexes{Watched: controllers.Watched{secrets: nil}}
	made := map[string]int{}
	index := func(namespace string) {
		x.Index(secrets, namespace, "k", func() any { made[namespace]++; return new(0) })
	}
	for i := range 2000 {
		index("")
		index("busy")
		index(fmt.Sprint("team-", i))
	}
	require.Equal(t, 1, made[""])
	require.Equal(t, 1, made["busy"])
	index("team-1999")
	index("team-0")
	require.Equal(t, 1, made["team-1999"])
	require.Equal(t, 2, made["team-0"])
}
