// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// huge is what one tenant may have much of: objects makes n of it, or one of n parts, in namespace evil.
type huge struct {
	name    string
	n       int
	objects func(n int) []olmcore.Object
	// square: each of its objects is judged by all the others, as a namespace must have one OperatorGroup and what
	// becomes of a version depends on its whole upgrade chain.
	square bool
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), ResourceVersion: "1"}
}

func many(make func(i, n int) olmcore.Object) func(n int) []olmcore.Object {
	return func(n int) (all []olmcore.Object) {
		for i := range n {
			all = append(all, make(i, n))
		}
		return all
	}
}

func subscriptionOf(namespace, name string) *v1alpha1.Subscription {
	return &v1alpha1.Subscription{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription"}, ObjectMeta: in(namespace, name),
		Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "c0", CatalogSourceNamespace: namespace}}
}

func sourceOf(namespace, name string) *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource"}, ObjectMeta: in(namespace, name),
		Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeInternal, ConfigMap: "content"}}
}

func versionOf(namespace, name string) *v1alpha1.ClusterServiceVersion {
	return &v1alpha1.ClusterServiceVersion{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"}, ObjectMeta: in(namespace, name),
		Spec: v1alpha1.ClusterServiceVersionSpec{InstallModes: []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}},
			InstallStrategy: v1alpha1.NamedInstallStrategy{StrategyName: v1alpha1.InstallStrategyNameDeployment}}}
}

func groupOf(namespace, name string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup"}, ObjectMeta: in(namespace, name),
		Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}}}
}

func configMapOf(namespace, name string, bytes int) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: in(namespace, name),
		Data: map[string]string{"packages": strings.Repeat("- x\n", bytes/4)}}
}

// hugeInputs are small here: that they grow as they do says what the largest cost.
var hugeInputs = []huge{
	{"Subscriptions of a namespace", 250, many(func(i, n int) olmcore.Object { return subscriptionOf("evil", fmt.Sprint("s", i)) }), false},
	{"OperatorGroups of a namespace", 250, many(func(i, n int) olmcore.Object { return groupOf("evil", fmt.Sprint("g", i)) }), true},
	{"CatalogSources of a namespace", 250, many(func(i, n int) olmcore.Object { return sourceOf("evil", fmt.Sprint("c", i)) }), false},
	{"ClusterServiceVersions that replace each other", 100, many(func(i, n int) olmcore.Object {
		c := versionOf("evil", fmt.Sprint("v", i))
		if i > 0 {
			c.Spec.Replaces = fmt.Sprint("v", i-1)
		}
		return c
	}), true},
	{"Deployments of a ClusterServiceVersion", 500, func(n int) []olmcore.Object {
		c := versionOf("evil", "large")
		for i := range n {
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, v1alpha1.StrategyDeploymentSpec{Name: fmt.Sprint("d", i)})
		}
		return []olmcore.Object{c}
	}, false},
	{"steps of an InstallPlan", 250, func(n int) []olmcore.Object {
		p := &v1alpha1.InstallPlan{TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "InstallPlan"}, ObjectMeta: in("evil", "large")}
		p.Spec.Approved, p.Spec.Approval, p.Status.Phase = true, v1alpha1.ApprovalAutomatic, v1alpha1.InstallPlanPhaseInstalling
		for i := range n {
			name := fmt.Sprint("m", i)
			p.Status.Plan = append(p.Status.Plan, &v1alpha1.Step{Resolving: "large", Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{Version: "v1", Kind: "ConfigMap", Name: name,
				Manifest: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"a":"` + strings.Repeat("x", 500) + `"}}`}})
		}
		return []olmcore.Object{p}
	}, false},
	{"bytes of the ConfigMap of a catalog", 500_000, func(n int) []olmcore.Object {
		return []olmcore.Object{sourceOf("evil", "c0"), configMapOf("evil", "content", n)}
	}, false},
	{"bytes of an unpacked bundle", 500_000, func(n int) []olmcore.Object {
		cm := configMapOf("evil", "unpacked", n)
		cm.Labels, cm.Annotations = map[string]string{olmcore.LabelManaged: "true"}, map[string]string{"olm.sourceImage": "image"}
		return []olmcore.Object{cm, subscriptionOf("evil", "s")}
	}, false},
	{"labels and annotations", 1000, func(n int) []olmcore.Object {
		s, c := subscriptionOf("evil", "s"), versionOf("evil", "v")
		s.Labels, s.Annotations = map[string]string{}, map[string]string{}
		for i := range n {
			s.Labels[fmt.Sprint("operators.coreos.com/p", i, ".evil")], s.Annotations[fmt.Sprint("a", i)] = "", strings.Repeat("x", 100)
		}
		c.Labels, c.Annotations = s.Labels, s.Annotations
		return []olmcore.Object{s, c}
	}, false},
}

// indexedSnapshot is what an adapter's cache is: it keeps indexes until something changes.
type indexedSnapshot struct {
	*olmcore.Snapshot
	*controllers.Indexes
}

// ListMetadata implements olmcore.IndexedReader.
func (s indexedSnapshot) ListMetadata(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector,
) ([]olmcore.Object, error) {
	return s.List(ctx, gvk, namespace, selector)
}

// cluster is one of two tenants, of whom one has some objects, as a cache shows it, and its controllers.
func cluster(t *testing.T, objects []olmcore.Object) (indexedSnapshot, *controllers.Set) {
	world := slices.Clone(objects)
	for _, name := range []string{"evil", "victim", "olm"} {
		n := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: in("", name)}
		world = append(world, n, groupOf(name, "group"))
	}
	v := versionOf("victim", "v")
	v.Spec.Replaces = "v0"
	world = append(world, subscriptionOf("victim", "s"), sourceOf("victim", "c0"), configMapOf("victim", "content", 100), v)
	snapshot, err := olmcore.NewSnapshot(world, olmcore.Everything)
	require.NoError(t, err)
	watched := controllers.Watched{}
	for _, k := range olmcore.Kinds() {
		watched[k.GroupVersionKind] = nil
	}
	return indexedSnapshot{snapshot, &controllers.Indexes{Watched: watched}}, controllers.New(&controllers.Options{Sweeps: true, Operators: true})
}

// TestATenantsHugeInputWakesNoOther: a change of it concerns keys of its namespace alone.
func TestATenantsHugeInputWakesNoOther(t *testing.T) {
	for _, h := range hugeInputs {
		t.Run(h.name, func(t *testing.T) {
			objects := h.objects(3)
			r, set := cluster(t, objects)
			for _, o := range objects {
				woken := 0
				for _, c := range set.Controllers {
					keys, err := c.Changed(t.Context(), r, controller.Change{New: o, At: noon})
					require.NoError(t, err)
					for _, key := range keys {
						require.NotContains(t, []string{"victim", "olm"}, key.Namespace, "%s %s", c.Name, olmcore.RefOf(o))
					}
					woken += len(keys)
				}
				require.NotZero(t, woken, olmcore.RefOf(o))
			}
		})
	}
}
