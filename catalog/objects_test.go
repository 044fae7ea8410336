// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// around returns the objects around the Pods of an input, each with a function that damages it.
func around(in *catalog.Input) map[olmcore.Object]func() {
	objects := map[olmcore.Object]func(){}
	for _, o := range in.Services.Items {
		objects[o] = func() { o.Spec.Selector = nil }
	}
	for _, o := range in.ServiceAccounts.Items {
		objects[o] = func() { o.Labels = map[string]string{"olm.managed": "false"} }
	}
	for _, o := range in.NetworkPolicies.Items {
		objects[o] = func() { o.Spec = networkingv1.NetworkPolicySpec{} }
	}
	for _, o := range in.PodDisruptionBudgets.Items {
		objects[o] = func() { o.Spec = policyv1.PodDisruptionBudgetSpec{} }
	}
	for _, o := range in.Roles.Items {
		objects[o] = func() { o.Rules = nil }
	}
	for _, o := range in.RoleBindings.Items {
		objects[o] = func() { o.Subjects = []rbacv1.Subject{{Kind: "User", Name: "x"}} }
	}
	return objects
}

// TestDamagedObjectsAreRepairedOnlyIfOwned damages each object around the Pods, for every kind of ownership. It
// checks that the object is repaired, or not changed because it is being deleted, or reported because others own
// it.
func TestDamagedObjectsAreRepairedOnlyIfOwned(t *testing.T) {
	const repaired, left, reported = "update", "", "conflict"
	owner := func(kind, group, name string) func(olmcore.Object) {
		return func(o olmcore.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: group + "/v1alpha1", Kind: kind, Name: name, UID: "other"}})
		}
	}
	managed := func(value string) func(olmcore.Object) {
		return func(o olmcore.Object) {
			o.SetOwnerReferences(nil)
			o.SetLabels(map[string]string{"olm.managed": value})
		}
	}
	for name, test := range map[string]struct {
		change func(olmcore.Object)
		want   string
	}{
		"owned by the catalog":                          {func(olmcore.Object) {}, repaired},
		"owned by the catalog and being deleted":        {func(o olmcore.Object) { o.SetDeletionTimestamp(new(metav1.NewTime(start))) }, left},
		"owned by a deleted catalog of the same name":   {owner("CatalogSource", "operators.coreos.com", "cool"), repaired},
		"owned by another catalog":                      {owner("CatalogSource", "operators.coreos.com", "other"), reported},
		"owned by a CatalogSource of another API group": {owner("CatalogSource", "example.com", "cool"), reported},
		"owned by another kind with the same name":      {owner("Subscription", "operators.coreos.com", "cool"), reported},
		"without an owner, but managed":                 {managed("true"), repaired},
		"without an owner":                              {managed("false"), reported},
		"owned by the catalog and by another object": {func(o olmcore.Object) {
			o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "x", UID: "x"}))
		}, repaired},
	} {
		for _, base := range []catalog.Input{converged(t, catalog.Config{Replicas: 2}, cool()), mappedInput(t, catalog.Config{})} {
			for i := range len(around(&base)) {
				in := invariant.Clone(base)
				objects := around(&in)
				keys := make([]olmcore.Object, 0, len(objects))
				for o := range objects {
					keys = append(keys, o)
				}
				slices.SortFunc(keys, func(a, b olmcore.Object) int {
					return strings.Compare(olmcore.KeyOf(a).String(), olmcore.KeyOf(b).String())
				})
				o := keys[i]
				objects[o]()
				test.change(o)
				key, want := olmcore.KeyOf(o), test.want
				if _, account := o.(*corev1.ServiceAccount); account && (want == reported || len(o.GetOwnerReferences()) == 0) {
					want = left // it is used as it is
				}
				out := answer(t, in)
				require.NoError(t, invariant.Laws(result, in))
				checkPromises(t, in, out)
				got := ""
				for _, a := range out.Actions {
					if verb, target, _ := a.Describe(); target.Key() == key {
						got += string(verb)
					}
				}
				for _, d := range out.Diagnostics {
					if d.Reason == catalog.ReasonNameConflict {
						require.Contains(t, d.Message, o.GetName()+" is unmanaged or owned by another")
						got += reported
					}
				}
				require.Equal(t, want, got, "%s: %s", name, key)
			}
		}
	}
}

// TestObjectsOfOtherNamesAndNamespacesAreIgnored checks that objects with other names or of other namespaces change
// nothing.
func TestObjectsOfOtherNamesAndNamespacesAreIgnored(t *testing.T) {
	for _, base := range []catalog.Input{converged(t, catalog.Config{Replicas: 2}, cool()), mappedInput(t, catalog.Config{})} {
		for name, move := range map[string]func(olmcore.Object){
			"another namespace": func(o olmcore.Object) { o.SetNamespace("other") },
			"another name":      func(o olmcore.Object) { o.SetName("x" + o.GetName()) },
			"a longer name":     func(o olmcore.Object) { o.SetName(o.GetName() + "x") },
			"a shorter name":    func(o olmcore.Object) { o.SetName("c" + o.GetName()[len("cool"):]) },
		} {
			in := invariant.Clone(base)
			other := invariant.Clone(base)
			for o, damage := range around(&other) {
				damage()
				move(o)
				o.SetUID("other")
				o.SetOwnerReferences(nil)
			}
			in.Services.Items = append(other.Services.Items, in.Services.Items...)
			in.ServiceAccounts.Items = append(other.ServiceAccounts.Items, in.ServiceAccounts.Items...)
			in.NetworkPolicies.Items = append(other.NetworkPolicies.Items, in.NetworkPolicies.Items...)
			in.PodDisruptionBudgets.Items = append(other.PodDisruptionBudgets.Items, in.PodDisruptionBudgets.Items...)
			in.Roles.Items = append(other.Roles.Items, in.Roles.Items...)
			in.RoleBindings.Items = append(other.RoleBindings.Items, in.RoleBindings.Items...)
			out := answer(t, in)
			require.Empty(t, out.Result, name)
		}
	}
}

// TestPodDisruptionBudgetFollowsTheReplicas checks that the PodDisruptionBudget is created, updated and deleted
// when the number of replicas changes.
func TestPodDisruptionBudgetFollowsTheReplicas(t *testing.T) {
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
	require.NoError(t, w.Node("c").Create(nil))
	spread := slices.IndexFunc(catalog.Assess(w.input(t)).Conditions, func(c metav1.Condition) bool { return c.Reason == catalog.ReasonCoLocated })
	require.GreaterOrEqual(t, spread, 0)
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) { cs.Annotations = nil }))
	w.run(t, time.Hour)
	in = w.input(t)
	require.Empty(t, in.PodDisruptionBudgets.Items)
	require.Len(t, in.Pods.Items, 1)
}

// TestServiceAccountGetsThePullSecrets checks that the ServiceAccount gets the pull secrets of the spec, also after
// a change, and that secrets which others added stay.
func TestServiceAccountGetsThePullSecrets(t *testing.T) {
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

// TestTwoCatalogsDoNotShareAService checks two catalogs a.b and a-b, whose Services have the same name. The first one
// uses the Service. The second one reports the conflict and changes nothing.
func TestTwoCatalogsDoNotShareAService(t *testing.T) {
	dotted, dashed := cool(), cool()
	dotted.Name, dashed.Name = "a.b", "a-b"
	w := newWorld(t, catalog.Config{}, dotted)
	require.NoError(t, w.Cluster.Create(dashed))
	w.run(t, time.Hour)
	writes := len(w.Events)
	w.run(t, 24*time.Hour)
	require.Len(t, w.Events, writes)
	owners := 0
	for _, o := range w.Cluster.Objects() {
		switch o := o.(type) {
		case *corev1.Service:
			owners++
			require.Equal(t, "a-b", o.OwnerReferences[0].Name, "the name that sorts first was reconciled first")
		case *v1alpha1.CatalogSource:
			degraded := meta.FindStatusCondition(o.Status.Conditions, "Degraded")
			require.Equal(t, o.Name == "a.b", degraded.Reason == catalog.ReasonNameConflict, "%s: %s", o.Name, degraded.Message)
		}
	}
	require.Equal(t, 1, owners)
}

// TestConfigMapCatalogNamedWithADotHasOneService checks in a cluster that the Service of a ConfigMap catalog has
// dashes instead of dots in its name.
func TestConfigMapCatalogNamedWithADotHasOneService(t *testing.T) {
	cs := cool()
	cs.Name = "a.b"
	cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeInternal, ConfigMap: "content"}
	w := newWorld(t, catalog.Config{}, cs)
	require.NoError(t, w.Cluster.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cs.Namespace, Name: "content"}}))
	w.run(t, time.Hour)
	var services []string
	for _, o := range w.Cluster.Objects() {
		if s, ok := o.(*corev1.Service); ok {
			services = append(services, s.Name)
		}
	}
	require.Equal(t, []string{"a-b"}, services)
}

// TestObjectNamesOfAnImageCatalogWithADot checks the names and the ServiceAccount of a catalog with dots in its
// name and with pull secrets.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/grpc_test.go.
func TestObjectNamesOfAnImageCatalogWithADot(t *testing.T) {
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

// TestObjectNamesOfAConfigMapCatalogWithADot checks that dots in the name of a ConfigMap catalog become dashes in
// the name of its Service only.
func TestObjectNamesOfAConfigMapCatalogWithADot(t *testing.T) {
	cs := mapped()
	cs.Name, cs.UID = "a.b", "uid"
	out := answer(t, emptyNamespace(catalog.Input{Now: start, CatalogSource: cs, Namespace: olmNamespace(), ConfigMap: content()}))
	var made []string
	for _, a := range out.Actions {
		if c, ok := a.(olmcore.Create); ok && c.Target.Kind != "Pod" {
			made = append(made, c.Target.Kind+" "+c.Target.Name)
		}
	}
	require.Equal(t, []string{
		"ServiceAccount a.b-configmap-server", "Role a.b-configmap-reader", "RoleBinding a.b-server-configmap-reader",
		"NetworkPolicy a.b-grpc-server", "NetworkPolicy a.b-unpack-bundles", "Service a-b",
	}, made)
}

// TestLeftoversOfAFormerSourceTypeAreDeleted checks that objects of a former source type are deleted once the present
// source serves.
func TestLeftoversOfAFormerSourceTypeAreDeleted(t *testing.T) {
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
	w.Image("quay.io/example/catalog:v1").Break("")
	require.Contains(t, change(w, func(s *v1alpha1.CatalogSourceSpec) { *s = cool().Spec }), "Role cool-configmap-reader", "the old Pod serves on")
	require.Equal(t, catalog.ReasonRegistryServing, catalog.Assess(w.input(t)).Conditions[0].Reason)
	w.Image("quay.io/example/catalog:v1").Heal()
	require.Equal(t, []string{"NetworkPolicy cool-grpc-server", "NetworkPolicy cool-unpack-bundles", "Service cool", "ServiceAccount cool"},
		change(w, func(*v1alpha1.CatalogSourceSpec) {}))
	require.Contains(t, change(w, func(s *v1alpha1.CatalogSourceSpec) { *s = mapped().Spec }), "ServiceAccount cool-configmap-server")
	require.NotContains(t, kinds(w), "ServiceAccount cool")
	// It is not known whether the address answers: the Pods are kept for ten minutes.
	require.NoError(t, fake.Edit(w.Cluster, "olm", "cool", func(cs *v1alpha1.CatalogSource) {
		cs.Spec = v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Address: "registry:50051"}
	}))
	w.run(t, 9*time.Minute)
	require.NotEmpty(t, kinds(w))
	w.run(t, 2*time.Minute)
	require.Empty(t, kinds(w))
	require.Empty(t, w.input(t).Pods.Items)
}

// TestDamagedObjectsAreRepairedInPlace checks that every damaged object is repaired by one update. Only a RoleBinding
// with another roleRef is deleted and created again.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler/configmap_test.go.
func TestDamagedObjectsAreRepairedInPlace(t *testing.T) {
	all := make([]networkingv1.NetworkPolicyIngressRule, 1)
	for name, damage := range map[string]func(*catalog.Input){
		"rule groups":    func(in *catalog.Input) { in.Roles.Items[0].Rules[0].APIGroups = []string{"", "apps"} },
		"rule resources": func(in *catalog.Input) { in.Roles.Items[0].Rules[0].Resources = []string{"secrets"} },
		"rule names":     func(in *catalog.Input) { in.Roles.Items[0].Rules[0].ResourceNames = nil },
		"rule verbs":     func(in *catalog.Input) { in.Roles.Items[0].Rules[0].Verbs = []string{"*"} },
		"rule URLs":      func(in *catalog.Input) { in.Roles.Items[0].Rules[0].NonResourceURLs = []string{"/"} },
		"more rules": func(in *catalog.Input) {
			in.Roles.Items[0].Rules = append(in.Roles.Items[0].Rules, rbacv1.PolicyRule{})
		},
		"role label":        func(in *catalog.Input) { in.Roles.Items[0].Labels = nil },
		"binding label":     func(in *catalog.Input) { in.RoleBindings.Items[0].Labels = nil },
		"no subjects":       func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects = nil },
		"subject kind":      func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects[0].Kind = "User" },
		"subject group":     func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects[0].APIGroup = "x" },
		"subject name":      func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects[0].Name = "x" },
		"subject namespace": func(in *catalog.Input) { in.RoleBindings.Items[0].Subjects[0].Namespace = "x" },
		"delete ref":        func(in *catalog.Input) { in.RoleBindings.Items[0].RoleRef.Name = "x" },
		"delete ref kind":   func(in *catalog.Input) { in.RoleBindings.Items[0].RoleRef.Kind = "ClusterRole" },
		"delete ref group":  func(in *catalog.Input) { in.RoleBindings.Items[0].RoleRef.APIGroup = "x" },
		"account":           func(in *catalog.Input) { in.ServiceAccounts.Items[0].Labels = nil },
		"selector":          func(in *catalog.Input) { in.Services.Items[0].Spec.Selector["x"] = "true" },
		"budget": func(in *catalog.Input) {
			in.PodDisruptionBudgets.Items[0].Spec.MinAvailable = new(intstr.FromString("50%"))
		},
		"unavailable": func(in *catalog.Input) {
			in.PodDisruptionBudgets.Items[0].Spec.MaxUnavailable = new(intstr.FromInt32(1))
		},
		"budget label": func(in *catalog.Input) { in.PodDisruptionBudgets.Items[0].Labels["olm.managed"] = "x" },
		"types":        func(in *catalog.Input) { in.NetworkPolicies.Items[0].Spec.PolicyTypes = nil },
		"type": func(in *catalog.Input) {
			in.NetworkPolicies.Items[0].Spec.PolicyTypes[1] = networkingv1.PolicyTypeIngress
		},
		"no pod selector": func(in *catalog.Input) { in.NetworkPolicies.Items[0].Spec.PodSelector = metav1.LabelSelector{} },
		"OLM's policy": func(in *catalog.Input) {
			in.NetworkPolicies.Items[0].Spec.PodSelector.MatchLabels["olm.configMapResourceVersion"] = "1"
		},
		"expression": func(in *catalog.Input) { in.NetworkPolicies.Items[1].Spec.PodSelector.MatchExpressions[0].Key = "x" },
		"ingress":    func(in *catalog.Input) { in.NetworkPolicies.Items[1].Spec.Ingress = all },
		"no ingress": func(in *catalog.Input) { in.NetworkPolicies.Items[0].Spec.Ingress = nil },
		"ingress port": func(in *catalog.Input) {
			in.NetworkPolicies.Items[0].Spec.Ingress[0].Ports[0].Port = new(intstr.FromInt32(1))
		},
		"ingress peer": func(in *catalog.Input) {
			in.NetworkPolicies.Items[0].Spec.Ingress[0].From = make([]networkingv1.NetworkPolicyPeer, 1)
		},
		"no egress":   func(in *catalog.Input) { in.NetworkPolicies.Items[0].Spec.Egress = nil },
		"egress port": func(in *catalog.Input) { in.NetworkPolicies.Items[1].Spec.Egress[1].Ports[2].EndPort = new(int32(99)) },
		"egress peer": func(in *catalog.Input) {
			in.NetworkPolicies.Items[1].Spec.Egress[0].To = make([]networkingv1.NetworkPolicyPeer, 1)
		},
	} {
		base := mappedInput(t, catalog.Config{Replicas: 2})
		base.Services.Items[0].Spec.Ports[0].Protocol = "" // the API server's default
		out := reconcile(t, base, damage)
		require.Len(t, out.Actions, 1, name)
		verb, target, _ := out.Actions[0].Describe()
		require.Equal(t, strings.HasPrefix(name, "delete"), verb == olmcore.VerbDelete, name)
		for o := range around(&base) {
			if update, ok := out.Actions[0].(olmcore.Update); ok && olmcore.KeyOf(o) == target.Key() {
				require.True(t, equality.Semantic.DeepEqual(o, update.After), "%s: %+v", name, update.After)
			}
		}
	}
}
