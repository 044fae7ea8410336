// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestReconcile changes one thing in the input of a converged CatalogSource, with
// the Pod cool-w4nrrin4qx on node a, and compares all that is asked for and said.
func TestReconcile(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	cases := maps.Clone(reconcileCases)
	maps.Copy(cases, pollCases)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(base)
			test.change(&in)
			out, err := catalog.Reconcile(in)
			require.NoError(t, err)
			if diff := cmp.Diff(strings.TrimSpace(test.want), describe(t, out)); diff != "" {
				t.Errorf("-want +got:\n%s\ngot:\n%s", diff, describe(t, out))
			}
			require.NoError(t, invariant.Laws(result, in))
			checkSafety(t, in, out, 2)
			checkEdge(t, in)
			checkPromises(t, in, out)
		})
	}
}

// reconcileCase is one change of a converged input, and the whole outcome.
type reconcileCase struct {
	change func(*catalog.Input)
	want   string
}

// reconcileCases change one thing each; see TestReconcile.
var reconcileCases = map[string]reconcileCase{
	"nothing changed": {func(*catalog.Input) {}, ``},

	// Nodes.
	"a silent node within its grace is waited for": {func(in *catalog.Input) { silence(in, 29*time.Second) }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready, its node is unreachable)
  Progressing=False WaitingForNodes: waiting for nodes
  Degraded=True ReplicasUnavailable: 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready, its node is unreachable)
State "Serving" -> "Unavailable" (NoReadyPods) at 01:00:00 NotBefore
Error ReplicasUnavailable : 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready, its node is unreachable)
again in 1s
`},
	"a Pod of a silent node is replaced after 30s": {func(in *catalog.Input) { silence(in, 30*time.Second) }, `
create Pod olm/cool-2fnkoshaj3 (NodeUnreachable: replaces cool-w4nrrin4qx: node a is unreachable)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is unreachable)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is unreachable
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is unreachable
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is unreachable
`},
	"a ready Pod of a silent node is trusted": {func(in *catalog.Input) { setNode(in, corev1.ConditionUnknown, time.Hour) }, ``},
	"a Pod of a node that is not ready waits for 60s": {func(in *catalog.Input) { unready(in.Pods.Items[0]); setNode(in, corev1.ConditionFalse, 59*time.Second) }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready, its node is not ready)
  Progressing=False WaitingForNodes: waiting for nodes
  Degraded=True ReplicasUnavailable: 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready, its node is not ready)
State "Serving" -> "Unavailable" (NoReadyPods) at 01:00:00 NotBefore
Error ReplicasUnavailable : 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready, its node is not ready)
again in 1s
`},
	"a Pod of a node that is not ready is replaced": {func(in *catalog.Input) { unready(in.Pods.Items[0]); setNode(in, corev1.ConditionFalse, time.Minute) }, `
create Pod olm/cool-2fnkoshaj3 (NodeNotReady: replaces cool-w4nrrin4qx: node a is not ready)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is not ready)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is not ready
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is not ready
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is not ready
`},
	"a Pod of a node that was deleted is replaced and removed": {func(in *catalog.Input) { in.Nodes.Items = in.Nodes.Items[1:] }, `
create Pod olm/cool-2fnkoshaj3 (NodeGone: replaces cool-w4nrrin4qx: node a is gone)
delete Pod olm/cool-w4nrrin4qx (NodeGone: node a is gone) grace=0 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is gone)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is gone
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is gone
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is gone
`},
	"a Pod of a node just created is not given up": {func(in *catalog.Input) {
		in.Nodes.Items = in.Nodes.Items[1:]
		for i := range in.Pods.Items[0].Status.Conditions {
			in.Pods.Items[0].Status.Conditions[i].LastTransitionTime = metav1.NewTime(in.Now.Add(-10 * time.Second))
		}
	}, `
again in 30s
`},
	"a Pod of a node out of service is replaced and removed at once": {func(in *catalog.Input) {
		silence(in, 0).Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	}, `
create Pod olm/cool-2fnkoshaj3 (NodeOutOfService: replaces cool-w4nrrin4qx: node a is out of service)
delete Pod olm/cool-w4nrrin4qx (NodeOutOfService: node a is out of service) grace=0 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is out of service)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is out of service
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is out of service
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is out of service
`},
	"a ready Pod is moved ahead of a taint that will evict it": {func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Hour).Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
	}, `
create Pod olm/cool-2fnkoshaj3 (PodDisrupted: replaces cool-w4nrrin4qx: it is about to be evicted)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, about to be evicted)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a cordon alone moves nothing": {func(in *catalog.Input) { setNode(in, corev1.ConditionTrue, time.Hour).Spec.Unschedulable = true }, ``},
	"without nodes nothing is concluded from them": {func(in *catalog.Input) { silence(in, time.Hour); in.Nodes = olmcore.Observed[*corev1.Node]{} }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Info NotRead : Node objects were not read, so whether the Pods of catalogs are on Nodes that answer is unknown
again in 10m0s
`},
	"when all nodes fail nothing is touched": {func(in *catalog.Input) {
		silence(in, time.Hour)
		for _, node := range in.Nodes.Items {
			readyOf(node).Status = corev1.ConditionUnknown
		}
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is unreachable)
  Progressing=False WaitingForNodes: waiting for nodes
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is unreachable; so many nodes are not ready that replacements are limited
State "Serving" -> "Unavailable" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is unreachable; so many nodes are not ready that replacements are limited
`},

	// Pods that end.
	"a Pod that is being deleted is replaced at once": {func(in *catalog.Input) { terminating(in, -30*time.Second) }, `
create Pod olm/cool-2fnkoshaj3 (PodTerminating: replaces cool-w4nrrin4qx: it is being deleted)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, terminating)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
again in 2m30s
`},
	"a Pod stuck on a silent node is replaced and removed": {func(in *catalog.Input) { silence(in, time.Hour); terminating(in, time.Minute) }, `
create Pod olm/cool-2fnkoshaj3 (NodeUnreachable: replaces cool-w4nrrin4qx: node a is unreachable)
delete Pod olm/cool-w4nrrin4qx (NodeUnreachable: node a is unreachable) grace=0 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is unreachable)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is unreachable
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is unreachable
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is unreachable
`},
	"a Pod stuck on a healthy node is replaced and reported": {func(in *catalog.Input) { terminating(in, time.Hour) }, `
create Pod olm/cool-2fnkoshaj3 (Overdue: replaces cool-w4nrrin4qx: it was deleted and is still there, node a)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True StuckTerminating: cool-w4nrrin4qx on a: it was deleted and is still there
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
Error StuckTerminating : cool-w4nrrin4qx on a: it was deleted and is still there
`},
	"a Pod that a finalizer holds is not removed twice": {func(in *catalog.Input) {
		silence(in, time.Hour)
		terminating(in, time.Hour)
		in.Pods.Items[0].DeletionGracePeriodSeconds = new(int64(0))
	}, `
create Pod olm/cool-2fnkoshaj3 (NodeUnreachable: replaces cool-w4nrrin4qx: node a is unreachable)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is unreachable)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is unreachable
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is unreachable
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is unreachable
`},
	"force deletes can be forbidden": {func(in *catalog.Input) {
		silence(in, time.Hour)
		terminating(in, time.Hour)
		in.Config.ForceDelete = catalog.ForceDeleteNever
	}, `
create Pod olm/cool-2fnkoshaj3 (NodeUnreachable: replaces cool-w4nrrin4qx: node a is unreachable)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, lost, its node is unreachable)
  Progressing=True NodeFailover: replacing the registry pods of failed nodes: cool-w4nrrin4qx on a: lost, its node is unreachable
  Degraded=True NodeLost: cool-w4nrrin4qx on a: lost, its node is unreachable
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error NodeLost : cool-w4nrrin4qx on a: lost, its node is unreachable
`},
	"a Pod that failed long ago is replaced": {func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodFailed }, `
create Pod olm/cool-2fnkoshaj3 (PodTerminated: replaces cool-w4nrrin4qx: it has finished)
delete Pod olm/cool-w4nrrin4qx (PodTerminated: the Pod has finished) grace=0 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, finished)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
`},
	"a Pod that failed just now is remembered for its backoff": {func(in *catalog.Input) {
		in.Pods.Items[0].Status.Phase = corev1.PodFailed
		in.Pods.Items[0].Annotations["olmcore/attempt"] = "3"
		in.Pods.Items[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: metav1.NewTime(in.Now.Add(-time.Minute)), FinishedAt: metav1.NewTime(in.Now.Add(-15 * time.Second))}}
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, finished)
  Progressing=False BackOff: waiting before the next registry pod is started
  Degraded=True ReplicasUnavailable: 0/1 registry pods ready: cool-w4nrrin4qx (a, finished)
State "Serving" -> "Unavailable" (NoReadyPods) at 01:00:00 NotAfter
Error ReplicasUnavailable : 0/1 registry pods ready: cool-w4nrrin4qx (a, finished)
again in 25s
`},
	"an eviction that was announced is anticipated": {disrupted, `
create Pod olm/cool-2fnkoshaj3 (PodDisrupted: replaces cool-w4nrrin4qx: it is about to be evicted)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, about to be evicted)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a Pod that is not ready for a moment is left alone": {func(in *catalog.Input) {
		unready(in.Pods.Items[0])
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, not ready)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
again in 10m0s
`},
	"a Pod that its node does not start is replaced": {func(in *catalog.Input) { unready(in.Pods.Items[0]); in.Now = in.Now.Add(10 * time.Minute) }, `
create Pod olm/cool-2fnkoshaj3 (PodStuck: replaces cool-w4nrrin4qx: it does not start on node a)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, does not start)
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
`},
	"a Pod that cannot pull its image is reported": {func(in *catalog.Input) { waiting(in, "ErrImagePull") }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, cannot pull its image)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True ImagePullFailed: cool-w4nrrin4qx on a: cannot pull its image
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error ImagePullFailed : cool-w4nrrin4qx on a: cannot pull its image
again in 10m0s
`},
	"a Pod that crashes is reported": {func(in *catalog.Input) { waiting(in, "CrashLoopBackOff") }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, does not stay up)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True CrashLooping: cool-w4nrrin4qx on a: does not stay up
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error CrashLooping : cool-w4nrrin4qx on a: does not stay up
again in 10m0s
`},
	"a Pod that no node takes is reported": {func(in *catalog.Input) {
		in.Pods.Items[0].Spec.NodeName = ""
		in.Pods.Items[0].Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
		in.Pods.Items[0].CreationTimestamp = metav1.NewTime(in.Now)
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (no node, no node takes it)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True PodUnschedulable: cool-w4nrrin4qx: no node takes it
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
Error PodUnschedulable : cool-w4nrrin4qx: no node takes it
again in 10m0s
`},
	"a Pod that is gone is replaced": {func(in *catalog.Input) { in.Pods.Items = nil }, `
create Pod olm/cool-w4nrrin4qx (PodMissing: fewer registry Pods exist than asked for)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready
  Progressing=True Refill: missing registry pods are being replaced
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotAfter
`},
	"a Pod of somebody else is reported and not touched": {func(in *catalog.Input) {
		addPod(in, "other", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })
	}, `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Degraded=True ForeignPod: other on b: it has the catalog's labels and another owner
Warning ForeignPod : other on b: it has the catalog's labels and another owner
`},
	"a Pod without the managed label is repaired": {func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.managed") }, `
update Pod olm/cool-w4nrrin4qx (ObjectDiffers: the Service does not select the Pod) {"metadata":{"labels":{"catalogsource.operators.coreos.com/update":"","olm.managed":"true"}}}
notify [olm]
`},
	"a surplus Pod goes": {func(in *catalog.Input) { addPod(in, "cool-zz", func(*corev1.Pod) {}) }, `
delete Pod olm/cool-zz (PodSurplus: better Pods serve already) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 2/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b)
`},
	"a node that came back is not trusted over a replacement": {func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Minute)
		addPod(in, "cool-zz", func(*corev1.Pod) {})
	}, `
delete Pod olm/cool-w4nrrin4qx (PodSurplus: better Pods serve already) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 2/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b)
again in 1m0s
`},
	"a replacement that starts is kept while the node is not trusted": {func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Minute)
		addPod(in, "cool-zz", unready)
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b, not ready)
again in 1m0s
`},
	"a replacement that starts goes when the node is trusted": {func(in *catalog.Input) { addPod(in, "cool-zz", unready) }, `
delete Pod olm/cool-zz (PodSurplus: better Pods serve already) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b, not ready)
again in 10m0s
`},
	"the older content goes": {func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "quay.io/example/catalog@sha256:new" })
	}, `
delete Pod olm/cool-w4nrrin4qx (ContentDiffers: other Pods serve newer content of the same image) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 2/1 registry pods ready: cool-w4nrrin4qx (a), cool-zz (b)
`},

	// Roll-outs.
	"a new image starts a candidate": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image = "quay.io/example/catalog:v2" })
	}, `
create Pod olm/cool-enw5wqjtnr (PodOutdated: the registry Pods were made from another spec)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a Pod of an accepted release is current": {func(in *catalog.Input) { in.Pods.Items[0].Labels["olm.pod-spec-hash"] = hashV046 }, ``},
	"a ready candidate takes over from a Pod of the old spec": {func(in *catalog.Input) {
		addPod(in, "cool-zz", candidate)
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	}, `
update Pod olm/cool-zz (CandidateReady: the Pod takes over) {"metadata":{"labels":{"catalogsource.operators.coreos.com/update":"","olm.catalogSource":"cool"}}}
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
notify [olm]
`},
	"the Pod of the old spec goes when the new one serves": {func(in *catalog.Input) {
		addPod(in, "cool-zz", func(*corev1.Pod) {})
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	}, `
delete Pod olm/cool-w4nrrin4qx (PodOutdated: Pods of the present spec serve) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 2/1 registry pods ready: cool-w4nrrin4qx (a, old spec), cool-zz (b)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a candidate without purpose goes": {func(in *catalog.Input) { addPod(in, "cool-zz", candidate) }, `
delete Pod olm/cool-zz (CandidateObsolete: as many Pods serve as asked for) grace=1 version=true
`},
	"a candidate of another spec goes": {func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) { candidate(p); p.Labels["olm.pod-spec-hash"] = "other" })
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	}, `
delete Pod olm/cool-zz (CandidateObsolete: the Pod was made from another spec) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a candidate that is late goes, and the old Pod stays": {func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			unready(p)
			p.CreationTimestamp = metav1.NewTime(in.Now.Add(-10 * time.Minute))
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		})
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	}, `
delete Pod olm/cool-zz (ProgressDeadlineExceeded: the Pod did not become ready in time) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=False ProgressDeadlineExceeded: registry pods did not become ready in time
  Degraded=True ImagePullFailed: cool-zz on b: cannot pull its image
Warning ImagePullFailed : cool-zz on b: cannot pull its image
again in 10m0s
`},
	"after a late candidate the next one waits": {func(in *catalog.Input) {
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
		c := meta.FindStatusCondition(in.CatalogSource.Status.Conditions, "Progressing")
		c.Reason, c.LastTransitionTime = "ProgressDeadlineExceeded", metav1.NewTime(in.Now.Add(-time.Minute))
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=False ProgressDeadlineExceeded: registry pods did not become ready in time
again in 4m0s
`},
	"a ready candidate rescues a catalog that does not serve": {func(in *catalog.Input) {
		addPod(in, "cool-zz", candidate)
		waiting(in, "ImagePullBackOff")
	}, `
update Pod olm/cool-zz (CandidateReady: the Pod takes over) {"metadata":{"labels":{"catalogsource.operators.coreos.com/update":"","olm.catalogSource":"cool"}}}
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, cannot pull its image)
  Progressing=True Refill: missing registry pods are being replaced
  Degraded=True ImagePullFailed: cool-w4nrrin4qx on a: cannot pull its image
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
Error ImagePullFailed : cool-w4nrrin4qx on a: cannot pull its image
notify [olm]
again in 10m0s
`},
	"a Pod of the old spec that does not serve is not kept": {func(in *catalog.Input) {
		waiting(in, "ImagePullBackOff")
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	}, `
create Pod olm/cool-2fnkoshaj3 (PodOutdated: replaces cool-w4nrrin4qx: it was made from another spec)
delete Pod olm/cool-w4nrrin4qx (PodOutdated: the Pod was made from another spec and does not serve) grace=1 version=true
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Recovering" (NoReadyPods) at 01:00:00 NotBefore
`},

	// Objects around the Pods.
	"objects that are gone are made anew": {func(in *catalog.Input) {
		in.Services.Items, in.ServiceAccounts.Items, in.NetworkPolicies.Items = nil, nil, nil
	}, `
create ServiceAccount olm/cool (ObjectMissing: the catalog needs it)
create NetworkPolicy olm/cool-grpc-server (ObjectMissing: the catalog needs it)
create NetworkPolicy olm/cool-unpack-bundles (ObjectMissing: the catalog needs it)
create Service olm/cool (ObjectMissing: the catalog needs it)
`},
	"a damaged Service is repaired in place": {func(in *catalog.Input) {
		in.Services.Items[0].Spec.Ports[0].Port = 1
		in.Services.Items[0].Labels = map[string]string{"mine": "kept"}
	}, `
update Service olm/cool (ObjectDiffers: labels, owner or spec differ) {"metadata":{"labels":{"olm.managed":"true","olm.service-spec-hash":"hz6uK4sWf5igtRzty3jHaHnI6Z55t3dy5kRUH"}},"spec":{"ports":[{"name":"grpc","port":50051,"targetPort":50051}]}}
`},
	"a damaged NetworkPolicy is repaired in place": {func(in *catalog.Input) {
		in.NetworkPolicies.Items[0].Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	}, `
update NetworkPolicy olm/cool-grpc-server (ObjectDiffers: labels, owner or spec differ) {"spec":{"egress":null}}
`},
	"a Service of somebody else blocks the catalog": {func(in *catalog.Input) {
		in.Services.Items[0].OwnerReferences[0] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NameConflict: cool is unmanaged or owned by another
  Progressing=False NameConflict: the service of the catalog's name is unmanaged or owned by another
  Degraded=True NameConflict: cool is unmanaged or owned by another
  {"message":"the service of the catalog's name is unmanaged or owned by another","reason":"RegistryServerError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
State "Serving" -> "Unavailable" (NameConflict) at 01:00:00 NotAfter
Warning NameConflict : cool is unmanaged or owned by another
Drop
`},
	"objects of a predecessor are taken over": {func(in *catalog.Input) { in.Services.Items[0].OwnerReferences[0].UID = "predecessor" }, `
update Service olm/cool (ObjectDiffers: labels, owner or spec differ) {"metadata":{"ownerReferences":[{"apiVersion":"operators.coreos.com/v1alpha1","blockOwnerDeletion":false,"controller":false,"kind":"CatalogSource","name":"cool","uid":"4"}]}}
`},
	"a new secret reaches the ServiceAccount and rolls the Pod": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Secrets = []string{"pull", "", "pull"} })
	}, `
update ServiceAccount olm/cool (ObjectDiffers: label, owner or pull secrets differ) {"imagePullSecrets":[{"name":"pull"}],"metadata":{"annotations":{"olmcore/pull-secrets":"pull"}}}
create Pod olm/cool-2r4qnnxym5 (PodOutdated: the registry Pods were made from another spec)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a secret that left the spec leaves the ServiceAccount": {func(in *catalog.Input) {
		in.ServiceAccounts.Items[0].Annotations = map[string]string{"olmcore/pull-secrets": "pull"}
		in.ServiceAccounts.Items[0].ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}, {Name: "platform"}}
	}, `
update ServiceAccount olm/cool (ObjectDiffers: label, owner or pull secrets differ) {"imagePullSecrets":[{"name":"platform"}],"metadata":{"annotations":null}}
create Pod olm/cool-udxq5vu3nf (PodOutdated: the registry Pods were made from another spec)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a, old spec)
  Progressing=True SpecRollout: registry pods of the new spec replace the others
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"a ServiceAccount of somebody else is used as it is": {func(in *catalog.Input) {
		in.ServiceAccounts.Items[0].OwnerReferences, in.ServiceAccounts.Items[0].Labels = nil, nil
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Secrets = []string{"pull"} })
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
Info ServiceAccountShared : the service account cool is unmanaged or owned by another and is used as it is
`},

	// Spec and status.
	"an unknown source type": {func(in *catalog.Input) { edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "Grpc" }) }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False SpecInvalid: unknown sourcetype: Grpc
  Degraded=True SpecInvalid: unknown sourcetype: Grpc
  {"message":"unknown sourcetype: Grpc","reason":"SpecInvalidError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning SpecInvalid spec.sourceType: unknown sourcetype: Grpc
`},
	"neither image nor address": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image = "" })
		in.Pods.Items = nil
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False SpecInvalid: image and address unset: at least one must be set for sourcetype: grpc
  Progressing=False SpecInvalid: image and address unset: at least one must be set for sourcetype: grpc
  Degraded=True SpecInvalid: image and address unset: at least one must be set for sourcetype: grpc
  {"message":"image and address unset: at least one must be set for sourcetype: grpc","reason":"SpecInvalidError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
State "Serving" -> "Invalid" (SpecInvalid) at 01:00:00 NotAfter
Error SpecInvalid spec.image: image and address unset: at least one must be set for sourcetype: grpc
Drop
`},
	"a config map without name": {func(in *catalog.Input) { edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "internal" }) }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False SpecInvalid: configmap name unset: must be set for sourcetype: internal
  Degraded=True SpecInvalid: configmap name unset: must be set for sourcetype: internal
  {"message":"configmap name unset: must be set for sourcetype: internal","reason":"SpecInvalidError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning SpecInvalid spec.configMap: configmap name unset: must be set for sourcetype: internal
`},
	"a config map that does not exist": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.SourceType, s.ConfigMap = "configmap", "cm" })
		in.Pods.Items = nil
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False ConfigMapMissing: failed to get catalog config map cm: configmaps "cm" not found
  Progressing=False ConfigMapMissing: failed to get catalog config map cm: configmaps "cm" not found
  Degraded=True ConfigMapMissing: failed to get catalog config map cm: configmaps "cm" not found
  {"message":"failed to get catalog config map cm: configmaps \"cm\" not found","reason":"ConfigMapError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
State "Serving" -> "Unavailable" (ConfigMapMissing) at 01:00:00 NotAfter
Error ConfigMapMissing : failed to get catalog config map cm: configmaps "cm" not found
again in 1m0s
`},
	"a memory target below nothing": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) {
			s.GrpcPodConfig = &v1alpha1.GrpcPodConfig{MemoryTarget: new(resource.MustParse("-1"))}
		})
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False SpecInvalid: memoryTarget must not be negative
  Degraded=True SpecInvalid: memoryTarget must not be negative
  {"message":"memoryTarget must not be negative","reason":"SpecInvalidError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning SpecInvalid spec.grpcPodConfig.memoryTarget: memoryTarget must not be negative
`},
	"an address beside an image is ignored": {func(in *catalog.Input) { edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Address = "foo:1" }) }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
Info AddressIgnored spec.address: spec.address has no effect beside spec.image
`},
	"a status that was wiped is rebuilt": {func(in *catalog.Input) { in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{} }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  {"registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
State "" -> "Serving" (RegistryServing) at 00:00:00 Exact
Connection "" -> "READY" () at 00:00:00 Exact
notify [olm]
`},
	"half a registryService is repaired": {func(in *catalog.Input) { in.CatalogSource.Status.RegistryServiceStatus.ServiceName = "" }, `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  {"registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
`},
	"the namespace is unknown": {func(in *catalog.Input) { in.Namespace = nil; in.Pods.Items = nil }, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=Unknown NamespaceUnknown: the namespace was not found, so the security context of the pods is unknown
  Progressing=False NamespaceUnknown: the namespace was not found, so the security context of the pods is unknown
  Degraded=True NamespaceUnknown: the namespace was not found, so the security context of the pods is unknown
  {"message":"the namespace was not found, so the security context of the pods is unknown","reason":"RegistryServerError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
State "Serving" -> "Unknown" (NamespaceUnknown) at 01:00:00 NotAfter
Error NamespaceUnknown : the namespace was not found, so the security context of the pods is unknown
`},
	"a deleted catalog is let go": {func(in *catalog.Input) {
		in.CatalogSource.DeletionTimestamp = new(metav1.NewTime(in.Now))
		in.Pods.Items = nil
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=False Deleting: the catalog is being deleted
  Progressing=False Deleting: the catalog is being deleted
State "Serving" -> "Deleting" (Deleting) at 01:00:00 NotAfter
Drop 
notify [olm]
`},
	"three replicas are asked for": {func(in *catalog.Input) { in.CatalogSource.Annotations = map[string]string{"olmcore/replicas": "3"} }, `
create PodDisruptionBudget olm/cool (ObjectMissing: the catalog needs it)
create Pod olm/cool-2fnkoshaj3 (PodMissing: fewer registry Pods exist than asked for)
create Pod olm/cool-xjfagbp5qm (PodMissing: fewer registry Pods exist than asked for)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/3 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=True Refill: missing registry pods are being replaced
  ReplicasSpread=True Spread: registry pods: 1, nodes: 1
State "Serving" -> "Updating" (RegistryServing) at 01:00:00 NotAfter
`},
	"the Pod is refused": {func(in *catalog.Input) {
		in.Pods.Items = nil
		in.LastRun = olmcore.LastResults{{Kind: "Pod", Namespace: "olm", Name: "cool-w4nrrin4qx"}: {Class: olmcore.Forbidden, Message: "exceeded quota"}}
	}, `
create Pod olm/cool-w4nrrin4qx (PodMissing: fewer registry Pods exist than asked for)
updateStatus CatalogSource olm/cool (StatusChanged) Available=False NoReadyPods: 0/1 registry pods ready
  Progressing=False BackOff: waiting before the next registry pod is started
  Degraded=True PodRejected: the API server refuses the pod: exceeded quota
State "Serving" -> "Unavailable" (NoReadyPods) at 01:00:00 NotAfter
Error PodRejected : the API server refuses the pod: exceeded quota
`},

	// Connection.
	"no client asks for one": {func(in *catalog.Input) { in.Connection = nil }, `
Connect cool.olm.svc:50051
`},
	"a client of another address is replaced": {func(in *catalog.Input) { in.Connection.Address = "old:1" }, `
Connect cool.olm.svc:50051
`},
	"a client that becomes ready is news": {func(in *catalog.Input) {
		in.CatalogSource.Status.GRPCConnectionState.LastObservedState = "CONNECTING"
		in.Subscribers = []string{"team-b", "team-a"}
	}, `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  {"registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T01:00:00Z"}}
Connection "CONNECTING" -> "READY" () at 00:00:00 Exact
notify [olm team-a team-b]
`},
	"a client that cannot connect is reported": {func(in *catalog.Input) {
		in.Connection.State, in.Connection.LastTransition = "TRANSIENT_FAILURE", in.Now.Add(-time.Minute)
	}, `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  Degraded=True ConnectionFailed: no connection to cool.olm.svc:50051
  {"registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"TRANSIENT_FAILURE","lastConnect":"2026-01-01T00:00:00Z"}}
Connection "READY" -> "TRANSIENT_FAILURE" () at 00:59:00 Exact
Warning ConnectionFailed : no connection to cool.olm.svc:50051
`},
	"an idle client is connected": {func(in *catalog.Input) { in.Connection.State = "IDLE" }, `
updateStatus CatalogSource olm/cool (StatusChanged: 1/1 registry pods ready: cool-w4nrrin4qx (a))
  {"registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"IDLE","lastConnect":"2026-01-01T00:00:00Z"}}
Connection "READY" -> "IDLE" () at 00:00:00 Exact
`},
	"a registry at an address replaces the Pods once it answers": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry.example:50051" })
		in.Connection.Address = "registry.example:50051"
	}, `
delete Pod olm/cool-w4nrrin4qx (SourceTypeChanged: the registry at spec.address serves now)
delete Service olm/cool (SourceTypeChanged: the registry at spec.address serves now)
delete NetworkPolicy olm/cool-grpc-server (SourceTypeChanged: the registry at spec.address serves now)
delete NetworkPolicy olm/cool-unpack-bundles (SourceTypeChanged: the registry at spec.address serves now)
delete ServiceAccount olm/cool (SourceTypeChanged: the registry at spec.address serves now)
updateStatus CatalogSource olm/cool (StatusChanged) Available=True ConnectionReady: registry at registry.example:50051
  {"registryService":{"protocol":"grpc","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"registry.example:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
`},
	"the Pods of a registry at an address are its own": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry.example:50051" })
		in.Connection.Address = "registry.example:50051"
		in.Pods.Items[0].OwnerReferences, in.Services.Items, in.ServiceAccounts.Items, in.NetworkPolicies.Items = nil, nil, nil, nil
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True ConnectionReady: registry at registry.example:50051
  {"registryService":{"protocol":"grpc","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"registry.example:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
`},
	"a registry at an address that is not connected": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry.example:50051" })
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=Unknown Connecting: registry at registry.example:50051
  {"registryService":{"protocol":"grpc","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"registry.example:50051","lastObservedState":"IDLE","lastConnect":null}}
State "Serving" -> "Unknown" (Connecting) at 01:00:00 NotAfter
Connect registry.example:50051
`},
	"an address that cannot be dialled": {func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "foo.com" })
	}, `
updateStatus CatalogSource olm/cool (StatusChanged) Available=True RegistryServing: 1/1 registry pods ready: cool-w4nrrin4qx (a)
  Progressing=False SpecInvalid: couldn't connect to registry - address foo.com: missing port in address
  Degraded=True SpecInvalid: couldn't connect to registry - address foo.com: missing port in address
  {"message":"couldn't connect to registry - address foo.com: missing port in address","reason":"RegistryServerError","registryService":{"protocol":"grpc","serviceName":"cool","serviceNamespace":"olm","port":"50051","createdAt":"2026-01-01T00:00:00Z"},"connectionState":{"address":"cool.olm.svc:50051","lastObservedState":"READY","lastConnect":"2026-01-01T00:00:00Z"}}
Warning SpecInvalid spec.address: couldn't connect to registry - address foo.com: missing port in address
`},
}

// TestDefectsOfOLMAreNotShared holds one case for each known fault that has no
// test of its own elsewhere: what is done about the Pods, and what the status says.
func TestDefectsOfOLMAreNotShared(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	name := base.Pods.Items[0].Name
	for fault, test := range map[string]struct {
		change func(*catalog.Input)
		want   []string
	}{
		"a Pod that tolerates every taint stays on a dead node": {func(in *catalog.Input) {
			in.Pods.Items[0].Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			silence(in, time.Hour)
		}, []string{"create a Pod NodeUnreachable"}},
		"a Pod that terminates without being evicted counts as healthy": {func(in *catalog.Input) { terminating(in, 0) }, []string{"create a Pod PodTerminating"}},
		"a finished Pod counts as healthy": {func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodSucceeded },
			[]string{"create a Pod PodTerminated", "delete " + name + " PodTerminated"}},
		"a healthy Pod is force-deleted because its eviction was refused": {func(in *catalog.Input) {
			disrupted(in)
			in.Nodes.Items = in.Nodes.Items[:1]
			in.Pods.Items[0].Spec.NodeName = in.Nodes.Items[0].Name
		}, nil},
		"a service account without label is unhealthy for ever": {func(in *catalog.Input) {
			in.ServiceAccounts.Items[0].OwnerReferences, in.ServiceAccounts.Items[0].Labels = nil, nil
		}, nil},
		"a candidate on a dead node blocks polling": {pollAgo(time.Hour, func(in *catalog.Input) {
			probe(func(p *corev1.Pod) { unready(p) })(in)
			in.Pods.Items[1].CreationTimestamp = metav1.NewTime(in.Now.Add(-time.Hour))
			in.Nodes.Items = slices.DeleteFunc(slices.Clone(in.Nodes.Items), func(n *corev1.Node) bool { return n.Name == "b" })
			in.Pods.Items[1].Status.Conditions[0].LastTransitionTime = metav1.NewTime(in.Now.Add(-time.Hour))
		}), []string{"delete cool-zz NodeGone"}},
		"a candidate that has finished blocks polling": {pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })),
			[]string{"delete cool-zz PodTerminated"}},
		"a lost status costs the Pod":                     {func(in *catalog.Input) { in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{} }, nil},
		"a webhook that rewrites the image costs the Pod": {func(in *catalog.Input) { in.Pods.Items[0].Spec.Containers[0].Image = "mirror.local/catalog@sha256:1" }, nil},
		"a webhook that adds a pull secret costs the Pod": {func(in *catalog.Input) {
			in.Pods.Items[0].Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}}
		}, nil},
		"a new label of the namespace costs the Pod first": {func(in *catalog.Input) {
			in.Namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		}, []string{"create a Pod PodOutdated"}},
		"a pull secret of the platform costs the Pod first": {func(in *catalog.Input) {
			in.ServiceAccounts.Items[0].ImagePullSecrets = []corev1.LocalObjectReference{{Name: "platform"}}
		}, []string{"create a Pod PodOutdated"}},
		"an overdue poll waits once more": {pollAgo(24*time.Hour, nil), []string{"create a Pod PollDue"}},
		"a Pod of a deleted catalog of that name is taken over": {func(in *catalog.Input) { in.Pods.Items[0].OwnerReferences[0].UID = "predecessor" },
			[]string{"create a Pod PodMissing"}},
		"a deleted catalog goes on being served": {func(in *catalog.Input) {
			in.CatalogSource.DeletionTimestamp, in.Pods.Items = new(metav1.NewTime(in.Now)), nil
		}, nil},
		"clocks that differ make a node look dead": {func(in *catalog.Input) { silence(in, -time.Hour) }, nil},
		"an address beside a config map is dialled": {func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) {
				s.SourceType, s.ConfigMap, s.Address = "configmap", "content", "foo:1"
			})
			in.ConfigMap = content()
		}, []string{"create a Pod PodOutdated"}},
		"a Pod made by hand goes with the next change": {func(in *catalog.Input) {
			addPod(in, "mine", func(p *corev1.Pod) { p.OwnerReferences = nil })
			in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
		}, []string{"create a Pod PodOutdated"}},
		"a namespace that ends gets new Pods": {func(in *catalog.Input) { in.Namespace.Status.Phase, in.Pods.Items = corev1.NamespaceTerminating, nil }, nil},
	} {
		out := reconcile(t, base, test.change)
		require.Equal(t, test.want, done(out), fault)
		require.NotEqual(t, "foo:1", out.Connection.Address)
	}
}
