// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"slices"
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
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// described returns the Pods that a text describes. A word says how the Pod differs from a current Pod that serves on
// a Node of its own.
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
		p.CreationTimestamp = metav1.NewTime(in.Now.Add(-2 * time.Minute))
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

// moves lists what an outcome does to Pods: + creates, ^ promotes, - deletes.
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

// TestWhichPodsAreCreatedPromotedAndDeleted checks for descriptions of Pods which of them are created, promoted and
// deleted, and which reason is reported.
func TestWhichPodsAreCreatedPromotedAndDeleted(t *testing.T) {
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
		{1, "serves unmanaged,serves", "^p1", ""},
	} {
		in := invariant.Clone(base)
		in.Config.Replicas = test.replicas
		in.Pods.Items = described(&in, test.pods)
		in = recorded(t, in)
		out := answer(t, in)
		require.Equal(t, test.want, moves(out), "%d of: %s", test.replicas, test.pods)
		require.Equal(t, test.reason, catalog.Assess(in).WaitingFor, "%d of: %s", test.replicas, test.pods)
		require.NoError(t, invariant.Laws(result, in), test.pods)
		checkSafety(t, in, out, test.replicas)
		checkPromises(t, in, out)
	}
}

// TestNoSecondPodIsCreatedWhileNoNodeIsReady checks that a Pod is only created if no unfinished Pod is left, and
// that a rejected Pod is reported.
func TestNoSecondPodIsCreatedWhileNoNodeIsReady(t *testing.T) {
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
		// Something must hint at the nodes: an unmanaged Pod does not.
		addPod(&in, "aside", func(p *corev1.Pod) { p.Labels = nil })
		aside := in.Pods.Items[1]
		test.change(&in)
		if len(in.Pods.Items) == 0 {
			in.Pods.Items = []*corev1.Pod{aside}
		}
		out := answer(t, in)
		require.Equal(t, test.want, moves(out), name)
		require.Equal(t, catalog.StateUnavailable == catalog.Assess(in).State, test.want != "" || name == "a Pod is late", name)
		if test.want == "" {
			continue
		}
		created := out.Actions[0].(olmcore.Create).Target
		in.LastRun = olmcore.LastResults{created.Key(): {Class: olmcore.Forbidden, Message: "exceeded quota", Count: 1, Last: in.Now}}
		out = answer(t, in)
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Contains(t, meta.FindStatusCondition(status.Status.Conditions, "Degraded").Message, "the API server rejected the pod: exceeded quota", name)
		require.Equal(t, 10*time.Second, out.RequeueAfter, name)
	}
}

// TestPodsThatDoNotServeMakeRoomForTheNewSpec checks that two Pods of an old spec that do not serve make room for
// one new Pod. The worse one is deleted first.
func TestPodsThatDoNotServeMakeRoomForTheNewSpec(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 2}, cool())
	shrink := func(in *catalog.Input) {
		for _, pod := range in.Pods.Items {
			unready(pod)
			pod.Labels["olm.pod-spec-hash"] = "old"
		}
		in.CatalogSource.Annotations = map[string]string{"olmcore/replicas": "1"}
	}
	out := reconcile(t, base, shrink)
	require.Equal(t, []string{"delete " + base.Pods.Items[1].Name + " PodSurplus"}, done(out))
	out = reconcile(t, base, func(in *catalog.Input) {
		shrink(in)
		in.Pods.Items = in.Pods.Items[:1]
	})
	require.Equal(t, []string{"create a Pod PodOutdated", "delete " + base.Pods.Items[0].Name + " PodOutdated"}, done(out))
}

// TestOneDecisionHandlesHundredsOfPods checks that one decision handles hundreds of Pods, which a controller
// without computed names may have created.
func TestOneDecisionHandlesHundredsOfPods(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	const n = 300
	for name, test := range map[string]struct {
		change           func(i int, p *corev1.Pod)
		creates, deletes int
	}{
		"serving":         {func(int, *corev1.Pod) {}, 0, n - 1},
		"on a node each":  {func(i int, p *corev1.Pod) { p.Spec.NodeName = fmt.Sprint("gone", i) }, 1, n},
		"with a content":  {func(i int, p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = fmt.Sprint("x@sha256:", i) }, 0, n - 1},
		"finished":        {func(_ int, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 1, n},
		"being deleted":   {func(_ int, p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(base.Now)) }, 1, 0},
		"not starting":    {func(_ int, p *corev1.Pod) { unready(p); p.Status.Conditions = nil }, 0, n - 1},
		"of another spec": {func(_ int, p *corev1.Pod) { p.Labels["olm.pod-spec-hash"] = "old" }, 0, n - 1},
		"not yet serving": {func(_ int, p *corev1.Pod) { candidate(p) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(base)
			in.Pods.Items, in.Now = nil, in.Now.Add(10*time.Minute)
			for i := range n {
				p := base.Pods.Items[0].DeepCopy()
				p.Name, p.UID = fmt.Sprintf("cool-%05d", i), types.UID(fmt.Sprint("twin", i))
				test.change(i, p)
				in.Pods.Items = append(in.Pods.Items, p)
			}
			in = recorded(t, in)
			out := answer(t, in)
			verbs := map[olmcore.Verb]int{}
			for _, a := range out.Actions {
				if verb, target, _ := a.Describe(); target.Kind == "Pod" {
					verbs[verb]++
				}
			}
			require.Equal(t, []int{test.creates, test.deletes}, []int{verbs[olmcore.VerbCreate], verbs[olmcore.VerbDelete]})
			checkSafety(t, in, out, 1)
		})
	}
}

// TestAPodIsReplacedBeforeItsEvictionIfAnotherNodeCanRunIt checks that a Pod is replaced before its eviction if
// another Node can run the replacement.
func TestAPodIsReplacedBeforeItsEvictionIfAnotherNodeCanRunIt(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	taint := corev1.Taint{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	tolerate := func(tolerations ...corev1.Toleration) func(*catalog.Input, *corev1.Node) {
		return func(in *catalog.Input, other *corev1.Node) {
			other.Spec.Taints = []corev1.Taint{taint}
			in.CatalogSource.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{Tolerations: tolerations}
		}
	}
	for name, test := range map[string]struct {
		change func(*catalog.Input, *corev1.Node)
		moves  bool
	}{
		"a healthy node":  {func(*catalog.Input, *corev1.Node) {}, true},
		"a cordoned node": {func(_ *catalog.Input, other *corev1.Node) { other.Spec.Unschedulable = true }, false},
		"another system":  {func(_ *catalog.Input, other *corev1.Node) { other.Labels["kubernetes.io/os"] = "windows" }, false},
		"a soft taint": {func(_ *catalog.Input, other *corev1.Node) {
			other.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, true},
		"a taint":              {tolerate(), false},
		"a tolerated key":      {tolerate(corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists}), true},
		"a tolerated value":    {tolerate(corev1.Toleration{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}), true},
		"another value":        {tolerate(corev1.Toleration{Key: "dedicated", Value: "y"}), false},
		"another effect":       {tolerate(corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}), false},
		"an unknown operator":  {tolerate(corev1.Toleration{Key: "dedicated", Operator: "Gt", Value: "x"}), false},
		"everything tolerated": {tolerate(corev1.Toleration{Operator: corev1.TolerationOpExists}), true},
		"a node selector that fits": {func(in *catalog.Input, other *corev1.Node) {
			in.CatalogSource.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{NodeSelector: map[string]string{"disk": "ssd"}}
			other.Labels["disk"] = "ssd"
		}, true},
		"a node selector that does not": {func(in *catalog.Input, _ *corev1.Node) {
			in.CatalogSource.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{NodeSelector: map[string]string{"disk": "ssd"}}
		}, false},
		"a node selector of one's own": {func(in *catalog.Input, other *corev1.Node) {
			in.CatalogSource.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{NodeSelector: map[string]string{}}
			delete(other.Labels, "kubernetes.io/os")
		}, true},
		"a taint that evicts": {func(_ *catalog.Input, other *corev1.Node) {
			other.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}}
		}, false},
		"no other node":            {func(in *catalog.Input, _ *corev1.Node) { in.Nodes.Items = in.Nodes.Items[:1] }, false},
		"nodes that were not read": {func(in *catalog.Input, _ *corev1.Node) { in.Nodes = olmcore.Observed[*corev1.Node]{} }, false},
	} {
		out := reconcile(t, base, func(in *catalog.Input) {
			disrupted(in)
			in.CatalogSource.Generation = 0 // the hash must not come from the generation that is remembered
			test.change(in, in.Nodes.Items[1])
			fresh := answer(t, *in)
			for _, a := range fresh.Actions { // the Pod is made from this spec
				if c, ok := a.(olmcore.Create); ok && c.Cause.Reason == catalog.ReasonPodOutdated {
					in.Pods.Items[0].Labels["olm.pod-spec-hash"] = c.Object.GetLabels()["olm.pod-spec-hash"]
				}
			}
		})
		require.Equal(t, test.moves, len(done(out)) > 0, name)
	}
}

// TestWhenManyNodesFailOnePodIsReplacedAtATime checks that Pods are replaced one after the other if many Nodes fail,
// because the control plane may be the cause.
func TestWhenManyNodesFailOnePodIsReplacedAtATime(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 2}, cool())
	arrange := func(in *catalog.Input) {
		for _, name := range []string{"c", "d", "e"} {
			node := in.Nodes.Items[0].DeepCopy()
			node.Name = name
			in.Nodes.Items = append(in.Nodes.Items, node)
		}
		for i, node := range in.Nodes.Items[:4] {
			if i != 2 {
				readyOf(node).Status = corev1.ConditionUnknown
			}
		}
		for _, pod := range in.Pods.Items {
			unready(pod)
			pod.DeletionTimestamp = new(metav1.NewTime(in.Now.Add(-time.Minute)))
		}
	}
	out := reconcile(t, base, arrange)
	require.Equal(t, []string{"create a Pod NodeUnreachable"}, done(out))
	status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Contains(t, meta.FindStatusCondition(status.Status.Conditions, "Degraded").Message, "so many nodes are not ready")

	out = reconcile(t, base, func(in *catalog.Input) {
		arrange(in)
		addPod(in, "cool-zz", func(p *corev1.Pod) { p.DeletionTimestamp, p.Spec.NodeName = nil, "c" })
	})
	require.Empty(t, done(out), "the first replacement is not ready yet")
}

// TestSurplusPodsThatShareAHostAreDeletedFirst checks that surplus Pods that share a host are deleted first.
func TestSurplusPodsThatShareAHostAreDeletedFirst(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 2}, cool())
	out := reconcile(t, base, func(in *catalog.Input) {
		in.Pods.Items[1].Spec.NodeName = in.Pods.Items[0].Spec.NodeName
		addPod(in, "cool-zz", func(p *corev1.Pod) { p.Spec.NodeName = base.Pods.Items[1].Spec.NodeName })
	})
	require.Equal(t, []string{"delete " + base.Pods.Items[1].Name + " PodSurplus"}, done(out))
}

// TestAPodWithoutItsLabelsIsReplaced checks that a Pod whose labels, and perhaps owner, a user removed is replaced.
// It is not changed, does not occupy a name or the room of a Pod, and its failures do not matter.
func TestAPodWithoutItsLabelsIsReplaced(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"its labels":               func(p *corev1.Pod) { p.Labels = nil },
		"its labels and its owner": func(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, catalog.Config{}, cool())
			aside := map[string]bool{}
			for range 4 {
				w.run(t, time.Minute)
				in := w.input(t)
				a := catalog.Assess(in)
				require.Equal(t, catalog.StateServing, a.State)
				require.Equal(t, 1, a.Ready)
				for _, pod := range a.Pods {
					require.Equal(t, !aside[pod.Name], pod.Serves, pod.Name)
					if pod.Serves {
						aside[pod.Name] = true
						require.NoError(t, fake.Edit(w.Cluster, "olm", pod.Name, change))
					}
				}
				requireSameAnswer(t, w)
			}
			w.run(t, time.Minute)
			require.NoError(t, w.Node(map[string]string{"a": "b", "b": "a"}[servesOn(t, w)]).Fail())
			w.run(t, 2*time.Minute)
			a := catalog.Assess(w.input(t))
			require.Equal(t, catalog.ReasonAsExpected, a.Conditions[2].Reason, a.Conditions[2].Message)
			for pod := range aside {
				left, err := olmcore.Get[*corev1.Pod](t.Context(), w.Cluster, "olm", pod)
				require.NoError(t, err)
				require.True(t, left != nil && left.DeletionTimestamp == nil, "%s was touched", pod)
			}
		})
	}
	require.Equal(t, []types.NamespacedName{coolKey}, catalog.Affected(pod("cool-w4nrrin4qx")), "its name may be free again")
	require.Equal(t, []types.NamespacedName{{Namespace: "olm"}}, catalog.Affected(pod("a-catalog-with-a-name-that-is-as-long-as-can-w4nrrin4qx")))
}

// TestANodeWithinItsGraceChangesNoDecision checks that a decision about Pods is the same during the grace period of a
// Node as if the Node were ready.
func TestANodeWithinItsGraceChangesNoDecision(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	differ := map[string]bool{}
	for name, change := range everyCase() {
		in := invariant.Clone(base)
		change(&in)
		want := answer(t, recorded(t, in))
		for i, node := range in.Nodes.Items {
			if !isReady(node) || len(in.Nodes.Items) < 2 || !isReady(in.Nodes.Items[1-i]) {
				continue
			}
			for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionFalse} {
				doubtful := invariant.Clone(in)
				c := readyOf(doubtful.Nodes.Items[i])
				c.Status, c.LastTransitionTime = status, metav1.NewTime(in.Now.Add(-10*time.Second))
				got := answer(t, recorded(t, doubtful))
				if !slices.Equal(done(want), done(got)) {
					differ[name] = true
				}
			}
		}
	}
	// Where one of two places has to be chosen, the other one is better; nothing is moved to a node that may not work, and
	// one that does not start a Pod is given its grace.
	require.Equal(t, map[string]bool{
		"a surplus Pod goes": true,
		"a node that came back is not trusted over a replacement":  true,
		"a replacement that starts goes when the node is trusted":  true,
		"a ready Pod is moved ahead of a taint that will evict it": true,
		"an eviction that was announced is anticipated":            true,
		"a Pod that its node does not start is replaced":           true,
	}, differ)
}

// TestAStaleCacheCreatesNoSecondPod checks that a decision that is repeated before its Pod is observed names the same
// Pod.
func TestAStaleCacheCreatesNoSecondPod(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 3}, cool())
	names := func(now time.Duration) (list []string) {
		in := invariant.Clone(base)
		in.Now, in.Pods.Items = in.Now.Add(now), in.Pods.Items[:1]
		out := answer(t, in)
		for _, a := range out.Actions {
			if verb, target, _ := a.Describe(); verb == olmcore.VerbCreate {
				list = append(list, target.Name)
			}
		}
		return list
	}
	require.Len(t, names(0), 2)
	require.Equal(t, names(0), names(time.Minute))
}

// TestPodsStayIfEveryNodeIsOutOfService checks that a Pod is not replaced if the new Pod would be evicted from its
// Node, too, even if the Pods of the catalog tolerate every taint. Otherwise Pods would be created and deleted
// endlessly.
func TestPodsStayIfEveryNodeIsOutOfService(t *testing.T) {
	cs := cool()
	cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	w := newWorld(t, catalog.Config{}, cs)
	w.run(t, time.Hour)
	for _, node := range []string{"a", "b"} {
		require.NoError(t, w.Node(node).Taint(corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}))
	}
	created := 0
	w.Cluster.Authorize = func(_ *corev1.ObjectReference, verb olmcore.Verb, target olmcore.Ref) error {
		if verb == olmcore.VerbCreate && target.Kind == "Pod" {
			created++
		}
		return nil
	}
	w.run(t, time.Hour)
	require.LessOrEqual(t, created, 1)
	require.Len(t, w.input(t).Pods.Items, 1)
}
