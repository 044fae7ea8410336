// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func requireSame(t *testing.T, fake, real recorded) {
	if diff := cmp.Diff(fake, real); diff != "" {
		t.Errorf("what the fake does (-) and what Kubernetes does (+) differ:\n%s", diff)
	}
}

// serving returns the nodes of the ready registry Pods that are not going.
func serving(t testing.TB, w world) (nodes []string) {
	for _, pod := range list[*corev1.Pod](t, w, "olm") {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				nodes = append(nodes, pod.Spec.NodeName)
			}
		}
	}
	return nodes
}

// The node of the catalog's Pod falls silent: the Pod is marked for deletion and
// stays, another one serves from another node, and the first is removed.
func TestACatalogSurvivesItsNode(t *testing.T) {
	fake, real := eachWorld(t, func(t *testing.T, w world) {
		publish(t, nil)
		namespaces(t, w, "olm")
		w.addNode("a")
		w.addNode("b")
		w.start(1)
		create(t, w, catalogSource())
		var first []string
		w.until("a Pod serves", func() bool { first = serving(t, w); return len(first) == 1 })
		before := list[*corev1.Pod](t, w, "olm")[0]

		w.failNode(first[0])
		w.until("the Pod is marked for deletion", func() bool {
			pod := get[*corev1.Pod](t, w, "olm", before.Name)
			return pod == nil || pod.DeletionTimestamp != nil
		})
		w.until("a Pod serves from the other node", func() bool {
			now := serving(t, w)
			return len(now) == 1 && now[0] != first[0]
		})
		w.until("the stuck Pod is gone", func() bool { return get[*corev1.Pod](t, w, "olm", before.Name) == nil })
		w.until("the status says so", func() bool {
			cs := get[*v1alpha1.CatalogSource](t, w, "olm", "community")
			for _, c := range cs.Status.Conditions {
				if c.Type == "Available" && c.Status == "True" {
					return true
				}
			}
			return false
		})
	})
	requireSame(t, fake, real)
}

func TestSmoke(t *testing.T) {
	fake, real := eachWorld(t, func(t *testing.T, w world) {
		publish(t, map[string]int{"alpha": 1, "beta": 1})
		namespaces(t, w, "olm", "ops")
		w.addNode("a")
		w.start(1)
		create(t, w, catalogSource(), operatorGroup("ops"), subscribe("ops", "alpha", v1alpha1.ApprovalAutomatic))
		w.until("alpha is installed", func() bool {
			s := get[*v1alpha1.Subscription](t, w, "ops", "alpha")
			return s.Status.State == v1alpha1.SubscriptionStateAtLatest
		})
	})
	requireSame(t, fake, real)
}

var _ = require.NoError
