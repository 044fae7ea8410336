// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// TestAConfigMapIsServedAsByOLM checks the names, hashes and the Pod of a config map server.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/configmap_test.go.
func TestAConfigMapIsServedAsByOLM(t *testing.T) {
	cs := mapped()
	cs.Name, cs.UID, cs.Generation = "demo", "uid", 1
	for _, kind := range []v1alpha1.SourceType{v1alpha1.SourceTypeConfigmap, v1alpha1.SourceTypeInternal} {
		cs.Spec.SourceType = kind
		cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{
			Tolerations:  []corev1.Toleration{{Operator: "Exists"}},
			MemoryTarget: new(resource.MustParse("5Mi")), ExtractContent: &v1alpha1.ExtractContentConfig{CatalogDir: "x"},
		}
		cm := content()
		cm.UID, cm.ResourceVersion = "cm", "7"
		out := answer(t, emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace(), ConfigMap: cm}))
		made := map[string]olmcore.Object{}
		for _, a := range out.Actions {
			if c, ok := a.(olmcore.Create); ok {
				made[c.Target.Kind] = c.Object
				require.Equal(t, "true", c.Object.GetLabels()["olm.managed"])
				controller := c.Object.GetOwnerReferences()[0].Controller
				require.Equal(t, c.Target.Kind == "Pod", controller != nil && *controller, c.Target.Kind)
			}
		}
		require.Equal(t, "6BagDQbjXMyvRgnevqYsbxuEer1ifxCmtBUwgP", made["Service"].GetLabels()["olm.service-spec-hash"])
		require.Equal(t, map[string]string{"olm.catalogSource": "demo"}, made["Service"].(*corev1.Service).Spec.Selector)
		require.Equal(t, "demo-configmap-server", made["ServiceAccount"].GetName())
		role := made["Role"].(*rbacv1.Role)
		require.Equal(t, "demo-configmap-reader", role.Name)
		require.Equal(t, []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"content"}}}, role.Rules)
		binding := made["RoleBinding"].(*rbacv1.RoleBinding)
		require.Equal(t, "demo-server-configmap-reader", binding.Name)
		require.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "demo-configmap-reader"}, binding.RoleRef)
		require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "demo-configmap-server", Namespace: "olm"}}, binding.Subjects)
		pod := made["Pod"].(*corev1.Pod)
		require.Equal(t, "7", pod.Labels["olm.configMapResourceVersion"])
		require.Equal(t, "demo-configmap-server", pod.Spec.ServiceAccountName)
		require.Empty(t, pod.Spec.ImagePullSecrets)
		require.Empty(t, pod.Spec.InitContainers)
		require.Len(t, pod.Spec.Tolerations, 1)
		container := pod.Spec.Containers[0]
		require.Equal(t, "configmap-registry-server", container.Name)
		require.Equal(t, catalog.DefaultConfigMapServerImage, container.Image)
		require.Equal(t, []string{"configmap-server", "-c", "content", "-n", "olm"}, container.Command)
		require.Equal(t, []int32{5, 5}, []int32{container.ReadinessProbe.InitialDelaySeconds, container.LivenessProbe.InitialDelaySeconds})
		require.Equal(t, []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "5MiB"}}, container.Env)
		require.Equal(t, resource.MustParse("5Mi"), container.Resources.Requests[corev1.ResourceMemory])
		require.True(t, slices.ContainsFunc(out.Diagnostics, func(d olmcore.Diagnostic) bool { return d.Reason == catalog.ReasonPodConfigIgnored }))
	}
	in := mappedInput(t, catalog.Config{})
	require.Equal(t, "1WvGyNF1WFcapqdSKJ0e8QZ7upCj75sa9WGiOr", in.Pods.Items[0].Labels["olm.pod-spec-hash"], "account and command are no part of the hash")
	for _, policy := range in.NetworkPolicies.Items {
		require.Len(t, policy.Spec.Egress, 2, "the server asks the API server")
	}
}

// TestOnlyTheContentOfAConfigMapRollsOutPods checks that a change of the content of the ConfigMap rolls out new Pods,
// and that a change of its metadata does not.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/configmap_test.go.
func TestOnlyTheContentOfAConfigMapRollsOutPods(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	name := base.Pods.Items[0].Name
	edited := func(change func(*corev1.ConfigMap)) func(*catalog.Input) {
		return func(in *catalog.Input) {
			in.ConfigMap.ResourceVersion += "0"
			change(in.ConfigMap)
		}
	}
	// OLM's own Pods know only the version.
	fromOLM := func(version string) func(*catalog.Input) {
		return func(in *catalog.Input) {
			in.Pods.Items[0].Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
			in.Pods.Items[0].Labels["olm.configMapResourceVersion"] = version
		}
	}
	for what, test := range map[string]struct {
		change func(*catalog.Input)
		want   []string
	}{
		"a label":            {edited(func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"a": "b"} }), nil},
		"a package":          {edited(func(cm *corev1.ConfigMap) { cm.Data["packages"] = "other" }), []string{"create a Pod PodOutdated"}},
		"binary data":        {edited(func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"x": {1}} }), []string{"create a Pod PodOutdated"}},
		"OLM's Pod":          {fromOLM(base.ConfigMap.ResourceVersion), nil},
		"OLM's old Pod":      {fromOLM("1"), []string{"create a Pod PodOutdated"}},
		"the server's image": {func(in *catalog.Input) { in.Config.ConfigMapServerImage = "other:v2" }, []string{"create a Pod PodOutdated"}},
		"the Pod is deleted": {func(in *catalog.Input) { in.Pods.Items = nil }, []string{"create a Pod PodMissing"}},
		"the map is deleted": {func(in *catalog.Input) { in.ConfigMap = nil }, nil},
		"a Pod that crashes": {func(in *catalog.Input) { in.Pods.Items[0].Status.Phase = corev1.PodFailed }, []string{"create a Pod PodTerminated", "delete " + name + " PodTerminated"}},
	} {
		require.Equal(t, test.want, done(reconcile(t, base, test.change)), what)
	}
	out := reconcile(t, base, edited(func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"a": "b"} }))
	status, ok := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
	require.True(t, ok)
	require.Equal(t, &v1alpha1.ConfigMapResourceReference{
		Name: "content", Namespace: "olm", UID: base.ConfigMap.UID, ResourceVersion: base.ConfigMap.ResourceVersion + "0", LastUpdateTime: olmcore.Timestamp(base.Now),
	}, status.Status.ConfigMapResource)
}

// TestAMissingConfigMapIsReportedInTheWordsOfOLM checks the reason and the message in the status if the ConfigMap
// does not exist.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog/operator_test.go.
func TestAMissingConfigMapIsReportedInTheWordsOfOLM(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	const message = `failed to get catalog config map content: configmaps "content" not found`
	for _, serves := range []bool{true, false} {
		out := reconcile(t, base, func(in *catalog.Input) {
			in.ConfigMap = nil
			if !serves {
				in.Pods.Items = nil
			}
		})
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, v1alpha1.CatalogSourceConfigMapError, status.Status.Reason)
		require.Equal(t, message, status.Status.Message)
		available := meta.FindStatusCondition(status.Status.Conditions, "Available")
		require.Equal(t, serves, available.Status == metav1.ConditionTrue)
		require.Equal(t, serves, available.Reason != catalog.ReasonConfigMapMissing)
		require.Equal(t, catalog.ReasonConfigMapMissing, meta.FindStatusCondition(status.Status.Conditions, "Degraded").Reason)
		require.Equal(t, time.Minute, out.RequeueAfter)
	}
}

// TestConfigMapIsNeverWrittenOrDeleted checks that the ConfigMap is never written, and that it still exists after
// the CatalogSource was deleted.
func TestConfigMapIsNeverWrittenOrDeleted(t *testing.T) {
	w := mappedWorld(t, catalog.Config{}, mapped())
	in := w.input(t)
	require.Empty(t, in.ConfigMap.Labels)
	require.Empty(t, in.ConfigMap.OwnerReferences)
	require.NoError(t, w.Cluster.Delete(olmcore.RefOf(in.CatalogSource)))
	w.run(t, time.Hour)
	left, err := olmcore.Get[*corev1.ConfigMap](t.Context(), w.Cluster, "olm", "content")
	require.NoError(t, err)
	require.NotNil(t, left)
}

// TestAConfigMapOfAnotherNameOrNamespaceIsIgnored checks that a ConfigMap with another name or namespace is ignored.
func TestAConfigMapOfAnotherNameOrNamespaceIsIgnored(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, change := range map[string]func(*catalog.Input){
		"none":              func(in *catalog.Input) { in.ConfigMap = nil },
		"another name":      func(in *catalog.Input) { in.ConfigMap.Name = "x" },
		"another namespace": func(in *catalog.Input) { in.ConfigMap.Namespace = "x" },
	} {
		in := invariant.Clone(base)
		change(&in)
		require.Equal(t, catalog.ReasonConfigMapMissing, catalog.Assess(in).WaitingFor, name)
		require.Equal(t, 1, catalog.Assess(in).Ready, "what serves goes on serving")
	}
}

// TestConfigMapReferenceIsUpdatedWithTheConfigMap checks that the reference in the status is updated when the
// ConfigMap or its resourceVersion changes.
func TestConfigMapReferenceIsUpdatedWithTheConfigMap(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, change := range map[string]func(*v1alpha1.ConfigMapResourceReference){
		"nothing":   nil,
		"name":      func(r *v1alpha1.ConfigMapResourceReference) { r.Name = "x" },
		"namespace": func(r *v1alpha1.ConfigMapResourceReference) { r.Namespace = "x" },
		"UID":       func(r *v1alpha1.ConfigMapResourceReference) { r.UID = "x" },
		"version":   func(r *v1alpha1.ConfigMapResourceReference) { r.ResourceVersion = "x" },
	} {
		in := invariant.Clone(base)
		if change != nil {
			change(in.CatalogSource.Status.ConfigMapResource)
		}
		out := answer(t, in)
		status, written := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, change != nil, written, name)
		if written {
			want := &v1alpha1.ConfigMapResourceReference{Name: "content", Namespace: "olm", UID: in.ConfigMap.UID, ResourceVersion: in.ConfigMap.ResourceVersion}
			want.LastUpdateTime = metav1.NewTime(in.Now)
			require.Equal(t, want, status.Status.ConfigMapResource, name)
		}
	}
}

// TestPodOfOLMServesOneVersionOfAConfigMap checks that a Pod of OLM is current only if it serves this ConfigMap in
// this version. Its content is not known otherwise.
func TestPodOfOLMServesOneVersionOfAConfigMap(t *testing.T) {
	base := mappedInput(t, catalog.Config{})
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		current bool
	}{
		"as it is":          {func(*corev1.Pod) {}, true},
		"another version":   {func(p *corev1.Pod) { p.Labels["olm.configMapResourceVersion"] = "x" }, false},
		"another ConfigMap": {func(p *corev1.Pod) { p.Spec.Containers[0].Command[2] = "x" }, false},
		"no command":        {func(p *corev1.Pod) { p.Spec.Containers[0].Command = nil }, false},
		"half a command":    {func(p *corev1.Pod) { p.Spec.Containers[0].Command = p.Spec.Containers[0].Command[:2] }, false},
		"no container":      {func(p *corev1.Pod) { p.Spec.Containers = nil }, false},
		"two containers":    {func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) }, false},
	} {
		in := invariant.Clone(base)
		delete(in.Pods.Items[0].Annotations, "olmcore/config-map-hash")
		test.change(in.Pods.Items[0])
		require.Equal(t, !test.current, catalog.Assess(in).Pods[0].Class == catalog.ClassOutdated, name)
		out := answer(t, in)
		checkPromises(t, in, out)
	}
}

// TestAdoptedConfigMapServerIsNotReplaced checks that a config map server of OLM is not replaced if grpcPodConfig
// or the image of the server differ, because OLM does not replace it either.
func TestAdoptedConfigMapServerIsNotReplaced(t *testing.T) {
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
		out := answer(t, in)
		require.Empty(t, done(out), name)
		require.Equal(t, catalog.ClassServing, catalog.Assess(in).Pods[0].Class)
		in.Config.ConfigMapServerImage = "another:v1"
		require.Equal(t, catalog.ClassServing, catalog.Assess(in).Pods[0].Class)
	}
}
