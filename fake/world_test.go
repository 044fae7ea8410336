// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newCluster returns a cluster that creates namespaces as needed and notices whoever changes a shared object.
func newCluster(t testing.TB, nodes ...string) *fake.Cluster {
	t.Helper()
	c := fake.NewCluster(start)
	c.AutoCreateNamespaces = true
	c.Sharing().Watch()
	for _, name := range nodes {
		require.NoError(t, c.Node(name).Create(nil))
	}
	t.Cleanup(func() { require.NoError(t, c.Sharing().Verify()) })
	return c
}

func settle(t testing.TB, c *fake.Cluster) {
	t.Helper()
	require.NoError(t, c.Settle())
}

func configMap(name string, owners ...olmcore.Object) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	for _, owner := range owners {
		cm.OwnerReferences = append(cm.OwnerReferences, olmcore.OwnerReferenceTo(owner))
	}
	return cm
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/app:v1"}}},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/op:v1"}}},
			},
		},
	}
}

func crd(plural, kind string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
		},
	}
	for i, v := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	return d
}

var widgetGVK = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func widget(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"size": int64(1)},
		"status": map[string]any{"phase": "Fine"},
	}}
	u.SetGroupVersionKind(widgetGVK)
	u.SetNamespace("ns")
	u.SetName(name)
	return u
}

func refTo(o olmcore.Object) olmcore.Ref {
	r := olmcore.RefOf(o)
	r.UID, r.ResourceVersion = "", ""
	return r
}

// stored returns the stored version of an object; the test fails without one.
func stored[T olmcore.Object](t testing.TB, c *fake.Cluster, o T) T {
	t.Helper()
	found, err := c.Get(t.Context(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
	require.NoError(t, err)
	return found.(T)
}

func exists(c *fake.Cluster, o olmcore.Object) bool {
	s, err := c.Snapshot()
	return err == nil && s.Find(olmcore.GVKOf(o).GroupKind(), o.GetNamespace(), o.GetName()) != nil
}

// dump is everything that can be seen of a cluster.
func dump(t testing.TB, c *fake.Cluster) string {
	t.Helper()
	var all []map[string]any
	for _, o := range c.Objects() {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		all = append(all, m)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	require.NoError(t, err)
	return string(text)
}

func selectorOf(set map[string]string) labels.Selector {
	if set == nil {
		return nil
	}
	return labels.SelectorFromSet(set)
}

func options(policy metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{PropagationPolicy: &policy}
}

func grace(seconds int64) metav1.DeleteOptions {
	return metav1.DeleteOptions{GracePeriodSeconds: &seconds}
}
