// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
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
}

// TestIndexesOfManyNamespacesAreNotAllKept: those of the whole cluster and of the namespaces that were asked for last are.
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
