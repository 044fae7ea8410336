// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
)

// deltaText is an operator that writes ConfigMaps where its OperatorGroup lets it.
const deltaText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: delta.vVERSION.0.0}
spec:
  displayName: delta
  version: VERSION.0.0
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: true}
  - {type: AllNamespaces, supported: true}
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: delta
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [list, create]}]
      deployments:
      - name: delta
        spec:
          replicas: 1
          selector: {matchLabels: {app: delta}}
          template:
            metadata: {labels: {app: delta}}
            spec:
              serviceAccountName: delta
              containers: [{name: operator, image: "registry.example.com/delta:vVERSION"}]
`

// An operator of all namespaces is seen in each of them: two managers make a copy of its version there, also where one
// comes later, take them away when the cluster's administrator wants none, and bring them back.
func TestAnOperatorOfAllNamespacesIsSeenInEach(t *testing.T) {
	w := newRealWorldWith(t, controlplane.Options{NodeMonitorGrace: 5 * time.Minute})
	publish(t, map[string]int{"delta": 1})
	namespaces(t, w, "olm", "ops", "shop", "yard")
	w.addNode("a")
	w.start(2)
	create(t, w, catalogSource(), groupOf("ops"), subscribe("ops", "delta", v1alpha1.ApprovalAutomatic))
	w.until("it is installed", isInstalled(t, w, "ops", csvName("delta", 1)))
	w.until("it is seen everywhere", func() bool { return slices.Equal(copiesOf(t, w), othersThan(t, w, "ops")) })
	for _, c := range list[*v1alpha1.ClusterServiceVersion](t, w, "shop") {
		require.Equal(t, v1alpha1.CSVReasonCopied, c.Status.Reason)
	}

	namespaces(t, w, "attic")
	w.until("also in a new namespace", func() bool { return slices.Contains(copiesOf(t, w), "attic") })

	disabled := func(yes bool) operatorsv1.OLMConfigSpec {
		return operatorsv1.OLMConfigSpec{Features: &operatorsv1.Features{DisableCopiedCSVs: &yes}}
	}
	create(t, w, &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Spec: disabled(true)})
	w.until("nowhere once the administrator says so", func() bool { return len(copiesOf(t, w)) == 0 })
	w.until("the OLMConfig says that", func() bool { return copiesAre(t, w, metav1.ConditionTrue) })
	w.until("its users are told", func() bool {
		return slices.ContainsFunc(list[*corev1.Event](t, w, "ops"), func(e *corev1.Event) bool { return e.Reason == "DisabledCopiedCSVs" })
	})
	edit(t, w, "", "cluster", func(c *operatorsv1.OLMConfig) { c.Spec = disabled(false) })
	w.until("everywhere again", func() bool { return slices.Equal(copiesOf(t, w), othersThan(t, w, "ops")) })
	w.until("the OLMConfig says that, too", func() bool { return copiesAre(t, w, metav1.ConditionFalse) })

	remove(t, w, get[*v1alpha1.Subscription](t, w, "ops", "delta"))
	remove(t, w, get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("delta", 1)))
	w.until("nowhere once it is uninstalled", func() bool {
		return len(copiesOf(t, w)) == 0 && get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("delta", 1)) == nil
	})
	w.settle()
	require.Empty(t, copiesOf(t, w))
	w.check()
}

// groupOf is an OperatorGroup of some namespaces, or of all.
func groupOf(namespace string, targets ...string) *operatorsv1.OperatorGroup {
	g := operatorGroup(namespace)
	g.Spec.TargetNamespaces = targets
	return g
}

// copiesOf returns the namespaces that have a copy, sorted.
func copiesOf(t testing.TB, w world) (in []string) {
	for _, c := range list[*v1alpha1.ClusterServiceVersion](t, w, "") {
		if c.IsCopied() {
			in = append(in, c.Namespace)
		}
	}
	slices.Sort(in)
	return in
}

func othersThan(t testing.TB, w world, name string) (others []string) {
	for _, n := range list[*corev1.Namespace](t, w, "") {
		if n.Name != name {
			others = append(others, n.Name)
		}
	}
	slices.Sort(others)
	return others
}

// copiesAre reports whether the OLMConfig says that copies are disabled, or that they are not.
func copiesAre(t testing.TB, w world, disabled metav1.ConditionStatus) bool {
	c := meta.FindStatusCondition(get[*operatorsv1.OLMConfig](t, w, "", "cluster").Status.Conditions, operatorsv1.DisabledCopiedCSVsConditionType)
	return c != nil && c.Status == disabled
}

// An operator may do in the namespaces that its OperatorGroup targets what its version says, and nowhere else: RBAC
// decides, as the group changes. And it may speak of itself in its OperatorCondition, and in no other.
func TestAnOperatorMayActWhereItsGroupTargets(t *testing.T) {
	w := newRealWorldWith(t, controlplane.Options{NodeMonitorGrace: 5 * time.Minute})
	publish(t, map[string]int{"delta": 1})
	namespaces(t, w, "olm", "ops", "shop", "yard", "attic")
	w.addNode("a")
	w.start(1)
	account := impersonating(t, w, "ops", "delta")
	may := func(names ...string) func() bool {
		return func() bool { return slices.Equal(names, permitted(t, account, "attic", "ops", "shop", "yard")) }
	}
	require.True(t, may()(), "nothing before it is installed")
	create(t, w, catalogSource(), groupOf("ops", "shop", "yard"), subscribe("ops", "delta", v1alpha1.ApprovalAutomatic))
	w.until("it is installed", isInstalled(t, w, "ops", csvName("delta", 1)))
	w.until("it may act in both", may("ops", "shop", "yard"))

	edit(t, w, "ops", "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = nil })
	w.until("it may act everywhere", may("attic", "ops", "shop", "yard"))
	require.NotEmpty(t, ofDelta[*rbacv1.ClusterRole](t, w))
	edit(t, w, "ops", "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = []string{"yard"} })
	w.until("it may act in one", may("ops", "yard"))
	w.until("it is installed for that one", isInstalled(t, w, "ops", csvName("delta", 1)))
	require.Empty(t, slices.Concat(ofDelta[*rbacv1.ClusterRole](t, w), ofDelta[*rbacv1.ClusterRoleBinding](t, w)))

	requireOwnCondition(t, w, account)

	remove(t, w, get[*v1alpha1.Subscription](t, w, "ops", "delta"))
	remove(t, w, get[*v1alpha1.ClusterServiceVersion](t, w, "ops", csvName("delta", 1)))
	w.until("nowhere once it is uninstalled", may())
	w.until("its condition is gone", func() bool { return get[*operatorsv2.OperatorCondition](t, w, "ops", csvName("delta", 1)) == nil })
	w.settle()
	require.Empty(t, slices.Concat(ofDelta[*rbacv1.ClusterRole](t, w), ofDelta[*rbacv1.ClusterRoleBinding](t, w), ofDelta[*rbacv1.Role](t, w), ofDelta[*rbacv1.RoleBinding](t, w)))
	w.check()
}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	conditions = schema.GroupVersionResource{Group: operatorsv2.GroupVersion.Group, Version: operatorsv2.GroupVersion.Version, Resource: "operatorconditions"}
)

// impersonating returns a client that is a ServiceAccount to the API server.
func impersonating(t testing.TB, w *realWorld, namespace, name string) dynamic.Interface {
	config := rest.CopyConfig(w.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// permitted returns in which of some namespaces an account may list and create ConfigMaps.
func permitted(t testing.TB, account dynamic.Interface, names ...string) (in []string) {
	for _, name := range names {
		_, listing := account.Resource(configMaps).Namespace(name).List(t.Context(), metav1.ListOptions{})
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "made"}}}
		_, creating := account.Resource(configMaps).Namespace(name).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		for _, err := range []error{listing, creating} {
			require.True(t, err == nil || apierrors.IsForbidden(err), err)
		}
		if listing == nil && creating == nil {
			in = append(in, name)
		}
	}
	return in
}

// requireOwnCondition: an account may write the spec of its operator's condition, which follows in the status.
func requireOwnCondition(t testing.TB, w *realWorld, account dynamic.Interface) {
	own := csvName("delta", 1)
	other := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "other"}}
	create(t, w, other)
	patch := func(name string, subresources ...string) error {
		body := `{"spec":{"conditions":[{"type":"Upgradeable","status":"False","reason":"Busy","message":"not now","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
		_, err := account.Resource(conditions).Namespace("ops").Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldValidation: "Strict"}, subresources...)
		return err
	}
	w.until("it may write its own condition", func() bool {
		err := patch(own)
		require.True(t, err == nil || apierrors.IsForbidden(err), err)
		return err == nil
	})
	require.True(t, apierrors.IsForbidden(patch("other")), "and no other")
	require.True(t, apierrors.IsForbidden(patch(own, "status")), "what counts is the controller's")
	w.until("what it said is published", func() bool {
		c := get[*operatorsv2.OperatorCondition](t, w, "ops", own)
		published := meta.FindStatusCondition(c.Status.Conditions, operatorsv2.Upgradeable)
		return published != nil && published.Status == metav1.ConditionFalse && published.ObservedGeneration == c.Generation
	})
	remove(t, w, get[*operatorsv2.OperatorCondition](t, w, "ops", "other"))
}

// ofDelta are the objects of a kind that were made for the operator.
func ofDelta[T olmcore.Object](t testing.TB, w world) (names []string) {
	for _, o := range list[T](t, w, "") {
		if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Name == csvName("delta", 1) {
			names = append(names, olmcore.KeyOf(o).String())
		}
	}
	return names
}
