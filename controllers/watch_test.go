// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// TestWhatCountsIsWatched asks each controller about a plain object of each kind that the library has a Go type for:
// one that counts must be watched.
func TestWhatCountsIsWatched(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, decode.AddToScheme(scheme))
	all := controllers.New(&controllers.Options{Sweeps: true, Operators: true}).Controllers
	watched := controllers.Options{}.Watched()
	known := 0
	for gvk := range scheme.AllKnownTypes() {
		o := olmcore.NewObject(gvk)
		if _, untyped := o.(*unstructured.Unstructured); untyped {
			continue
		}
		known++
		o.SetName("x")
		o.SetNamespace("y")
		counts := false
		for _, c := range all {
			counts = counts || len(c.Affected(o)) > 0
		}
		if _, is := watched[gvk]; counts && !is {
			t.Errorf("%s counts and is not watched", gvk)
		}
	}
	require.Greater(t, known, 25)
	for gvk := range watched {
		require.True(t, scheme.Recognizes(gvk), "%s has no Go type", gvk)
	}
	for _, c := range all {
		for _, gvk := range c.Kinds {
			require.Contains(t, watched, gvk, c.Name)
		}
	}
}

func TestWhatAShardKeeps(t *testing.T) {
	pod, subscription := corev1.SchemeGroupVersion.WithKind("Pod"), v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.SubscriptionKind)
	for name, tt := range map[string]struct {
		options controllers.Options
		want    []string
	}{
		"no shard": {controllers.Options{}, nil},
		"a shard":  {controllers.Options{Namespaces: []string{"ops", "db"}}, []string{"db", "olm", "ops"}},
		"other places for catalogs and for OLM": {
			controllers.Options{Namespaces: []string{"ops"}, GlobalNamespace: "ops", InstallPlan: installplan.Config{OLMNamespace: "olm-system"}}, []string{"olm-system", "ops"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			watched := tt.options.Watched()
			require.Equal(t, tt.want, watched[pod])
			require.Nil(t, watched[subscription], "OLM's own objects count wherever they are")
			require.True(t, watched.Holds(subscription, "") && watched.Holds(subscription, "elsewhere"))
			require.Equal(t, tt.want == nil, watched.Holds(pod, ""))
			require.Equal(t, tt.want == nil, watched.Holds(pod, "elsewhere"))
			require.True(t, watched.Holds(pod, "ops"))
			require.False(t, watched.Holds(corev1.SchemeGroupVersion.WithKind("Event"), "ops"))
		})
	}
}

// TestChanged: a wildcard stands for the keys that there are, and for that of the object itself, which may be gone.
func TestChanged(t *testing.T) {
	c, set, _ := started(t)
	gone := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "gone", Name: "x"}}
	asMap, err := olmcore.ToMap(gone)
	require.NoError(t, err)
	broken := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": "none"}}
	unfit := &unstructured.Unstructured{Object: asMap}
	unfit = unfit.DeepCopy()
	unfit.Object["spec"] = map[string]any{"grpcPodConfig": map[string]any{"memoryTarget": "1e2147483647"}}
	pod := func(labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Labels: labels}}
	}
	community, itself := []types.NamespacedName{{Namespace: "ops", Name: "community"}}, []types.NamespacedName{{Namespace: "gone", Name: "x"}}
	catalogs := controllerOf(t, set, controllers.Catalog)
	for name, tt := range map[string]struct {
		change controller.Change
		want   []types.NamespacedName
	}{
		"itself, although it is gone":  {controller.Change{New: gone, Deleted: true}, itself},
		"itself, as a map":             {controller.Change{New: &unstructured.Unstructured{Object: asMap}}, itself},
		"itself, which fits no type":   {controller.Change{Old: unfit, New: unfit}, itself},
		"a Node counts for all":        {controller.Change{New: &corev1.Node{}}, community},
		"a Node that was there before": {controller.Change{New: &corev1.Node{}, Initial: true}, nil},
		"OLM's own, there before":      {controller.Change{New: gone, Initial: true}, itself},
		"another's, there before": {
			controller.Change{New: &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "x"}}, Initial: true}, nil,
		},
		"a label that was taken away": {
			controller.Change{Old: pod(map[string]string{"olm.catalogSource": "community"}), New: pod(nil)}, community,
		},
		"what could not be read before": {
			controller.Change{Old: broken, New: pod(map[string]string{"olm.catalogSource": "community"})}, community,
		},
		"what does not count": {controller.Change{New: &corev1.PersistentVolume{}}, nil},
		"a kind that the library is not": {
			controller.Change{New: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "a/v1", "kind": "B"}}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := catalogs.Changed(t.Context(), c, tt.change)
			require.NoError(t, err)
			require.Equal(t, tt.want, keys)
		})
	}
	_, err = catalogs.Changed(t.Context(), &failing{Reader: c, times: 1}, controller.Change{New: &corev1.Node{}})
	require.ErrorIs(t, err, errUnread)
	_, err = catalogs.Changed(t.Context(), c, controller.Change{})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestAShard: the keys of other namespaces, and those of the whole cluster, are unmanaged.
func TestAShard(t *testing.T) {
	c, _, _ := started(t)
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Create(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "group"}}))
	set := controllers.New(&controllers.Options{Namespaces: []string{"ops"}, Sweeps: true, Operators: true})
	ours := []types.NamespacedName{{Namespace: "ops", Name: "group"}}
	groups := controllerOf(t, set, controllers.Group)
	keys, err := groups.Keys(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, ours, keys)
	keys, err = groups.Changed(t.Context(), c, controller.Change{New: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}})
	require.NoError(t, err)
	require.Equal(t, ours, keys, "a Namespace counts for all groups")
	for _, name := range []string{controllers.CSVSweep, controllers.Operator} {
		whole := controllerOf(t, set, name)
		require.Empty(t, whole.Always, name)
		keys, err := whole.Keys(t.Context(), c)
		require.NoError(t, err)
		require.Empty(t, keys, name)
	}
}

// TestATenantsCatalogCountsInItsNamespaceAlone: what happens to the catalogs of a namespace, to what is unpacked there
// and to its Secrets makes no other namespace work.
func TestATenantsCatalogCountsInItsNamespaceAlone(t *testing.T) {
	set := controllers.New(
		&controllers.Options{Sweeps: true, GlobalNamespace: "catalogs", InstallPlan: installplan.Config{OLMNamespace: "olm-system"}},
	)
	meta := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: strings.Repeat("a", 63), Labels: map[string]string{"olm.managed": "true"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: v1alpha1.CatalogSourceCRDAPIVersion, Kind: v1alpha1.CatalogSourceKind, Name: "x", UID: "x"},
			}}
	}
	everywhere := types.NamespacedName{}
	for _, name := range []string{controllers.Subscription, controllers.InstallPlan, controllers.Sweep} {
		affected := controllerOf(t, set, name).Affected
		for _, at := range []string{"tenant", "catalogs", "olm-system"} {
			for _, o := range []olmcore.Object{
				&v1alpha1.CatalogSource{ObjectMeta: meta(at), Spec: v1alpha1.CatalogSourceSpec{Secrets: []string{"pull"}}},
				&corev1.ConfigMap{ObjectMeta: meta(at)}, &batchv1.Job{ObjectMeta: meta(at)},
				&corev1.Secret{ObjectMeta: meta(at), Type: corev1.SecretTypeDockerConfigJson},
			} {
				for _, key := range affected(o) {
					if at == "tenant" {
						require.NotEqual(t, everywhere, key, "%s of %s", name, olmcore.KeyOf(o))
						require.Equal(t, at, key.Namespace)
					}
				}
				if _, secret := o.(*corev1.Secret); at != "tenant" && name == controllers.InstallPlan && secret {
					require.Contains(t, affected(o), everywhere)
				}
			}
		}
	}
}

// TestATenantsGroupsAndVersionsConcernFew: what a tenant may write all the time makes only those of other namespaces
// work whom it can matter to.
func TestATenantsGroupsAndVersionsConcernFew(t *testing.T) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	version := func(namespace, name, kind string) *v1alpha1.ClusterServiceVersion {
		v := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		v.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{
			{Name: strings.ToLower(kind) + "s.example.com", Version: "v1", Kind: kind},
		}
		return v
	}
	copied := version("b", "cool", "Cool")
	copied.Labels = map[string]string{"olm.copiedFrom": "a"}
	plan := func(namespace, name string, phase v1alpha1.InstallPlanPhase) *v1alpha1.InstallPlan {
		return &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: v1alpha1.InstallPlanSpec{
				ClusterServiceVersionNames: []string{},
				Approval:                   v1alpha1.ApprovalAutomatic,
			}, Status: v1alpha1.InstallPlanStatus{Phase: phase, CatalogSources: []string{}}}
	}
	for _, o := range []olmcore.Object{
		version("a", "cool", "Cool"), version("a", "hot", "Hot"), version("a", "warm", "Warm"), copied, version("evil", "x", "X"),
		plan("a", "complete", v1alpha1.InstallPlanPhaseComplete), plan("a", "failed", v1alpha1.InstallPlanPhaseFailed),
		plan("a", "runs", v1alpha1.InstallPlanPhaseInstalling), plan("evil", "complete", v1alpha1.InstallPlanPhaseComplete),
	} {
		require.NoError(t, c.Create(o))
		if p, ok := o.(*v1alpha1.InstallPlan); ok {
			require.NoError(t, c.UpdateStatus(p))
		}
	}
	group := func(apis string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "g", Annotations: map[string]string{"olm.providedAPIs": apis}},
		}
	}
	definition := func(name string) olmcore.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	namespace := func(allowed string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"olmcore/allowed-permissions": allowed}}}
	}
	unfinished := []string{"a/failed", "a/runs"}
	shared, automanaged := map[string]string{"x": "y"}, map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"}
	service := func(version string, labels, annotations map[string]string) *apiregistrationv1.APIService {
		meta := metav1.ObjectMeta{Name: "v1.things.com", ResourceVersion: version, Labels: labels, Annotations: annotations}
		return &apiregistrationv1.APIService{ObjectMeta: meta, Spec: apiregistrationv1.APIServiceSpec{Group: "things.com"}}
	}
	applied := plan("a", "applied", v1alpha1.InstallPlanPhaseInstalling)
	applied.Status.Plan = []*v1alpha1.Step{{Resolving: "hot", Resource: v1alpha1.StepResource{Kind: "Role"}}}
	set := controllers.New(&controllers.Options{Sweeps: true})
	for name, tt := range map[string]struct {
		controller string
		old, next  olmcore.Object
		want       []string
	}{
		"a namespace that allows":  {controllers.Permissions, namespace(""), namespace("x"), []string{"a/cool", "a/hot", "a/warm"}},
		"a namespace that changes": {controllers.Permissions, namespace("x"), namespace("x"), nil},
		"a plan with a Role":       {controllers.Permissions, nil, applied, []string{"a/hot"}},
		"a plan without steps":     {controllers.Permissions, nil, plan("a", "new", ""), nil},
		"a group that lists an API": {
			controllers.CSV, group("Hot.v1.example.com"), group("Cool.v1.example.com"), []string{"a/cool", "a/hot", "evil/x"},
		},
		"a group that lists others":  {controllers.CSV, nil, group("Cool.v2.example.com"), []string{"evil/x"}},
		"a version that owns an API": {controllers.InstallPlan, nil, version("evil", "x", "Cool"), []string{"a/failed", "a/runs"}},
		"a definition beside plans":  {controllers.InstallPlan, nil, definition("cools.example.com"), []string{"a/failed", "a/runs"}},
		"an APIService of another":   {controllers.InstallPlan, nil, service("2", nil, nil), unfinished},
		"one that is available":      {controllers.InstallPlan, service("1", nil, nil), service("2", nil, nil), nil},
		"one that is shared":         {controllers.InstallPlan, service("1", nil, nil), service("2", nil, shared), unfinished},
		"one that gets an owner":     {controllers.InstallPlan, service("1", nil, nil), service("2", shared, nil), unfinished},
		"one that is deleted":        {controllers.InstallPlan, service("1", nil, nil), service("1", nil, nil), unfinished},
		"one of definitions":         {controllers.InstallPlan, nil, service("2", automanaged, nil), nil},
		"a namespace with plans": {
			controllers.InstallPlan, nil, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "evil"}}, []string{"evil/complete"},
		},
		"leftovers beside a version": {controllers.Sweep, nil, version("evil", "x", "Cool"), []string{"evil/"}},
		"a definition":               {controllers.CSV, nil, definition("cools.example.com"), []string{"a/cool"}},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := controllerOf(t, set, tt.controller).Changed(t.Context(), c, controller.Change{Old: tt.old, New: tt.next})
			require.NoError(t, err)
			var got []string
			for _, key := range keys {
				got = append(got, key.String())
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestWhatBelongsToNoNamespaceConcernsFew: of each upgrade some is the whole cluster's, and there are many namespaces.
func TestWhatBelongsToNoNamespaceConcernsFew(t *testing.T) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	for _, namespace := range []string{"a", "b"} {
		version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "v"}}
		version.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: namespace + "s.example.com", Version: "v1", Kind: "X"}}
		copied := version.DeepCopy()
		copied.Name, copied.Labels = "copied", map[string]string{"olm.copiedFrom": "x"}
		copied.Spec.CustomResourceDefinitions.Owned[0].Name = "as.example.com"
		step := func(kind, group, version, name, manifest string) *v1alpha1.Step {
			return &v1alpha1.Step{
				Status:   v1alpha1.StepStatusCreated,
				Resource: v1alpha1.StepResource{Group: group, Version: version, Kind: kind, Name: name, Manifest: manifest},
			}
		}
		plan := &v1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
			Spec:       v1alpha1.InstallPlanSpec{ClusterServiceVersionNames: []string{}, Approval: v1alpha1.ApprovalAutomatic},
		}
		plan.Status = v1alpha1.InstallPlanStatus{Phase: v1alpha1.InstallPlanPhaseComplete, CatalogSources: []string{}, Plan: []*v1alpha1.Step{
			step("CustomResourceDefinition", "apiextensions.k8s.io", "v1", namespace+"s.example.com", "{}"),
			step("ClusterRole", "rbac.authorization.k8s.io", "v1", "role", `{"metadata":{"name":"role-`+namespace+`"}}`),
			step("Thing"+namespace, "things.example.com", "v1", "thing", "{}"),
		}}
		for _, o := range []olmcore.Object{version, copied, plan, &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, Spec: &v1alpha1.SubscriptionSpec{},
		}} {
			require.NoError(t, c.Create(o))
		}
		require.NoError(t, c.UpdateStatus(plan))
	}
	definition := func(name, kind string) olmcore.Object {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind}},
		}
	}
	role := func(name string) olmcore.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	set := controllers.New(&controllers.Options{Sweeps: true})
	for name, tt := range map[string]struct {
		controller string
		next       olmcore.Object
		want       []types.NamespacedName
	}{
		"Subscriptions of the version that owns it": {
			controllers.Subscription, definition("as.example.com", "X"), []types.NamespacedName{{Namespace: "a"}},
		},
		"Subscriptions beside a definition of another": {controllers.Subscription, definition("cs.example.com", "X"), nil},
		"a plan with a step for a definition": {
			controllers.Sweep, definition("bs.example.com", "X"), []types.NamespacedName{{Namespace: "b"}},
		},
		"a plan with a step of a kind": {
			controllers.Sweep, definition("cs.example.com", "Thinga"), []types.NamespacedName{{Namespace: "a"}},
		},
		"a plan with a step for a role": {
			controllers.Sweep, role("role"), []types.NamespacedName{{Namespace: "a"}, {Namespace: "b"}},
		},
		"a plan with a manifest of a role": {controllers.Sweep, role("role-b"), []types.NamespacedName{{Namespace: "b"}}},
		"plans beside another role":        {controllers.Sweep, role("other"), nil},
		"a namespace with plans": {
			controllers.Sweep, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, []types.NamespacedName{{Namespace: "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := controllerOf(t, set, tt.controller).Changed(t.Context(), c, controller.Change{New: tt.next})
			require.NoError(t, err)
			require.Equal(t, tt.want, append([]types.NamespacedName(nil), keys...))
		})
	}
	_, err := controllerOf(
		t,
		set,
		controllers.Subscription,
	).Changed(t.Context(), &failing{Reader: c, times: 1}, controller.Change{New: definition("as.example.com", "X")})
	require.ErrorIs(t, err, errUnread)
}

// TestATenantsCatalogMakesNoOtherNamespaceResolve, however often it changes.
func TestATenantsCatalogMakesNoOtherNamespaceResolve(t *testing.T) {
	c, set, resolved := started(t, withoutFingerprint)
	subscriptions := controllerOf(t, set, controllers.Subscription)
	resolve := func(catalogs string) int {
		before := *resolved
		_, err := subscriptions.Changed(t.Context(), c, controller.Change{At: noon, New: &v1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: catalogs, Name: "x", Generation: 7}}})
		require.NoError(t, err)
		_, err = subscriptions.Reconcile(t.Context(), c, types.NamespacedName{Namespace: "ops"}, noon, nil)
		require.NoError(t, err)
		return *resolved - before
	}
	require.Equal(t, 1, resolve("ops"), "at first")
	require.Equal(t, 0, resolve("tenant"))
	require.Equal(t, 1, resolve("ops"))
	require.Equal(t, 1, resolve("olm"))
}

// wideLists hears in which namespaces objects are listed.
type wideLists struct {
	olmcore.Reader
	in []string
}

func (l *wideLists) List(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	namespace string,
	selector labels.Selector,
) ([]olmcore.Object, error) {
	l.in = append(l.in, namespace)
	return l.Reader.List(ctx, gvk, namespace, selector)
}

// TestAChangeInANamespaceIsLookedUpThere: whom it concerns is not looked for among the objects of all namespaces, of
// which there may be ten thousand at each of as many changes.
func TestAChangeInANamespaceIsLookedUpThere(t *testing.T) {
	c, _, _ := started(t)
	set := controllers.New(&controllers.Options{Sweeps: true})
	looked := map[string]bool{}
	for _, o := range []olmcore.Object{
		&v1alpha1.Subscription{ObjectMeta: named("a")}, &v1alpha1.InstallPlan{ObjectMeta: named("a")}, &v1alpha1.ClusterServiceVersion{ObjectMeta: named("a")},
		&operatorsv1.OperatorGroup{ObjectMeta: named("a")}, &v1alpha1.CatalogSource{ObjectMeta: named("a")}, &corev1.Pod{ObjectMeta: named("a")},
		&corev1.ServiceAccount{ObjectMeta: named("a")}, &rbacv1.Role{ObjectMeta: named("a")}, &appsv1.Deployment{ObjectMeta: named("a")},
	} {
		for _, one := range set.Controllers {
			reader := &wideLists{Reader: c}
			_, err := one.Changed(t.Context(), reader, controller.Change{New: o})
			require.NoError(t, err)
			looked[one.Name] = looked[one.Name] || len(reader.in) > 0
			if one.Name != controllers.Copies {
				require.NotContains(t, reader.in, "", "%s, %T", one.Name, o)
			}
		}
	}
	require.True(t, looked[controllers.Subscription] && looked[controllers.InstallPlan] && looked[controllers.CSV], "%v", looked)
}
