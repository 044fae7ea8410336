// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// describe prints a whole outcome: patches in full, of new objects the name.
func describe(t testing.TB, out catalog.Outcome) string {
	var b strings.Builder
	for _, a := range out.Actions {
		r, err := olmcore.RecordOf(a)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s %s (%s: %s)", r.Verb, r.Target, r.Cause.Reason, r.Cause.Message)
		switch {
		case r.DeleteOptions != nil && r.DeleteOptions.GracePeriodSeconds != nil:
			fmt.Fprintf(&b, " grace=%d version=%v", *r.DeleteOptions.GracePeriodSeconds, r.Target.ResourceVersion != "")
		case r.Verb == olmcore.VerbUpdateStatus:
			describeStatus(&b, a.(olmcore.UpdateStatus))
		case r.Patch != nil:
			fmt.Fprintf(&b, " %s", r.Patch)
		}
		b.WriteByte('\n')
	}
	for _, tr := range out.Transitions {
		fmt.Fprintf(&b, "%s %q -> %q (%s) at %s %s\n", tr.Type, tr.From, tr.To, tr.Reason, tr.At.Format(time.TimeOnly), tr.Bound)
	}
	for _, d := range out.Diagnostics {
		fmt.Fprintf(&b, "%s %s %s: %s\n", d.Severity, d.Reason, d.Path, d.Message)
	}
	if out.Connection != (catalog.ConnectionRequest{}) {
		fmt.Fprintf(&b, "%s %s\n", out.Connection.Verb, out.Connection.Address)
	}
	if out.Notify.InvalidateSnapshot {
		fmt.Fprintf(&b, "notify %s\n", out.Notify.ResolveNamespaces)
	}
	if out.RequeueAfter != 0 {
		fmt.Fprintf(&b, "again in %s\n", out.RequeueAfter)
	}
	return strings.TrimSpace(b.String())
}

func describeStatus(b *strings.Builder, a olmcore.UpdateStatus) {
	before, after := a.Before.(*v1alpha1.CatalogSource).Status, a.After.(*v1alpha1.CatalogSource).Status
	for _, c := range after.Conditions {
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old == nil || *old != c {
			fmt.Fprintf(b, "\n  %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, c := range before.Conditions {
		if meta.FindStatusCondition(after.Conditions, c.Type) == nil {
			fmt.Fprintf(b, "\n  no %s", c.Type)
		}
	}
	before.Conditions, after.Conditions = nil, nil
	if x, y := mustJSON(before), mustJSON(after); x != y {
		fmt.Fprintf(b, "\n  %s", y)
	}
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func unready(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(start.Add(time.Hour))
		}
	}
}

// silence makes the node of the Pod silent for a time.
func silence(in *catalog.Input, d time.Duration) *corev1.Node {
	unready(in.Pods.Items[0])
	return setNode(in, corev1.ConditionUnknown, d)
}

func setNode(in *catalog.Input, status corev1.ConditionStatus, d time.Duration) *corev1.Node {
	for _, node := range in.Nodes.Items {
		if node.Name == in.Pods.Items[0].Spec.NodeName {
			readyOf(node).Status = status
			readyOf(node).LastTransitionTime = metav1.NewTime(in.Now.Add(-d))
			return node
		}
	}
	return nil
}

// readyOf is the condition Ready of a node.
func readyOf(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return &corev1.NodeCondition{}
}

func terminating(in *catalog.Input, d time.Duration) {
	in.Pods.Items[0].DeletionTimestamp = new(metav1.NewTime(in.Now.Add(-d)))
	in.Pods.Items[0].DeletionGracePeriodSeconds = new(int64(30))
}

func disrupted(in *catalog.Input) {
	in.Pods.Items[0].Status.Conditions = append(in.Pods.Items[0].Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
}

func waiting(in *catalog.Input, reason string) {
	unready(in.Pods.Items[0])
	in.Pods.Items[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// edit changes the spec as the API server counts it.
func edit(in *catalog.Input, change func(*v1alpha1.CatalogSourceSpec)) {
	change(&in.CatalogSource.Spec)
	in.CatalogSource.Generation++
}

// addPod adds a copy of the first Pod that is another Pod, on node b.
func addPod(in *catalog.Input, name string, change func(*corev1.Pod)) {
	pod := in.Pods.Items[0].DeepCopy()
	pod.Name, pod.UID, pod.Spec.NodeName = name, "uid-"+in.Pods.Items[0].UID, "b"
	pod.CreationTimestamp = metav1.NewTime(in.Now.Add(-time.Minute))
	change(pod)
	in.Pods.Items = append(in.Pods.Items, pod)
}

func candidate(pod *corev1.Pod) {
	pod.Labels["olm.catalogSource"], pod.Labels["catalogsource.operators.coreos.com/update"] = "", "cool"
}

func polling(interval string) *v1alpha1.UpdateStrategy {
	return &v1alpha1.UpdateStrategy{RegistryPoll: &v1alpha1.RegistryPoll{RawInterval: interval}}
}

// pollAgo turns polling every 45 minutes on, with the last poll some time ago.
func pollAgo(ago time.Duration, change func(*catalog.Input)) func(*catalog.Input) {
	return func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("45m") })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-ago)))
		if change != nil {
			change(in)
		}
	}
}

// probe adds a candidate that polls, made a minute ago.
func probe(change func(*corev1.Pod)) func(*catalog.Input) {
	return func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			p.Annotations["olmcore/purpose"] = "poll"
			if change != nil {
				change(p)
			}
		})
	}
}

// hashV046 is the hash of cool's Pod as releases v0.42 to v0.46 made it.
const hashV046 = "az8Sdj7qplRNZwJ6scGZkG47Br6F4bLfZkoO0S"
