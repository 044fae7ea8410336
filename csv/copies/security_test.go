// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/olmcore"
)

// TestACopyWithAConflictIsDeletedLast checks that a copy whose deletion failed with a Conflict is deleted after all
// others. A Conflict stops the run, and a tenant can change the copy in his namespace at any time.
func TestACopyWithAConflictIsDeletedLast(t *testing.T) {
	in := world("a", "b")
	in.Sources = olmcore.Found[*version]()
	namespaces := func(in copies.Input) (all []string) {
		for _, a := range reconciled(t, in).Actions {
			_, target, _ := a.Describe()
			all = append(all, target.Namespace)
		}
		return all
	}
	before := namespaces(in)
	require.Greater(t, len(before), 1)
	_, first, _ := reconciled(t, in).Actions[0].Describe()
	in.LastRun = olmcore.LastResults{first.Key(): {Class: olmcore.Conflict, Count: 1, First: now, Last: now}}
	require.Equal(t, append(before[1:], before[0]), namespaces(in))
}

// TestForgedCopiesAffectNoOtherObject checks that a ClusterServiceVersion with labels, annotations, status and owners
// that a tenant chose leads to no write of another object, whatever key is reconciled.
func TestForgedCopiesAffectNoOtherObject(t *testing.T) {
	w := world("a", "b")
	objects := []olmcore.Object{w.Sources.Items[0], w.OperatorGroups.Items[0]}
	for _, n := range w.Namespaces.Items {
		objects = append(objects, n)
	}
	for _, c := range w.Copies.Items {
		objects = append(objects, c)
	}
	keys := func(o olmcore.Object) []types.NamespacedName {
		return append(copies.Affected(o), key, types.NamespacedName{Namespace: "a", Name: "cool.v1"}, types.NamespacedName{Namespace: "c", Name: o.GetName()})
	}
	written := func(objects []olmcore.Object, keys []types.NamespacedName) map[string]bool {
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		targets := map[string]bool{}
		for _, key := range keys {
			in, err := copies.Gather(t.Context(), snapshot, key, copies.Config{})
			require.NoError(t, err)
			in.Now = now
			for _, a := range reconciled(t, in).Actions {
				_, target, _ := a.Describe()
				targets[target.Key().String()] = true
			}
		}
		return targets
	}
	forged := func(change func(*version)) *version {
		c := copyOf(source(""), "c")
		change(c)
		return c
	}
	for name, tt := range map[string]struct {
		object *version
		goes   bool
	}{
		"a copy that should not exist": {forged(func(*version) {}), true},
		"a copy of no original":        {forged(func(c *version) { c.Name = "none.v1" }), true},
		"a copy of a copy": {
			forged(func(c *version) { c.Labels["olm.copiedFrom"], c.Annotations["olm.operatorNamespace"] = "a", "a" }), true,
		},
		"label and annotation differ": {forged(func(c *version) { c.Annotations["olm.operatorNamespace"] = "b" }), true},
		"without the label":           {forged(func(c *version) { c.Labels = nil }), true},
		"without the annotation":      {forged(func(c *version) { c.Annotations = nil }), true},
		"it names its own namespace": {
			forged(func(c *version) { c.Labels["olm.copiedFrom"], c.Annotations["olm.operatorNamespace"] = "c", "c" }), true,
		},
		"only its status marks it": {forged(func(c *version) { c.Labels, c.Annotations = nil, nil }), false},
		"it claims to be slim": {
			forged(func(c *version) { c.Annotations["$copyhash-spec"], c.Annotations["$copy-keys"] = "x", "[" }), true,
		},
		"it has the UID of the original": {forged(func(c *version) { c.UID = w.Sources.Items[0].UID; c.OwnerReferences = nil }), true},
		"an original that claims all targets": {forged(func(c *version) {
			c.Labels, c.Status.Reason = nil, ""
			c.Annotations = map[string]string{"olm.operatorNamespace": "c", "olm.operatorGroup": "group", "olm.targetNamespaces": ""}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := written(append(objects[:len(objects):len(objects)], tt.object), keys(tt.object))
			require.Empty(t, written(objects, keys(tt.object)), "without it")
			want := map[string]bool{}
			if tt.goes {
				want[olmcore.KeyOf(tt.object).String()] = true
			}
			require.Equal(t, want, got)
		})
	}
}

// unfitting is a Reader that returns an UnfitError for objects of one namespace.
type unfitting struct {
	olmcore.Reader
	namespace string
}

func (r unfitting) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	o, err := r.Reader.Get(ctx, gvk, namespace, name)
	if err == nil && namespace == r.namespace {
		return nil, &olmcore.UnfitError{Object: o, Err: errors.New("spec.version is no version")}
	}
	return o, err
}

// TestAnUnfitCopyDoesNotBlockOtherCopies checks that a ClusterServiceVersion that does not fit its type, and that has
// the name of a copy in a tenant's namespace, does not stop the copies of other namespaces.
func TestAnUnfitCopyDoesNotBlockOtherCopies(t *testing.T) {
	for _, targets := range []string{"", "a,b"} {
		w := world("a", "b")
		c := source(targets)
		objects := []olmcore.Object{c, groupOf(strings.Split(targets, ",")...), copyOf(c, "a")}
		for _, n := range w.Namespaces.Items {
			objects = append(objects, n)
		}
		snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
		require.NoError(t, err)
		in, err := copies.Gather(t.Context(), unfitting{snapshot, "a"}, key, copies.Config{})
		require.NoError(t, err, targets)
		in.Now = now
		var made []string
		for _, a := range reconciled(t, in).Actions {
			_, target, _ := a.Describe()
			made = append(made, target.Namespace)
		}
		require.Contains(t, made, "b", targets)
		require.NotContains(t, made, "a", "the fields that fit are the same as in the desired copy")
	}
}
