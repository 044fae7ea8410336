// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// podOf is the first Pod of a CatalogSource.
func podOf(t *testing.T, cs *v1alpha1.CatalogSource, enforce string, config catalog.Config) *corev1.Pod {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pod-security.kubernetes.io/enforce": enforce}}}
	return first(t, cs, namespace, config)["Pod"].(*corev1.Pod)
}

// TestImagesArePulledAsByOLM: always, unless the reference has a digest.
func TestImagesArePulledAsByOLM(t *testing.T) {
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

// TestSecurityFollowsTheSpecThenTheNamespace.
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

// TestSchedulingIsThatOfTheSpec.
func TestSchedulingIsThatOfTheSpec(t *testing.T) {
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

// TestPollsAreTimedAsByOLM: when a poll is not due, somebody looks again after the
// least of what is left and 15 minutes.
func TestPollsAreTimedAsByOLM(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	for name, test := range map[string]struct {
		interval      string
		created, last time.Duration // ago; last negative: never
		want          time.Duration
	}{
		"ten minutes, the first":           {"10m", 0, -1, 10 * time.Minute},
		"fifteen minutes, the first":       {"15m", 0, -1, 15 * time.Minute},
		"thirty minutes, almost over":      {"30m", time.Hour, 29*time.Minute + 59*time.Second, time.Second},
		"forty minutes, almost over":       {"40m", 35 * time.Minute, -1, 5 * time.Minute},
		"forty minutes, in ten":            {"40m", time.Hour, 30 * time.Minute, 10 * time.Minute},
		"an hour, far away":                {"1h", 15 * time.Minute, -1, 15 * time.Minute},
		"ten hours, far away":              {"10h", 20 * time.Hour, 15 * time.Minute, 15 * time.Minute},
		"ten minutes, half over (differs)": {"10m", time.Hour, 5 * time.Minute, 5 * time.Minute},
		"overdue (differs)":                {"10m", time.Hour, 20 * time.Minute, 0},
	} {
		out := reconcile(t, base, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling(test.interval) })
			in.CatalogSource.CreationTimestamp = metav1.NewTime(in.Now.Add(-test.created))
			if test.last >= 0 {
				in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now.Add(-test.last)))
			}
		})
		require.Equal(t, test.want, out.RequeueAfter, name)
		require.Equal(t, test.want == 0, len(done(out)) == 1, name)
	}
	jittered := reconcile(t, base, func(in *catalog.Input) {
		edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.UpdateStrategy = polling("10m") })
		in.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		in.Jitter = 0.5
	})
	require.Equal(t, 10*time.Minute+30*time.Second, jittered.RequeueAfter)
}

// TestHealthIsTheOneOfOLMAndOurs: OLM looks at the objects, we look at who serves.
func TestHealthIsTheOneOfOLMAndOurs(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	configMap := mappedInput(t, catalog.Config{})
	for name, test := range map[string]struct {
		base          catalog.Input
		change        func(*catalog.Input)
		upstream, our bool
	}{
		"all is there":         {base, func(*catalog.Input) {}, true, true},
		"no Pod":               {base, func(in *catalog.Input) { in.Pods.Items = nil }, false, false},
		"no policy":            {base, func(in *catalog.Input) { in.NetworkPolicies.Items = in.NetworkPolicies.Items[:1] }, false, true},
		"a damaged policy":     {base, func(in *catalog.Input) { in.NetworkPolicies.Items[0].Spec.PolicyTypes = nil }, false, true},
		"no service":           {base, func(in *catalog.Input) { in.Services.Items = nil }, false, true},
		"no account":           {base, func(in *catalog.Input) { in.ServiceAccounts.Items = nil }, false, true},
		"an old image":         {base, func(in *catalog.Input) { edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image = "new" }) }, false, true},
		"a Pod without label":  {base, func(in *catalog.Input) { delete(in.Pods.Items[0].Labels, "olm.catalogSource") }, false, false},
		"an evicted Pod":       {base, func(in *catalog.Input) { terminating(in, 0); disrupted(in) }, false, false},
		"a Pod not ready":      {base, func(in *catalog.Input) { unready(in.Pods.Items[0]) }, true, false},
		"a terminating Pod":    {base, func(in *catalog.Input) { terminating(in, 0) }, true, false},
		"a config map":         {configMap, func(*catalog.Input) {}, true, true},
		"an older config map":  {configMap, func(in *catalog.Input) { in.ConfigMap.ResourceVersion = "x" }, false, true},
		"no role":              {configMap, func(in *catalog.Input) { in.Roles.Items = nil }, false, true},
		"no config map":        {configMap, func(in *catalog.Input) { in.ConfigMap = nil }, false, true},
		"an evicted map Pod":   {configMap, func(in *catalog.Input) { terminating(in, 0); disrupted(in) }, false, false},
		"the spec is nonsense": {base, func(in *catalog.Input) { edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.SourceType = "" }) }, false, true},
		"an address": {base, func(in *catalog.Input) {
			edit(in, func(s *v1alpha1.CatalogSourceSpec) { s.Image, s.Address = "", "foo:1" })
			in.Connection.Address = "foo:1"
		}, true, true},
	} {
		var a catalog.Assessment
		reconcile(t, test.base, func(in *catalog.Input) {
			test.change(in)
			a = catalog.Assess(*in)
		})
		require.Equal(t, test.upstream, a.UpstreamHealthy, name)
		require.Equal(t, test.our, a.Healthy, name)
	}
	starting := catalog.Assess(newWorld(t, catalog.Config{}, cool()).input(t))
	require.True(t, starting.Healthy, "the first Pods are given their time")
	require.Equal(t, catalog.ReasonInitialRollout, starting.WaitingFor)
}

// TestObjectsWithDotsAndSecrets: names and accounts as OLM makes them.
func TestObjectsWithDotsAndSecrets(t *testing.T) {
	cs := cool()
	cs.Name, cs.Spec.Secrets = "a.b", []string{"pull", ""}
	made := first(t, cs, &corev1.Namespace{}, catalog.Config{})
	require.NotNil(t, made["Service a-b"])
	account := made["ServiceAccount a.b"].(*corev1.ServiceAccount)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "pull"}}, account.ImagePullSecrets)
	require.Equal(t, []*bool{new(true), new(true)}, []*bool{account.OwnerReferences[0].Controller, account.OwnerReferences[0].BlockOwnerDeletion})
	require.Equal(t, "a.b", made["Pod"].(*corev1.Pod).Spec.ServiceAccountName)
	require.Equal(t, account.ImagePullSecrets, made["Pod"].(*corev1.Pod).Spec.ImagePullSecrets)
	require.Equal(t, olmcore.OwnerReferenceTo(cs).UID, made["Pod"].GetOwnerReferences()[0].UID)
}

// TestAPollThatStartsInTheFuture: a clock that was set back sees a Pod that polls before
// it was made. Its start is written once, not with each look.
func TestAPollThatStartsInTheFuture(t *testing.T) {
	base := converged(t, catalog.Config{}, cool())
	in := invariant.Clone(base)
	pollAgo(45*time.Minute, probe(func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = metav1.NewTime(in.Now.Add(time.Hour))
	}))(&in)
	for later, want := range map[time.Duration]bool{0: true, time.Minute: false, 44 * time.Minute: false, 45 * time.Minute: true} {
		at := invariant.Clone(in)
		at.Now = at.Now.Add(later)
		if later > 0 {
			at.CatalogSource.Status.LatestImageRegistryPoll = new(metav1.NewTime(in.Now))
		}
		out, err := catalog.Reconcile(at)
		require.NoError(t, err)
		status, written := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.True(t, written)
		require.Equal(t, want, !status.Status.LatestImageRegistryPoll.Equal(at.CatalogSource.Status.LatestImageRegistryPoll), "%s", later)
		require.Equal(t, !want, status.Status.LatestImageRegistryPoll.Time.Equal(in.Now) && later > 0, "%s", later)
		require.NotContains(t, done(out), "create a Pod PollDue", "one Pod polls already")
	}
}
