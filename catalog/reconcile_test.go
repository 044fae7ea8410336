// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"maps"
	"os"
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

// TestReconcile changes one thing in the Input of a converged CatalogSource, with the Pod cool-w4nrrin4qx on the Node
// a. It compares the whole Outcome with testdata/reconcile.golden, which OLMCORE_UPDATE=1 rewrites.
func TestReconcile(t *testing.T) {
	const path = "testdata/reconcile.golden"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	head, sections, _ := strings.Cut(string(data), "\n== ")
	want := map[string]string{}
	for section := range strings.SplitSeq(sections, "\n== ") {
		name, answer, _ := strings.Cut(section, "\n")
		want[name] = strings.TrimSpace(answer)
	}
	update := os.Getenv("OLMCORE_UPDATE") != ""
	base := converged(t, catalog.Config{}, cool())
	cases := everyCase()
	got := map[string]string{}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			in := invariant.Clone(base)
			change(&in)
			in = recorded(t, in)
			out := answer(t, in)
			got[name] = describe(t, out)
			if diff := cmp.Diff(want[name], got[name]); diff != "" && !update {
				t.Errorf("-want +got:\n%s\ngot:\n%s", diff, got[name])
			}
			require.NoError(t, invariant.Laws(result, in))
			checkSafety(t, in, out, 2)
			checkEdge(t, in)
			checkPromises(t, in, out)
		})
	}
	if !update {
		require.Len(t, want, len(cases), "cases that are gone")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		head += strings.TrimRight("\n== "+name+"\n"+got[name], "\n") + "\n"
	}
	require.NoError(t, os.WriteFile(path, []byte(head), 0o644))
}

// everyCase returns reconcileCases and pollCases.
func everyCase() map[string]func(*catalog.Input) {
	cases := maps.Clone(reconcileCases)
	maps.Copy(cases, pollCases)
	return cases
}

// reconcileCases contains changes of an input, see TestReconcile.
var reconcileCases = map[string]func(*catalog.Input){
	"nothing changed": func(*catalog.Input) {},

	// Nodes.
	"a silent node within its grace is waited for":             func(in *catalog.Input) { silence(in, 29*time.Second) },
	"a Pod of a silent node is replaced after 30s":             func(in *catalog.Input) { silence(in, 30*time.Second) },
	"a ready Pod of a silent node is trusted":                  func(in *catalog.Input) { setNode(in, corev1.ConditionUnknown, time.Hour) },
	"a Pod of a node that is not ready waits for 60s":          func(in *catalog.Input) { unready(in.Pods.Items[0]); setNode(in, corev1.ConditionFalse, 59*time.Second) },
	"a Pod of a node that is not ready is replaced":            func(in *catalog.Input) { unready(in.Pods.Items[0]); setNode(in, corev1.ConditionFalse, time.Minute) },
	"a Pod of a node that was deleted is replaced and removed": func(in *catalog.Input) { in.Nodes.Items = in.Nodes.Items[1:] },
	"a Pod of a node just created is not given up": func(in *catalog.Input) {
		in.Nodes.Items = in.Nodes.Items[1:]
		for i := range in.Pods.Items[0].Status.Conditions {
			in.Pods.Items[0].Status.Conditions[i].LastTransitionTime = metav1.NewTime(in.Now.Add(-10 * time.Second))
		}
	},
	"a Pod of a node out of service is replaced and removed at once": func(in *catalog.Input) {
		silence(in, 0).Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	},
	"a ready Pod is moved ahead of a taint that will evict it": func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Hour).Spec.Taints = []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
	},
	"a cordon alone moves nothing":                 func(in *catalog.Input) { setNode(in, corev1.ConditionTrue, time.Hour).Spec.Unschedulable = true },
	"without nodes nothing is concluded from them": func(in *catalog.Input) { silence(in, time.Hour); in.Nodes = olmcore.Observed[*corev1.Node]{} },
	"when all nodes fail nothing is touched": func(in *catalog.Input) {
		silence(in, time.Hour)
		for _, node := range in.Nodes.Items {
			readyOf(node).Status = corev1.ConditionUnknown
		}
	},

	// Pods that end.
	"a Pod that is being deleted is replaced at once":        func(in *catalog.Input) { terminating(in, -30*time.Second) },
	"a Pod stuck on a silent node is replaced and removed":   func(in *catalog.Input) { silence(in, time.Hour); terminating(in, time.Minute) },
	"a Pod stuck on a healthy node is replaced and reported": func(in *catalog.Input) { terminating(in, time.Hour) },
	"a Pod with a finalizer is not removed twice": func(in *catalog.Input) {
		silence(in, time.Hour)
		terminating(in, time.Hour)
		in.Pods.Items[0].DeletionGracePeriodSeconds = new(int64(0))
	},
	"force deletes can be forbidden": func(in *catalog.Input) {
		silence(in, time.Hour)
		terminating(in, time.Hour)
		in.Config.ForceDelete = catalog.ForceDeleteNever
	},
	"a Pod that failed long ago is replaced": func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodFailed },
	"a Pod that failed just now is remembered for its backoff": func(in *catalog.Input) {
		in.Pods.Items[0].Status.Phase = corev1.PodFailed
		in.Pods.Items[0].Annotations["olmcore/attempt"] = "3"
		in.Pods.Items[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: metav1.NewTime(in.Now.Add(-time.Minute)), FinishedAt: metav1.NewTime(in.Now.Add(-15 * time.Second))}}
	},
	"an eviction that was announced is anticipated":      disrupted,
	"a Pod that is not ready for a moment is left alone": func(in *catalog.Input) { unready(in.Pods.Items[0]) },
	"a Pod that its node does not start is replaced":     func(in *catalog.Input) { unready(in.Pods.Items[0]); in.Now = in.Now.Add(10 * time.Minute) },
	"a Pod that cannot pull its image is reported":       func(in *catalog.Input) { waiting(in, "ErrImagePull") },
	"a Pod that crashes is reported":                     func(in *catalog.Input) { waiting(in, "CrashLoopBackOff") },
	"a Pod that no node takes is reported": func(in *catalog.Input) {
		in.Pods.Items[0].Spec.NodeName = ""
		in.Pods.Items[0].Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
		in.Pods.Items[0].CreationTimestamp = metav1.NewTime(in.Now)
	},
	"a Pod that is gone is replaced": func(in *catalog.Input) { in.Pods.Items = nil },
	"a Pod of somebody else is reported and not touched": func(in *catalog.Input) {
		addPod(in, "other", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" })
	},
	"a Pod without the managed label is repaired": func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.managed") },
	"a surplus Pod goes":                          func(in *catalog.Input) { addPod(in, "cool-zz", func(*corev1.Pod) {}) },
	"a node that came back is not trusted over a replacement": func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Minute)
		addPod(in, "cool-zz", func(*corev1.Pod) {})
	},
	"a replacement that starts is kept while the node is not trusted": func(in *catalog.Input) {
		setNode(in, corev1.ConditionTrue, time.Minute)
		addPod(in, "cool-zz", unready)
	},
	"a replacement that starts goes when the node is trusted": func(in *catalog.Input) { addPod(in, "cool-zz", unready) },
	"the older content goes": func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "quay.io/example/catalog@sha256:new" })
	},

	// Roll-outs.
	"a new image starts a candidate":          edited(func(s *v1alpha1.CatalogSourceSpec) { s.Image = "quay.io/example/catalog:v2" }),
	"a Pod of an accepted release is current": func(in *catalog.Input) { in.Pods.Items[0].Labels["olm.pod-spec-hash"] = hashV046 },
	"a ready candidate takes over from a Pod of the old spec": func(in *catalog.Input) {
		addPod(in, "cool-zz", candidate)
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	},
	"the Pod of the old spec goes when the new one serves": func(in *catalog.Input) {
		addPod(in, "cool-zz", func(*corev1.Pod) {})
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	},
	"a candidate without purpose goes": func(in *catalog.Input) { addPod(in, "cool-zz", candidate) },
	"a candidate of another spec goes": func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) { candidate(p); p.Labels["olm.pod-spec-hash"] = "other" })
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	},
	"a candidate that is late goes, and the old Pod stays": func(in *catalog.Input) {
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			unready(p)
			p.CreationTimestamp = metav1.NewTime(in.Now.Add(-10 * time.Minute))
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		})
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	},
	"after a late candidate the next one waits": func(in *catalog.Input) {
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
		c := meta.FindStatusCondition(in.CatalogSource.Status.Conditions, "Progressing")
		c.Reason, c.LastTransitionTime = "ProgressDeadlineExceeded", metav1.NewTime(in.Now.Add(-time.Minute))
	},
	"a ready candidate rescues a catalog that does not serve": func(in *catalog.Input) {
		addPod(in, "cool-zz", candidate)
		waiting(in, "ImagePullBackOff")
	},
	"a Pod of the old spec that does not serve is not kept": func(in *catalog.Input) {
		waiting(in, "ImagePullBackOff")
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	},

	// Objects around the Pods.
	"objects that are gone are made anew": func(in *catalog.Input) {
		in.Services.Items, in.ServiceAccounts.Items, in.NetworkPolicies.Items = nil, nil, nil
	},
	"a damaged Service is repaired in place": func(in *catalog.Input) {
		in.Services.Items[0].Spec.Ports[0].Port = 1
		in.Services.Items[0].Labels = map[string]string{"mine": "kept"}
	},
	"a damaged NetworkPolicy is repaired in place": func(in *catalog.Input) {
		in.NetworkPolicies.Items[0].Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	},
	"a Service of somebody else blocks the catalog": func(in *catalog.Input) {
		in.Services.Items[0].OwnerReferences[0] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	},
	"objects of a predecessor are taken over":                   func(in *catalog.Input) { in.Services.Items[0].OwnerReferences[0].UID = "predecessor" },
	"a new secret reaches the ServiceAccount and rolls the Pod": edited(func(s *v1alpha1.CatalogSourceSpec) { s.Secrets = []string{"pull", "", "pull"} }),
	"a secret that left the spec leaves the ServiceAccount": func(in *catalog.Input) {
		in.ServiceAccounts.Items[0].Annotations = map[string]string{"olmcore/pull-secrets": "pull"}
		in.ServiceAccounts.Items[0].ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}, {Name: "platform"}}
	},
	"a ServiceAccount of somebody else is used as it is": func(in *catalog.Input) {
		in.ServiceAccounts.Items[0].OwnerReferences, in.ServiceAccounts.Items[0].Labels = nil, nil
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Secrets = []string{"pull"} })
	},

	// Spec and status.
	"an unknown source type": edited(func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "Grpc" }),
	"neither image nor address": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image = "" })
		in.Pods.Items = nil
	},
	"a config map without name": edited(func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "internal" }),
	"a config map that does not exist": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.SourceType, s.ConfigMap = "configmap", "cm" })
		in.Pods.Items = nil
	},
	"a memory target below nothing": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) {
			s.GrpcPodConfig = &v1alpha1.GrpcPodConfig{MemoryTarget: new(resource.MustParse("-1"))}
		})
	},
	"an address beside an image is ignored": edited(func(s *v1alpha1.CatalogSourceSpec) { s.Address = "foo:1" }),
	"a status that was wiped is rebuilt":    func(in *catalog.Input) { in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{} },
	"half a registryService is repaired":    func(in *catalog.Input) { in.CatalogSource.Status.RegistryServiceStatus.ServiceName = "" },
	"the namespace is unknown":              func(in *catalog.Input) { in.Namespace = nil; in.Pods.Items = nil },
	"a deleted catalog is let go": func(in *catalog.Input) {
		in.CatalogSource.DeletionTimestamp = new(metav1.NewTime(in.Now))
		in.Pods.Items = nil
	},
	"three replicas are asked for": func(in *catalog.Input) { in.CatalogSource.Annotations = map[string]string{"olmcore/replicas": "3"} },
	"the Pod that was refused is not needed any more": func(in *catalog.Input) {
		in.LastRun = olmcore.LastResults{{Kind: "Pod", Namespace: "olm", Name: "cool-2fnkoshaj3"}: {Class: olmcore.Forbidden, Message: "exceeded quota"}}
	},
	"the Pod is refused": func(in *catalog.Input) {
		in.Pods.Items = nil
		in.LastRun = olmcore.LastResults{{Kind: "Pod", Namespace: "olm", Name: "cool-w4nrrin4qx"}: {Class: olmcore.Forbidden, Message: "exceeded quota"}}
	},

	// Connection.
	"no client asks for one":                  func(in *catalog.Input) { in.Connection = nil },
	"a client of another address is replaced": func(in *catalog.Input) { in.Connection.Address = "old:1" },
	"a client that becomes ready is news": func(in *catalog.Input) {
		in.CatalogSource.Status.GRPCConnectionState.LastObservedState = "CONNECTING"
		in.Subscribers = []string{"team-b", "team-a"}
	},
	"a client that cannot connect is reported": func(in *catalog.Input) {
		in.Connection.State, in.Connection.LastTransition = "TRANSIENT_FAILURE", in.Now.Add(-time.Minute)
	},
	"an idle client is connected": func(in *catalog.Input) { in.Connection.State = "IDLE" },
	"a registry at an address replaces the Pods once it answers": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry.example:50051" })
		in.Connection.Address = "registry.example:50051"
	},
	"the Pods of a registry at an address are its own": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry.example:50051" })
		in.Connection.Address = "registry.example:50051"
		in.Pods.Items[0].OwnerReferences, in.Services.Items, in.ServiceAccounts.Items, in.NetworkPolicies.Items = nil, nil, nil, nil
	},
	"a registry at an address that is not connected": edited(func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "registry.example:50051" }),
	"an address that cannot be dialled":              edited(func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "foo.com" }),

	// Pods and nodes in doubt.
	"a Pod stuck on a node silent for 29s is not forced": func(in *catalog.Input) {
		terminating(in, time.Hour)
		setNode(in, corev1.ConditionUnknown, 29*time.Second)
	},
	"a Pod stuck on a node silent for 30s is forced": func(in *catalog.Input) {
		terminating(in, time.Hour)
		setNode(in, corev1.ConditionUnknown, 30*time.Second)
	},
	"a node that came back and fails again": func(in *catalog.Input) {
		setNode(in, corev1.ConditionUnknown, 10*time.Second)
		addPod(in, "cool-zz", unready)
	},
	"a force delete waits for the deletion time": func(in *catalog.Input) { silence(in, time.Hour); terminating(in, -10*time.Second) },
	"without nodes an eviction by the node controller counts": func(in *catalog.Input) {
		in.Config.IgnoreNodes, in.Nodes = true, olmcore.Observed[*corev1.Node]{}
		evicted(in, "DeletionByTaintManager")
	},
	"a cluster without nodes":                  func(in *catalog.Input) { in.Nodes.Items = nil },
	"ErrImagePull is no service":               func(in *catalog.Input) { waiting(in, "ErrImagePull") },
	"InvalidImageName is no service":           func(in *catalog.Input) { waiting(in, "InvalidImageName") },
	"CreateContainerConfigError is no service": func(in *catalog.Input) { waiting(in, "CreateContainerConfigError") },
	"ImagePullBackOff is no service":           func(in *catalog.Input) { waiting(in, "ImagePullBackOff") },
	"CrashLoopBackOff is no service":           func(in *catalog.Input) { waiting(in, "CrashLoopBackOff") },
	"a candidate that takes over is not force-deleted": func(in *catalog.Input) {
		in.Config.ForceDelete = catalog.ForceDeleteUpstream
		addPod(in, "cool-zz", func(p *corev1.Pod) {
			candidate(p)
			p.Spec.NodeName = in.Pods.Items[0].Spec.NodeName
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
		})
		waiting(in, "ImagePullBackOff")
	},
	"the Service is repaired while a candidate starts": pollAgo(time.Minute, func(in *catalog.Input) {
		probe(func(p *corev1.Pod) { unready(p) })(in)
		in.Services.Items = nil
	}),

	// Faults of OLM, one case each for those that have no test of their own elsewhere, and then what OLM's own tests
	// damage.
	//
	// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_test.go.
	"no defect of OLM: a Pod that tolerates every taint stays on a dead node": func(in *catalog.Input) {
		in.Pods.Items[0].Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		silence(in, time.Hour)
	},
	"no defect of OLM: a Pod that terminates without being evicted counts as healthy": func(in *catalog.Input) { terminating(in, 0) },
	"no defect of OLM: a finished Pod counts as healthy":                              func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodSucceeded },
	"no defect of OLM: a healthy Pod is force-deleted because its eviction was refused": func(in *catalog.Input) {
		disrupted(in)
		in.Nodes.Items = in.Nodes.Items[:1]
		in.Pods.Items[0].Spec.NodeName = in.Nodes.Items[0].Name
	},
	"no defect of OLM: a service account without label stays unhealthy": func(in *catalog.Input) {
		in.ServiceAccounts.Items[0].OwnerReferences, in.ServiceAccounts.Items[0].Labels = nil, nil
	},
	"no defect of OLM: a candidate on a dead node blocks polling": pollAgo(time.Hour, func(in *catalog.Input) {
		probe(func(p *corev1.Pod) { unready(p) })(in)
		in.Pods.Items[1].CreationTimestamp = metav1.NewTime(in.Now.Add(-time.Hour))
		in.Nodes.Items = slices.DeleteFunc(slices.Clone(in.Nodes.Items), func(n *corev1.Node) bool { return n.Name == "b" })
		in.Pods.Items[1].Status.Conditions[0].LastTransitionTime = metav1.NewTime(in.Now.Add(-time.Hour))
	}),
	"no defect of OLM: a candidate that has finished blocks polling":    pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })),
	"no defect of OLM: a webhook that rewrites the image costs the Pod": func(in *catalog.Input) { in.Pods.Items[0].Spec.Containers[0].Image = "mirror.local/catalog@sha256:1" },
	"no defect of OLM: a webhook that adds a pull secret costs the Pod": func(in *catalog.Input) {
		in.Pods.Items[0].Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}}
	},
	"no defect of OLM: a new label of the namespace costs the Pod first": func(in *catalog.Input) {
		in.Namespace.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	},
	"no defect of OLM: a pull secret of the platform costs the Pod first": func(in *catalog.Input) {
		in.ServiceAccounts.Items[0].ImagePullSecrets = []corev1.LocalObjectReference{{Name: "platform"}}
	},
	"no defect of OLM: an overdue poll waits once more":                       pollAgo(24*time.Hour, nil),
	"no defect of OLM: a Pod of a deleted catalog of that name is taken over": func(in *catalog.Input) { in.Pods.Items[0].OwnerReferences[0].UID = "predecessor" },
	"no defect of OLM: clocks that differ make a node look dead":              func(in *catalog.Input) { silence(in, -time.Hour) },
	"no defect of OLM: an address beside a config map is dialled": func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) {
			s.SourceType, s.ConfigMap, s.Address = "configmap", "content", "foo:1"
		})
		in.ConfigMap = content()
	},
	"no defect of OLM: a Pod made by hand goes with the next change": func(in *catalog.Input) {
		addPod(in, "mine", func(p *corev1.Pod) { p.OwnerReferences = nil })
		in.Pods.Items[0].Labels["olm.pod-spec-hash"] = "old"
	},
	"no defect of OLM: a namespace that ends gets new Pods": func(in *catalog.Input) { in.Namespace.Status.Phase, in.Pods.Items = corev1.NamespaceTerminating, nil },
	"as in OLM: nothing exists": func(in *catalog.Input) {
		in.Pods.Items, in.Services.Items, in.ServiceAccounts.Items, in.NetworkPolicies.Items = nil, nil, nil, nil
		in.CatalogSource.Status = v1alpha1.CatalogSourceStatus{}
	},
	"as in OLM: the Service has another hash":        func(in *catalog.Input) { in.Services.Items[0].Labels["olm.service-spec-hash"] = "x" },
	"as in OLM: the Service has another name":        func(in *catalog.Input) { in.Services.Items[0].Name = "other" },
	"as in OLM: a policy has another label":          func(in *catalog.Input) { in.NetworkPolicies.Items[0].Labels["olm.catalogSource"] = "x" },
	"as in OLM: a policy has no label":               func(in *catalog.Input) { in.NetworkPolicies.Items[1].Labels = nil },
	"as in OLM: the Pod has no label":                func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.catalogSource") },
	"as in OLM: the registryService names no port":   func(in *catalog.Input) { in.CatalogSource.Status.RegistryServiceStatus.Port = "" },
	"as in OLM: a Pod that polls is not ready yet":   pollAgo(time.Minute, probe(unready)),
	"as in OLM: a Pod that polls has no status yet":  pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status = corev1.PodStatus{} })),
	"as in OLM: an account has lost its label":       func(in *catalog.Input) { in.ServiceAccounts.Items[0].Labels = nil },
	"as in OLM: an account of another name is there": func(in *catalog.Input) { in.ServiceAccounts.Items[0].Name = "other" },
}
