// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/olmcore"
)

// installed is a version as it is in a namespace, made anew each time; edited says what is special about it.
func installed(namespace string, edit func(*v1alpha1.ClusterServiceVersion)) *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a.v1"}}
	c.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	c.Annotations = map[string]string{"alm-examples": strings.Repeat("[]", 400), "olm.operatorNamespace": namespace}
	var rules []rbacv1.PolicyRule
	for i := range 10 {
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{fmt.Sprint("group", i)}, Resources: []string{"things"}, Verbs: []string{"get", "list"}})
	}
	strategy := &c.Spec.InstallStrategy.StrategySpec
	strategy.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "a", Rules: rules}}
	d := v1alpha1.StrategyDeploymentSpec{Name: "a"}
	for i := range 5 {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{
			Name: fmt.Sprint(i), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
		})
	}
	strategy.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{d}
	if edit != nil {
		edit(c)
	}
	return c
}

func keptBy(t testing.TB, p *Parts, o olmcore.Object) *v1alpha1.ClusterServiceVersion {
	p.Object(o)
	return o.(*v1alpha1.ClusterServiceVersion)
}

// TestEqualPartsAreKeptOnce: what objects have in common is the same memory, and each is what it was.
func TestEqualPartsAreKeptOnce(t *testing.T) {
	p := New()
	other := func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[4].Image = "other"
	}
	a, b, c := keptBy(t, p, installed("a", nil)), keptBy(t, p, installed("b", nil)), keptBy(t, p, installed("c", other))
	for _, o := range []*v1alpha1.ClusterServiceVersion{b, c} {
		require.Same(t, &a.Spec.InstallStrategy.StrategySpec.Permissions[0], &o.Spec.InstallStrategy.StrategySpec.Permissions[0])
	}
	require.Same(t, &a.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0], &b.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0])
	require.NotSame(t, &a.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0], &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0])
	require.Empty(t, cmp.Diff(installed("a", nil), a))
	require.Empty(t, cmp.Diff(installed("b", nil), b))
	require.Empty(t, cmp.Diff(installed("c", other), c))
	runtime.KeepAlive([]any{a, b, c})
}

// TestPartsThatDifferAreNeverShared: also where a hash does not tell them apart, and where they differ as little as an
// empty list from none.
func TestPartsThatDifferAreNeverShared(t *testing.T) {
	p := New()
	a := keptBy(t, p, installed("a", nil))
	empty := func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].ResourceNames = []string{}
	}
	later := func(c *v1alpha1.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.CreationTimestamp = metav1.Now().Rfc3339Copy()
	}
	for _, edit := range []func(*v1alpha1.ClusterServiceVersion){empty, later} {
		want := installed("b", edit)
		require.Empty(t, cmp.Diff(want, keptBy(t, p, want.DeepCopy())))
	}
	runtime.KeepAlive(a)
}

// TestPartsGoWithTheirObjects: nothing is kept that no object has.
func TestPartsGoWithTheirObjects(t *testing.T) {
	p := New()
	known := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.large)
	}
	a := keptBy(t, p, installed("a", nil))
	alone := known()
	require.Positive(t, alone)
	b := keptBy(t, p, installed("b", nil))
	runtime.KeepAlive(b)
	for range 1000 {
		if runtime.GC(); known() == alone {
			break
		}
		runtime.Gosched()
	}
	require.NotZero(t, known())
	require.Empty(t, cmp.Diff(installed("a", nil), a))
	a = nil
	for range 1000 {
		if runtime.GC(); known() == 0 {
			return
		}
		runtime.Gosched()
	}
	require.Zero(t, known())
}

// TestObjectsComeAtTheSameTime: informers transform side by side while others read.
func TestObjectsComeAtTheSameTime(t *testing.T) {
	p := New()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 20 {
				name := fmt.Sprint(i, n%3)
				edit := func(c *v1alpha1.ClusterServiceVersion) {
					c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Name = fmt.Sprint(n % 2)
				}
				if diff := cmp.Diff(installed(name, edit), keptBy(t, p, installed(name, edit))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	all.Wait()
}

// account is one of an operator, as it is in a namespace.
func account(namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "a-controller-manager", Labels: map[string]string{"olm.managed": "true", "app": "a-controller"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterServiceVersion", Name: "a.v1", BlockOwnerDeletion: new(false)}},
	}}
}

// TestSmallPartsAreKeptOnce: also those that no part of a considerable size has, however often garbage was collected
// since.
func TestSmallPartsAreKeptOnce(t *testing.T) {
	p := New()
	a, b := account("a"), account("b")
	p.Object(a)
	for range 3 {
		runtime.GC()
	}
	p.Object(b)
	require.Same(t, unsafe.StringData(a.Name), unsafe.StringData(b.Name))
	require.Equal(t, reflect.ValueOf(a.Labels).Pointer(), reflect.ValueOf(b.Labels).Pointer())
	require.Same(t, &a.OwnerReferences[0], &b.OwnerReferences[0])
	require.Empty(t, cmp.Diff(account("b"), b))
	runtime.KeepAlive(a)
}

// TestLongTextsAreKeptOnce: as long as an object has them, however often garbage was collected since; those of maps,
// too.
func TestLongTextsAreKeptOnce(t *testing.T) {
	p := New()
	described := func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Description = strings.Repeat("text", 1000) }
	a := keptBy(t, p, installed("a", described))
	for range 3 {
		runtime.GC()
	}
	b := keptBy(t, p, installed("b", described))
	require.Same(t, unsafe.StringData(a.Spec.Description), unsafe.StringData(b.Spec.Description))
	require.Same(t, unsafe.StringData(a.Annotations["alm-examples"]), unsafe.StringData(b.Annotations["alm-examples"]))
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"list": []any{strings.Repeat("text", 1000), "a short one"}}}}
	want := m.DeepCopy()
	p.Map(m)
	require.Equal(t, want, m)
	list, _, err := unstructured.NestedFieldNoCopy(m.Object, "spec", "list")
	require.NoError(t, err)
	require.Same(t, unsafe.StringData(a.Spec.Description), unsafe.StringData(list.([]any)[0].(string)))
	runtime.KeepAlive([]any{a, b})
}

// TestSmallPartsAreForgotten: of late are those of some thousand objects, and none that others looked for long ago.
func TestSmallPartsAreForgotten(t *testing.T) {
	p := New()
	a := account("a")
	p.Object(a)
	shared := func() bool {
		next := account("a")
		next.Name = strings.Clone(next.Name)
		p.Object(next)
		return unsafe.StringData(next.Name) == unsafe.StringData(a.Name)
	}
	require.True(t, shared())
	for i := range 2 * manyParts {
		p.Object(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("another-%06d", i), Labels: map[string]string{"name": fmt.Sprint(i)}}})
	}
	require.False(t, shared())
	p.Object(a)
	require.True(t, shared())
	p.Forget()
	require.False(t, shared())
	require.Empty(t, cmp.Diff(account("a"), a))
}
