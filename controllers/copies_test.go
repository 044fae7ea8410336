// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// watching is a version whose operator watches the targets, copied one that is its copy.
func watching(namespace, name, targets string) *v1alpha1.ClusterServiceVersion {
	return &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
		"olm.operatorNamespace": namespace, "olm.operatorGroup": "group", "olm.targetNamespaces": targets,
	}}}
}

func copied(c *v1alpha1.ClusterServiceVersion, to string) *v1alpha1.ClusterServiceVersion {
	o := c.DeepCopy()
	o.Namespace, o.Labels = to, map[string]string{"olm.copiedFrom": c.Namespace}
	delete(o.Annotations, "olm.targetNamespaces")
	return o
}

// TestWhomChangesOfCopiesWake: there are as many copies as operators times namespaces, so a change of one wakes its
// original alone, one of a Namespace the operators that watch it, and each shard the originals that are its own.
func TestWhomChangesOfCopiesWake(t *testing.T) {
	mesh, some, own := watching("operators", "mesh", ""), watching("shop", "some", "bank,shop"), watching("bank", "own", "bank")
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	for _, v := range []*v1alpha1.ClusterServiceVersion{mesh, some, own, copied(mesh, "shop"), copied(mesh, "bank"), copied(some, "bank")} {
		require.NoError(t, c.Create(v))
	}
	namespace := func(name string, phase corev1.NamespacePhase, labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NamespaceStatus{Phase: phase}}
	}
	config := &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	held := copied(mesh, "bank")
	held.Finalizers = []string{"operators.coreos.com/csv-cleanup"}
	for name, tt := range map[string]struct {
		change controller.Change
		shard  []string
		copies []string
		csv    []string
		config []string
	}{
		"a copy": {
			controller.Change{New: copied(mesh, "bank")}, nil, []string{"operators/mesh"}, []string{"operators/mesh"}, nil,
		},
		"a copy that is held": {
			controller.Change{New: held}, nil, []string{"operators/mesh"}, []string{"bank/mesh", "operators/mesh"}, nil,
		},
		"a copy, in its shard": {controller.Change{New: copied(mesh, "bank")}, []string{"bank"}, nil, nil, nil},
		"a copy, in its original's": {
			controller.Change{New: copied(mesh, "bank")}, []string{"operators"}, []string{"operators/mesh"}, []string{"operators/mesh"}, nil,
		},
		"an original": {controller.Change{New: own}, nil, []string{"bank/own"}, []string{"bank/own"}, nil},
		"an original that watches all": {
			controller.Change{New: mesh}, nil, []string{"operators/mesh"}, []string{"operators/mesh"}, []string{"/cluster"},
		},
		"a new namespace": {
			controller.Change{New: namespace("new", "", nil)}, nil, []string{"operators/mesh"}, nil, []string{"/cluster"},
		},
		"a namespace that goes": {
			controller.Change{Old: namespace("bank", "", nil), New: namespace("bank", corev1.NamespaceTerminating, nil)},
			nil,
			[]string{"bank/own", "operators/mesh", "shop/some"},
			[]string{"bank/own"},
			[]string{"/cluster"},
		},
		"a namespace that goes, sharded": {
			controller.Change{Old: namespace("bank", "", nil), New: namespace("bank", corev1.NamespaceTerminating, nil)},
			[]string{"shop"},
			[]string{"shop/some"},
			nil,
			nil,
		},
		"labels of a namespace": {
			controller.Change{Old: namespace("bank", "", nil), New: namespace("bank", "", map[string]string{"a": "b"})},
			nil,
			nil,
			[]string{"bank/own"},
			[]string{"/cluster"},
		},
		"the OLMConfig":          {controller.Change{New: config}, nil, []string{"operators/mesh"}, nil, []string{"/cluster"}},
		"the OLMConfig, sharded": {controller.Change{New: config}, []string{"operators"}, []string{"operators/mesh"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			set := controllers.New(&controllers.Options{Namespaces: tt.shard})
			for controllerName, want := range map[string][]string{controllers.Copies: tt.copies, controllers.CSV: tt.csv, controllers.OLMConfig: tt.config} {
				keys, err := controllerOf(t, set, controllerName).Changed(t.Context(), c, tt.change)
				require.NoError(t, err)
				var got []string
				for _, key := range keys {
					got = append(got, key.String())
				}
				require.Equal(t, want, got, controllerName)
			}
		})
	}
	set := controllers.New(&controllers.Options{})
	for name, want := range map[string]int{controllers.Copies: 3, controllers.CSV: 3, controllers.OLMConfig: 0} {
		keys, err := controllerOf(t, set, name).Keys(t.Context(), c)
		require.NoError(t, err)
		require.Len(t, keys, want, "%s: copies have no key of their own", name)
	}
}

// TestLongTextsAreKeptOnce: the versions of one bundle in many namespaces have them in common, and the types made of
// the maps, too.
func TestLongTextsAreKeptOnce(t *testing.T) {
	var cache []any
	kept := func(namespace string) *v1alpha1.ClusterServiceVersion {
		c := &v1alpha1.ClusterServiceVersion{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   namespace,
				Name:        "a.v1",
				Annotations: map[string]string{"alm-examples": strings.Repeat("[]", 400)},
			},
		}
		c.Spec.Icon = []v1alpha1.Icon{{Data: strings.Repeat("icon", 200)}}
		values, err := olmcore.ToMap(c)
		require.NoError(t, err)
		u, err := controllers.Transform(&unstructured.Unstructured{Object: values})
		require.NoError(t, err)
		cache = append(cache, u)
		o, err := decode.Typed(u.(olmcore.Object))
		require.NoError(t, err)
		require.Equal(t, c.Spec.Icon, o.(*v1alpha1.ClusterServiceVersion).Spec.Icon)
		return o.(*v1alpha1.ClusterServiceVersion)
	}
	a := kept("a")
	runtime.GC()
	runtime.GC()
	b := kept("b")
	require.Same(t, unsafe.StringData(a.Spec.Icon[0].Data), unsafe.StringData(b.Spec.Icon[0].Data))
	require.Same(t, unsafe.StringData(a.Annotations["alm-examples"]), unsafe.StringData(b.Annotations["alm-examples"]))
	runtime.KeepAlive(cache)
}

// TestTransform is what caches do with each object.
func TestTransform(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{{Manager: "x"}}
	whole := copied(watching("operators", "mesh", ""), "bank")
	whole.Spec.DisplayName, whole.ManagedFields = "Mesh", managed
	m, err := olmcore.ToMap(whole)
	require.NoError(t, err)
	for name, o := range map[string]olmcore.Object{"typed": whole, "a map": &unstructured.Unstructured{Object: m}} {
		kept, err := controllers.Transform(o)
		require.NoError(t, err)
		slim, err := decode.Typed(kept.(olmcore.Object))
		require.NoError(t, err)
		require.Empty(t, slim.(*v1alpha1.ClusterServiceVersion).Spec.DisplayName, name)
		require.Empty(t, slim.GetManagedFields(), name)
		require.True(t, slim.(*v1alpha1.ClusterServiceVersion).IsCopied(), name)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: managed}}
	kept, err := controllers.Transform(pod)
	require.NoError(t, err)
	require.Same(t, pod, kept)
	require.Empty(t, pod.ManagedFields)
	kept, err = controllers.Transform("what was deleted unseen")
	require.NoError(t, err)
	require.Equal(t, "what was deleted unseen", kept)
}

// TestWhomAClusterRoleWakes: the operators that need some of what it grants, whose permissions then are looked at
// again.
func TestWhomAClusterRoleWakes(t *testing.T) {
	c := fake.NewCluster(noon)
	c.AutoCreateNamespaces = true
	for name, group := range map[string]string{"mesh": "", "store": "example.com", "none": ""} {
		v := watching("ops", name, "")
		if v.Spec.InstallStrategy.StrategyName = "deployment"; name != "none" {
			v.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{
				{ServiceAccountName: name, Rules: []rbacv1.PolicyRule{
					{Verbs: []string{"get"}, APIGroups: []string{group}, Resources: []string{"pods"}},
				}},
			}
		}
		require.NoError(t, c.Create(v))
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"example.com"}, Resources: []string{"*"}}},
	}
	keys, err := controllerOf(
		t,
		controllers.New(&controllers.Options{}),
		controllers.Permissions,
	).Changed(t.Context(), c, controller.Change{New: role})
	require.NoError(t, err)
	require.Equal(t, []types.NamespacedName{{Namespace: "ops", Name: "store"}}, keys)
}
