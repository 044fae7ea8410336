// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// reconcile is Reconcile of a changed converged input, checked for safety and
// laws.
func reconcile(t *testing.T, base catalog.Input, change func(*catalog.Input)) catalog.Outcome {
	t.Helper()
	in := invariant.Clone(base)
	change(&in)
	out, err := catalog.Reconcile(in)
	require.NoError(t, err)
	require.NoError(t, invariant.Laws(result, in))
	checkSafety(t, in, out, 5)
	checkPromises(t, in, out)
	return out
}

// done lists verbs and names of the Pods that a result is about.
func done(out catalog.Outcome) (list []string) {
	for _, a := range out.Actions {
		if verb, target, cause := a.Describe(); target.Kind == "Pod" {
			name := target.Name
			if verb == olmcore.VerbCreate {
				name = "a Pod"
			}
			list = append(list, string(verb)+" "+name+" "+cause.Reason)
		}
	}
	return list
}

func TestSpecProblemsAreToldInTheStatus(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	image := func(change func(*v1alpha1.GrpcPodConfig)) func(*v1alpha1.CatalogSourceSpec) {
		return func(s *v1alpha1.CatalogSourceSpec) {
			s.GrpcPodConfig = &v1alpha1.GrpcPodConfig{}
			change(s.GrpcPodConfig)
		}
	}
	address := func(a string) func(*v1alpha1.CatalogSourceSpec) {
		return func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", a }
	}
	for message, change := range map[string]func(*v1alpha1.CatalogSourceSpec){
		"unknown sourcetype: ": func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "" },
		"configmap name unset: must be set for sourcetype: configmap":                   func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "configmap" },
		"configmap name unset: must be set for sourcetype: internal":                    func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "internal" },
		"image and address unset: at least one must be set for sourcetype: grpc":        func(s *v1alpha1.CatalogSourceSpec) { s.Image = "" },
		"image contains white space":                                                    func(s *v1alpha1.CatalogSourceSpec) { s.Image = " x" },
		"securityContextConfig must be legacy or restricted":                            image(func(c *v1alpha1.GrpcPodConfig) { c.SecurityContextConfig = "open" }),
		"couldn't connect to registry - address foo.com: missing port in address":       address("foo.com"),
		"couldn't connect to registry - address http://x:1: too many colons in address": address("http://x:1"),
		"couldn't connect to registry - address :1: missing host in address":            address(":1"),
		"couldn't connect to registry - address x:0: invalid port in address":           address("x:0"),
		"couldn't connect to registry - address [::1]:65536: invalid port in address":   address("[::1]:65536"),
	} {
		out := reconcile(t, base, func(in *catalog.Input) { edit(in, change) })
		require.Len(t, out.Actions, 1, message)
		status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.True(t, ok)
		require.Equal(t, message, status.Status.Message)
		want := v1alpha1.CatalogSourceSpecInvalidError
		if strings.HasPrefix(message, "couldn't") {
			want = v1alpha1.CatalogSourceRegistryServerError
		}
		require.Equal(t, want, status.Status.Reason)
	}
	for _, ok := range []string{"registry:50051", "[::1]:1", "10.0.0.1:65535"} {
		out := reconcile(t, base, func(in *catalog.Input) { edit(in, address(ok)) })
		require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: ok}, out.Connection)
	}
}

func TestPollIntervals(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	const parsing = "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: "
	for interval, want := range map[string]string{
		"45m": "", "30s": "",
		"1d":      parsing + `time: unknown unit "d" in duration "1d"`,
		"":        "empty polling interval; cannot requeue registry server sync without a provided polling interval",
		"0s":      "spec.updateStrategy.registryPoll.interval must be positive",
		"-5m":     "spec.updateStrategy.registryPoll.interval must be positive",
		"1s":      "spec.updateStrategy.registryPoll.interval must be at least 30s; using 30s",
		"999999h": "spec.updateStrategy.registryPoll.interval must be at most 10 years; using 10 years",
	} {
		out := reconcile(t, base, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling(interval) })
			in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		})
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, want, status.Status.Message, interval)
		require.Equal(t, want != "", status.Status.Reason == v1alpha1.CatalogSourceIntervalInvalidError, interval)
		require.NotNil(t, meta.FindStatusCondition(status.Status.Conditions, catalog.ConditionUpdatePolled))
	}
}

func TestDamagedPoliciesAreRepaired(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, damage := range map[string]func(*networkingv1.NetworkPolicySpec){
		"types":    func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = s.PolicyTypes[:1] },
		"type":     func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes[1] = networkingv1.PolicyTypeIngress },
		"selector": func(s *networkingv1.NetworkPolicySpec) { s.PodSelector = metav1.LabelSelector{} },
		"label": func(s *networkingv1.NetworkPolicySpec) {
			s.PodSelector.MatchLabels = map[string]string{"a": "b", "olm.managed": "true"}
		},
		"expression": func(s *networkingv1.NetworkPolicySpec) {
			s.PodSelector.MatchExpressions = append(s.PodSelector.MatchExpressions, metav1.LabelSelectorRequirement{Key: "x"})
		},
		"ingress": func(s *networkingv1.NetworkPolicySpec) {
			s.Ingress = append(s.Ingress, networkingv1.NetworkPolicyIngressRule{})
		},
		"egress": func(s *networkingv1.NetworkPolicySpec) {
			s.Egress = append(s.Egress, networkingv1.NetworkPolicyEgressRule{})
		},
		"no rules": func(s *networkingv1.NetworkPolicySpec) { s.Ingress, s.Egress = nil, nil },
		"other rules": func(s *networkingv1.NetworkPolicySpec) {
			s.Ingress, s.Egress = make([]networkingv1.NetworkPolicyIngressRule, 1), make([]networkingv1.NetworkPolicyEgressRule, 2)
		},
		"port": func(s *networkingv1.NetworkPolicySpec) {
			if len(s.Ingress) > 0 {
				s.Ingress[0].Ports[0].Port = new(intstr.FromInt32(1))
			} else {
				s.Egress[1].Ports[2].EndPort = new(int32(99))
			}
		},
		"peers": func(s *networkingv1.NetworkPolicySpec) {
			if len(s.Ingress) > 0 {
				s.Ingress[0].From = make([]networkingv1.NetworkPolicyPeer, 1)
			} else {
				s.Egress[0].To = make([]networkingv1.NetworkPolicyPeer, 1)
			}
		},
	} {
		for i := range base.NetworkPolicies.Items {
			out := reconcile(t, base, func(in *catalog.Input) { damage(&in.NetworkPolicies.Items[i].Spec) })
			require.Len(t, out.Actions, 1, name)
			update, ok := out.Actions[0].(olmcore.Update)
			require.True(t, ok, name)
			require.Equal(t, base.NetworkPolicies.Items[i].Spec, update.After.(*networkingv1.NetworkPolicy).Spec, name)
		}
	}
}

// TestAPodIsMovedAheadOnlyWhereAnotherNodeTakesIt: an announced eviction is
// anticipated when there is a place to go to.
func TestAPodIsMovedAheadOnlyWhereAnotherNodeTakesIt(t *testing.T) {
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
			fresh, err := catalog.Reconcile(*in)
			require.NoError(t, err)
			for _, a := range fresh.Actions { // the Pod is made from this spec
				if c, ok := a.(olmcore.Create); ok && c.Cause.Reason == catalog.ReasonPodOutdated {
					in.Pods.Items[0].Labels["olm.pod-spec-hash"] = c.Object.GetLabels()["olm.pod-spec-hash"]
				}
			}
		})
		require.Equal(t, test.moves, len(done(out)) > 0, name)
	}
}

// TestWhenManyNodesFailOnePodIsReplacedAtATime: that many failures may be one
// failure of the control plane.
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

func TestWithoutNodesAnEvictionByTheNodeControllerCounts(t *testing.T) {
	base := converged(t, catalog.Config{IgnoreNodes: true}, cool())
	out := reconcile(t, base, func(in *catalog.Input) {
		terminating(in, -time.Second)
		disrupted(in)
		in.Pods.Items[0].Status.Conditions[len(in.Pods.Items[0].Status.Conditions)-1].Reason = "DeletionByTaintManager"
	})
	require.Equal(t, []string{"create a Pod Evicted", "delete " + base.Pods.Items[0].Name + " Evicted"}, done(out))
}

func TestACandidateThatEndsIsTriedAgainAfterItsBackoff(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	arrange := func(age time.Duration) func(*catalog.Input) {
		return func(in *catalog.Input) {
			in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
			addPod(in, "cool-zz", func(p *corev1.Pod) {
				candidate(p)
				p.Labels["olm.pod-spec-hash"] = base.Pods.Items[0].Labels["olm.pod-spec-hash"]
				p.Status.Phase, p.Annotations["olmcore/attempt"] = corev1.PodFailed, "2"
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(in.Now.Add(-age))}}
			})
		}
	}
	out := reconcile(t, base, arrange(19*time.Second))
	require.Empty(t, done(out))
	require.Equal(t, time.Second, out.RequeueAfter)
	out = reconcile(t, base, arrange(20*time.Second))
	require.Equal(t, []string{"create a Pod PodOutdated", "delete cool-zz PodTerminated"}, done(out))
	require.Equal(t, "3", out.Actions[0].(olmcore.Create).Object.GetAnnotations()["olmcore/attempt"])
}

func TestSurplusPodsGoWhereTheyShareAHost(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 2}, cool())
	out := reconcile(t, base, func(in *catalog.Input) {
		in.Pods.Items[1].Spec.NodeName = in.Pods.Items[0].Spec.NodeName
		addPod(in, "cool-zz", func(p *corev1.Pod) { p.Spec.NodeName = base.Pods.Items[1].Spec.NodeName })
	})
	require.Equal(t, []string{"delete " + base.Pods.Items[1].Name + " PodSurplus"}, done(out))
}

// TestTwoCatalogsNeverFightOverAService: a.b and a-b want a Service of the same
// name. The first has it; the second says so, and touches nothing.
func TestTwoCatalogsNeverFightOverAService(t *testing.T) {
	dotted, dashed := cool(), cool()
	dotted.Name, dashed.Name = "a.b", "a-b"
	w := newWorld(t, catalog.Config{}, dotted)
	require.NoError(t, w.Cluster.Create(dashed))
	w.run(t, time.Hour)
	writes := len(w.Events)
	w.run(t, 24*time.Hour)
	require.Len(t, w.Events, writes)
	owners := 0
	for _, o := range w.Cluster.Objects() {
		switch o := o.(type) {
		case *corev1.Service:
			owners++
			require.Equal(t, "a-b", o.OwnerReferences[0].Name, "the name that sorts first was reconciled first")
		case *v1alpha1.CatalogSource:
			degraded := meta.FindStatusCondition(o.Status.Conditions, "Degraded")
			require.Equal(t, o.Name == "a.b", degraded.Reason == catalog.ReasonNameConflict, "%s: %s", o.Name, degraded.Message)
		}
	}
	require.Equal(t, 1, owners)
}
