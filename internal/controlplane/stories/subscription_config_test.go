// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// configured makes a Subscription with a config.
func configured(config v1alpha1.SubscriptionConfig) func(*v1alpha1.SubscriptionSpec) {
	return func(spec *v1alpha1.SubscriptionSpec) { spec.Config = &config }
}

// deployed is what the Deployment of alpha runs.
func deployed(s *story) corev1.PodTemplateSpec {
	return get[*appsv1.Deployment](s, "alpha").Spec.Template
}

// container is the operator's; an empty one where there is none yet.
func container(s *story) (c corev1.Container) {
	for _, c := range deployed(s).Spec.Containers {
		return c
	}
	return c
}

func TestSubscriptionsConfigureTheirOperator(t *testing.T) {
	t.Parallel()
	with := func(t *testing.T, sentence string, config v1alpha1.SubscriptionConfig, check func(s *story)) {
		tell(t, sentence, func(s *story) {
			s.group()
			s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", edited(func(csv *v1alpha1.ClusterServiceVersion) {
				pod := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
				pod.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "low"}, {Name: "MODE", Value: "fast"}}
				pod.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
				pod.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
			})))
			s.subscribe("alpha", configured(config))
			s.installed("alpha", "alpha.v1.0.0")
			check(s)
		})
	}
	with(t, "variables are added, and replace those of the bundle", v1alpha1.SubscriptionConfig{
		Env: []corev1.EnvVar{{Name: "LEVEL", Value: "high"}, {Name: "EXTRA", Value: "1"}},
	}, func(s *story) {
		env := map[string]string{}
		for _, e := range container(s).Env {
			env[e.Name] = e.Value
		}
		delete(env, "OPERATOR_CONDITION_NAME")
		require.Equal(s, map[string]string{"LEVEL": "high", "MODE": "fast", "EXTRA": "1"}, env)
	})
	with(t, "variables come from a ConfigMap", v1alpha1.SubscriptionConfig{
		EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
	}, func(s *story) {
		require.Equal(s, "settings", container(s).EnvFrom[0].ConfigMapRef.Name)
	})
	with(t, "resources replace those of the bundle", v1alpha1.SubscriptionConfig{
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
	}, func(s *story) {
		limits := container(s).Resources.Limits
		require.Equal(s, "1Gi", limits.Memory().String())
		require.Empty(s, container(s).Resources.Requests)
	})
	with(t, "a node selector replaces that of the bundle", v1alpha1.SubscriptionConfig{NodeSelector: map[string]string{"kubernetes.io/arch": "amd64"}}, func(s *story) {
		require.Equal(s, map[string]string{"kubernetes.io/arch": "amd64"}, deployed(s).Spec.NodeSelector)
	})
	toleration := corev1.Toleration{Key: "infra", Operator: corev1.TolerationOpExists}
	with(t, "tolerations are added", v1alpha1.SubscriptionConfig{Tolerations: []corev1.Toleration{toleration}}, func(s *story) {
		require.Contains(s, deployed(s).Spec.Tolerations, toleration)
	})
	with(t, "volumes are mounted", v1alpha1.SubscriptionConfig{
		Volumes:      []corev1.Volume{{Name: "ca", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "ca", MountPath: "/ca"}},
	}, func(s *story) {
		require.Equal(s, "ca", deployed(s).Spec.Volumes[0].Name)
		require.Equal(s, "/ca", container(s).VolumeMounts[0].MountPath)
	})
	with(t, "an affinity is set", v1alpha1.SubscriptionConfig{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "alpha"}}}}},
	}}}, func(s *story) {
		require.Equal(s, "kubernetes.io/hostname", deployed(s).Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.TopologyKey)
	})
	with(t, "annotations are put on the Deployment and its Pods", v1alpha1.SubscriptionConfig{Annotations: map[string]string{"team": "one"}}, func(s *story) {
		require.Equal(s, "one", get[*appsv1.Deployment](s, "alpha").Annotations["team"])
		require.Equal(s, "one", deployed(s).Annotations["team"])
	})
	with(t, "what is changed, and taken away again, reaches the operator that runs", v1alpha1.SubscriptionConfig{
		Env: []corev1.EnvVar{{Name: "EXTRA", Value: "1"}},
	}, func(s *story) {
		extra := func() string {
			for _, e := range container(s).Env {
				if e.Name == "EXTRA" {
					return e.Value
				}
			}
			return "none"
		}
		require.Equal(s, "1", extra())
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.Config.Env[0].Value = "2" })
		eventually(s, "the variable is changed", extra, "2")
		edit(s, "alpha", func(o *v1alpha1.Subscription) { o.Spec.Config = nil })
		eventually(s, "the variable is gone", extra, "none")
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "it goes along with an upgrade", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"), configured(v1alpha1.SubscriptionConfig{Tolerations: []corev1.Toleration{toleration}}))
		s.installed("alpha", "alpha.v1.1.0")
		require.Contains(s, deployed(s).Spec.Tolerations, toleration)
		require.Contains(s, container(s).Image, "v1.1.0")
	})
}
