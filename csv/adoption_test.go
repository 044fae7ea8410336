// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// adoption is a configuration that OLM lays over a Pod in another way than this
// library does.
type adoption struct {
	pod    func(p *corev1.PodSpec)
	config v1alpha1.SubscriptionConfig
	// olm makes of the CSV's Pod what OLM does, ours what a rollout makes.
	olm, ours func(p *corev1.PodSpec)
}

func adoptions() map[string]adoption {
	node := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}}
	anti := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "b"}}}
	same := func(*corev1.PodSpec) {}
	affinity := func(a *corev1.Affinity) func(p *corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Affinity = a.DeepCopy() }
	}
	env := func(pairs ...string) func(p *corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Containers[0].Env = variables(pairs...) }
	}
	mounts := func(pairs ...string) func(p *corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Containers[0].VolumeMounts = mountsAt(pairs...) }
	}
	volumes := func(list ...corev1.Volume) func(p *corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.Volumes = list }
	}
	old, other := corev1.Volume{Name: "v"}, corev1.Volume{Name: "w"}
	replaced := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	return map[string]adoption{
		"an empty nodeAffinity where there was none": {
			same, v1alpha1.SubscriptionConfig{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}},
			affinity(&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}), same,
		},
		"an empty podAntiAffinity where there was none": {
			same, v1alpha1.SubscriptionConfig{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
			affinity(&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}), same,
		},
		"an empty podAntiAffinity takes all of it": {
			affinity(&corev1.Affinity{NodeAffinity: node, PodAntiAffinity: anti}),
			v1alpha1.SubscriptionConfig{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
			affinity(nil), affinity(&corev1.Affinity{NodeAffinity: node}),
		},
		"a variable twice in the CSV": {
			env("A", "1", "A", "2"), v1alpha1.SubscriptionConfig{Env: variables("A", "3")},
			env("A", "3", "A", "2"), env("A", "3"),
		},
		"a variable twice in the configuration": {
			same, v1alpha1.SubscriptionConfig{Env: variables("A", "1", "A", "2")},
			env("A", "1", "A", "2"), env("A", "2"),
		},
		"a variable replaced after another was appended": {
			env("A", "1"), v1alpha1.SubscriptionConfig{Env: variables("B", "2", "A", "3")},
			env("A", "1", "B", "2"), env("A", "3", "B", "2"),
		},
		"a volume mounted twice over a mount": {
			mounts("v", "/old"), v1alpha1.SubscriptionConfig{VolumeMounts: mountsAt("v", "/a", "v", "/b")},
			mounts("v", "/b"), mounts("v", "/a", "v", "/b"),
		},
		"a mount twice in the configuration": {
			same, v1alpha1.SubscriptionConfig{VolumeMounts: mountsAt("v", "/a", "v", "/a")},
			mounts("v", "/a", "v", "/a"), mounts("v", "/a"),
		},
		"a mount over the second one of its volume": {
			mounts("v", "/x", "v", "/y"), v1alpha1.SubscriptionConfig{VolumeMounts: mountsAt("v", "/y")},
			mounts("v", "/y", "v", "/y"), mounts("v", "/x", "v", "/y"),
		},
		"a mount replaced after another was appended": {
			mounts("v", "/old"), v1alpha1.SubscriptionConfig{VolumeMounts: mountsAt("w", "/w", "v", "/new")},
			mounts("v", "/old", "w", "/w"), mounts("v", "/new", "w", "/w"),
		},
		"a volume replaced after another was appended": {
			volumes(old), v1alpha1.SubscriptionConfig{Volumes: []corev1.Volume{other, replaced}},
			volumes(old, other), volumes(replaced, other),
		},
	}
}

func variables(pairs ...string) (list []corev1.EnvVar) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

func mountsAt(pairs ...string) (list []corev1.VolumeMount) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, corev1.VolumeMount{Name: pairs[i], MountPath: pairs[i+1]})
	}
	return list
}

// TestAdoptionRestartsNoOperator: a Deployment whose hash label is what OLM wrote
// for this CSV and its configuration is current; the next rollout is made as the
// configuration means it.
func TestAdoptionRestartsNoOperator(t *testing.T) {
	for name, c := range adoptions() {
		t.Run(name, func(t *testing.T) {
			// A CSV that holds from the start what OLM makes of the configuration
			// gives the Deployment, and the hash, that OLM wrote.
			adopted := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
			pod := &adopted.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
			c.pod(pod)
			own := pod.DeepCopy()
			c.olm(pod)
			deploy(t, &adopted)
			*pod = *own
			adopted.Subscriptions = olmcore.Found(&v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: &v1alpha1.SubscriptionSpec{Config: &c.config},
				Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
			})
			check(t, adopted, olmcore.Result{})

			installing := adopted
			installing.ClusterServiceVersion = adopted.ClusterServiceVersion.DeepCopy()
			hold(installing.ClusterServiceVersion, installReady, "AllRequirementsMet", "all requirements found, attempting install", 0)
			check(t, installing, moves(installing, "Installing", "InstallSucceeded", "waiting for install components to report healthy"))

			installing.Deployments.Items = nil
			want := own.DeepCopy()
			c.ours(want)
			want.Containers[0].Env = append(want.Containers[0].Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: "cool.v1"})
			require.Equal(t, *want, wanted(t, installing).Spec.Template.Spec)

			c.config.NodeSelector = map[string]string{"a": "b"}
			out, err := reconcile(adopted)
			require.NoError(t, err)
			require.Len(t, out.Transitions, 1, "another configuration is a rollout")
		})
	}
}
