// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// demo is the CatalogSource of the vectors V8, V9 and S1.
func demo() *v1alpha1.CatalogSource {
	cs := cool()
	cs.Name = "demo"
	return cs
}

// first is what the first reconcile of demo creates, by kind.
func first(t *testing.T, cs *v1alpha1.CatalogSource, namespace *corev1.Namespace, config catalog.Config) map[string]olmcore.Object {
	cs.UID, cs.Generation = "uid", 1
	namespace = namespace.DeepCopy()
	namespace.Name = cs.Namespace
	out, err := catalog.Reconcile(emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: namespace, Config: config}))
	require.NoError(t, err)
	made := map[string]olmcore.Object{}
	for _, a := range out.Actions {
		if create, ok := a.(olmcore.Create); ok {
			made[create.Target.Kind+" "+create.Target.Name] = create.Object
			if create.Target.Kind == "Pod" {
				made["Pod"] = create.Object
			}
		}
	}
	return made
}

// emptyNamespace is an input in which all was read and nothing found.
func emptyNamespace(in catalog.Input) catalog.Input {
	in.Pods, in.Services, in.ServiceAccounts = olmcore.Found[*corev1.Pod](), olmcore.Found[*corev1.Service](), olmcore.Found[*corev1.ServiceAccount]()
	in.NetworkPolicies = olmcore.Found[*networkingv1.NetworkPolicy]()
	in.Roles, in.RoleBindings = olmcore.Found[*rbacv1.Role](), olmcore.Found[*rbacv1.RoleBinding]()
	in.PodDisruptionBudgets = olmcore.Found[*policyv1.PodDisruptionBudget]()
	return in
}

func TestCreatedObjectsCarryTheHashesOfOLM(t *testing.T) {
	made := first(t, demo(), &corev1.Namespace{}, catalog.Config{})
	require.Equal(t, "8mkB2lJDec9CxOdLU78pHV2eHSvKaMQM3tjk9Z", made["Pod"].GetLabels()["olm.pod-spec-hash"])
	require.Equal(t, "c6EbzZL8UXG4NRp7mcky9RQ9b1yZBeLgoDBFHa", made["Service demo"].GetLabels()["olm.service-spec-hash"])

	cs := demo()
	cs.Spec.Secrets = []string{"", "pull", "pull"}
	made = first(t, cs, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, catalog.Config{})
	require.Equal(t, "aMCykuuUCl8qjO4Us8ZvytMPeNxzeUh9s3FRc8", made["Pod"].GetLabels()["olm.pod-spec-hash"])
	require.Equal(t, []corev1.LocalObjectReference{{Name: "pull"}}, made["ServiceAccount demo"].(*corev1.ServiceAccount).ImagePullSecrets)
}

// TestHintsAndAnnotationsAreNoPartOfTheHash: what changes from node to node or
// with a comment must not replace Pods; what changes the Pod must.
func TestHintsAndAnnotationsAreNoPartOfTheHash(t *testing.T) {
	const plain = "8mkB2lJDec9CxOdLU78pHV2eHSvKaMQM3tjk9Z"
	hash := func(change func(*v1alpha1.CatalogSource, *catalog.Config)) string {
		cs, config := demo(), catalog.Config{}
		change(cs, &config)
		return first(t, cs, &corev1.Namespace{}, config)["Pod"].GetLabels()["olm.pod-spec-hash"]
	}
	pod := func(change func(*v1alpha1.GrpcPodConfig)) func(*v1alpha1.CatalogSource, *catalog.Config) {
		return func(cs *v1alpha1.CatalogSource, _ *catalog.Config) {
			cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{}
			change(cs.Spec.GrpcPodConfig)
		}
	}
	for name, change := range map[string]func(*v1alpha1.CatalogSource, *catalog.Config){
		"annotation": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) {
			cs.Annotations = map[string]string{"a": "b", "olmcore/replicas": "3"}
		},
		"replicas":     func(_ *v1alpha1.CatalogSource, c *catalog.Config) { c.Replicas, c.Spread = 2, catalog.SpreadRequire },
		"display name": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) { cs.Spec.DisplayName = "x" },
		"empty priority": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) {
			cs.Annotations = map[string]string{"operatorframework.io/priorityclass": ""}
		},
		"legacy": pod(func(c *v1alpha1.GrpcPodConfig) { c.SecurityContextConfig = v1alpha1.Legacy }),
	} {
		require.Equal(t, plain, hash(change), name)
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*v1alpha1.CatalogSource, *catalog.Config){
		"image": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) { cs.Spec.Image = "quay.io/example/catalog:v2" },
		"priority": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) {
			cs.Annotations = map[string]string{"operatorframework.io/priorityclass": "high"}
		},
		"resources":      func(_ *v1alpha1.CatalogSource, c *catalog.Config) { c.Resources = limits("1Gi") },
		"more resources": func(_ *v1alpha1.CatalogSource, c *catalog.Config) { c.Resources = limits("2Gi") },
		"own resources": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) {
			cs.Annotations = map[string]string{"olmcore/resources": `{"limits":{"memory":"3Gi"}}`}
		},
		"pull secrets": func(cs *v1alpha1.CatalogSource, _ *catalog.Config) { cs.Spec.Secrets = []string{"pull"} },
		"the account":  func(cs *v1alpha1.CatalogSource, _ *catalog.Config) { cs.Name = "other" },
		"another user": func(cs *v1alpha1.CatalogSource, c *catalog.Config) {
			cs.Spec.GrpcPodConfig, c.WorkloadUserID = &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}, 7
		},
		"startup probes":  func(_ *v1alpha1.CatalogSource, c *catalog.Config) { c.StartupFailureThreshold = 60 },
		"restricted":      pod(func(c *v1alpha1.GrpcPodConfig) { c.SecurityContextConfig = v1alpha1.Restricted }),
		"node selector":   pod(func(c *v1alpha1.GrpcPodConfig) { c.NodeSelector = map[string]string{} }),
		"tolerations":     pod(func(c *v1alpha1.GrpcPodConfig) { c.Tolerations = []corev1.Toleration{{Operator: "Exists"}} }),
		"affinity":        pod(func(c *v1alpha1.GrpcPodConfig) { c.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }),
		"priority class":  pod(func(c *v1alpha1.GrpcPodConfig) { c.PriorityClassName = new("low") }),
		"memory target":   pod(func(c *v1alpha1.GrpcPodConfig) { c.MemoryTarget = new(resource.MustParse("1Gi")) }),
		"extract content": pod(func(c *v1alpha1.GrpcPodConfig) { c.ExtractContent = &v1alpha1.ExtractContentConfig{CatalogDir: "/c"} }),
	} {
		got := hash(change)
		require.NotEqual(t, plain, got, name)
		require.Empty(t, seen[got], "%s and %s share a hash", name, seen[got])
		seen[got] = name
	}
}

func limits(memory string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

// TestMemoryLimitsAreWhatTheGoRuntimeAccepts: OLM writes 512MB for 512M, which
// makes the registry abort at its start.
func TestMemoryLimitsAreWhatTheGoRuntimeAccepts(t *testing.T) {
	for target, want := range map[string]string{
		"5Mi": "5MiB", "512Mi": "512MiB", "1Gi": "1GiB", "512M": "512000000B", "1G": "1000000000B", "1e9": "1000000000B", "1500m": "2B", "100": "100B", "2Pi": "2251799813685248B",
		"0": "0B", "8388607Ti": "8388607TiB", "10000000001G": "9223372036854775807B", "8388608Ti": "9223372036854775807B",
	} {
		cs := demo()
		quantity := resource.MustParse(target)
		cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{MemoryTarget: &quantity}
		before := quantity.DeepCopy()
		pod := first(t, cs, &corev1.Namespace{}, catalog.Config{})["Pod"].(*corev1.Pod)
		require.Equal(t, []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: want}}, pod.Spec.Containers[0].Env, target)
		require.Equal(t, before, quantity, "the spec was written to")
	}
}

// TestAnAdoptedClusterIsLeftAlone: the objects that any accepted release of OLM
// made are taken over without a write to them.
func TestAnAdoptedClusterIsLeftAlone(t *testing.T) {
	for _, hash := range []string{"8mkB2lJDec9CxOdLU78pHV2eHSvKaMQM3tjk9Z", "3D0S63IDfCwSkylU1gp8djRRUfCMESGJUlgnHa", "1xzDUvKt8KQmd0WAUWBAkQxkpRkbq3RyYYYAm"} {
		w := newWorld(t, catalog.Config{}, demo())
		w.run(t, 0)
		pods, err := olmcore.List[*corev1.Pod](t.Context(), w.Cluster, "olm", nil)
		require.NoError(t, err)
		require.NoError(t, fake.Edit(w.Cluster, "olm", pods[0].Name, func(p *corev1.Pod) {
			p.Labels["olm.pod-spec-hash"] = hash
			p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
		}))
		require.NoError(t, fake.Edit(w.Cluster, "olm", "demo", func(cs *v1alpha1.CatalogSource) { cs.Status = v1alpha1.CatalogSourceStatus{} }))
		from := len(w.Events)
		w.run(t, 24*time.Hour)
		for _, e := range w.Events[from:] {
			if e.Action != nil {
				verb, _, _ := e.Action.Describe()
				require.Equal(t, olmcore.VerbUpdateStatus, verb, "%s", e)
			}
		}
	}
}

// TestAnAdoptedConfigMapServerIsLeftAlone: OLM applies all of grpcPodConfig to a
// config map server, and does not replace it when that or the server's image changes.
// What it made runs on, with its memory target.
func TestAnAdoptedConfigMapServerIsLeftAlone(t *testing.T) {
	for name, config := range map[string]*v1alpha1.GrpcPodConfig{
		"memoryTarget":   {MemoryTarget: new(resource.MustParse("60Mi"))},
		"extractContent": {ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "/configs"}},
		"both":           {MemoryTarget: new(resource.MustParse("1Gi")), ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "/configs", CacheDir: "/cache"}},
	} {
		in := mappedInput(t, catalog.Config{})
		edit(&in, func(s *v1alpha1.CatalogSourceSpec) { s.GrpcPodConfig = config.DeepCopy() })
		pod := in.Pods.Items[0].DeepCopy()
		pod.Labels["olm.pod-spec-hash"] = "another"
		pod.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
		pod.Labels["olm.configMapResourceVersion"] = in.ConfigMap.ResourceVersion
		in.Pods.Items = []*corev1.Pod{pod}
		out, err := catalog.Reconcile(in)
		require.NoError(t, err)
		require.Empty(t, done(out), name)
		require.Equal(t, catalog.ClassServing, catalog.Assess(in).Pods[0].Class)
		in.Config.ConfigMapServerImage = "another:v1"
		require.Equal(t, catalog.ClassServing, catalog.Assess(in).Pods[0].Class)
	}
}

// TestThePublishedCatalogSourceServes starts the CatalogSource of OLM's own
// quickstart manifests.
func TestThePublishedCatalogSourceServes(t *testing.T) {
	found := 0
	for _, o := range realdata.Objects(t, filepath.Join(realdata.Dir(t), "manifests", "olm-quickstart.yaml")) {
		cs, ok := o.(*v1alpha1.CatalogSource)
		if !ok {
			continue
		}
		found++
		w := newWorld(t, catalog.Config{}, cs)
		w.run(t, 24*time.Hour)
		in, err := catalog.Gather(t.Context(), w.Cluster, types.NamespacedName{Namespace: cs.Namespace, Name: cs.Name}, catalog.Config{})
		require.NoError(t, err)
		in.Now = w.Cluster.Now()
		require.Equal(t, catalog.StateServing, catalog.Assess(in).State)
		require.NoError(t, invariant.Laws(result, in))
	}
	require.NotZero(t, found)
}
