// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

// TestCreatedObjectsCarryTheHashesOfOLM checks that new objects have the hashes that OLM would give them.
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

// TestHintsAndAnnotationsAreNotPartOfTheHash checks that scheduling hints and annotations do not change the hash of a
// Pod, and that the spec does.
func TestHintsAndAnnotationsAreNotPartOfTheHash(t *testing.T) {
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

// TestAdoptedClusterNeedsNoWrite checks that the objects of every supported release of OLM are adopted without a
// write.
func TestAdoptedClusterNeedsNoWrite(t *testing.T) {
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

// TestCatalogSourceOfOLMQuickstartServes checks that the CatalogSource of OLM's quickstart manifests serves.
func TestCatalogSourceOfOLMQuickstartServes(t *testing.T) {
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

// TestImagesWithoutDigestAreAlwaysPulled checks that images are always pulled, unless the reference has a digest.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/reconciler_test.go.
func TestImagesWithoutDigestAreAlwaysPulled(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"quay.io/example/catalog": corev1.PullAlways, "quay.io/example/catalog:v1": corev1.PullAlways,
		"quay.io/example/catalog@sha256:abc": corev1.PullIfNotPresent, "repo@md5:1": corev1.PullIfNotPresent, "repo:v1@sha256:abc": corev1.PullIfNotPresent,
	} {
		cs := demo()
		cs.Spec.Image = image
		require.Equal(t, want, podOf(t, cs, "", catalog.Config{}).Spec.Containers[0].ImagePullPolicy, image)
		// With extractContent the server runs opm, and the image is only copied.
		cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "/c"}}
		pod := podOf(t, cs, "", catalog.Config{OPMImage: "opm@sha256:abc"})
		require.Equal(t, corev1.PullIfNotPresent, pod.Spec.Containers[0].ImagePullPolicy)
		require.Equal(t, want, pod.Spec.InitContainers[1].ImagePullPolicy, image)
		require.Equal(t, corev1.PullAlways, podOf(t, cs, "", catalog.Config{OPMImage: "opm:v1"}).Spec.Containers[0].ImagePullPolicy)
	}
}

// TestSecurityFollowsTheSpecThenTheNamespace checks that the security context follows from the spec, or from the
// namespace if the spec does not set it.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/reconciler_test.go.
func TestSecurityFollowsTheSpecThenTheNamespace(t *testing.T) {
	for _, test := range []struct {
		name       string
		config     *v1alpha1.GrpcPodConfig
		enforce    string
		restricted bool
	}{
		{"nothing said in a restricted namespace", nil, "restricted", true},
		{"nothing said in a namespace without label", nil, "", false},
		{"nothing said in a baseline namespace", nil, "baseline", false},
		{"an empty config in a legacy namespace", &v1alpha1.GrpcPodConfig{}, "", false},
		{"an empty config in a restricted namespace", &v1alpha1.GrpcPodConfig{}, "restricted", true},
		{"legacy in a restricted namespace", &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Legacy}, "restricted", false},
		{"restricted in a legacy namespace", &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}, "", true},
	} {
		for _, user := range []bool{true, false} {
			cs := demo()
			cs.Spec.GrpcPodConfig = test.config
			pod := podOf(t, cs, test.enforce, catalog.Config{WorkloadUserID: map[bool]int64{true: 0, false: catalog.NoWorkloadUser}[user]})
			container := pod.Spec.Containers[0].SecurityContext
			require.Equal(t, new(false), container.ReadOnlyRootFilesystem, test.name)
			if !test.restricted {
				require.Nil(t, pod.Spec.SecurityContext, test.name)
				require.Nil(t, container.AllowPrivilegeEscalation, test.name)
				continue
			}
			want := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
			if user {
				want.RunAsUser, want.RunAsNonRoot = new(int64(1001)), new(true)
			}
			require.Equal(t, want, pod.Spec.SecurityContext, test.name)
			require.Equal(t, new(false), container.AllowPrivilegeEscalation, test.name)
			require.Equal(t, []corev1.Capability{"ALL"}, container.Capabilities.Drop, test.name)
		}
	}
}

// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/reconciler_test.go.
func TestSchedulingFollowsGrpcPodConfig(t *testing.T) {
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	tolerations := []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}
	linux := map[string]string{"kubernetes.io/os": "linux"}
	for name, test := range map[string]struct {
		config     *v1alpha1.GrpcPodConfig
		annotation string
		selector   map[string]string
		priority   string
	}{
		"nothing":                      {nil, "", linux, ""},
		"a node selector":              {&v1alpha1.GrpcPodConfig{NodeSelector: map[string]string{"a": "b"}}, "", map[string]string{"a": "b"}, ""},
		"an empty node selector":       {&v1alpha1.GrpcPodConfig{NodeSelector: map[string]string{}}, "", map[string]string{}, ""},
		"a priority class":             {&v1alpha1.GrpcPodConfig{PriorityClassName: new("low")}, "", linux, "low"},
		"a nil priority class":         {&v1alpha1.GrpcPodConfig{}, "", linux, ""},
		"an annotation":                {nil, "high", linux, "high"},
		"an annotation beats the spec": {&v1alpha1.GrpcPodConfig{PriorityClassName: new("low")}, "high", linux, "high"},
	} {
		cs := demo()
		cs.Spec.GrpcPodConfig = test.config
		cs.Annotations = map[string]string{"operatorframework.io/priorityclass": test.annotation, "team": "blue"}
		pod := podOf(t, cs, "", catalog.Config{})
		require.Equal(t, test.selector, pod.Spec.NodeSelector, name)
		require.Equal(t, test.priority, pod.Spec.PriorityClassName, name)
		require.Empty(t, pod.Spec.Tolerations, name)
		require.Nil(t, pod.Spec.Affinity, name)
		require.Equal(t, "blue", pod.Annotations["team"])
		pod.Annotations["team"], pod.Labels["olm.catalogSource"] = "red", "x"
		require.Equal(t, "blue", cs.Annotations["team"], "the maps are the Pod's own")
	}
	cs := demo()
	cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{Tolerations: tolerations, Affinity: affinity}
	pod := podOf(t, cs, "", catalog.Config{})
	require.Equal(t, tolerations, pod.Spec.Tolerations)
	require.Equal(t, affinity, pod.Spec.Affinity)
}

// TestImagesHaveDefaults checks that every image has OLM's default.
func TestImagesHaveDefaults(t *testing.T) {
	cs := demo()
	cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "/c"}}
	pod := podOf(t, cs, "", catalog.Config{})
	require.Equal(t, catalog.DefaultUtilImage, pod.Spec.InitContainers[0].Image)
	require.Equal(t, cs.Spec.Image, pod.Spec.InitContainers[1].Image)
	require.Equal(t, catalog.DefaultOPMImage, pod.Spec.Containers[0].Image)
	require.Equal(t, catalog.DefaultConfigMapServerImage, mappedInput(t, catalog.Config{}).Pods.Items[0].Spec.Containers[0].Image)
}

// TestTheAutoscalerMayEvictPods checks that Pods have the annotation safe-to-evict, whatever the CatalogSource
// contains, and that annotations of this library and of kubectl are not copied to Pods.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_test.go.
func TestTheAutoscalerMayEvictPods(t *testing.T) {
	cs := demo()
	cs.Annotations = map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "olmcore/replicas": "1",
		"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "blue",
	}
	require.Equal(t, map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "true", "team": "blue", "olmcore/attempt": "1", "olmcore/purpose": "initial",
	}, podOf(t, cs, "", catalog.Config{}).Annotations)
}
