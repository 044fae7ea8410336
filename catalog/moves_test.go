// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// described returns Pods from words: each says what is unlike a Pod of the present
// spec that serves, on a node of its own, made long ago.
func described(in *catalog.Input, text string) (pods []*corev1.Pod) {
	for i, words := range strings.Split(text, ",") {
		p := in.Pods.Items[0].DeepCopy()
		p.Name, p.UID, p.Spec.NodeName = fmt.Sprint("p", i+1), types.UID(fmt.Sprint("uid", i+1)), []string{"a", "b"}[i%2]
		p.Annotations["olmcore/purpose"] = "initial"
		for _, word := range strings.Fields(words) {
			describeAs(in, p, word)
		}
		pods = append(pods, p)
	}
	return pods
}

func describeAs(in *catalog.Input, p *corev1.Pod, word string) {
	switch word {
	case "serves":
	case "candidate":
		candidate(p)
	case "probe":
		candidate(p)
		p.Annotations["olmcore/purpose"] = "poll"
	case "old":
		p.Labels["olm.pod-spec-hash"] = "old"
	case "unready":
		unready(p)
	case "stuck":
		describeAs(in, p, "unready")
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].LastTransitionTime = metav1.NewTime(in.Now.Add(-20 * time.Minute))
		}
	case "disrupted":
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
	case "terminating":
		p.DeletionTimestamp = new(metav1.NewTime(in.Now))
	case "finished":
		p.Status.Phase = corev1.PodFailed
	case "lost":
		p.Spec.NodeName = "nowhere"
	case "new":
		p.Status.ContainerStatuses[0].ImageID = "repo@sha256:new"
	case "newer":
		p.Status.ContainerStatuses[0].ImageID = "repo@sha256:newer"
	case "unknown":
		p.Status.ContainerStatuses[0].ImageID = ""
	case "young":
		p.CreationTimestamp = metav1.NewTime(in.Now.Add(-time.Minute))
	case "unmanaged":
		delete(p.Labels, "olm.managed")
	case "unschedulable":
		p.Spec.NodeName, p.Status = "", corev1.PodStatus{}
		scheduled(p, corev1.ConditionFalse, corev1.PodReasonUnschedulable, in.Now)
	case "failover", "rollout":
		p.Annotations["olmcore/purpose"] = word
	default:
		panic(word)
	}
}

// moves says what a result does to the Pods: + makes one, ^ promotes one, - deletes
// one.
func moves(out catalog.Outcome) string {
	var list []string
	for _, a := range out.Actions {
		verb, target, _ := a.Describe()
		if target.Kind != "Pod" {
			continue
		}
		switch a := a.(type) {
		case olmcore.Create:
			role := "serving"
			if a.Object.GetLabels()["olm.catalogSource"] == "" {
				role = "candidate"
			}
			list = append(list, "+"+role+":"+a.Object.GetAnnotations()["olmcore/purpose"])
		default:
			list = append(list, map[olmcore.Verb]string{olmcore.VerbUpdate: "^", olmcore.VerbDelete: "-"}[verb]+target.Name)
		}
	}
	return strings.Join(list, " ")
}

// TestWhichPodsAreMoved describes the Pods there are and says what is done about them,
// and how that is called.
func TestWhichPodsAreMoved(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, test := range []struct {
		replicas           int
		pods, want, reason string
	}{
		// Nothing serves.
		{1, "unready", "", "Refill"},
		{1, "lost,candidate", "^p2 -p1", "NodeFailover"},
		{1, "lost,candidate young unready", "^p2 -p1", "NodeFailover"},
		{1, "unready,candidate young unready", "-p2", "Refill"},
		{1, "unready,candidate", "^p2", "Refill"},
		{2, "unready,candidate young unready", "^p2", "Refill"},
		{2, "unready,candidate young unready,candidate young unready", "^p2", "Refill"},
		{2, "candidate young unready,candidate,lost", "^p2 ^p1 -p3", "NodeFailover"},
		{2, "candidate,terminating", "+serving:refill ^p1", "Refill"},
		{1, "terminating", "+serving:refill", "Refill"},
		{1, "old unready", "+serving:rollout -p1", "SpecRollout"},
		{1, "old unready,candidate", "^p2 -p1", "SpecRollout"},
		{1, "old unready,young unready", "-p1", "SpecRollout"},
		{2, "old unready,old unready", "+serving:rollout +serving:rollout -p1 -p2", "SpecRollout"},
		{2, "old unready,old unready,old unready", "+serving:rollout -p1 -p2 -p3", "SpecRollout"},
		{1, "unready failover", "", "NodeFailover"},
		{1, "unready rollout", "", "SpecRollout"},
		{2, "lost,lost", "+serving:failover +serving:failover -p1 -p2", "NodeFailover"},

		// Pods of another spec serve.
		{1, "old", "+candidate:rollout", "SpecRollout"},
		{2, "old,old", "+candidate:rollout +candidate:rollout", "SpecRollout"},
		{2, "old,old,old", "+candidate:rollout -p3", "SpecRollout"},
		{2, "old,old,candidate young unready", "+candidate:rollout", "SpecRollout"},
		{2, "old,old,candidate,candidate young unready", "", "SpecRollout"},
		{2, "old,old,candidate,candidate", "^p3 ^p4", "SpecRollout"},
		{2, "old,old,serves,serves", "-p1 -p2", "SpecRollout"},
		{2, "old,serves,candidate", "^p3", "SpecRollout"},
		{2, "old,serves", "+candidate:rollout", "SpecRollout"},
		{2, "old unready,serves", "+candidate:rollout -p1", "SpecRollout"},
		{2, "old unready,serves,candidate young unready", "-p1", "SpecRollout"},
		{3, "old unready,serves", "+candidate:rollout +candidate:initial -p1", "SpecRollout"},
		{1, "old,candidate old", "-p2", "SpecRollout"},
		{1, "old,candidate unschedulable", "-p2", "ProgressDeadlineExceeded"},
		{2, "old,lost", "+candidate:rollout +candidate:rollout -p2", "SpecRollout"},

		// Fewer Pods serve than asked for.
		{2, "serves,lost", "+candidate:failover -p2", "NodeFailover"},
		{2, "serves,terminating", "+candidate:refill", "Refill"},
		{2, "serves,finished", "+candidate:restart -p2", "Refill"},
		{2, "serves,stuck", "+candidate:restart -p2", "Refill"},
		{2, "serves,unready", "", "Refill"},
		{2, "serves,terminating,candidate young unready", "", "Refill"},
		{2, "serves,terminating,candidate young unready failover", "", "NodeFailover"},
		{2, "serves,terminating,candidate", "^p3", "Refill"},
		{2, "serves,terminating,candidate,candidate", "^p3", "Refill"},
		{2, "serves,terminating,candidate unknown", "^p3", "Refill"},
		{2, "serves unknown,terminating,candidate", "^p3", "Refill"},
		{2, "serves,terminating,candidate new", "+candidate:refill", "ContentUpdate"},
		{2, "serves,terminating,candidate new,candidate young unready", "", "ContentUpdate"},
		{2, "serves,terminating,candidate new,candidate new", "^p3 ^p4", "ContentUpdate"},
		{2, "serves,terminating,candidate new,candidate newer", "-p3", "ContentUpdate"},
		{2, "serves,terminating,candidate new young,candidate newer", "-p4", "ContentUpdate"},
		{2, "serves,terminating,candidate new young,candidate newer,candidate new", "-p4", "ContentUpdate"},
		{2, "serves,terminating,candidate new,candidate", "^p4", "Refill"},
		{3, "serves,serves unknown young,terminating,candidate new", "+candidate:refill +candidate:initial", "ContentUpdate"},
		{2, "serves,terminating,candidate old", "+candidate:refill -p3", "Refill"},
		{2, "serves,terminating,candidate new,candidate new old", "+candidate:refill -p4", "ContentUpdate"},
		{2, "serves,terminating,candidate new,candidate new young unready", "", "ContentUpdate"},
		{3, "serves,terminating,terminating,candidate young unready,candidate", "^p5", "Refill"},
		{3, "serves,terminating,terminating,candidate old,candidate", "^p5 -p4", "Refill"},
		{3, "serves,serves,candidate unready", "-p3", "ProgressDeadlineExceeded"},
		{1, "disrupted", "+candidate:refill", "Refill"},
		{1, "disrupted,candidate", "^p2", "Refill"},
		{1, "disrupted,serves", "-p1", ""},
		{2, "disrupted,serves,candidate", "^p3", "Refill"},

		// As many serve as asked for.
		{1, "serves,candidate", "-p2", ""},
		{1, "serves,candidate young unready", "-p2", ""},
		{1, "serves,candidate terminating", "", ""},
		{1, "serves,candidate finished", "-p2", ""},
		{2, "serves,serves new", "-p1", ""},
		{2, "serves young,serves young new,serves young new", "-p1", ""},
		{2, "serves young,serves young,serves young new", "-p3", ""},
		{2, "serves,serves unknown", "", ""},
		{2, "serves disrupted,serves new,serves", "-p2", ""},
		{2, "serves,serves disrupted,serves new", "-p1 -p2", ""},
		{2, "serves,candidate,serves new", "-p1 -p2", ""},
		{1, "serves unmanaged", "^p1", ""},
		{1, "terminating unmanaged,serves", "", ""},
		{1, "serves unmanaged,serves", "^p1 -p2", ""},
	} {
		in := invariant.Clone(base)
		in.Config.Replicas = test.replicas
		in.Pods.Items = described(&in, test.pods)
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, test.want, moves(out), "%d of: %s", test.replicas, test.pods)
		require.Equal(t, test.reason, catalog.Assess(in).WaitingFor, "%d of: %s", test.replicas, test.pods)
		require.NoError(t, invariant.Laws(result, in), test.pods)
		checkSafety(t, in, out, test.replicas)
		checkPromises(t, in, out)
	}
}

// TestWhileNoNodeIsReady a Pod is made only where none is left that runs, and one that
// is refused is told.
func TestWhileNoNodeIsReady(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		change func(*catalog.Input)
		want   string
	}{
		"a Pod runs":          {func(*catalog.Input) {}, ""},
		"a Pod is late":       {func(in *catalog.Input) { unreadyFor(in, time.Hour) }, ""},
		"a Pod is terminated": {func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodFailed }, "+serving:restart"},
		"none is there":       {func(in *catalog.Input) { in.Pods.Items = nil }, "+serving:initial"},
	} {
		in := invariant.Clone(base)
		for _, node := range in.Nodes.Items {
			readyOf(node).Status = corev1.ConditionUnknown
		}
		// Something must hint at the nodes: a Pod of nobody does not.
		addPod(&in, "aside", func(p *corev1.Pod) { p.Labels = nil })
		aside := in.Pods.Items[1]
		test.change(&in)
		if len(in.Pods.Items) == 0 {
			in.Pods.Items = []*corev1.Pod{aside}
		}
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, test.want, moves(out), name)
		require.Equal(t, catalog.StateUnavailable == catalog.Assess(in).State, test.want != "" || name == "a Pod is late", name)
		if test.want == "" {
			continue
		}
		created := out.Actions[0].(olmcore.Create).Target
		in.LastRun = olmcore.LastResults{created.Key(): {Class: olmcore.Forbidden, Message: "exceeded quota", Count: 1, Last: in.Now}}
		out, err = catalog.Reconcile(in)
		require.NoError(t, err)
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Contains(t, meta.FindStatusCondition(status.Status.Conditions, "Degraded").Message, "the API server refuses the pod: exceeded quota", name)
		require.Equal(t, 10*time.Second, out.RequeueAfter, name)
	}
}

// TestAPollWaits while many nodes fail, while a Pod finds no place, and while more Pods
// run than are asked for; and what does not serve the present spec tells no outcome.
func TestAPollWaits(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		change     func(*catalog.Input)
		want, told string
	}{
		"nothing": {func(*catalog.Input) {}, "+candidate:poll", "NeverPolled"},
		"many nodes fail": {func(in *catalog.Input) {
			in.Pods.Items[0].Spec.NodeName = "b"
			setNode(in, corev1.ConditionTrue, time.Minute)
			for i := range 3 {
				n := in.Nodes.Items[0].DeepCopy()
				n.Name, readyOf(n).Status = fmt.Sprint("n", i), corev1.ConditionUnknown
				in.Nodes.Items = append(in.Nodes.Items, n)
			}
		}, "", "NeverPolled"},
		"a Pod finds no place":           {func(in *catalog.Input) { describeAs(in, in.Pods.Items[0], "unschedulable") }, "", "NeverPolled"},
		"a Pod starts":                   {func(in *catalog.Input) { unready(in.Pods.Items[0]) }, "", "NeverPolled"},
		"a candidate crashed":            {probeOf("finished"), "-cool-zz", "CandidateFailed"},
		"a candidate crashed in its end": {probeOf("terminating finished"), "-cool-zz", "NeverPolled"},
		"a candidate is about to end":    {probeOf("terminating unready"), "", "NeverPolled"},
		"a candidate is of another spec": {probeOf("old unready"), "-cool-zz", "NeverPolled"},
		"a candidate is lost":            {probeOf("lost unready"), "-cool-zz", "NeverPolled"},
		"two found different content": {func(in *catalog.Input) {
			probeOf("new")(in)
			probeOf("newer")(in)
			in.Pods.Items[2].Name, in.Pods.Items[2].UID = "cool-zzz", "zzz"
		}, "-cool-zz", "NeverPolled"},
		"two that were made in this second found different content": {func(in *catalog.Input) {
			probeOf("new")(in)
			probeOf("newer")(in)
			in.Pods.Items[2].Name, in.Pods.Items[2].UID = "cool-zzz", "zzz"
			in.Pods.Items[1].CreationTimestamp, in.Pods.Items[2].CreationTimestamp = olmcore.Timestamp(in.Now), olmcore.Timestamp(in.Now)
		}, "", "NeverPolled"},
		"its content is not known": {probeOf("unknown"), "", "NeverPolled"},
	} {
		in := invariant.Clone(base)
		pollAgo(time.Hour, test.change)(&in)
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Equal(t, test.want, moves(out), name)
		require.NoError(t, invariant.Laws(result, in), name)
		require.Equal(t, test.told, meta.FindStatusCondition(catalog.Assess(in).Conditions, catalog.ConditionUpdatePolled).Reason, name)
	}
}

// probeOf adds a Pod that polls, described by words.
func probeOf(words string) func(*catalog.Input) {
	return func(in *catalog.Input) {
		probe(func(p *corev1.Pod) {
			for _, word := range strings.Fields(words) {
				describeAs(in, p, word)
			}
		})(in)
	}
}
