// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// documents reads the objects of a file of testdata.
func documents(t testing.TB, name string) (objects []olmcore.Object) {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		o, err := decode.Decode(data)
		require.NoError(t, err, document)
		objects = append(objects, o)
	}
	return objects
}

// both does an action in both worlds, each with its own UIDs and versions, and requires the same code.
type both struct {
	t    *testing.T
	fake *fake.Cluster
	real *realWorld
}

func newBoth(t *testing.T) both {
	b := both{t: t, fake: fake.NewCluster(time.Now()), real: newRealWorld(t)}
	for _, w := range []world{&fakeWorld{t: t, Cluster: b.fake}, b.real} {
		namespaces(t, w, "ns", "gone")
	}
	return b
}

// do returns the code of both answers, 0 for success. The action is made for each world from the object that it has.
func (b both) do(what string, action func(r olmcore.Reader) olmcore.Action) int32 {
	code := func(w interface {
		olmcore.Reader
		olmcore.Executor
	}) (int32, error) {
		err := w.Do(b.t.Context(), action(w))
		if status, ok := err.(apierrors.APIStatus); ok {
			return status.Status().Code, err
		}
		require.NoError(b.t, err, what)
		return 0, nil
	}
	have, haveErr := code(b.fake)
	want, wantErr := code(b.real)
	if have != want {
		b.t.Errorf("%s: the fake says %d %v, Kubernetes %d %v", what, have, haveErr, want, wantErr)
	}
	return want
}

func (b both) create(o olmcore.Object) int32 {
	return b.do("create "+olmcore.KeyOf(o).String(), func(olmcore.Reader) olmcore.Action {
		return olmcore.CreateOf(o.DeepCopyObject().(olmcore.Object), asUser)
	})
}

// same requires that both worlds store the same.
func (b both) same(what string, o olmcore.Object) {
	text := func(r olmcore.Reader) string {
		got, err := r.Get(b.t.Context(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
		if apierrors.IsNotFound(err) {
			return "gone"
		}
		require.NoError(b.t, err)
		m := answered(b.t, got)
		if olmcore.KeyOf(o).Kind != "Namespace" {
			delete(m, "status") // other controllers write it
		}
		metadata := m["metadata"].(map[string]any)
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "deployment.kubernetes.io/revision")
			if len(annotations) == 0 {
				delete(metadata, "annotations")
			}
		}
		data, err := yaml.Marshal(m)
		require.NoError(b.t, err)
		return string(data)
	}
	diff := gocmp.Diff(text(b.fake), text(b.real))
	for deadline := time.Now().Add(patient); diff != "" && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		diff = gocmp.Diff(text(b.fake), text(b.real))
	}
	if diff != "" {
		b.t.Errorf("%s %s: what the fake stores (-) and what Kubernetes does (+) differ:\n%s", what, olmcore.KeyOf(o), diff)
	}
}

// patient is how long the controllers of Kubernetes may take to do what those of the fake have done.
const patient = 10 * time.Second

// What is created with little in it is stored with the same in it, and stays as it is when the little is written again.
func TestTheFakeStoresWhatKubernetesStores(t *testing.T) {
	b := newBoth(t)
	for _, o := range documents(t, "stored.yaml") {
		require.Zero(t, b.create(o), olmcore.KeyOf(o))
		b.same("create", o)
		b.do("write again "+olmcore.KeyOf(o).String(), func(r olmcore.Reader) olmcore.Action {
			before, err := r.Get(t.Context(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
			require.NoError(t, err)
			return merge(t, before, sparse(t, o))
		})
		b.same("write again", o)
	}
}

// sparse is what a person would apply: no metadata, no status.
func sparse(t testing.TB, o olmcore.Object) map[string]any {
	m, err := olmcore.ToMap(o)
	require.NoError(t, err)
	for _, field := range []string{"metadata", "status", "stringData"} {
		delete(m, field)
	}
	return m
}

// merge is an Update by a merge patch, without preconditions.
func merge(t testing.TB, before olmcore.Object, patch map[string]any) olmcore.Action {
	data, err := json.Marshal(patch)
	require.NoError(t, err)
	a, err := decode.Action(olmcore.Record{Verb: olmcore.VerbUpdate, Target: olmcore.RefOf(before).Unversioned(), Patch: data}, before)
	require.NoError(t, err)
	return a
}

// What the API server refuses, the fake refuses, with the same code.
func TestTheFakeRefusesWhatKubernetesRefuses(t *testing.T) {
	b := newBoth(t)
	for _, o := range documents(t, "refused.yaml") {
		require.NotZero(t, b.create(o), "%s is not refused", o.GetAnnotations()["because"])
	}
	for _, o := range documents(t, "changed.yaml") {
		change := o.GetAnnotations()["change"]
		o.SetAnnotations(map[string]string{"of": "changed.yaml"})
		require.Zero(t, b.create(o), olmcore.KeyOf(o))
		var patch map[string]any
		require.NoError(t, json.Unmarshal([]byte(change), &patch))
		code := b.do("change "+olmcore.KeyOf(o).String()+" "+change, func(r olmcore.Reader) olmcore.Action {
			before, err := r.Get(t.Context(), olmcore.GVKOf(o), o.GetNamespace(), o.GetName())
			require.NoError(t, err)
			return merge(t, before, patch)
		})
		require.NotZero(t, code, change)
		b.same("refused", o)
	}
}

// Preconditions, finalizers and deletions.
func TestTheFakeDeletesAsKubernetesDoes(t *testing.T) {
	b := newBoth(t)
	held := func(name string, finalizers ...string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Finalizers: finalizers}}
	}
	of := func(name string, change func(r olmcore.Reader, o *corev1.ConfigMap) olmcore.Action) func(olmcore.Reader) olmcore.Action {
		return func(r olmcore.Reader) olmcore.Action {
			o, err := olmcore.Get[*corev1.ConfigMap](t.Context(), r, "ns", name)
			require.NoError(t, err)
			require.NotNil(t, o)
			return change(r, o)
		}
	}
	const other = types.UID("00000000-0000-0000-0000-000000000000")
	edited := func(change func(o *corev1.ConfigMap)) func(olmcore.Reader, *corev1.ConfigMap) olmcore.Action {
		return func(_ olmcore.Reader, o *corev1.ConfigMap) olmcore.Action {
			after := o.DeepCopy()
			change(after)
			return olmcore.UpdateOf(o, after, asUser)
		}
	}
	deleted := func(change func(*olmcore.Delete)) func(olmcore.Reader, *corev1.ConfigMap) olmcore.Action {
		return func(_ olmcore.Reader, o *corev1.ConfigMap) olmcore.Action {
			a := olmcore.DeleteOf(o, asUser)
			change(&a)
			return a
		}
	}
	plainly := deleted(func(*olmcore.Delete) {})
	for _, step := range []struct {
		what string
		on   string
		do   func(olmcore.Reader, *corev1.ConfigMap) olmcore.Action
	}{
		{"delete another incarnation", "held", deleted(func(a *olmcore.Delete) { a.Target.UID = other })},
		{"delete another version", "held", deleted(func(a *olmcore.Delete) { a.Target.ResourceVersion = "1" })},
		{"change another version", "held", func(_ olmcore.Reader, o *corev1.ConfigMap) olmcore.Action {
			stale := o.DeepCopy()
			stale.ResourceVersion = "1"
			after := stale.DeepCopy()
			after.Data = map[string]string{"a": "b"}
			return olmcore.UpdateOf(stale, after, asUser)
		}},
		{"change another incarnation", "held", func(_ olmcore.Reader, o *corev1.ConfigMap) olmcore.Action {
			stale := o.DeepCopy()
			stale.UID, stale.ResourceVersion = other, ""
			after := stale.DeepCopy()
			after.Data = map[string]string{"a": "b"}
			return olmcore.UpdateOf(stale, after, asUser)
		}},
		{"change nothing", "held", edited(func(*corev1.ConfigMap) {})},
		{"delete what is held", "held", plainly},
		{"delete it again", "held", plainly},
		{"change what is being deleted", "held", edited(func(o *corev1.ConfigMap) { o.Data = map[string]string{"c": "d"} })},
		{"add a finalizer to what is being deleted", "held", edited(func(o *corev1.ConfigMap) { o.Finalizers = append(o.Finalizers, "example.com/new") })},
		{"take its finalizer", "held", edited(func(o *corev1.ConfigMap) { o.Finalizers = nil })},
		{"orphan", "orphan", deleted(func(a *olmcore.Delete) { a.PropagationPolicy = metav1.DeletePropagationOrphan })},
		{"delete in the foreground", "foreground", deleted(func(a *olmcore.Delete) { a.PropagationPolicy = metav1.DeletePropagationForeground })},
		{"delete in the background", "background", deleted(func(a *olmcore.Delete) { a.PropagationPolicy = metav1.DeletePropagationBackground })},
		{"a finalizer without a domain", "named", edited(func(o *corev1.ConfigMap) { o.Finalizers = []string{"mine"} })},
		{"a label that is none", "named", edited(func(o *corev1.ConfigMap) { o.Labels = map[string]string{"-": "x"} })},
		{"an owner without a UID", "named", edited(func(o *corev1.ConfigMap) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x"}}
		})},
		{"two controllers", "named", edited(func(o *corev1.ConfigMap) {
			o.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "1", Controller: new(true)}, {APIVersion: "v1", Kind: "ConfigMap", Name: "y", UID: "2", Controller: new(true)}}
		})},
	} {
		o := held(step.on, map[bool]string{true: "example.com/hold"}[step.on == "held" || step.on == "orphan"])
		if step.on != "held" && step.on != "orphan" {
			o.Finalizers = nil
		}
		if found, err := olmcore.Get[*corev1.ConfigMap](t.Context(), b.real, "ns", step.on); err == nil && found == nil {
			b.create(o)
		}
		b.do(step.what, of(step.on, step.do))
		require.NoError(t, b.fake.Settle())
		b.same(step.what, o)
	}
}
