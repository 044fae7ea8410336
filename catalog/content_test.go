// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// TestContentFollowsTheReadyPods checks that Content follows from the ready Pods, and that it is not settled while
// Pods with other content are being deleted.
func TestContentFollowsTheReadyPods(t *testing.T) {
	pod := func(image string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"olm.catalogSource": "cool", "olm.managed": "true"}}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{ImageID: image}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	starts := func(p *corev1.Pod) { p.Status.Conditions = nil }
	ends := func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }
	candidate := func(p *corev1.Pod) { p.Labels["olm.catalogSource"] = "" }
	unmanaged := func(p *corev1.Pod) { delete(p.Labels, "olm.managed") }
	version := func(p *corev1.Pod) { p.Labels["olm.configMapResourceVersion"] = "7" }
	extracts := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{ImageID: "util"}, {ImageID: "b"}}
	}
	for name, test := range map[string]struct {
		pods    []*corev1.Pod
		content string
		settled bool
	}{
		"no Pod, as with an address":                    {nil, "", false},
		"one Pod":                                       {[]*corev1.Pod{pod("a")}, "a", true},
		"an entry of the list is nil":                   {[]*corev1.Pod{nil, pod("a")}, "a", true},
		"two Pods of one image":                         {[]*corev1.Pod{pod("a"), pod("a")}, "a", true},
		"two Pods of two images":                        {[]*corev1.Pod{pod("a"), pod("b")}, "", false},
		"the other Pod is starting":                     {[]*corev1.Pod{pod("a"), pod("b", starts)}, "a", true},
		"the other Pod is being deleted and may answer": {[]*corev1.Pod{pod("b"), pod("a", ends)}, "b", false},
		"a Pod of the same image is being deleted":      {[]*corev1.Pod{pod("a"), pod("a", ends)}, "a", true},
		"a candidate does not answer":                   {[]*corev1.Pod{pod("a"), pod("b", candidate)}, "a", true},
		"the Service does not select it":                {[]*corev1.Pod{pod("a"), pod("b", unmanaged)}, "a", true},
		"the image is not reported yet":                 {[]*corev1.Pod{pod("")}, "", false},
		"the content is extracted":                      {[]*corev1.Pod{pod("a", extracts)}, "b", true},
		"it serves a ConfigMap":                         {[]*corev1.Pod{pod("a", version)}, "7", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := catalog.Input{CatalogSource: cool(), Pods: olmcore.Observed[*corev1.Pod]{Items: test.pods, Complete: true}}
			content, settled := catalog.Content(in)
			require.Equal(t, test.content, content)
			require.Equal(t, test.settled, settled)
			slices.Reverse(in.Pods.Items)
			content, _ = catalog.Content(in)
			require.Equal(t, test.content, content)
		})
	}
	content, settled := catalog.Content(catalog.Input{})
	require.Empty(t, content)
	require.False(t, settled)
}

// TestFailedConnectionsAreReported checks that the condition reports the first problem until there is a connection,
// and that a Transition reports the present problem.
func TestFailedConnectionsAreReported(t *testing.T) {
	in := converged(t, catalog.Config{}, cool())
	in.Now = in.Now.Add(time.Hour)
	lost := catalog.Connection{
		Address: "cool.olm.svc:50051", State: "TRANSIENT_FAILURE", LastTransition: in.Now.Add(-2 * time.Minute),
		Problem: "connection refused; check the network policies",
	}
	in.Connection = &lost
	out := answer(t, in)
	after, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	const message = "no connection to cool.olm.svc:50051; the first error was: connection refused, check the network policies"
	require.Equal(t, message, meta.FindStatusCondition(after.Status.Conditions, "Degraded").Message)
	require.Equal(t, "cool.olm.svc:50051: connection refused, check the network policies", out.Transitions[len(out.Transitions)-1].Message)

	later := lost
	later.Problem = "no such host"
	in.CatalogSource, in.Connection = after, &later
	require.Empty(t, answer(t, in).Actions, "a text alone is no reason to write")

	in.Connection = &catalog.Connection{Address: lost.Address, State: "READY", LastConnect: in.Now, LastTransition: in.Now}
	after, _ = olmcore.StatusOf[*v1alpha1.CatalogSource](answer(t, in).Actions)
	require.Equal(t, "nothing needs attention", meta.FindStatusCondition(after.Status.Conditions, "Degraded").Message)
}

func TestAddressIgnoresTheStatus(t *testing.T) {
	now := metav1.Now()
	for want, edit := range map[string]func(cs *v1alpha1.CatalogSource){
		"my-catalog.team.svc:50051": func(cs *v1alpha1.CatalogSource) { cs.Spec.SourceType, cs.Spec.Image = v1alpha1.SourceTypeGrpc, "i" },
		"registry.example:443": func(cs *v1alpha1.CatalogSource) {
			cs.Spec.SourceType, cs.Spec.Address = v1alpha1.SourceTypeGrpc, "registry.example:443"
		},
		"": func(cs *v1alpha1.CatalogSource) {
			cs.Spec.SourceType, cs.Spec.Image, cs.DeletionTimestamp = v1alpha1.SourceTypeGrpc, "i", &now
		},
	} {
		cs := &v1alpha1.CatalogSource{}
		cs.Namespace, cs.Name = "team", "my.catalog"
		cs.Status.RegistryServiceStatus = &v1alpha1.RegistryServiceStatus{ServiceName: "forged", ServiceNamespace: "other", Port: "1"}
		edit(cs)
		require.Equal(t, want, catalog.Address(cs))
	}
	require.Empty(t, catalog.Address(nil))
	require.Empty(t, catalog.Address(&v1alpha1.CatalogSource{}), "its type is not known")
}
