// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestNoCatalogSourceGetsPrivileges checks that the Pod of a CatalogSource gets no privileges, host namespaces, host
// paths or ports, only empty volumes, and the ServiceAccount with the name of the catalog.
func TestNoCatalogSourceGetsPrivileges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := cool()
		cs.UID, cs.Generation = "uid", 1
		cs.Annotations = map[string]string{}
		for _, key := range []string{
			"operatorframework.io/priorityclass", "olmcore/resources", "olmcore/replicas", "kubernetes.io/psp",
			"container.apparmor.security.beta.kubernetes.io/registry-server", "openshift.io/scc",
		} {
			if rapid.Bool().Draw(t, key) {
				cs.Annotations[key] = rapid.SampledFrom([]string{"privileged", "unconfined", "2", `{"limits":{"memory":"1Gi"}}`}).Draw(t, "value")
			}
		}
		cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{
			SecurityContextConfig: rapid.SampledFrom([]v1alpha1.SecurityConfig{"", v1alpha1.Legacy, v1alpha1.Restricted}).Draw(t, "context"),
			Tolerations:           []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			NodeSelector:          map[string]string{"node-role.kubernetes.io/control-plane": ""},
			PriorityClassName:     new("system-node-critical"),
		}
		if rapid.Bool().Draw(t, "memory") {
			cs.Spec.GrpcPodConfig.MemoryTarget = new(resource.MustParse("1Gi"))
		}
		if rapid.Bool().Draw(t, "extract") {
			cs.Spec.GrpcPodConfig.ExtractContent = &v1alpha1.ExtractContentConfig{
				CatalogDir: rapid.SampledFrom([]string{"/", "../..", "--x", "/$(id)"}).Draw(t, "dir"), CacheDir: rapid.SampledFrom([]string{"", "/proc/1"}).Draw(t, "cache"),
			}
		}
		if rapid.Bool().Draw(t, "config map") {
			cs.Spec.SourceType, cs.Spec.ConfigMap = v1alpha1.SourceTypeConfigmap, "content"
		}
		out := answer(t, emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace(), ConfigMap: content()}))
		made := 0
		for _, a := range out.Actions {
			c, ok := a.(olmcore.Create)
			require.True(t, !ok || c.Target.Namespace == "olm" && c.As == nil)
			if pod, is := c.Object.(*corev1.Pod); ok && is {
				made++
				requireNothingOfTheNode(t, &pod.Spec)
				require.Contains(t, []string{"cool", "cool-configmap-server"}, pod.Spec.ServiceAccountName)
			}
		}
		require.NotZero(t, made)
	})
}

func requireNothingOfTheNode(t require.TestingT, spec *corev1.PodSpec) {
	require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.NodeName != "")
	for _, volume := range spec.Volumes {
		require.NotNil(t, volume.EmptyDir)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range containers {
			s := c.SecurityContext
			require.True(t, s.Privileged == nil && (s.AllowPrivilegeEscalation == nil || !*s.AllowPrivilegeEscalation))
			require.True(t, s.Capabilities == nil || len(s.Capabilities.Add) == 0)
			require.Nil(t, s.RunAsUser)
			require.Empty(t, c.EnvFrom)
			for _, port := range c.Ports {
				require.Zero(t, port.HostPort)
			}
		}
	}
}

// TestACatalogNamedLikeAServiceAccountGetsNoToken checks that a CatalogSource with the name of an unmanaged
// ServiceAccount uses its pull secrets and gets no token.
func TestACatalogNamedLikeAServiceAccountGetsNoToken(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	mounts := func(in catalog.Input) *bool {
		in.Pods.Items = nil
		out := answer(t, in)
		for _, a := range out.Actions {
			if c, ok := a.(olmcore.Create); ok && c.Target.Kind == "Pod" {
				require.Equal(t, base.Pods.Items[0].Labels["olm.pod-spec-hash"], c.Object.GetLabels()["olm.pod-spec-hash"], "adoption restarts nothing")
				return c.Object.(*corev1.Pod).Spec.AutomountServiceAccountToken
			}
		}
		t.Fatal("no Pod")
		return nil
	}
	require.Nil(t, mounts(base), "its own account")
	others := base
	account := base.ServiceAccounts.Items[0].DeepCopy()
	account.OwnerReferences, account.Labels = nil, nil
	others.ServiceAccounts = olmcore.Found(account)
	require.Equal(t, new(false), mounts(others))
	labelled := account.DeepCopy()
	labelled.Labels = map[string]string{olmcore.LabelManaged: "true"}
	others.ServiceAccounts = olmcore.Found(labelled)
	require.Equal(t, new(false), mounts(others), "a label proves nothing")
}

// TestObjectsOfOthersAreNeitherTakenNorDeleted checks that an object with a name that the catalog needs and with
// another owner is not changed.
func TestObjectsOfOthersAreNeitherTakenNorDeleted(t *testing.T) {
	by := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "cool", UID: "other"}}
	for _, base := range []catalog.Input{converged(t, catalog.Config{Replicas: 2}, cool()), mappedInput(t, catalog.Config{Replicas: 2})} {
		for _, source := range []v1alpha1.CatalogSourceSpec{base.CatalogSource.Spec, {SourceType: v1alpha1.SourceTypeGrpc, Address: "registry:50051"}} {
			in := invariant.Clone(base)
			in.CatalogSource.Spec, in.CatalogSource.Generation = source, 9
			for o, damage := range around(&in) {
				damage()
				o.SetOwnerReferences(by)
			}
			for _, pod := range in.Pods.Items {
				pod.OwnerReferences = by
			}
			out := answer(t, in)
			for _, a := range out.Actions {
				verb, target, _ := a.Describe()
				require.True(t, verb == olmcore.VerbCreate || target.Kind == v1alpha1.CatalogSourceKind, "%s %s", verb, target)
			}
		}
	}
}

// TestAForgedStatusDoesNotChangeTheAddress checks that the client connects to spec.address or to the Service of the
// catalog, whatever the status contains, and that no two polls are due within one interval.
func TestAForgedStatusDoesNotChangeTheAddress(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	in := base
	in.Connection = nil
	in.CatalogSource = base.CatalogSource.DeepCopy()
	in.CatalogSource.Status.GRPCConnectionState = &v1alpha1.GRPCConnectionState{Address: "169.254.169.254:80", LastObservedState: "READY"}
	in.CatalogSource.Status.RegistryServiceStatus = &v1alpha1.RegistryServiceStatus{ServiceName: "etcd", ServiceNamespace: "kube-system", Port: "2379"}
	out := answer(t, in)
	require.Equal(t, catalog.ConnectionRequest{Verb: catalog.ConnectionConnect, Address: "cool.olm.svc:50051"}, out.Connection)
	status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.Equal(t, base.CatalogSource.Status.RegistryServiceStatus.ServiceName, status.Status.RegistryServiceStatus.ServiceName)

	polled := func(ago time.Duration) []string {
		return done(reconcile(t, base, pollAgo(100*time.Hour, probe(func(p *corev1.Pod) {
			unready(p)
			p.CreationTimestamp = metav1.NewTime(base.Now.Add(-ago))
		}))))
	}
	require.Empty(t, polled(time.Minute), "a Pod polls already")
}

// TestAForgedPodDoesNotRemoveTheLastPod checks that a Pod with a forged owner and labels counts as a Pod of the
// catalog, and that one of the Pods that serve stays.
func TestAForgedPodDoesNotRemoveTheLastPod(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for _, ready := range []bool{true, false} {
		in := invariant.Clone(base)
		addPod(&in, "aaa", func(p *corev1.Pod) {
			p.Spec.Containers[0].Image = "evil:v1"
			p.CreationTimestamp = metav1.NewTime(start.Add(-time.Hour))
			if !ready {
				unready(p)
			}
		})
		out := answer(t, in)
		require.LessOrEqual(t, len(done(out)), 1)
		checkSafety(t, in, out, 1)
		checkPromises(t, in, out)
	}
}
