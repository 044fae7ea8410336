// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
)

// wanted returns the Deployment that an InstallReady CSV writes.
func wanted(t *testing.T, in csv.Input) *appsv1.Deployment {
	t.Helper()
	out := reconciled(t, in)
	require.Len(t, out.Actions, 1)
	switch a := out.Actions[0].(type) {
	case olmcore.Create:
		return a.Object.(*appsv1.Deployment)
	case olmcore.Update:
		return a.After.(*appsv1.Deployment)
	}
	t.Fatalf("%v", out.Actions[0])
	return nil
}

// OLM's case: annotations: never overwritten.
func TestConfigOfInstallingSubscriptionIsUsed(t *testing.T) {
	sub := func(name, installed, current, value string) *v1alpha1.Subscription {
		return &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       &v1alpha1.SubscriptionSpec{Config: &v1alpha1.SubscriptionConfig{Annotations: map[string]string{"from": value, "olm.operatorGroup": "x"}}},
			Status:     v1alpha1.SubscriptionStatus{InstalledCSV: installed, CurrentCSV: current},
		}
	}
	in := input(installReady, "AllRequirementsMet", "")
	in.Subscriptions = olmcore.Found(sub("a", "cool.v0", "cool.v1", "current"), sub("c", "cool.v1", "cool.v1", "second"), sub("b", "cool.v1", "cool.v1", "installed"))
	d := wanted(t, in)
	require.Equal(t, "installed", d.Spec.Template.Annotations["from"])
	require.Equal(t, "installed", d.Annotations["from"])
	require.Equal(t, "group", d.Spec.Template.Annotations["olm.operatorGroup"], "the CSV's annotations win")
	in.Subscriptions.Items = in.Subscriptions.Items[:1]
	require.Equal(t, "current", wanted(t, in).Annotations["from"])

	in.Config.ProxyEnv = []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "p"}, {Name: "NO_PROXY"}}
	require.Equal(t, []corev1.EnvVar{{Name: "HTTP_PROXY", Value: "p"}, {Name: "OPERATOR_CONDITION_NAME", Value: "cool.v1"}}, wanted(t, in).Spec.Template.Spec.Containers[0].Env)
	in.Subscriptions.Items[0].Spec.Config.Env = []corev1.EnvVar{{Name: "HTTPS_PROXY"}}
	require.Equal(t, "HTTPS_PROXY", wanted(t, in).Spec.Template.Spec.Containers[0].Env[0].Name, "the Subscription's own proxy wins")

	in.Config.ExcludedAnnotations = []string{"olm.operatorNamespace"}
	require.NotContains(t, wanted(t, in).Spec.Template.Annotations, "olm.operatorNamespace")
}

func TestDeploymentOfPredecessorIsTakenOver(t *testing.T) {
	in := input(installReady, "AllRequirementsMet", "")
	deploy(t, &in)
	live := in.Deployments.Items[0]
	live.Labels["olm.owner"], live.Labels["theirs"] = "cool.v0", "kept"
	live.Annotations = map[string]string{"deployment.kubernetes.io/revision": "3"}
	live.OwnerReferences = append(live.OwnerReferences, metav1.OwnerReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v0", UID: "old"})
	d := wanted(t, in)
	require.Equal(t, "cool.v1", d.Labels["olm.owner"])
	require.Equal(t, "kept", d.Labels["theirs"])
	require.Equal(t, "3", d.Annotations["deployment.kubernetes.io/revision"])
	require.Len(t, d.OwnerReferences, 1, "the predecessor's reference goes")
	require.Equal(t, live.Status, d.Status)
}

// OLM's case: only owned Deployments that the spec lacks are deleted.
func TestDeploymentRemovedFromStrategyIsDeleted(t *testing.T) {
	in := healthy(t)
	old, foreign := in.Deployments.Items[0].DeepCopy(), in.Deployments.Items[0].DeepCopy()
	old.Name, old.UID = "old", "old"
	foreign.Name, foreign.UID, foreign.OwnerReferences = "foreign", "foreign", nil
	in.Deployments.Items = append(in.Deployments.Items, old, foreign)
	out := reconciled(t, in)
	want := olmcore.DeleteOf(old, olmcore.Cause{Reason: csv.ReasonRemovedFromStrategy, Message: "the install strategy no longer contains deployment old"})
	want.PropagationPolicy, want.GracePeriodSeconds = metav1.DeletePropagationForeground, new(int64(1))
	require.Equal(t, []olmcore.Action{want}, out.Actions)
}

func TestChangedDescriptionCausesNoRollout(t *testing.T) {
	in := healthy(t)
	in.ClusterServiceVersion.Generation = 9
	in.ClusterServiceVersion.Spec.Description = "new words"
	check(t, in, olmcore.Result{})
}

// goldenHash is the hash of goldenSpec.
const goldenHash = "ai0IRjkMY2BbEkkI9iDnVbZk6gefG8h1Jkp6YL"

// goldenSpec is the JSON of the Deployment of the tests' operator: the spec of the strategy with the CSV's annotations,
// OPERATOR_CONDITION_NAME and revisionHistoryLimit 1. The fields have the order of the Go types.
const goldenSpec = `{"replicas":1,"selector":{"matchLabels":{"app":"cool"}},"template":{"metadata":{"labels":{"app":"cool"},` +
	`"annotations":{"olm.operatorGroup":"group","olm.operatorNamespace":"ns","olm.targetNamespaces":"ns"}},` +
	`"spec":{"containers":[{"name":"manager","image":"example.com/cool:1","env":[{"name":"OPERATOR_CONDITION_NAME","value":"cool.v1"}],"resources":{}}],` +
	`"serviceAccountName":"cool"}},"strategy":{},"revisionHistoryLimit":1}`

func TestSpecHashEqualsHashOfOLM(t *testing.T) {
	sum := sha256.Sum224([]byte(goldenSpec + "\n"))
	require.Equal(t, goldenHash, new(big.Int).SetBytes(sum[:]).Text(62))
	in := input(installReady, "AllRequirementsMet", "")
	deploy(t, &in)
	d := in.Deployments.Items[0]
	require.Equal(t, goldenHash, d.Labels["olm.deployment-spec-hash"])
	require.Equal(t, "true", d.Labels[olmcore.LabelManaged])
	require.Equal(t, "cool.v1", d.Labels[olmcore.LabelOwner])
	require.Len(t, d.OwnerReferences, 1)
	require.False(t, *d.OwnerReferences[0].Controller)
}

// adoption is a configuration that OLM merges into a Pod differently from this library.
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
		"an empty podAntiAffinity removes all affinity": {
			affinity(&corev1.Affinity{NodeAffinity: node, PodAntiAffinity: anti}),
			v1alpha1.SubscriptionConfig{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
			affinity(nil), affinity(&corev1.Affinity{NodeAffinity: node}),
		},
		"a variable twice in the CSV":           {env("A", "1", "A", "2"), v1alpha1.SubscriptionConfig{Env: variables("A", "3")}, env("A", "3", "A", "2"), env("A", "3")},
		"a variable twice in the configuration": {same, v1alpha1.SubscriptionConfig{Env: variables("A", "1", "A", "2")}, env("A", "1", "A", "2"), env("A", "2")},
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

// TestAdoptionRestartsNoOperator checks that a Deployment is current if its hash label is the one that OLM wrote for
// the CSV and its configuration. The next rollout applies the configuration as it is meant.
func TestAdoptionRestartsNoOperator(t *testing.T) {
	for name, c := range adoptions() {
		t.Run(name, func(t *testing.T) {
			// A CSV that holds from the start what OLM makes of the configuration gives the Deployment, and the hash,
			// that OLM wrote.
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

// configured returns an InstallReady CSV whose Subscription has a config.
func configured(pod corev1.PodSpec, config v1alpha1.SubscriptionConfig) csv.Input {
	in := input(installReady, "AllRequirementsMet", "")
	in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec = pod
	in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Spec: &v1alpha1.SubscriptionSpec{Config: &config},
		Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"},
	})
	return in
}

func podOf(t require.TestingT, in csv.Input) corev1.PodSpec {
	out := reconciled(t, in)
	require.Len(t, out.Actions, 1)
	return out.Actions[0].(olmcore.Create).Object.(*appsv1.Deployment).Spec.Template.Spec
}

// TestApplyingAConfigTwiceChangesNothing checks that applying the config of a Subscription a second time changes
// nothing, and that no field of the CSV is ever dropped.
func TestApplyingAConfigTwiceChangesNothing(t *testing.T) {
	v := gen.Vocabulary{Now: now, Namespace: "ns", Names: []string{"a", "b", "c"}, Words: map[string][]string{"mountpath": {"/a", "/b"}}}
	configs, pods := gen.Value[v1alpha1.SubscriptionConfig](v), gen.Value[corev1.PodSpec](v)
	rapid.Check(t, func(t *rapid.T) {
		config, pod := configs.Draw(t, "config"), pods.Draw(t, "pod")
		pod.Containers = append(pod.Containers, corev1.Container{Name: "manager"})
		once := podOf(t, configured(*pod.DeepCopy(), config))
		twice := podOf(t, configured(*once.DeepCopy(), config))
		if !equality.Semantic.DeepEqual(once, twice) {
			t.Fatalf("(-once +twice):\n%s", cmp.Diff(once, twice))
		}
		require.Len(t, once.Containers, len(pod.Containers))
		require.Equal(t, len(pod.InitContainers), len(once.InitContainers))
		for i, c := range pod.Containers {
			require.Equal(t, c.Name, once.Containers[i].Name)
			require.Subset(t, namesOf(once.Containers[i].Env, func(e corev1.EnvVar) string { return e.Name }), namesOf(c.Env, func(e corev1.EnvVar) string { return e.Name }))
		}
		require.Subset(t, namesOf(once.Volumes, func(v corev1.Volume) string { return v.Name }), namesOf(pod.Volumes, func(v corev1.Volume) string { return v.Name }))
		require.Subset(t, once.Tolerations, pod.Tolerations)
	})
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := []string{}
	for _, v := range list {
		names = append(names, name(v))
	}
	return names
}

// TestSubscriptionConfigChangesPods checks the effect of each part of a configuration, and of all parts together, on a
// Pod with two containers.
// OLM's cases: env: added, overwritten, emptied, in every container; envFrom: appended, not repeated; volumes:
// appended, replaced, none; mounts: appended, replaced; tolerations: appended, not repeated; resources: replaced,
// emptied, kept; nodeSelector: replaced, emptied, kept; affinity: kept, removed, replaced in part and whole.
func TestSubscriptionConfigChangesPods(t *testing.T) {
	type (
		config = v1alpha1.SubscriptionConfig
		env    = corev1.EnvVar
	)
	from := func(name string) corev1.EnvFromSource {
		return corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	node := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
	pods := &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "a"}}}
	anti := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "b"}}}
	few, many := corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}, corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("9")}}
	both := func(change func(c *corev1.Container)) func(p *corev1.PodSpec) {
		return func(p *corev1.PodSpec) { change(&p.Containers[0]); change(&p.Containers[1]) }
	}
	same := func(*corev1.PodSpec) {}
	for name, c := range map[string]struct {
		given  func(p *corev1.PodSpec)
		config config
		want   func(p *corev1.PodSpec)
	}{
		"nothing is set": {same, config{}, same},
		"env is added to every container": {same, config{Env: []env{{Name: "A", Value: "1"}}},
			both(func(c *corev1.Container) { c.Env = []env{{Name: "A", Value: "1"}} })},
		"init containers keep theirs": {func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{Name: "init"}} }, config{Env: []env{{Name: "A", Value: "1"}}}, func(p *corev1.PodSpec) {
			p.InitContainers = []corev1.Container{{Name: "init"}}
			p.Containers[0].Env, p.Containers[1].Env = []env{{Name: "A", Value: "1"}}, []env{{Name: "A", Value: "1"}}
		}},
		"env is overwritten": {both(func(c *corev1.Container) { c.Env = []env{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}} }), config{Env: []env{{Name: "A", Value: "9"}}},
			both(func(c *corev1.Container) { c.Env = []env{{Name: "A", Value: "9"}, {Name: "B", Value: "2"}} })},
		"env is emptied": {both(func(c *corev1.Container) { c.Env = []env{{Name: "A", Value: "1"}} }), config{Env: []env{{Name: "A"}}},
			both(func(c *corev1.Container) { c.Env = []env{{Name: "A"}} })},
		"envFrom is appended": {both(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{from("a")} }), config{EnvFrom: []corev1.EnvFromSource{from("b")}},
			both(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{from("a"), from("b")} })},
		"envFrom is not repeated": {both(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{from("a")} }), config{EnvFrom: []corev1.EnvFromSource{from("a")}},
			both(func(c *corev1.Container) { c.EnvFrom = []corev1.EnvFromSource{from("a")} })},
		"volumes are appended": {func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}} }, config{Volumes: []corev1.Volume{{Name: "b"}}},
			func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}, {Name: "b"}} }},
		"volumes are replaced by name": {
			func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}, {Name: "b"}} },
			config{Volumes: []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
			func(p *corev1.PodSpec) {
				p.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "b"}}
			},
		},
		"no volumes keep those that are there": {func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}} }, config{Volumes: []corev1.Volume{}},
			func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "a"}} }},
		"mounts are appended": {
			both(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}} }), config{VolumeMounts: []corev1.VolumeMount{{Name: "b", MountPath: "/b"}}},
			both(func(c *corev1.Container) {
				c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b"}}
			}),
		},
		"mounts are replaced by name": {
			both(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}} }), config{VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/b"}}},
			both(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/b"}} }),
		},
		"tolerations are appended once": {
			func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "a"}} }, config{Tolerations: []corev1.Toleration{{Key: "a"}, {Key: "b"}}},
			func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Key: "a"}, {Key: "b"}} },
		},
		"resources are replaced whole":   {both(func(c *corev1.Container) { c.Resources = many }), config{Resources: &few}, both(func(c *corev1.Container) { c.Resources = few })},
		"resources are emptied":          {both(func(c *corev1.Container) { c.Resources = many }), config{Resources: &corev1.ResourceRequirements{}}, both(func(c *corev1.Container) { c.Resources = corev1.ResourceRequirements{} })},
		"no resources keep those there":  {both(func(c *corev1.Container) { c.Resources = many }), config{}, both(func(c *corev1.Container) { c.Resources = many })},
		"nodeSelector is replaced whole": {func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"a": "1"} }, config{NodeSelector: map[string]string{"b": "2"}}, func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"b": "2"} }},
		"an empty nodeSelector empties":  {func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"a": "1"} }, config{NodeSelector: map[string]string{}}, func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{} }},
		"no nodeSelector keeps it":       {func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"a": "1"} }, config{}, func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"a": "1"} }},
		"no affinity keeps it":           {func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{PodAffinity: pods} }, config{}, func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{PodAffinity: pods} }},
		"an empty affinity removes it":   {func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{PodAffinity: pods} }, config{Affinity: &corev1.Affinity{}}, same},
		"affinity where there was none":  {same, config{Affinity: &corev1.Affinity{NodeAffinity: node}}, func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{NodeAffinity: node} }},
		"affinity is replaced part by part": {
			func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{NodeAffinity: node, PodAffinity: pods} },
			config{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: anti}},
			func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{NodeAffinity: node, PodAntiAffinity: anti} },
		},
		"an empty podAntiAffinity removes nothing else": {
			func(p *corev1.PodSpec) {
				p.Affinity = &corev1.Affinity{NodeAffinity: node, PodAffinity: pods, PodAntiAffinity: anti}
			},
			config{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}},
			func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{NodeAffinity: node, PodAffinity: pods} },
		},
		"the last part of an affinity is removed": {
			func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{PodAntiAffinity: anti} },
			config{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}, PodAffinity: &corev1.PodAffinity{}}}, same,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}
			want := *pod.DeepCopy()
			c.given(&pod)
			c.want(&want)
			for i := range want.Containers {
				want.Containers[i].Env = append(want.Containers[i].Env, env{Name: "OPERATOR_CONDITION_NAME", Value: "cool.v1"})
			}
			if diff := cmp.Diff(want, podOf(t, configured(pod, c.config))); diff != "" {
				t.Errorf("Pod (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCreatedDeploymentIsComplete checks the created Deployment as a whole. The CSV and its Subscription set everything
// that they can set.
// OLM's cases: owner, labels, custom labels and a history of one revision; annotations: never overwritten; annotations
// of the CSV win over the template's; labels of the strategy are copied to the Deployment.
func TestCreatedDeploymentIsComplete(t *testing.T) {
	in := configured(corev1.PodSpec{Containers: []corev1.Container{{Name: "manager"}}}, v1alpha1.SubscriptionConfig{
		Annotations: map[string]string{"new": "config", "shared": "config", "olm.operatorGroup": "config"},
	})
	c := in.ClusterServiceVersion
	c.Annotations["both"] = "csv"
	c.Labels["operators.coreos.com/cool.ns"], c.Labels["other"] = "", "kept to itself"
	entry := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	entry.Label = map[string]string{"custom": "label", "olm.owner": "somebody"}
	entry.Spec.Template.Annotations = map[string]string{"template": "kept", "both": "template", "shared": "template"}
	entry.Spec.RevisionHistoryLimit = new(int32(7))

	got := wanted(t, in)
	pod := map[string]string{
		"olm.operatorGroup": "group", "olm.operatorNamespace": "ns", "olm.targetNamespaces": "ns",
		"both": "csv", "template": "kept", "shared": "template", "new": "config",
	}
	want := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "cool",
			Labels: map[string]string{
				"custom": "label", "olm.managed": "true", "olm.owner": "cool.v1", "olm.owner.namespace": "ns", "olm.owner.kind": "ClusterServiceVersion",
				"olm.deployment-spec-hash": got.Labels["olm.deployment-spec-hash"], "operators.coreos.com/cool.ns": "",
			},
			Annotations: map[string]string{"new": "config", "shared": "config", "olm.operatorGroup": "config"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v1", UID: "uid-cool.v1",
				Controller: new(false), BlockOwnerDeletion: new(false),
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cool"}}, RevisionHistoryLimit: new(int32(1)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "cool"}, Annotations: pod},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Env: []corev1.EnvVar{{Name: "OPERATOR_CONDITION_NAME", Value: "cool.v1"}}}}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	hash, err := objecthash.Hash(want.Spec)
	require.NoError(t, err)
	require.Equal(t, hash, got.Labels["olm.deployment-spec-hash"])
}

// TestSpecHashIsTheSameAfterSerialization checks that a CSV that was sent to the API server and read again, any number
// of times, gives the same Deployment. The order of maps does not matter.
func TestSpecHashIsTheSameAfterSerialization(t *testing.T) {
	in := configured(corev1.PodSpec{Containers: []corev1.Container{{Name: "manager"}}}, v1alpha1.SubscriptionConfig{})
	entry := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	entry.Spec.Template.Annotations = map[string]string{}
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		entry.Spec.Template.Annotations[key], entry.Spec.Template.Labels["l"+key], in.ClusterServiceVersion.Annotations["n"+key] = key, key, key
	}
	want := wanted(t, in)
	for range 20 {
		data, err := json.Marshal(in.ClusterServiceVersion)
		require.NoError(t, err)
		in.ClusterServiceVersion = &v1alpha1.ClusterServiceVersion{}
		require.NoError(t, json.Unmarshal(data, in.ClusterServiceVersion))
		require.Equal(t, want, wanted(t, in))
	}
}
