// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

func TestValidateListNamesTheEntry(t *testing.T) {
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"}}
	}
	for want, list := range map[string]olmcore.Observed[*corev1.Pod]{
		"": olmcore.Found(pod("a", "x"), pod("a", "y")),
		"Pods has items of a read that was not completed": {Items: []*corev1.Pod{pod("a", "x")}},
		"Pods[1] is nil":                             olmcore.Found(pod("a", "x"), nil),
		"Pods[0].metadata.name is empty":             olmcore.Found(pod("a", "")),
		"Pods[2] is a/x, as is Pods[0]":              olmcore.Found(pod("a", "x"), pod("a", "y"), pod("a", "x")),
		`Pods[1].metadata.namespace is "b", not "a"`: olmcore.Found(pod("a", "x"), pod("b", "x")),
	} {
		err := olmcore.ValidateList("Pods", list, olmcore.InNamespace("a"))
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, olmcore.ValidateList("Pods", olmcore.Found(pod("a", "x")), olmcore.Writable), "Pods[0].metadata.resourceVersion is empty")
}
