// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/olmcore"
)

// listing is a Reader that records which kinds were listed.
type listing struct {
	olmcore.Reader
	kinds []string
}

func (l *listing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	l.kinds = append(l.kinds, gvk.Kind)
	return l.Reader.List(ctx, gvk, namespace, selector)
}

// priority returns an object of a kind that is never watched.
func priority(name, owner string) olmcore.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"})
	m := orphan(name, olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: owner})
	u.SetName(name)
	u.SetUID(m.UID)
	u.SetResourceVersion("1")
	u.SetLabels(m.Labels)
	u.SetCreationTimestamp(m.CreationTimestamp)
	return u
}

// TestRestSkipsKindsThatAreNeverWatched checks that Gather reads the kinds that are never watched only after a change
// of owners, or after an hour.
func TestRestSkipsKindsThatAreNeverWatched(t *testing.T) {
	version := func(name, resourceVersion string) olmcore.Object {
		return &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "cool", ResourceVersion: resourceVersion}}
	}
	done := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", ResourceVersion: "1"}}
	done.Status.Phase = v1alpha1.InstallPlanPhaseComplete
	role := &rbacv1.ClusterRole{ObjectMeta: orphan("role", olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "lost.v1"})}
	rests := []olmcore.Object{version("cool.v1", "1"), priority("fast", "cool.v1")}
	type call struct {
		at       time.Duration
		objects  []olmcore.Object
		reads    bool
		reported int
	}
	for name, calls := range map[string][]call{
		"nothing changes": {
			{0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {20 * time.Minute, rests, false, 0},
			{69 * time.Minute, rests, false, 0},
		},
		"nothing changes for an hour": {
			{0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {70 * time.Minute, rests, false, 0}, {71 * time.Minute, rests, true, 0},
			{
				72 * time.Minute, rests, false, 0}, {130 * time.Minute, rests, false, 0}, {132 * time.Minute, rests, false,
				0}, {133 * time.Minute, rests, true, 0},
		},
		"an orphan after hours": {
			{
				0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {5 * time.Hour,
				append(slices.Clone(rests), priority("late", "lost.v1")), false, 0,
			},
			{6 * time.Hour, append(slices.Clone(rests), priority("late", "lost.v1")), true, 1},
		},
		"frequent calls": {
			{0, rests, true, 0}, {time.Minute, rests, true, 0}, {9 * time.Minute, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {11 * time.Minute, rests, false, 0},
		},
		"a CSV changes": {
			{0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {20 * time.Minute, []olmcore.Object{version("cool.v1", "2")}, true, 0}, {29 * time.Minute, []olmcore.Object{version("cool.v1", "2")}, true, 0},
		},
		"its owner is deleted": {
			{0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {20 * time.Minute, rests[1:], true, 1}, {30 * time.Minute, rests[1:], true, 1},
		},
		"an InstallPlan is created": {
			{0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {20 * time.Minute, append(slices.Clone(rests), done), true, 0},
		},
		"an orphan is created late": {
			{0, rests, true, 0}, {10 * time.Minute, append(slices.Clone(rests), priority("late", "lost.v1")), true, 1}, {20 * time.Minute, rests, true, 0}, {30 * time.Minute, rests, true, 0}, {40 * time.Minute, rests, false, 0},
		},
		"an orphan of a watched kind": {
			{0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {20 * time.Minute, append(slices.Clone(rests), role), false, 1}, {30 * time.Minute, rests, false, 0},
		},
		"the clock is set back": {
			{time.Hour, rests, true, 0}, {0, rests, true, 0}, {10 * time.Minute, rests, true, 0}, {20 * time.Minute, rests, false, 0},
		},
		"an object has no resourceVersion": {
			{0, []olmcore.Object{version("cool.v1", "")}, true, 0}, {10 * time.Minute, []olmcore.Object{version("cool.v1", "")}, true, 0}, {20 * time.Minute, []olmcore.Object{version("cool.v1", "")}, true, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var rest *sweep.Rest
			for i, l := range calls {
				snapshot, err := olmcore.NewSnapshot(l.objects, olmcore.Everything)
				require.NoError(t, err)
				r := &listing{Reader: snapshot}
				in, err := sweep.Gather(t.Context(), r, cleanup.Config{}, rest)
				require.NoError(t, err)
				in.Now = now.Add(l.at)
				out := reconciled(t, in)
				require.Equal(t, l.reads, slices.Contains(r.kinds, "PriorityClass"), "call %d", i)
				require.Equal(t, l.reads, slices.Contains(r.kinds, "ConsoleLink"), "call %d", i)
				require.Contains(t, r.kinds, "ClusterRole")
				require.Len(t, out.Diagnostics, l.reported, "call %d", i)
				rest = rest.After(in, out)
			}
		})
	}
}
