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

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestWhatUsersOfOLMSufferedFrom holds one case for each known fault that has no
// test of its own elsewhere: what is done about the Pods, and what the status says.
func TestWhatUsersOfOLMSufferedFrom(t *testing.T) {
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

// TestPodsThatDoNotServeAreNotAvailable: OLM calls them healthy, and Subscriptions
// believe it.
func TestPodsThatDoNotServeAreNotAvailable(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for reason, cause := range map[string]string{
		"ErrImagePull": catalog.ReasonImagePullFailed, "ImagePullBackOff": catalog.ReasonImagePullFailed, "InvalidImageName": catalog.ReasonImagePullFailed,
		"CrashLoopBackOff": catalog.ReasonCrashLooping, "CreateContainerConfigError": catalog.ReasonCrashLooping,
	} {
		out := reconcile(t, base, func(in *catalog.Input) { waiting(in, reason) })
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, metav1.ConditionFalse, meta.FindStatusCondition(status.Status.Conditions, "Available").Status)
		require.Equal(t, cause, meta.FindStatusCondition(status.Status.Conditions, "Degraded").Reason)
	}
}

// TestSecretsReachTheServiceAccount also when they are edited later; what others
// added stays.
func TestSecretsReachTheServiceAccount(t *testing.T) {
	cs := cool()
	cs.Spec.Secrets = []string{"one", "two"}
	w := newWorld(t, catalog.Config{}, cs)
	w.run(t, time.Minute)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(a *corev1.ServiceAccount) {
		a.ImagePullSecrets = append(a.ImagePullSecrets, corev1.LocalObjectReference{Name: "platform"})
	}))
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Spec.Secrets = []string{"two", "three"} }))
	w.run(t, time.Hour)
	in := w.input(t)
	want := []corev1.LocalObjectReference{{Name: "two"}, {Name: "platform"}, {Name: "three"}}
	require.Equal(t, want, in.ServiceAccounts.Items[0].ImagePullSecrets)
	require.Equal(t, want, in.Pods.Items[0].Spec.ImagePullSecrets)
}

// TestTheServiceIsRepairedWhileACandidateStarts, which may take ten minutes.
func TestTheServiceIsRepairedWhileACandidateStarts(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	out := reconcile(t, base, pollAgo(time.Minute, func(in *catalog.Input) {
		probe(func(p *corev1.Pod) { unready(p) })(in)
		in.Services.Items = nil
	}))
	require.True(t, slices.ContainsFunc(out.Actions, func(a olmcore.Action) bool {
		verb, target, _ := a.Describe()
		return verb == olmcore.VerbCreate && target.Kind == "Service"
	}))
}

// TestABadIntervalIsReportedAllTheTime, also while a candidate starts.
func TestABadIntervalIsReportedAllTheTime(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, change := range []func(*catalog.Input){func(*catalog.Input) {}, probe(func(p *corev1.Pod) { unready(p) })} {
		out := reconcile(t, base, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("45mError.code") })
			in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-time.Minute)))
			change(in)
		})
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, v1alpha1.CatalogSourceIntervalInvalidError, status.Status.Reason)
		require.Contains(t, status.Status.Message, `time: unknown unit "mError" in duration "45mError.code"`)
	}
}

// TestAStaleCacheMakesNoSecondPod: a decision that is taken again before its Pod is
// seen names the same Pod.
func TestAStaleCacheMakesNoSecondPod(t *testing.T) {
	base := converged(t, catalog.Config{Replicas: 3}, cool())
	names := func(now time.Duration) (list []string) {
		in := invariant.Clone(base)
		in.Now, in.Pods.Items = in.Now.Add(now), in.Pods.Items[:1]
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
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

// TestNamesThatGiveNoServiceAreRefused instead of failing at the API server for
// ever.
func TestNamesThatGiveNoServiceAreRefused(t *testing.T) {
	for name, valid := range map[string]bool{
		"cool": true, "a.b": true, "a" + strings.Repeat("b", 62): true,
		"a" + strings.Repeat("b", 63): false, "1cool": false, "Cool": false, "cool-": false, "cool.": false, "co_ol": false,
	} {
		for _, spec := range []v1alpha1.CatalogSourceSpec{cool().Spec, mapped().Spec} {
			cs := cool()
			cs.Name, cs.UID, cs.Spec = name, "uid", spec
			a := catalog.Assess(emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace(), ConfigMap: content()}))
			require.Equal(t, valid, a.State != catalog.StateInvalid, "%s: %+v", name, a.Conditions)
		}
	}
}

// TestTheConnectionStateIsThisCatalogsOwn: nothing is written while it stays, and an
// idle client that was connected still is.
func TestTheConnectionStateIsThisCatalogsOwn(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	require.True(t, catalog.Assess(base).Connected)
	in := invariant.Clone(base)
	in.Now = in.Now.Add(500 * time.Millisecond)
	out, err := catalog.Reconcile(in)
	require.NoError(t, err)
	require.Empty(t, out.Result)
	in.Connection.State = "IDLE"
	require.True(t, catalog.Assess(in).Connected)
	in.Connection.State, in.Connection.LastConnect = "IDLE", time.Time{}
	require.False(t, catalog.Assess(in).Connected)
	out = reconcile(t, base, func(in *catalog.Input) { in.CatalogSource.Status.GRPCConnectionState.Address = "stale:1" })
	status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, "cool.olm.svc:50051", status.Status.GRPCConnectionState.Address)
}

// TestWhoMustResolveAgain: a catalog of the global namespace concerns those who
// subscribe to it, any other only its own namespace.
func TestWhoMustResolveAgain(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, global := range []string{"olm", "elsewhere"} {
		for what, change := range map[string]func(*catalog.Input){
			"the client connects": func(in *catalog.Input) { in.CatalogSource.Status.GRPCConnectionState.LastObservedState = "CONNECTING" },
			"new content":         pollAgo(time.Minute, probe(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ImageID = "repo@sha256:new" })),
			"it is deleted":       func(in *catalog.Input) { in.CatalogSource.DeletionTimestamp = new(metav1.NewTime(in.Now)) },
		} {
			out := reconcile(t, base, func(in *catalog.Input) {
				in.Config.GlobalCatalogNamespace, in.Subscribers = global, []string{"team-b", "team-a", "team-b"}
				change(in)
			})
			want := []string{"olm"}
			if global == "olm" {
				want = append(want, "team-a", "team-b")
			}
			require.Equal(t, catalog.Notify{InvalidateSnapshot: true, ResolveNamespaces: want}, out.Notify, fmt.Sprint(what, global))
		}
	}
	require.Zero(t, reconcile(t, base, func(*catalog.Input) {}).Notify)
}

// TestEveryPodMayBeMoved by the autoscaler, whatever the CatalogSource says; settings
// and what kubectl remembers are not copied to the Pods.
func TestEveryPodMayBeMoved(t *testing.T) {
	cs := demo()
	cs.Annotations = map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "olmcore/replicas": "1",
		"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "blue",
	}
	require.Equal(t, map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "true", "team": "blue", "olmcore/attempt": "1", "olmcore/purpose": "initial",
	}, podOf(t, cs, "", catalog.Config{}).Annotations)
}
