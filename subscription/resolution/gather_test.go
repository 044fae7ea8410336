// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name), ResourceVersion: "1"}
}

func catalogSource(namespace, name string, priority int) *v1alpha1.CatalogSource {
	return &v1alpha1.CatalogSource{ObjectMeta: at(namespace, name), Spec: v1alpha1.CatalogSourceSpec{Priority: priority}}
}

// awaiting is a Subscription whose plan of the same name is to bring current.
func awaiting(name, installed, current string) *v1alpha1.Subscription {
	s := subscription("ns", name, name, "", "global/shared")
	s.Status.InstalledCSV, s.Status.CurrentCSV = installed, current
	s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: "ns", Name: name}
	return s
}

func plan(name string, phase v1alpha1.InstallPlanPhase) *v1alpha1.InstallPlan {
	return &v1alpha1.InstallPlan{ObjectMeta: at("ns", name), Status: v1alpha1.InstallPlanStatus{Phase: phase}}
}

func gatherable() []olmcore.Object {
	deleted := plan("deleted", v1alpha1.InstallPlanPhaseInstalling)
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Unix(1, 0)), []string{"olmcore/plan"}
	without := awaiting("without", "", "without1")
	without.Status.InstallPlanRef = nil
	return []olmcore.Object{
		&operatorsv1.OperatorGroup{ObjectMeta: at("ns", "group")}, &operatorsv1.OperatorGroup{ObjectMeta: at("other", "group")},
		&v1alpha1.ClusterServiceVersion{ObjectMeta: at("ns", "a1")}, &v1alpha1.ClusterServiceVersion{ObjectMeta: at("other", "b1")},
		awaiting("approval", "", "approval1"), plan("approval", v1alpha1.InstallPlanPhaseRequiresApproval),
		awaiting("upgrade", "upgrade1", "upgrade2"), plan("upgrade", v1alpha1.InstallPlanPhaseInstalling),
		awaiting("young", "", "young1"), plan("young", v1alpha1.InstallPlanPhaseNone),
		awaiting("failed", "", "failed1"), plan("failed", v1alpha1.InstallPlanPhaseFailed),
		awaiting("deleted", "", "deleted1"), deleted,
		awaiting("done", "done1", "done1"), plan("done", v1alpha1.InstallPlanPhaseComplete),
		awaiting("gone", "", "gone1"), awaiting("blank", "", ""), without,
		catalogSource("ns", "own", 3), catalogSource("ns", "unread", 0), catalogSource("global", "shared", -2), catalogSource("other", "foreign", 9),
	}
}

func gather(t *testing.T, global string, content map[types.NamespacedName]*resolution.Catalog) resolution.Input {
	t.Helper()
	snapshot, err := olmcore.NewSnapshot(gatherable(), olmcore.Everything)
	require.NoError(t, err)
	in, err := resolution.Gather(context.Background(), snapshot, "ns", global, content)
	require.NoError(t, err)
	return in
}

func TestGatherReadsEveryKindThatResolveUses(t *testing.T) {
	built, _ := content(chain()...)
	in := gather(t, "global", map[types.NamespacedName]*resolution.Catalog{
		{Namespace: "ns", Name: "own"}: built, {Namespace: "global", Name: "shared"}: built,
		{Namespace: "global", Name: "deleted"}: built, // its CatalogSource is gone: it is not chosen from
	})
	require.Equal(t, "ns", in.Namespace)
	require.Equal(t, "global", in.GlobalCatalogNamespace)
	require.Len(t, in.OperatorGroups, 1)
	require.Equal(t, "ns", in.OperatorGroups[0].Namespace)
	require.Len(t, in.CSVs, 1)
	require.Equal(t, "a1", in.CSVs[0].Name)
	require.Len(t, in.Subscriptions, 9)

	var catalogs []string
	for _, c := range in.Catalogs {
		catalogs = append(catalogs, fmt.Sprintf("%s priority %d available %v stale %v: %s", c.Key, c.Priority, c.Content != nil, c.Stale, c.Problem))
	}
	slices.Sort(catalogs)
	require.Equal(t, []string{
		"global/shared priority -2 available true stale false: ",
		"ns/own priority 3 available true stale false: ",
		"ns/unread priority 0 available false stale false: its content was not read",
	}, catalogs)

	want := map[string]string{"approval": "approval1", "upgrade": "upgrade2", "young": "young1"}
	if diff := cmp.Diff(want, in.InFlight); diff != "" {
		t.Errorf("in flight are those whose plan may still bring them (-want +got):\n%s", diff)
	}
}

func TestGatherListsTheGlobalNamespaceOnce(t *testing.T) {
	require.Len(t, gather(t, "ns", nil).Catalogs, 2)
	require.Len(t, gather(t, "", nil).Catalogs, 2)
	for _, c := range gather(t, "", nil).Catalogs {
		require.Equal(t, "ns", c.Key.Namespace)
	}
}

// TestGatheredInputResolves takes a gathered input to its answer: the plan on its way keeps its bundle although the
// catalog has moved on, and the catalog that was not read holds up no Subscription that does not need it.
func TestGatheredInputResolves(t *testing.T) {
	built, _ := content(line("a/s", "a1", ""), line("a/s", "a2", "a1"))
	group := &operatorsv1.OperatorGroup{ObjectMeta: at("ns", "group")}
	s := awaiting("a", "", "a1")
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{group, s, plan("a", v1alpha1.InstallPlanPhaseInstalling), catalogSource("global", "shared", 0), catalogSource("global", "unread", 0)}, olmcore.Everything)
	require.NoError(t, err)
	in, err := resolution.Gather(context.Background(), snapshot, "ns", "global", map[types.NamespacedName]*resolution.Catalog{{Namespace: "global", Name: "shared"}: built})
	require.NoError(t, err)
	require.Equal(t, "Resolved\ninstall a1 from global/shared a/s for a\na: nothing -> a1\nCatalogUnavailable unread\nMissingCSV a", describe(resolution.Resolve(in)))
}

// failingReader fails to read one kind, in one namespace if that is set.
type failingReader struct {
	olmcore.Reader
	kind, namespace string
}

var errUnreadable = errors.New("cannot be read")

func (r failingReader) fails(kind, namespace string) bool {
	return kind == r.kind && (r.namespace == "" || r.namespace == namespace)
}

func (r failingReader) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if r.fails(gvk.Kind, namespace) {
		return nil, errUnreadable
	}
	return r.Reader.Get(ctx, gvk, namespace, name)
}

func (r failingReader) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if r.fails(gvk.Kind, namespace) {
		return nil, errUnreadable
	}
	return r.Reader.List(ctx, gvk, namespace, selector)
}

func TestGatherReturnsTheErrorOfAFailedRead(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(gatherable(), olmcore.Everything)
	require.NoError(t, err)
	for _, fails := range []failingReader{
		{snapshot, "OperatorGroup", ""}, {snapshot, "Subscription", ""}, {snapshot, "ClusterServiceVersion", ""},
		{snapshot, "InstallPlan", ""}, {snapshot, "CatalogSource", "ns"}, {snapshot, "CatalogSource", "global"},
	} {
		in, err := resolution.Gather(context.Background(), fails, "ns", "global", nil)
		require.ErrorIs(t, err, errUnreadable, fails.kind)
		require.ErrorContains(t, err, fails.kind)
		require.Zero(t, in, fails.kind)
	}
}
