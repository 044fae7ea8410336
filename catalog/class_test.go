// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestOneRowAddsAClassOfPod checks that one row adds a class: Pods in quarantine do not serve, are replaced on
// another Node, are removed, and are named in the status.
func TestOneRowAddsAClassOfPod(t *testing.T) {
	reconcile, assess := catalog.With(catalog.Traits{
		Class: "Quarantined", Matches: func(p *catalog.RegistryPod) bool { return p.Annotations["quarantine"] != "" },
		Order: 1, Purpose: registry.PurposeRefill, Reason: "PodQuarantined", Avoid: true, Remove: catalog.RemoveStuck,
		Complaint: func(*catalog.RegistryPod) string { return "PodQuarantined" },
		Note:      "in quarantine", Explanation: "it is in quarantine on {node}",
	})
	in := invariant.Clone(converged(t, catalog.Config{}, cool()))
	pod := in.Pods.Items[0]
	pod.Annotations["quarantine"] = "yes"
	require.NoError(t, invariant.Laws(func(in catalog.Input) (olmcore.Result, error) {
		out, err := reconcile(in)
		return out.Result, err
	}, in))
	out, err := reconcile(in)
	require.NoError(t, err)
	create := out.Actions[0].(olmcore.Create)
	require.Equal(t, olmcore.Cause{Reason: "PodQuarantined", Message: "replaces " + pod.Name + ": it is in quarantine on node a"}, create.Cause)
	replacement := create.Object.(*corev1.Pod)
	require.Equal(t, string(pod.UID), replacement.Annotations["olmcore/replaces"])
	avoided := replacement.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Preference.MatchFields[0]
	require.Equal(t, []string{"a"}, avoided.Values)
	conditions := assess(in).Conditions
	require.Equal(t, "0/1 registry pods ready: "+pod.Name+" (a, in quarantine)", meta.FindStatusCondition(conditions, catalog.ConditionAvailable).Message)
	degraded := meta.FindStatusCondition(conditions, catalog.ConditionDegraded)
	require.Equal(t, "PodQuarantined", degraded.Reason)
	require.Equal(t, pod.Name+" on a: in quarantine", degraded.Message)
	require.Equal(t, catalog.Class("Quarantined"), assess(in).Pods[0].Class)

	addPod(&in, "cool-zz", func(p *corev1.Pod) { delete(p.Annotations, "quarantine") })
	out, err = reconcile(in)
	require.NoError(t, err)
	require.Equal(t, []string{"delete " + pod.Name + " PodQuarantined"}, done(out))
}

// TestEveryPodClassIsComplete checks that every row of the table has the fields that it needs.
func TestEveryPodClassIsComplete(t *testing.T) {
	seen := map[catalog.Class]bool{}
	for _, row := range catalog.Classes {
		require.NotNil(t, row.Matches, row.Class)
		require.False(t, seen[row.Class], "%s is there twice", row.Class)
		seen[row.Class] = true
		require.Equal(t, row.Order > 0, row.Purpose != "", "%s: a Pod that is replaced has the purpose of its replacement", row.Class)
		require.True(t, row.Order == 0 || row.Reason != "" || row.Class == catalog.ClassLost,
			"%s: a Pod that is replaced has a reason", row.Class)
		require.True(t, row.Active || !row.Live, "%s: a live Pod takes room", row.Class)
		require.True(t, row.Live || !row.Leaving, "%s: a Pod that is about to be evicted is live", row.Class)
	}
	require.True(t, catalog.Classes[len(catalog.Classes)-1].Matches(&catalog.RegistryPod{}), "the last row fits every Pod")
}

// TestEveryNodeStateIsComplete checks that a row whose Pods are lost says why, and that the last row matches every
// Node.
func TestEveryNodeStateIsComplete(t *testing.T) {
	states := map[catalog.NodeState]bool{}
	for _, row := range catalog.NodeClasses {
		require.False(t, states[row.State], "%s is contained twice", row.State)
		states[row.State] = true
		require.NotNil(t, row.Matches, row.State)
		require.NotNil(t, row.Since, row.State)
		require.Equal(t, row.LostReason != "", row.Phrase != "", "%s: messages about a lost Pod describe its Node", row.State)
		require.True(t, row.Grace == nil || row.LostReason != "", "%s: a grace period ends with a reason", row.State)
		require.True(t, row.LostReason == "" || row.Avoid, "%s: new Pods avoid a Node whose Pods are lost", row.State)
	}
	require.Equal(t, catalog.NodeHealthy, catalog.NodeClasses[len(catalog.NodeClasses)-1].State)
}

// scheduled sets the PodScheduled condition of a Pod.
func scheduled(p *corev1.Pod, status corev1.ConditionStatus, reason string, at time.Time) {
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)})
}

// crash lets the registry container of the Pod terminate some times, the last time for a reason.
func crash(in *catalog.Input, restarts int32, reason string) *corev1.ContainerStatus {
	unready(in.Pods.Items[0])
	s := &in.Pods.Items[0].Status.ContainerStatuses[0]
	s.Ready, s.RestartCount = false, restarts
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: 1}
	return s
}

// evicted deletes the Pod because its Node is drained.
func evicted(in *catalog.Input, reason string) {
	terminating(in, 0)
	disrupted(in)
	in.Pods.Items[0].Status.Conditions[len(in.Pods.Items[0].Status.Conditions)-1].Reason = reason
}

// TestClassifyPods changes one thing about a Pod or its Node, and checks the class of the Pod, the state of the
// Node, the reason, and how long they last.
func TestClassifyPods(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	node := func(in *catalog.Input) *corev1.Node { return setNode(in, corev1.ConditionTrue, time.Hour) }
	withoutNode := func(in *catalog.Input) {
		in.Nodes.Items = slices.DeleteFunc(slices.Clone(in.Nodes.Items), func(n *corev1.Node) bool { return n.Name == "a" })
	}
	for name, test := range map[string]struct {
		change func(*catalog.Input)
		want   string
	}{
		"nothing":                                      {func(*catalog.Input) {}, "Serving Healthy"},
		"ready, of a silent node":                      {func(in *catalog.Input) { setNode(in, corev1.ConditionUnknown, time.Hour) }, "Serving Unreachable"},
		"ready, of a node not ready":                   {func(in *catalog.Input) { setNode(in, corev1.ConditionFalse, time.Hour) }, "Serving NotReady"},
		"ready, of a node long gone":                   {withoutNode, "Lost Gone NodeGone"},
		"ready, of a node off":                         {func(in *catalog.Input) { off(setNode(in, corev1.ConditionFalse, 0)) }, "Lost OutOfService NodeOutOfService"},
		"a working node with the out-of-service taint": {func(in *catalog.Input) { off(node(in)) }, "Disrupted Leaving"},
		"a taint that only repels": {func(in *catalog.Input) {
			node(in).Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
		}, "Serving Healthy"},
		"a taint that evicts": {func(in *catalog.Input) {
			node(in).Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}
		}, "Disrupted Leaving"},
		"a taint that is tolerated":   {tolerates(corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}), "Serving Healthy"},
		"no key is equal to no taint": {tolerates(corev1.Toleration{Value: "y"}), "Disrupted Leaving"},
		"a node of no condition": {func(in *catalog.Input) {
			unready(in.Pods.Items[0])
			n := node(in)
			n.Status.Conditions, n.CreationTimestamp = nil, metav1.NewTime(in.Now.Add(-20*time.Second))
		}, "Starting Unreachable for 10s"},
		"a node of no condition for long": {func(in *catalog.Input) {
			unready(in.Pods.Items[0])
			node(in).Status.Conditions = nil
		}, "Lost Unreachable NodeUnreachable"},
		"a node that recovered": {func(in *catalog.Input) { setNode(in, corev1.ConditionTrue, 119*time.Second) }, "Serving Recovering for 1s"},
		"a tainted node that recovered": {func(in *catalog.Input) {
			setNode(in, corev1.ConditionTrue, 119*time.Second).Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}
		}, "Disrupted Leaving"},
		"a node that recovered long ago":  {func(in *catalog.Input) { setNode(in, corev1.ConditionTrue, 120*time.Second) }, "Serving Healthy"},
		"a young node ready after 2 min":  {young(120 * time.Second), "Serving Healthy"},
		"a young node ready after longer": {young(121 * time.Second), "Serving Recovering for 1m0s"},
		"unready on a node that recovered": {func(in *catalog.Input) {
			setNode(in, corev1.ConditionTrue, 20*time.Second)
			unreadyFor(in, 9*time.Minute)
		}, "Starting Recovering for 1m0s"},
		"late on a node that recovered": {func(in *catalog.Input) {
			setNode(in, corev1.ConditionTrue, 20*time.Second)
			unreadyFor(in, time.Hour)
		}, "Stuck Recovering for 1m40s"},
		"late on a node that fell silent": {func(in *catalog.Input) {
			setNode(in, corev1.ConditionUnknown, 10*time.Second)
			unreadyFor(in, time.Hour)
		}, "Starting Unreachable for 20s"},
		"late on a node gone a while ago": {func(in *catalog.Input) {
			in.Config.NodeGoneGrace = time.Hour
			withoutNode(in)
			unreadyFor(in, 20*time.Minute)
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", in.Now.Add(-20*time.Minute))
		}, "Starting Gone for 40m0s"},
		"late without node": {func(in *catalog.Input) {
			unreadyFor(in, time.Hour)
			in.Pods.Items[0].Spec.NodeName = ""
		}, "Starting Unassigned"},
		"bound long after its creation": {func(in *catalog.Input) {
			unreadyFor(in, time.Hour)
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", in.Now.Add(-time.Minute))
		}, "Starting Healthy for 9m0s"},
		"not bound, whatever the time of the condition": {func(in *catalog.Input) {
			unreadyFor(in, time.Hour)
			scheduled(in.Pods.Items[0], corev1.ConditionFalse, "", in.Now)
		}, "Stuck Healthy"},
		"bound at no time, to a node just gone": {func(in *catalog.Input) {
			withoutNode(in)
			in.Pods.Items[0].CreationTimestamp = metav1.NewTime(in.Now.Add(-10 * time.Second))
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, "", time.Time{})
		}, "Serving Gone for 1m30s"},
		"bound, with a reason of its past": {func(in *catalog.Input) {
			unreadyFor(in, 0)
			scheduled(in.Pods.Items[0], corev1.ConditionTrue, corev1.PodReasonUnschedulable, in.Now)
		}, "Starting Healthy for 10m0s"},
		"bound, with another true condition": {func(in *catalog.Input) {
			unreadyFor(in, 0)
			in.Pods.Items[0].Status.Conditions = append(in.Pods.Items[0].Status.Conditions, corev1.PodCondition{
				Type: "Other", Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable})
		}, "Starting Healthy for 10m0s"},
		"a working node with an out-of-service taint that only repels": {func(in *catalog.Input) {
			off(node(in))
			node(in).Spec.Taints[0].Effect = corev1.TaintEffectNoSchedule
		}, "Disrupted Leaving"},
		"ready until a while ago": {func(in *catalog.Input) { unreadyFor(in, 4*time.Minute) }, "Starting Healthy for 6m0s"},
		"cannot be scheduled":     {func(in *catalog.Input) { pending(in, corev1.PodReasonUnschedulable) }, "Unhealthy Unassigned PodUnschedulable for 10m0s"},
		"it may not be scheduled": {func(in *catalog.Input) { pending(in, corev1.PodReasonSchedulingGated) }, "Starting Unassigned for 10m0s"},
		"one crash":               {func(in *catalog.Input) { crash(in, 1, "Error") }, "Starting Healthy for 10m0s"},
		"two crashes":             {func(in *catalog.Input) { crash(in, 2, "Error") }, "Unhealthy Healthy CrashLooping for 10m0s"},
		"one lack of memory":      {func(in *catalog.Input) { crash(in, 1, "OOMKilled") }, "Unhealthy Healthy CrashLooping for 10m0s"},
		"crashes of old":          {func(in *catalog.Input) { crash(in, 5, "Error").Ready = true }, "Starting Healthy for 10m0s"},
		"crashes, and an image that is gone": {func(in *catalog.Input) {
			s := *crash(in, 5, "Error")
			s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
			in.Pods.Items[0].Status.ContainerStatuses = append(in.Pods.Items[0].Status.ContainerStatuses, s)
		}, "Unhealthy Healthy ImagePullFailed for 10m0s"},
		"a failed sandbox":              {func(in *catalog.Input) { waiting(in, "ContainerCreating") }, "Starting Healthy for 10m0s"},
		"an image that is never pulled": {func(in *catalog.Input) { waiting(in, "ErrImageNeverPull") }, "Unhealthy Healthy ImagePullFailed for 10m0s"},
		"a container that cannot run":   {func(in *catalog.Input) { waiting(in, "RunContainerError") }, "Unhealthy Healthy CrashLooping for 10m0s"},
		"a broken config":               {func(in *catalog.Input) { waiting(in, "CreateContainerConfigError") }, "Unhealthy Healthy CrashLooping for 10m0s"},
		"an eviction of another kind": {func(in *catalog.Input) {
			in.Nodes = olmcore.Observed[*corev1.Node]{}
			evicted(in, "EvictionByEvictionAPI")
		}, "Terminating NotObserved for 2m0s"},
		"an eviction because of the node": {func(in *catalog.Input) {
			in.Nodes = olmcore.Observed[*corev1.Node]{}
			evicted(in, "DeletionByTaintManager")
		}, "Lost NotObserved Evicted"},
		"an eviction of a Pod left over":     {func(in *catalog.Input) { in.Nodes = olmcore.Observed[*corev1.Node]{}; evicted(in, "DeletionByPodGC") }, "Lost NotObserved Evicted"},
		"an eviction observed with its node": {func(in *catalog.Input) { evicted(in, "DeletionByTaintManager") }, "Terminating Healthy for 2m0s"},
		"an eviction that was cancelled": {func(in *catalog.Input) {
			in.Nodes = olmcore.Observed[*corev1.Node]{}
			evicted(in, "DeletionByTaintManager")
			in.Pods.Items[0].Status.Conditions[len(in.Pods.Items[0].Status.Conditions)-1].Status = corev1.ConditionFalse
		}, "Terminating NotObserved for 2m0s"},
		"to be deleted an hour from now": {func(in *catalog.Input) { terminating(in, -time.Hour) }, "Terminating Healthy for 1h2m0s"},
		"deleted two minutes ago":        {func(in *catalog.Input) { terminating(in, 2*time.Minute) }, "Lost Healthy Overdue"},
		"finished and deleted":           {func(in *catalog.Input) { terminating(in, 0); in.Pods.Items[0].Status.Phase = corev1.PodSucceeded }, "Terminated"},
		"without an owner":               {func(in *catalog.Input) { in.Pods.Items[0].OwnerReferences = nil }, "Foreign"},
		"created from another spec":      {func(in *catalog.Input) { in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old" }, "Outdated Healthy"},
		"without a spec hash":            {func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.pod-spec-hash") }, "Outdated Healthy"},
		"to be evicted":                  {disrupted, "Disrupted Healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(base)
			test.change(&in)
			require.NoError(t, invariant.Laws(result, in))
			a := catalog.Assess(in)
			require.Len(t, a.Pods, 1)
			require.Equal(t, test.want, worth(in, a))
		})
	}
}

func worth(in catalog.Input, a catalog.Assessment) string {
	text := string(a.Pods[0].Class)
	if state := a.Pods[0].NodeState; state != "" {
		text += " " + string(state)
	}
	if a.Pods[0].Reason != "" {
		text += " " + a.Pods[0].Reason
	}
	if !a.NextDeadline.IsZero() {
		text += fmt.Sprint(" for ", a.NextDeadline.Sub(in.Now))
	}
	return text
}

func off(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
}

// tolerates adds a taint that evicts to the Node, and a toleration to the Pod.
func tolerates(toleration corev1.Toleration) func(*catalog.Input) {
	return func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Hour).Spec.Taints = []corev1.Taint{{Key: "x", Value: "y", Effect: corev1.TaintEffectNoExecute}}
		in.Pods.Items[0].Spec.Tolerations = []corev1.Toleration{toleration}
	}
}

// young lets the Node of the Pod have become ready a minute ago, some time after its creation.
func young(after time.Duration) func(*catalog.Input) {
	return func(in *catalog.Input) {
		node := setNode(in, corev1.ConditionTrue, time.Minute)
		node.CreationTimestamp = metav1.NewTime(readyOf(node).LastTransitionTime.Add(-after))
	}
}

func unreadyFor(in *catalog.Input, d time.Duration) {
	for i := range in.Pods.Items[0].Status.Conditions {
		if c := &in.Pods.Items[0].Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(in.Now.Add(-d))
		}
	}
}

// pending lets the Pod be new and not scheduled.
func pending(in *catalog.Input, reason string) {
	p := in.Pods.Items[0]
	p.Spec.NodeName, p.CreationTimestamp, p.Status = "", metav1.NewTime(in.Now), corev1.PodStatus{Phase: corev1.PodPending}
	scheduled(p, corev1.ConditionFalse, reason, in.Now)
}

// TestPodsOfOtherCatalogsAreIgnored checks that Pods of other catalogs are ignored, because an Input may contain all
// Pods of the namespace.
func TestPodsOfOtherCatalogsAreIgnored(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, change := range map[string]func(*corev1.Pod){
		"one that serves": func(p *corev1.Pod) { p.Labels["olm.catalogSource"] = "other" },
		"a candidate": func(p *corev1.Pod) {
			p.Labels["olm.catalogSource"], p.Labels["catalogsource.operators.coreos.com/update"] = "", "other"
		},
		"one that serves, and was a candidate of this one": func(p *corev1.Pod) {
			p.Labels["olm.catalogSource"], p.Labels["catalogsource.operators.coreos.com/update"] = "other", "cool"
		},
		"one without labels": func(p *corev1.Pod) { p.Labels = nil },
	} {
		in := invariant.Clone(base)
		addPod(&in, "other-zz", func(p *corev1.Pod) {
			p.OwnerReferences[0].UID = "other"
			change(p)
		})
		require.Len(t, catalog.Assess(in).Pods, 1, name)
	}
}

// TestDisruptionFollowsTheShareOfFailedNodes checks that replacements are limited if at least three Nodes and 55 %
// of them fail, and stop if all Nodes fail.
func TestDisruptionFollowsTheShareOfFailedNodes(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, test := range []struct {
		good, bad int
		want      string
	}{
		{1, 1, "NodeFailover"}, {1, 2, "NodeFailover"}, {0, 1, "WaitingForNodes"}, {0, 5, "WaitingForNodes"},
		{3, 3, "NodeFailover"}, {2, 3, "NodeFailover MassDisruption"}, {9, 11, "NodeFailover MassDisruption"}, {5, 6, "NodeFailover"}, {50, 60, "NodeFailover"},
	} {
		in := invariant.Clone(base)
		good := in.Nodes.Items[1].DeepCopy()
		silence(&in, time.Hour)
		bad := in.Nodes.Items[0].DeepCopy()
		in.Nodes.Items = []*corev1.Node{bad}
		for i := range test.bad - 1 {
			n := bad.DeepCopy()
			n.Name = fmt.Sprint("bad", i)
			in.Nodes.Items = append(in.Nodes.Items, n)
		}
		for i := range test.good {
			n := good.DeepCopy()
			n.Name = fmt.Sprint("good", i)
			in.Nodes.Items = append(in.Nodes.Items, n)
		}
		a := catalog.Assess(in)
		got := a.WaitingFor
		if a.State == catalog.StateRecovering && len(a.Conditions[2].Message) > len("cool-w4nrrin4qx on a: lost, its node is unreachable") {
			got += " MassDisruption"
		}
		require.Equal(t, test.want, got, "%d of %d", test.bad, test.good+test.bad)
	}
}

// TestContentDigestOfAPod checks which container status contains the digest of the content: that of the only
// container, or that of the init container that copies the content.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_test.go.
func TestContentDigestOfAPod(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	served := base.Pods.Items[0].Status.ContainerStatuses[0].ImageID
	status := func(id string) corev1.ContainerStatus { return corev1.ContainerStatus{ImageID: id} }
	for name, test := range map[string]struct {
		inits, containers []corev1.ContainerStatus
		want              []string
	}{
		"one container with the content":       {nil, []corev1.ContainerStatus{status(served)}, []string{"delete cool-zz UpToDate"}},
		"one container with other content":     {nil, []corev1.ContainerStatus{status("x@sha256:new")}, []string{"update cool-zz CandidateReady"}},
		"copied, the same":                     {[]corev1.ContainerStatus{status("u"), status(served)}, []corev1.ContainerStatus{status("opm")}, []string{"delete cool-zz UpToDate"}},
		"copied, other content":                {[]corev1.ContainerStatus{status("u"), status("x@sha256:new")}, []corev1.ContainerStatus{status("opm")}, []string{"update cool-zz CandidateReady"}},
		"two containers have no known content": {nil, []corev1.ContainerStatus{status("x@sha256:new"), status("y")}, nil},
		"one container that copies, not two":   {[]corev1.ContainerStatus{status("x@sha256:new")}, []corev1.ContainerStatus{status("x@sha256:new")}, nil},
		"no status of any container":           {nil, nil, nil},
		"a container whose image is not known": {nil, []corev1.ContainerStatus{status("")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, done(reconcile(t, base, pollAgo(time.Minute, probe(func(p *corev1.Pod) {
				p.Status.InitContainerStatuses, p.Status.ContainerStatuses = test.inits, test.containers
			})))))
		})
	}
}
