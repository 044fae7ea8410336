// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

func TestGatherReadsTheObjectsOfACatalog(t *testing.T) {
	ctx := context.Background()
	global := catalog.Config{GlobalCatalogNamespace: "olm"}
	w := newWorld(t, global, cool())
	w.run(t, 0)
	for _, namespace := range []string{"team-b", "team-a", "olm"} {
		for _, source := range []string{"cool", "other"} {
			require.NoError(t, w.Cluster.Create(&v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: source},
				Spec:       &v1alpha1.SubscriptionSpec{CatalogSource: source, CatalogSourceNamespace: "olm"},
			}))
		}
	}
	require.NoError(t, w.Cluster.Create(bystander()))
	in := w.input(t)
	require.Equal(t, []string{"team-a", "team-b"}, in.Subscribers)
	require.Len(t, in.Pods.Items, 2)
	require.Len(t, in.Nodes.Items, 2)
	require.True(t, in.Nodes.Complete)
	require.Len(t, in.Services.Items, 1)
	require.Len(t, in.ServiceAccounts.Items, 1)
	require.Len(t, in.NetworkPolicies.Items, 2)

	blind, err := catalog.Gather(ctx, w.Cluster, coolKey, catalog.Config{IgnoreNodes: true})
	require.NoError(t, err)
	require.False(t, blind.Nodes.Complete)
	require.Empty(t, blind.Nodes.Items)

	_, err = catalog.Gather(ctx, w.Cluster, types.NamespacedName{Namespace: "olm", Name: "none"}, global)
	require.True(t, apierrors.IsNotFound(err))
	for _, kind := range []string{"CatalogSource", "Namespace", "Pod", "Node", "Service", "ServiceAccount", "NetworkPolicy", "Role", "RoleBinding", "PodDisruptionBudget", "Subscription"} {
		_, err = catalog.Gather(ctx, failing{w.Cluster, kind}, coolKey, global)
		require.ErrorIs(t, err, errBroken, kind)
	}
}

var errBroken = errors.New("broken")

// failing is a Reader that cannot read one kind.
type failing struct {
	olmcore.Reader
	kind string
}

func (f failing) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if gvk.Kind == f.kind {
		return nil, errBroken
	}
	return f.Reader.Get(ctx, gvk, namespace, name)
}

func (f failing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if gvk.Kind == f.kind {
		return nil, errBroken
	}
	return f.Reader.List(ctx, gvk, namespace, selector)
}

// TestUnreadKindsAreNotConsideredMissing checks Inputs of Snapshots that lack a kind. Either no object of that kind
// is created or considered missing, or the error names the kind.
func TestUnreadKindsAreNotConsideredMissing(t *testing.T) {
	config := catalog.Config{Replicas: 2}
	for _, w := range []*world{newWorld(t, config, cool()), mappedWorld(t, config, mapped())} {
		w.run(t, time.Hour)
		whole := w.input(t)
		require.True(t, catalog.Assess(whole).UpstreamHealthy)
		for kind, needed := range map[string]bool{
			"Namespace": true, "Pod": true, "Service": true, "ServiceAccount": true,
			"ConfigMap": whole.ConfigMap != nil, "Node": false, "NetworkPolicy": false, "Role": false, "RoleBinding": false,
			"PodDisruptionBudget": false, "Subscription": false,
		} {
			objects := slices.DeleteFunc(w.Cluster.Objects(), func(o olmcore.Object) bool { return olmcore.GVKOf(o).Kind == kind })
			s, err := olmcore.NewSnapshot(objects, scopesBut(kind)...)
			require.NoError(t, err)
			in, err := catalog.Gather(t.Context(), s, coolKey, config)
			if needed {
				require.ErrorIs(t, err, olmcore.ErrNotRead, kind)
				require.ErrorContains(t, err, kind)
				require.ErrorContains(t, err, "is unknown")
				continue
			}
			require.NoError(t, err, kind)
			in.Now = whole.Now
			out := answer(t, in)
			require.Empty(t, slices.DeleteFunc(out.Actions, func(a olmcore.Action) bool {
				verb, _, _ := a.Describe()
				return verb == olmcore.VerbUpdateStatus && kind == "Node" // ReplicasSpread is not known
			}), kind)
			a := catalog.Assess(in)
			require.Equal(t, catalog.StateServing, a.State, kind)
			require.True(t, a.UpstreamHealthy, kind)
			said := slices.ContainsFunc(a.Diagnostics, func(d olmcore.Diagnostic) bool { return d.Reason == catalog.ReasonNotRead })
			matters := kind != "Subscription" && kind != "ConfigMap" && (whole.ConfigMap != nil || kind != "Role" && kind != "RoleBinding")
			require.Equal(t, matters, said, kind)
			require.NoError(t, invariant.Laws(result, in))
		}
	}
}

// scopesBut returns the kinds that Gather reads, except one.
func scopesBut(kind string) (scopes []olmcore.Scope) {
	for group, kinds := range map[string][]string{
		"":                          {"Namespace", "Pod", "Service", "ServiceAccount", "ConfigMap", "Node"},
		"networking.k8s.io":         {"NetworkPolicy"},
		"rbac.authorization.k8s.io": {"Role", "RoleBinding"},
		"policy":                    {"PodDisruptionBudget"},
		"operators.coreos.com":      {"Subscription"},
	} {
		for _, k := range kinds {
			if k != kind {
				scope := olmcore.Scope{}
				scope.Kind.Group, scope.Kind.Kind = group, k
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

// TestGatherNeedsTheNamespaceOnlyForItsLabels checks that Gather only needs the Namespace if the security context
// follows from its labels.
func TestGatherNeedsTheNamespaceOnlyForItsLabels(t *testing.T) {
	cs := cool()
	cs.Spec.GrpcPodConfig = &v1alpha1.GrpcPodConfig{SecurityContextConfig: v1alpha1.Restricted}
	w := newWorld(t, catalog.Config{}, cs)
	w.run(t, time.Hour)
	objects := slices.DeleteFunc(w.Cluster.Objects(), func(o olmcore.Object) bool { _, is := o.(*corev1.Namespace); return is })
	s, err := olmcore.NewSnapshot(objects, scopesBut("Namespace")...)
	require.NoError(t, err)
	in, err := catalog.Gather(t.Context(), s, coolKey, catalog.Config{})
	require.NoError(t, err)
	in.Now = w.Cluster.Now()
	require.Equal(t, catalog.StateServing, catalog.Assess(in).State)
}
