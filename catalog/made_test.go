// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/olmcore"
)

// checkMade: what is created has a valid name, the label, one owner, and the right
// place in the selectors; nothing is created for a catalog that goes.
func checkMade(t require.TestingT, in catalog.Input, out catalog.Outcome, a catalog.Assessment) {
	hash := ""
	for _, action := range out.Actions {
		c, ok := action.(olmcore.Create)
		if !ok {
			continue
		}
		require.NotEqual(t, catalog.StateDeleting, a.State)
		require.Equal(t, in.CatalogSource.Namespace, c.Object.GetNamespace())
		require.Equal(t, "true", c.Object.GetLabels()["olm.managed"])
		require.Empty(t, validation.IsDNS1123Subdomain(c.Object.GetName()))
		for key, value := range c.Object.GetLabels() {
			require.Empty(t, validation.IsQualifiedName(key))
			require.Empty(t, validation.IsValidLabelValue(value), key)
		}
		checkOwner(t, in, c)
		switch o := c.Object.(type) {
		case *corev1.Pod:
			checkPod(t, in, o)
			require.True(t, hash == "" || hash == o.Labels["olm.pod-spec-hash"], "two shapes in one result")
			hash = o.Labels["olm.pod-spec-hash"]
		case *corev1.Service:
			require.Empty(t, validation.IsDNS1035Label(o.Name))
			require.Equal(t, in.CatalogSource.Name, o.Spec.Selector["olm.catalogSource"])
		case *networkingv1.NetworkPolicy:
			if o.Name == in.CatalogSource.Name+"-grpc-server" {
				require.Equal(t, servingLabels(in), o.Spec.PodSelector.MatchLabels)
			}
		case *policyv1.PodDisruptionBudget:
			require.Equal(t, int32(a.Replicas-1), o.Spec.MinAvailable.IntVal)
			require.Equal(t, servingLabels(in), o.Spec.Selector.MatchLabels)
		}
	}
}

// servingLabels are what Service, policy and budget select.
func servingLabels(in catalog.Input) map[string]string {
	return map[string]string{"olm.catalogSource": in.CatalogSource.Name, "olm.managed": "true"}
}

// checkOwner: one owner, with the flags that OLM gives the kind.
func checkOwner(t require.TestingT, in catalog.Input, c olmcore.Create) {
	refs := c.Object.GetOwnerReferences()
	require.Len(t, refs, 1)
	require.Equal(t, in.CatalogSource.UID, refs[0].UID)
	controls := c.Target.Kind == "Pod" || c.Target.Kind == "ServiceAccount" && c.Target.Name == in.CatalogSource.Name
	blocks := c.Target.Kind == "ServiceAccount" && c.Target.Name == in.CatalogSource.Name
	require.Equal(t, controls, refs[0].Controller != nil && *refs[0].Controller, "%s", c.Target)
	require.Equal(t, blocks, refs[0].BlockOwnerDeletion != nil && *refs[0].BlockOwnerDeletion, "%s", c.Target)
}

// checkPod: a Pod is selected while it serves and only then, and needs nothing of the
// scheduler that the spec does not ask for.
func checkPod(t require.TestingT, in catalog.Input, pod *corev1.Pod) {
	require.LessOrEqual(t, len(pod.Name), 63)
	serving := pod.Labels["olm.catalogSource"]
	candidate := pod.Labels["catalogsource.operators.coreos.com/update"]
	require.True(t, serving == in.CatalogSource.Name && candidate == "" || serving == "" && candidate == in.CatalogSource.Name)
	var asked corev1.PodSpec
	asked.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	if c := in.CatalogSource.Spec.GrpcPodConfig; c != nil {
		asked.Tolerations, asked.Affinity = c.Tolerations, c.Affinity
		if c.NodeSelector != nil {
			asked.NodeSelector = c.NodeSelector
		}
	}
	require.Equal(t, asked.Tolerations, pod.Spec.Tolerations)
	require.Equal(t, asked.NodeSelector, pod.Spec.NodeSelector)
	if affinity := pod.Spec.Affinity; affinity != nil && (asked.Affinity == nil || asked.Affinity.NodeAffinity == nil) {
		require.True(t, affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil, "a node is required")
	}
	for _, spread := range pod.Spec.TopologySpreadConstraints {
		require.True(t, spread.WhenUnsatisfiable == corev1.ScheduleAnyway || in.Config.Spread == catalog.SpreadRequire)
	}
}

// checkLeft: an object that is changed keeps the labels, owners and finalizers that
// others gave it, and what is deleted belongs to the catalog.
func checkLeft(t require.TestingT, in catalog.Input, out catalog.Outcome) {
	for _, action := range out.Actions {
		switch a := action.(type) {
		case olmcore.Update:
			before, after := a.Before, a.After
			require.Equal(t, before.GetFinalizers(), after.GetFinalizers())
			for key := range before.GetLabels() {
				_, kept := after.GetLabels()[key]
				require.True(t, kept, "%s of %s is lost", key, a.Target)
			}
			for _, ref := range before.GetOwnerReferences() {
				kept := slices.ContainsFunc(after.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == ref.UID })
				predecessor := ref.Kind == "CatalogSource" && ref.Name == in.CatalogSource.Name && ref.UID != in.CatalogSource.UID
				require.True(t, kept || predecessor, "%s is no owner of %s any more", ref.Name, a.Target)
			}
			if a.Target.Kind == "Pod" {
				require.Equal(t, before.(*corev1.Pod).Spec, after.(*corev1.Pod).Spec, "more than labels")
				require.True(t, maps.Equal(before.GetAnnotations(), after.GetAnnotations()))
			}
		case olmcore.Delete:
			requireOwned(t, in, a.Target)
		}
	}
}

func requireOwned(t require.TestingT, in catalog.Input, target olmcore.Ref) {
	var all []olmcore.Object
	for _, o := range in.Pods.Items {
		all = append(all, o)
	}
	for _, o := range in.Services.Items {
		all = append(all, o)
	}
	for _, o := range in.ServiceAccounts.Items {
		all = append(all, o)
	}
	for _, o := range in.NetworkPolicies.Items {
		all = append(all, o)
	}
	for _, o := range in.Roles.Items {
		all = append(all, o)
	}
	for _, o := range in.RoleBindings.Items {
		all = append(all, o)
	}
	for _, o := range in.PodDisruptionBudgets.Items {
		all = append(all, o)
	}
	for _, o := range all {
		if k := olmcore.KeyOf(o); k == target.Key() && o.GetUID() == target.UID {
			heir := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
				return r.Kind == "CatalogSource" && r.Name == in.CatalogSource.Name
			})
			require.True(t, heir || len(o.GetOwnerReferences()) == 0 && o.GetLabels()["olm.managed"] == "true", "%s is somebody else's", target)
			return
		}
	}
	require.Fail(t, "an object is deleted that was not seen", "%s", target)
}
