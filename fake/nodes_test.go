// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/fake"
)

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func nodeCondition(t testing.TB, c *fake.Cluster, name string) corev1.NodeCondition {
	t.Helper()
	for _, condition := range fake.Find[*corev1.Node](c, "", name).Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	t.Fatalf("node %s has no condition Ready", name)
	return corev1.NodeCondition{}
}

func taintKeys(c *fake.Cluster, name string) (keys []string) {
	for _, taint := range fake.Find[*corev1.Node](c, "", name).Spec.Taints {
		keys = append(keys, taint.Key+":"+string(taint.Effect))
	}
	return keys
}

func TestAPodStartsInVisibleSteps(t *testing.T) {
	c := newCluster(t, "a")
	settle(t, c)
	c.Image("registry.example/app:v1").SetDigest("sha256:1234")
	require.NoError(t, c.Create(newPod("p")))
	type seen struct {
		phase corev1.PodPhase
		node  string
		ready corev1.ConditionStatus
	}
	look := func() seen {
		p := stored(t, c, newPod("p"))
		return seen{p.Status.Phase, p.Spec.NodeName, condition(p, corev1.PodReady).Status}
	}
	require.Equal(t, seen{corev1.PodPending, "", ""}, look())
	require.True(t, c.Step())
	require.Equal(t, seen{corev1.PodPending, "a", ""}, look())
	require.True(t, c.Step())
	require.Equal(t, seen{corev1.PodRunning, "a", corev1.ConditionFalse}, look())
	require.True(t, c.Step())
	require.Equal(t, seen{corev1.PodRunning, "a", corev1.ConditionTrue}, look())
	require.False(t, c.Step())
	status := stored(t, c, newPod("p")).Status.ContainerStatuses[0]
	require.Equal(t, "registry.example/app@sha256:1234", status.ImageID)
	require.NotEmpty(t, stored(t, c, newPod("p")).Status.PodIP)
}

func TestPodsNeedANode(t *testing.T) {
	linux := corev1.Taint{Key: "only", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	requireHost := func(host string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host}}}}}}}}
	}
	avoid := func(host string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{host}}}}}}}}
	}
	cases := map[string]struct {
		world func(*testing.T, *fake.Cluster)
		pod   func(*corev1.Pod)
		want  string
	}{
		"the first by name":  {nil, nil, "a"},
		"not a cordoned one": {func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.Node("a").Cordon()) }, nil, "b"},
		"not a failed one": {func(t *testing.T, c *fake.Cluster) {
			require.NoError(t, c.Node("a").Fail())
			require.NoError(t, c.RunFor(time.Minute))
		}, nil, "b"},
		"not one with a taint": {func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.Node("a").Taint(linux)) }, nil, "b"},
		"one with a tolerated taint": {func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.Node("a").Taint(linux)) }, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "only", Operator: corev1.TolerationOpEqual, Value: "x"}}
		}, "a"},
		"one with the selected label":     {nil, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} }, "c"},
		"one with the operating system":   {nil, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "windows"} }, ""},
		"the host that affinity asks for": {nil, func(p *corev1.Pod) { p.Spec.Affinity = requireHost("b") }, "b"},
		"not the host that it avoids":     {nil, func(p *corev1.Pod) { p.Spec.Affinity = avoid("a") }, "b"},
		"one without a similar Pod":       {func(t *testing.T, c *fake.Cluster) { require.NoError(t, c.Create(newPod("other"))); settle(t, c) }, nil, "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			require.NoError(t, c.Node("c").Create(map[string]string{"disk": "fast"}))
			if tc.world != nil {
				tc.world(t, c)
			}
			settle(t, c)
			p := newPod("p")
			if tc.pod != nil {
				tc.pod(p)
			}
			require.NoError(t, c.Create(p))
			settle(t, c)
			got := stored(t, c, p)
			require.Equal(t, tc.want, got.Spec.NodeName)
			if tc.want == "" {
				require.Equal(t, corev1.PodReasonUnschedulable, condition(got, corev1.PodScheduled).Reason)
				require.NoError(t, c.Node("d").Create(map[string]string{"kubernetes.io/os": "windows"}))
				settle(t, c)
				require.Equal(t, "d", stored(t, c, p).Spec.NodeName, "a new node takes it")
			}
		})
	}
}

func TestSpreadConstraintsAndAntiAffinityAreKept(t *testing.T) {
	c := newCluster(t, "a", "b")
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	for _, name := range []string{"p1", "p2", "p3"} {
		p := newPod(name)
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector}}}}
		require.NoError(t, c.Create(p))
	}
	settle(t, c)
	require.Equal(t, "a", stored(t, c, newPod("p1")).Spec.NodeName)
	require.Equal(t, "b", stored(t, c, newPod("p2")).Spec.NodeName)
	require.Empty(t, stored(t, c, newPod("p3")).Spec.NodeName)

	c = newCluster(t, "a", "b")
	for _, name := range []string{"p1", "p2", "p3"} {
		p := newPod(name)
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
		require.NoError(t, c.Create(p))
	}
	settle(t, c)
	require.Equal(t, "b", stored(t, c, newPod("p2")).Spec.NodeName)
	require.Equal(t, "a", stored(t, c, newPod("p3")).Spec.NodeName)
}

func TestASilentNode(t *testing.T) {
	c := newCluster(t, "a", "b")
	require.NoError(t, c.Create(newPod("p")))
	settle(t, c)
	require.NoError(t, c.Node("a").Fail())
	p := func() *corev1.Pod { return stored(t, c, newPod("p")) }

	require.NoError(t, c.RunFor(39*time.Second))
	require.Equal(t, corev1.ConditionTrue, nodeCondition(t, c, "a").Status, "not noticed yet")
	require.Equal(t, corev1.ConditionTrue, condition(p(), corev1.PodReady).Status)

	require.NoError(t, c.RunFor(time.Second))
	require.Equal(t, corev1.ConditionUnknown, nodeCondition(t, c, "a").Status)
	require.Equal(t, start.Add(40*time.Second), nodeCondition(t, c, "a").LastTransitionTime.UTC())
	require.Equal(t, []string{"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"}, taintKeys(c, "a"))
	require.Equal(t, corev1.ConditionFalse, condition(p(), corev1.PodReady).Status)
	require.Equal(t, "NodeNotReady", condition(p(), corev1.PodReady).Reason)

	require.NoError(t, c.RunFor(299*time.Second))
	require.Nil(t, p().DeletionTimestamp, "it is tolerated for five minutes")
	require.NoError(t, c.RunFor(time.Second))
	require.Equal(t, "DeletionByTaintManager", condition(p(), corev1.DisruptionTarget).Reason)
	require.Equal(t, start.Add(340*time.Second+30*time.Second), p().DeletionTimestamp.UTC(), "now plus the grace period")

	require.NoError(t, c.RunFor(24*time.Hour))
	require.True(t, exists(c, newPod("p")), "no kubelet confirms the deletion")
	require.NoError(t, c.Node("a").Heal())
	settle(t, c)
	require.False(t, exists(c, newPod("p")))
	require.Equal(t, corev1.ConditionTrue, nodeCondition(t, c, "a").Status)
	require.Empty(t, taintKeys(c, "a"))
}

func TestANodeThatComesBackInTime(t *testing.T) {
	c := newCluster(t, "a", "b")
	require.NoError(t, c.Create(newPod("p")))
	settle(t, c)
	require.NoError(t, c.Node("a").Fail())
	require.NoError(t, c.RunFor(2*time.Minute))
	require.NoError(t, c.Node("a").Heal())
	require.NoError(t, c.RunFor(time.Hour))
	p := stored(t, c, newPod("p"))
	require.Nil(t, p.DeletionTimestamp)
	require.Equal(t, corev1.ConditionTrue, condition(p, corev1.PodReady).Status)
	require.Equal(t, start.Add(2*time.Minute), condition(p, corev1.PodReady).LastTransitionTime.UTC())
}

func TestNothingIsEvictedWhileNoNodeIsReady(t *testing.T) {
	c := newCluster(t, "a")
	require.NoError(t, c.Create(newPod("p")))
	settle(t, c)
	require.NoError(t, c.Node("a").Fail())
	require.NoError(t, c.RunFor(time.Hour))
	require.Nil(t, stored(t, c, newPod("p")).DeletionTimestamp)
	require.Equal(t, []string{"node.kubernetes.io/unreachable:NoSchedule"}, taintKeys(c, "a"))
}

func TestDeletingAPod(t *testing.T) {
	cases := map[string]struct {
		fail  bool
		held  bool
		grace *int64
		at    time.Duration // of the deletionTimestamp, after start
		now   bool          // still there right after the delete
		then  bool          // still there once settled
	}{
		"on a healthy node ends when its kubelet confirms":    {grace: nil, at: 30 * time.Second, now: true},
		"on a healthy node by force ends at once":             {grace: new(int64(0))},
		"on a silent node with grace stays":                   {fail: true, grace: new(int64(1)), at: time.Second, now: true, then: true},
		"on a silent node by force ends at once":              {fail: true, grace: new(int64(0))},
		"with a finalizer by force stays until it is dropped": {held: true, grace: new(int64(0)), at: 0, now: true, then: true},
		"with a finalizer is stopped and stays":               {held: true, at: 30 * time.Second, now: true, then: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			p := newPod("p")
			if tc.held {
				p.Finalizers = []string{"example.com/hold"}
			}
			require.NoError(t, c.Create(p))
			settle(t, c)
			if tc.fail {
				require.NoError(t, c.Node("a").Fail())
			}
			require.NoError(t, c.Delete(refTo(p), metav1.DeleteOptions{GracePeriodSeconds: tc.grace}))
			require.Equal(t, tc.now, exists(c, p))
			if tc.now {
				require.Equal(t, start.Add(tc.at), stored(t, c, p).DeletionTimestamp.UTC())
			}
			settle(t, c)
			require.Equal(t, tc.then, exists(c, p))
			if tc.held {
				require.NoError(t, fake.Edit(c, "ns", "p", func(p *corev1.Pod) { p.Finalizers = nil }))
				settle(t, c)
				require.False(t, exists(c, p))
			}
		})
	}
}

func TestADeletionIsOnlyEverShortened(t *testing.T) {
	c := newCluster(t, "a", "b")
	p := newPod("p")
	require.NoError(t, c.Create(p))
	settle(t, c)
	require.NoError(t, c.Node("a").Fail())
	require.NoError(t, c.Delete(refTo(p), grace(100)))
	c.Advance(10 * time.Second)
	require.NoError(t, c.Delete(refTo(p), grace(200)))
	require.Equal(t, start.Add(100*time.Second), stored(t, c, p).DeletionTimestamp.UTC())
	require.NoError(t, c.Delete(refTo(p), grace(20)))
	require.Equal(t, start.Add(20*time.Second), stored(t, c, p).DeletionTimestamp.UTC())
	require.Equal(t, int64(20), *stored(t, c, p).DeletionGracePeriodSeconds)
}

func TestAnUnscheduledPodIsDeletedAtOnce(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.Create(newPod("p")))
	require.NoError(t, c.Delete(refTo(newPod("p")), grace(30)))
	require.False(t, exists(c, newPod("p")))
}

func TestANodeThatIsNotReadyStillStopsPods(t *testing.T) {
	c := newCluster(t, "a", "b")
	require.NoError(t, c.Create(newPod("p"), newPod("q")))
	settle(t, c)
	require.NoError(t, c.Node("a").SetNotReady("NetworkPluginNotReady"))
	settle(t, c)
	require.Equal(t, corev1.ConditionFalse, nodeCondition(t, c, "a").Status)
	require.Equal(t, "NetworkPluginNotReady", nodeCondition(t, c, "a").Reason)
	require.Equal(t, []string{"node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"}, taintKeys(c, "a"))
	require.Equal(t, corev1.ConditionFalse, condition(stored(t, c, newPod("p")), corev1.PodReady).Status)
	require.NoError(t, c.RunFor(5*time.Minute))
	require.False(t, exists(c, newPod("p")), "evicted, and its kubelet confirms")
	require.True(t, exists(c, newPod("q")))
}

func TestARemovedNodesPodsAreCollected(t *testing.T) {
	c := newCluster(t, "a", "b")
	require.NoError(t, c.Create(newPod("p")))
	settle(t, c)
	require.NoError(t, c.Node("a").Delete())
	require.NoError(t, c.RunFor(fake.OrphanQuarantine-time.Second))
	require.Equal(t, corev1.PodRunning, stored(t, c, newPod("p")).Status.Phase)
	c.Advance(time.Second)
	require.True(t, c.Step())
	p := stored(t, c, newPod("p"))
	require.Equal(t, corev1.PodFailed, p.Status.Phase)
	require.Equal(t, "DeletionByPodGC", condition(p, corev1.DisruptionTarget).Reason)
	settle(t, c)
	require.False(t, exists(c, p))
}

func TestOutOfServiceFreesWhatASilentNodeHolds(t *testing.T) {
	c := newCluster(t, "a", "b")
	require.NoError(t, c.Create(newPod("p")))
	settle(t, c)
	require.NoError(t, c.Node("a").Fail())
	require.NoError(t, c.RunFor(time.Minute))
	require.NoError(t, c.Node("a").Taint(corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}))
	settle(t, c)
	require.False(t, exists(c, newPod("p")))
	require.NoError(t, c.Node("a").Untaint(corev1.TaintNodeOutOfService))
	require.NoError(t, c.Node("a").Heal())
	settle(t, c)
	require.Empty(t, taintKeys(c, "a"))
}

func TestDrainRespectsBudgets(t *testing.T) {
	c := newCluster(t, "a", "b")
	other := newPod("other")
	other.Labels = map[string]string{"app": "other"}
	require.NoError(t, c.Create(newPod("p"), other, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget", Namespace: "ns"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
	}))
	settle(t, c)
	err := c.Node("a").Drain()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.ErrorContains(t, err, "ns/p (budget)")
	settle(t, c)
	require.True(t, exists(c, newPod("p")))
	require.False(t, exists(c, other))
	require.Equal(t, []string{"node.kubernetes.io/unschedulable:NoSchedule"}, taintKeys(c, "a"))
	require.NoError(t, c.Create(newPod("p2")))
	settle(t, c)
	require.NoError(t, c.Node("a").Drain(), "a second ready Pod allows it")
	settle(t, c)
	require.False(t, exists(c, newPod("p")))
	require.NoError(t, c.Node("a").Uncordon())
	settle(t, c)
	require.Empty(t, taintKeys(c, "a"))
}

func TestBrokenImages(t *testing.T) {
	const image = "registry.example/app:v1"
	c := newCluster(t, "a")
	c.Image(image).Break("")
	p := newPod("p")
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "registry.example/init:v1"}}
	require.NoError(t, c.Create(p))
	settle(t, c)
	got := stored(t, c, p)
	require.Equal(t, corev1.PodPending, got.Status.Phase)
	require.Equal(t, "ImagePullBackOff", got.Status.ContainerStatuses[0].State.Waiting.Reason)
	require.NotNil(t, got.Status.InitContainerStatuses[0].State.Terminated)
	require.Equal(t, corev1.ConditionFalse, condition(got, corev1.PodReady).Status)
	c.Image(image).Heal()
	settle(t, c)
	require.Equal(t, corev1.ConditionTrue, condition(stored(t, c, p), corev1.PodReady).Status)
	c.Image(image).Break("")
	settle(t, c)
	require.Equal(t, corev1.ConditionTrue, condition(stored(t, c, p), corev1.PodReady).Status, "what runs goes on")

	c.Image("registry.example/bad:v1").Break(fake.CrashLoopBackOff)
	c.Image("registry.example/slow:v1").Break(fake.NeverReady)
	for name, want := range map[string]corev1.PodPhase{"bad": corev1.PodRunning, "slow": corev1.PodRunning} {
		q := newPod(name)
		q.Spec.Containers[0].Image = "registry.example/" + name + ":v1"
		require.NoError(t, c.Create(q))
		settle(t, c)
		require.Equal(t, want, stored(t, c, q).Status.Phase)
		require.Equal(t, corev1.ConditionFalse, condition(stored(t, c, q), corev1.PodReady).Status)
	}
	require.Equal(t, int32(1), stored(t, c, newPod("bad")).Status.ContainerStatuses[0].RestartCount)
}

func TestANewImageRestartsTheContainer(t *testing.T) {
	c := newCluster(t, "a")
	require.NoError(t, c.Create(newPod("p")))
	settle(t, c)
	require.NoError(t, fake.Edit(c, "ns", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "registry.example/app:v2" }))
	settle(t, c)
	got := stored(t, c, newPod("p"))
	require.Equal(t, c.Image("registry.example/app:v2").ID(), got.Status.ContainerStatuses[0].ImageID)
	require.Equal(t, int32(1), got.Status.ContainerStatuses[0].RestartCount)
	require.Equal(t, corev1.ConditionTrue, condition(got, corev1.PodReady).Status)
}

func TestImageIDs(t *testing.T) {
	c := newCluster(t)
	c.Image("registry.example:5000/a/b:v1").SetDigest("sha256:77")
	require.Equal(t, "registry.example:5000/a/b@sha256:77", c.Image("registry.example:5000/a/b:v1").ID())
	require.Equal(t, "x@sha256:1", c.Image("x@sha256:1").ID())
	require.Regexp(t, `^registry.example:5000/a/b@sha256:[0-9a-f]{64}$`, c.Image("registry.example:5000/a/b").ID())
	require.NotEqual(t, c.Image("a:1").ID(), c.Image("a:2").ID())
}

func TestNodesThatDoNotExist(t *testing.T) {
	c := newCluster(t, "a")
	require.True(t, apierrors.IsAlreadyExists(c.Node("a").Create(nil)))
	for name, err := range map[string]error{
		"fail": c.Node("x").Fail(), "heal": c.Node("x").Heal(), "not ready": c.Node("x").SetNotReady(""), "remove": c.Node("x").Delete(),
		"cordon": c.Node("x").Cordon(), "uncordon": c.Node("x").Uncordon(), "drain": c.Node("x").Drain(),
		"taint": c.Node("x").Taint(corev1.Taint{}),
	} {
		require.True(t, apierrors.IsNotFound(err), name)
	}
}
