// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

// mapped is a CatalogSource that serves the ConfigMap content.
func mapped() *v1alpha1.CatalogSource {
	cs := cool()
	cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeConfigmap, ConfigMap: "content"}
	return cs
}

func olmNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}}
}

// mappedWorld is a cluster in which mapped serves.
func mappedWorld(t testing.TB, config catalog.Config, cs *v1alpha1.CatalogSource) *world {
	w := newWorld(t, config, cs)
	require.NoError(t, w.Cluster.Create(content()))
	w.run(t, time.Hour)
	return w
}

func mappedInput(t testing.TB, config catalog.Config) catalog.Input {
	in := mappedWorld(t, config, mapped()).input(t)
	out, err := catalog.Reconcile(in)
	require.NoError(t, err)
	require.True(t, out.Result.Empty(), "not converged: %+v", out.Result)
	return in
}

// TestAConfigMapIsServedAsByOLM pins names, hashes and the Pod of a config map
// server.
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
		out, err := catalog.Reconcile(emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace(), ConfigMap: cm}))
		require.NoError(t, err)
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

func TestOnlyWhatAConfigMapHoldsRollsThePods(t *testing.T) {
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

// TestDamagedObjectsAreRepairedInPlace also covers what only ConfigMaps and several
// replicas need.
func TestDamagedObjectsAreRepairedInPlace(t *testing.T) {
	base := mappedInput(t, catalog.Config{Replicas: 2})
	for name, damage := range map[string]func(*catalog.Input){
		"rules": func(in *catalog.Input) { in.Roles.Items[0].Rules[0].Verbs = []string{"*"} },
		"more rules": func(in *catalog.Input) {
			in.Roles.Items[0].Rules = append(in.Roles.Items[0].Rules, rbacv1.PolicyRule{})
		},
		"role label": func(in *catalog.Input) { in.Roles.Items[0].Labels = nil },
		"subjects":   func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects = nil },
		"subject":    func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects[0].Name = "default" },
		"account":    func(in *catalog.Input) { in.ServiceAccounts.Items[0].Labels = nil },
		"selector":   func(in *catalog.Input) { in.Services.Items[0].Spec.Selector["olm.managed"] = "true" },
		"budget": func(in *catalog.Input) {
			in.PodDisruptionBudgets.Items[0].Spec.MinAvailable = new(intstr.FromString("50%"))
		},
		"OLM's policy": func(in *catalog.Input) {
			in.NetworkPolicies.Items[0].Spec.PodSelector.MatchLabels["olm.configMapResourceVersion"] = in.ConfigMap.ResourceVersion
		},
		"budget label": func(in *catalog.Input) { in.PodDisruptionBudgets.Items[0].Labels["olm.managed"] = "x" },
		"unavailable": func(in *catalog.Input) {
			in.PodDisruptionBudgets.Items[0].Spec.MaxUnavailable = new(intstr.FromInt32(1))
		},
	} {
		out := reconcile(t, base, damage)
		require.Len(t, out.Actions, 1, name)
		update, ok := out.Actions[0].(olmcore.Update)
		require.True(t, ok, name)
		switch o := update.After.(type) {
		case *rbacv1.Role:
			require.Equal(t, base.Roles.Items[0].Rules, o.Rules, name)
		case *rbacv1.RoleBinding:
			require.Equal(t, base.RoleBindings.Items[0].Subjects, o.Subjects, name)
		case *networkingv1.NetworkPolicy:
			require.Equal(t, base.NetworkPolicies.Items[0].Spec, o.Spec, name)
		case *policyv1.PodDisruptionBudget:
			require.Equal(t, base.PodDisruptionBudgets.Items[0].Spec, o.Spec, name)
		case *corev1.Service:
			require.Equal(t, base.Services.Items[0].Spec.Selector, o.Spec.Selector, name)
		}
	}
	out := reconcile(t, base, func(in *catalog.Input) { in.RoleBindings.Items[0].RoleRef.Name = "admin" })
	require.Len(t, out.Actions, 1)
	require.IsType(t, olmcore.Delete{}, out.Actions[0], "the API server lets nobody change a roleRef")

	for name, take := range map[string]func(*catalog.Input, []metav1.OwnerReference){
		"a role": func(in *catalog.Input, by []metav1.OwnerReference) {
			in.Roles.Items[0].OwnerReferences, in.Roles.Items[0].Rules = by, nil
		},
		"a binding": func(in *catalog.Input, by []metav1.OwnerReference) { in.RoleBindings.Items[0].OwnerReferences = by },
		"a budget": func(in *catalog.Input, by []metav1.OwnerReference) {
			in.PodDisruptionBudgets.Items[0].OwnerReferences = by
		},
	} {
		out := reconcile(t, base, func(in *catalog.Input) {
			take(in, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "other"}})
		})
		require.Len(t, out.Actions, 1, name)
		status, _ := olmcore.StatusOf[*v1alpha1.CatalogSource](out.Actions)
		require.Equal(t, catalog.ReasonNameConflict, meta.FindStatusCondition(status.Status.Conditions, "Degraded").Reason, name)
	}
}

func TestTheBudgetFollowsTheReplicas(t *testing.T) {
	cs := cool()
	cs.Annotations = map[string]string{"olmcore/replicas": "3"}
	w := newWorld(t, catalog.Config{}, cs)
	w.run(t, time.Minute)
	in := w.input(t)
	require.Len(t, in.PodDisruptionBudgets.Items, 1)
	require.Equal(t, new(intstr.FromInt32(2)), in.PodDisruptionBudgets.Items[0].Spec.MinAvailable)
	require.Nil(t, in.PodDisruptionBudgets.Items[0].Spec.MaxUnavailable)
	for _, condition := range catalog.Assess(in).Conditions {
		if condition.Type == catalog.ConditionReplicasSpread {
			require.Equal(t, metav1.ConditionTrue, condition.Status, "three Pods on the only two nodes are as spread as can be")
		}
	}
	require.NoError(t, w.AddNode("c", nil))
	spread := slices.IndexFunc(catalog.Assess(w.input(t)).Conditions, func(c metav1.Condition) bool { return c.Reason == catalog.ReasonCoLocated })
	require.GreaterOrEqual(t, spread, 0)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Annotations = nil }))
	w.run(t, time.Hour)
	in = w.input(t)
	require.Empty(t, in.PodDisruptionBudgets.Items)
	require.Len(t, in.Pods.Items, 1)
}

// TestTheUsersConfigMapIsItsOwn: by default nothing is written to it, and it outlives
// the CatalogSource.
func TestTheUsersConfigMapIsItsOwn(t *testing.T) {
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

// TestWhatAFormerTypeNeededGoes once the present one serves, and not before.
func TestWhatAFormerTypeNeededGoes(t *testing.T) {
	kinds := func(w *world) (list []string) {
		for _, o := range w.Cluster.Objects() {
			switch o.(type) {
			case *corev1.Service, *corev1.ServiceAccount, *networkingv1.NetworkPolicy, *rbacv1.Role, *rbacv1.RoleBinding, *policyv1.PodDisruptionBudget:
				if o.GetNamespace() == "olm" {
					list = append(list, olmcore.KeyOf(o).Kind+" "+o.GetName())
				}
			}
		}
		slices.Sort(list)
		return list
	}
	change := func(w *world, to func(*v1alpha1.CatalogSourceSpec)) []string {
		require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { to(&cs.Spec) }))
		w.run(t, time.Hour)
		return kinds(w)
	}
	w := mappedWorld(t, catalog.Config{}, mapped())
	require.Equal(t, []string{
		"NetworkPolicy cool-grpc-server", "NetworkPolicy cool-unpack-bundles", "Role cool-configmap-reader",
		"RoleBinding cool-server-configmap-reader", "Service cool", "ServiceAccount cool-configmap-server",
	}, kinds(w))
	w.BreakImage("quay.io/example/catalog:v1", "")
	require.Contains(t, change(w, func(s *v1alpha1.CatalogSourceSpec) { *s = cool().Spec }), "Role cool-configmap-reader", "the old Pod serves on")
	require.Equal(t, catalog.ReasonRegistryServing, catalog.Assess(w.input(t)).Conditions[0].Reason)
	w.HealImage("quay.io/example/catalog:v1")
	require.Equal(t, []string{"NetworkPolicy cool-grpc-server", "NetworkPolicy cool-unpack-bundles", "Service cool", "ServiceAccount cool"},
		change(w, func(*v1alpha1.CatalogSourceSpec) {}))
	require.Contains(t, change(w, func(s *v1alpha1.CatalogSourceSpec) { *s = mapped().Spec }), "ServiceAccount cool-configmap-server")
	require.NotContains(t, kinds(w), "ServiceAccount cool")
	// Nobody says whether the address answers: the Pods are kept for ten minutes.
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
		cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "registry:50051"}
	}))
	w.run(t, 9*time.Minute)
	require.NotEmpty(t, kinds(w))
	w.run(t, 2*time.Minute)
	require.Empty(t, kinds(w))
	require.Empty(t, w.input(t).Pods.Items)
}

func TestAffectedByWhatOnlySomeNeed(t *testing.T) {
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "olm", Name: name} }
	for _, test := range []struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		{&corev1.ServiceAccount{ObjectMeta: at("cool-configmap-server")}, []types.NamespacedName{coolKey, {Namespace: "olm", Name: "cool-configmap-server"}}},
		{&rbacv1.Role{ObjectMeta: at("cool-configmap-reader")}, []types.NamespacedName{coolKey}},
		{&rbacv1.Role{ObjectMeta: at("cool")}, nil},
		{&rbacv1.RoleBinding{ObjectMeta: at("cool-server-configmap-reader")}, []types.NamespacedName{coolKey}},
		{&policyv1.PodDisruptionBudget{ObjectMeta: at("cool")}, []types.NamespacedName{coolKey}},
		{&policyv1.PodDisruptionBudget{ObjectMeta: at("c-l")}, []types.NamespacedName{{Namespace: "olm"}}},
		{&corev1.ConfigMap{ObjectMeta: at("any")}, []types.NamespacedName{{Namespace: "olm"}}},
		{&v1alpha1.Subscription{Spec: &v1alpha1.SubscriptionSpec{CatalogSource: "cool", CatalogSourceNamespace: "olm"}}, []types.NamespacedName{coolKey}},
		{&v1alpha1.Subscription{}, nil},
		{(*rbacv1.Role)(nil), nil},
		{(*rbacv1.RoleBinding)(nil), nil},
		{(*corev1.ConfigMap)(nil), nil},
		{(*policyv1.PodDisruptionBudget)(nil), nil},
	} {
		require.Equal(t, test.want, catalog.Affected(test.object))
	}
}
