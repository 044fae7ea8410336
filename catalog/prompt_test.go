// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// checkPrompt: while no Pod serves or may come to serve, a node could take one and
// nothing asks for patience, a Pod that serves is created or promoted at once.
func checkPrompt(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	if !runsPods(a) || in.Nodes.Complete && !slices.ContainsFunc(in.Nodes.Items, takesAnything) {
		return
	}
	running := 0
	for _, pod := range a.Pods {
		if !hasRole(in, pod.Name) {
			continue
		}
		switch pod.Class {
		case catalog.ClassServing, catalog.ClassStarting, catalog.ClassUnhealthy, catalog.ClassDisrupted:
			return
		case catalog.ClassOutdated:
			if pod.Ready {
				return
			}
			running++
		case catalog.ClassStuck:
			running++
		}
	}
	if a.WaitingFor == catalog.ReasonBackOff || running >= 2*a.Replicas {
		return // patience is asked for, or the room is taken
	}
	for _, action := range out.Actions {
		switch a := action.(type) {
		case olmcore.Create:
			if a.Target.Kind == "Pod" && a.Object.GetLabels()["olm.catalogSource"] == in.CatalogSource.Name {
				return
			}
		case olmcore.Update:
			if a.Target.Kind == "Pod" {
				return // the Pods are made from the version that an adoption gives
			}
		}
	}
	require.Fail(t, "nothing serves, and nothing is done about it", "%+v", a)
}

// runsPods reports whether Pods are asked for, and nothing keeps them from being
// made.
func runsPods(a catalog.Assessment) bool {
	switch a.WaitingFor {
	case catalog.ReasonDeleting, catalog.ReasonSpecInvalid, catalog.ReasonNamespaceUnknown, catalog.ReasonNameConflict, catalog.ReasonConfigMapMissing:
		return false
	}
	return a.Replicas > 0
}

// takesAnything reports whether a node takes every Pod.
func takesAnything(n *corev1.Node) bool {
	return n != nil && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 && n.Labels["kubernetes.io/os"] == "linux" && slices.ContainsFunc(n.Status.Conditions,
		func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
}

// checkBetterNode: no Pod that serves is deleted because its node is a better one,
// unless all nodes were bad and nothing was touched. One that was to stand in for it
// may be.
func checkBetterNode(t require.TestingT, in catalog.Input, out catalog.Outcome) {
	if !slices.ContainsFunc(in.Nodes.Items, takesAnything) {
		return
	}
	for i, node := range in.Nodes.Items {
		if node == nil || takesAnything(node) {
			continue
		}
		better := node.DeepCopy()
		better.Spec = corev1.NodeSpec{}
		better.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(in.Now.Add(-1000 * time.Hour)),
		}}
		healed := in
		healed.Nodes.Items = slices.Clone(in.Nodes.Items)
		healed.Nodes.Items[i] = better
		again, err := catalog.Reconcile(healed)
		require.NoError(t, err)
		before := deletedPods(out)
		deleted := deletedPods(again)
		for _, pod := range catalog.Assess(healed).Pods {
			if pod.Serves && pod.Class == catalog.ClassServing {
				require.False(t, pod.Node == node.Name && deleted[pod.Name] && !before[pod.Name], "%s is deleted because its node is better", pod.Name)
			}
		}
	}
}

func deletedPods(out catalog.Outcome) map[string]bool {
	names := map[string]bool{}
	for _, action := range out.Actions {
		if d, ok := action.(olmcore.Delete); ok && d.Target.Kind == "Pod" {
			names[d.Target.Name] = true
		}
	}
	return names
}
