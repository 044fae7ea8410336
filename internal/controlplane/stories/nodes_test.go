// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Nodes are the whole cluster's: the stories are told alone.
func TestCatalogsSurviveTheirNodes(t *testing.T) {
	// onAnother begins with a catalog whose Pod is on a second node, which has no other Pods.
	onAnother := func(s *story) (node string, pod *corev1.Pod) {
		node = "a-" + s.ns
		require.NoError(s, world.nodes.Add(s.Context(), node))
		s.Cleanup(func() { require.NoError(s, world.nodes.Remove(s.afterwards(), node)) })
		s.group()
		s.push("catalog:v1", "1", oneVersion())
		s.source("community", plainImage)
		s.reasonIs("community", "Available", "True RegistryServing")
		pod = s.served("community")[0]
		require.Equal(s, node, pod.Spec.NodeName)
		return node, pod
	}
	moves := func(s *story, pod *corev1.Pod) {
		s.Helper()
		s.until("a Pod on the first node serves", func() bool {
			pods := s.served("community")
			return len(pods) == 1 && pods[0].UID != pod.UID && pods[0].Spec.NodeName == "node"
		})
		s.reasonIs("community", "Available", "True RegistryServing")
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
	}
	tellAlone(t, "one that is taken away costs its Pod, and another one serves", func(s *story) {
		node, pod := onAnother(s)
		require.NoError(s, world.nodes.Remove(s.Context(), node))
		moves(s, pod)
		s.until("the Pod of the lost node is gone", func() bool { return get[*corev1.Pod](s, pod.Name).UID != pod.UID })
	})
	tellAlone(t, "one that says it is not ready, and nothing more, costs its Pod, and another one serves", func(s *story) {
		node, pod := onAnother(s)
		require.NoError(s, world.nodes.Break(context.WithoutCancel(s.Context()), node))
		moves(s, pod)
		left := get[*corev1.Pod](s, pod.Name)
		require.Equal(s, pod.UID, left.UID, "what runs on the node cannot be known")
		require.NotNil(s, left.DeletionTimestamp)
	})
	tellAlone(t, "one that comes back removes its Pod, and gets nothing back", func(s *story) {
		node, pod := onAnother(s)
		require.NoError(s, world.nodes.Break(s.Context(), node))
		moves(s, pod)
		now := s.served("community")[0].UID
		require.NoError(s, world.nodes.Heal(s.Context(), node))
		s.until("the Pod that it had is gone", func() bool { return get[*corev1.Pod](s, pod.Name).UID != pod.UID })
		s.atRest()
		require.Len(s, s.served("community"), 1)
		require.Equal(s, now, s.served("community")[0].UID)
	})
}
