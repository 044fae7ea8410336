// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var now, ago, namespace = csvtest.Now, csvtest.Ago, csvtest.Namespace

// cluster returns an Input whose lists were all read. It contains a ClusterServiceVersion, an OperatorGroup and a
// Namespace.
func cluster() sweep.Input {
	return sweep.Input{
		Now: now, Config: cleanup.Config{SweepDelete: true},
		ClusterServiceVersions: olmcore.Found(&v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "cool", ResourceVersion: "1"}}),
		OperatorGroups:         olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group", UID: "group", ResourceVersion: "1"}}),
		InstallPlans:           olmcore.Found[*v1alpha1.InstallPlan](), Namespaces: olmcore.Found(namespace("ns", nil)), Objects: olmcore.Found[olmcore.Object](),
	}
}

func orphan(name string, owner olmcore.Owner) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: owner.Labels(), CreationTimestamp: *ago(time.Hour)}
}

var cool = olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v1"}

// reconcile calls sweep.Reconcile and returns only the Result.
func reconcile(in sweep.Input) (olmcore.Result, error) {
	out, err := sweep.Reconcile(in)
	return out.Result, err
}

// reconciled calls sweep.Reconcile with a valid Input.
func reconciled(t require.TestingT, in sweep.Input) olmcore.Outcome {
	out, err := sweep.Reconcile(in)
	require.NoError(t, err)
	return out
}

func TestReconcileFindsOrphans(t *testing.T) {
	lost := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "lost.v1"}
	role := func(change func(m *metav1.ObjectMeta)) func(in *sweep.Input) {
		return func(in *sweep.Input) {
			m := orphan("role", lost)
			change(&m)
			in.Objects.Items = append(in.Objects.Items, &rbacv1.ClusterRole{ObjectMeta: m})
		}
	}
	plan := func(phase v1alpha1.InstallPlanPhase) func(in *sweep.Input) {
		return func(in *sweep.Input) {
			role(func(*metav1.ObjectMeta) {})(in)
			p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			p.Spec.ClusterServiceVersionNames, p.Status.Phase = []string{"lost.v1"}, phase
			in.InstallPlans.Items = append(in.InstallPlans.Items, p)
		}
	}
	for name, c := range map[string]struct {
		change  func(in *sweep.Input)
		want    []string
		requeue time.Duration
	}{
		"no orphans":       {func(*sweep.Input) {}, nil, 0},
		"an orphan":        {role(func(*metav1.ObjectMeta) {}), []string{"delete ClusterRole role"}, 0},
		"its owner exists": {role(func(m *metav1.ObjectMeta) { m.Labels["olm.owner"] = "cool.v1" }), nil, 0},
		"a copy is no owner": {role(func(m *metav1.ObjectMeta) {
			m.Labels["olm.owner"], m.Labels["olm.owner.namespace"] = "cool.v1", "copies"
		}), []string{"delete ClusterRole role"}, 0},
		"it is too young":     {role(func(m *metav1.ObjectMeta) { m.CreationTimestamp = *ago(9 * time.Minute) }), nil, time.Minute},
		"it is being deleted": {role(func(m *metav1.ObjectMeta) { m.DeletionTimestamp = ago(0) }), nil, 0},
		"it has another owner": {role(func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "CustomResourceDefinition", Name: "x"}}
		}), nil, 0},
		"the label of another kind of owner": {
			role(func(m *metav1.ObjectMeta) { m.Labels["olm.owner.kind"] = "Subscription" }), nil, 0,
		},
		"an install plan is about to create its owner": {plan(v1alpha1.InstallPlanPhaseInstalling), nil, 0},
		"the install plan is Complete":                 {plan(v1alpha1.InstallPlanPhaseComplete), []string{"delete ClusterRole role"}, 0},
		"an orphan of a group": {role(func(m *metav1.ObjectMeta) {
			m.Labels["olm.owner.kind"], m.Labels["olm.owner"] = "OperatorGroup", "lost"
		}), []string{"delete ClusterRole role"}, 0},
		"the group exists": {role(func(m *metav1.ObjectMeta) {
			m.Labels["olm.owner.kind"], m.Labels["olm.owner"] = "OperatorGroup", "group"
		}), nil, 0},
		"a CRD is never swept": {func(in *sweep.Input) {
			in.Objects.Items = append(in.Objects.Items, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: orphan("crd", lost)})
		}, nil, 0},
		"a binding in kube-system": {func(in *sweep.Input) {
			m := orphan("reader", lost)
			m.Namespace = "kube-system"
			in.Objects.Items = append(in.Objects.Items, &rbacv1.RoleBinding{ObjectMeta: m})
		}, []string{"delete RoleBinding reader"}, 0},
		"the label of a deleted group": {func(in *sweep.Input) {
			in.Namespaces.Items[0].ResourceVersion = "1"
			in.Namespaces.Items[0].Labels = map[string]string{"olm.operatorgroup.uid/gone": "", "olm.operatorgroup.uid/group": "", "x": ""}
		}, []string{"update Namespace ns"}, 0},
		"the CSVs were not read": {func(in *sweep.Input) {
			role(func(*metav1.ObjectMeta) {})(in)
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		}, nil, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := cluster()
			copied := in.ClusterServiceVersions.Items[0].DeepCopy()
			copied.Namespace, copied.Status.Reason = "copies", "Copied"
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, copied)
			c.change(&in)
			require.NoError(t, invariant.Laws(reconcile, in))
			res := reconciled(t, in).Result
			require.Equal(t, c.want, csvtest.Writes(res.Actions))
			require.Equal(t, c.requeue, res.RequeueAfter)
			in.Config.SweepDelete = false
			reported := reconciled(t, in).Result
			require.Empty(t, reported.Actions, "without SweepDelete it only reports")
			require.Equal(t, res.Diagnostics, reported.Diagnostics)
		})
	}
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, in := range map[string]sweep.Input{
		"Now":                           {},
		"Config.Cleanup.OperandTimeout": {Now: now, Config: cleanup.Config{OperandTimeout: -1}},
		"ClusterServiceVersions[0]":     {Now: now, ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](nil)},
		"OperatorGroups[0]":             {Now: now, OperatorGroups: olmcore.Found[*operatorsv1.OperatorGroup](nil)},
		"InstallPlans[0]":               {Now: now, InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](nil)},
		"Namespaces[0]":                 {Now: now, Namespaces: olmcore.Found[*corev1.Namespace](nil)},
		"Objects[0]":                    {Now: now, Objects: olmcore.Found[olmcore.Object](nil)},
	} {
		_, err := reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

// TestAPIServicesWithoutOwnerAreDeleted checks OLM's case of an APIService whose ClusterServiceVersion or namespace
// does not exist.
func TestAPIServicesWithoutOwnerAreDeleted(t *testing.T) {
	in := cluster()
	for name, owner := range map[string]olmcore.Owner{
		"v1.live": {
			Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v1"}, "v1.no-version": {Kind: "ClusterServiceVersion", Namespace: "ns", Name: "gone.v1"},
		"v1.no-namespace": {Kind: "ClusterServiceVersion", Namespace: "gone", Name: "cool.v1"},
	} {
		in.Objects.Items = append(in.Objects.Items, &apiregistrationv1.APIService{ObjectMeta: orphan(name, owner)})
	}
	in.Objects.Items = append(in.Objects.Items, &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.unowned", UID: "x", CreationTimestamp: *ago(time.Hour)}})
	res := reconciled(t, in).Result
	require.Equal(t, []string{"delete APIService v1.no-namespace", "delete APIService v1.no-version"}, csvtest.Writes(res.Actions))
}

func TestOrphansAreSortedByName(t *testing.T) {
	mark := map[string]string{"olm.operatorgroup.uid/gone": ""}
	in := cluster()
	in.ClusterServiceVersions.Items = nil
	in.Namespaces.Items = []*corev1.Namespace{namespace("b", mark), namespace("a", mark)}
	in.Objects.Items = []olmcore.Object{&rbacv1.ClusterRole{ObjectMeta: orphan("b", cool)}, &rbacv1.ClusterRole{ObjectMeta: orphan("a", cool)}}
	want := reconciled(t, in).Result
	require.Len(t, want.Actions, 4)
	slices.Reverse(in.Namespaces.Items)
	slices.Reverse(in.Objects.Items)
	got := reconciled(t, in).Result
	require.Equal(t, want, got)
}

func TestCheckpointHoldsWithoutOrphans(t *testing.T) {
	in := cluster()
	young := orphan("young", olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "coming.v1"})
	young.CreationTimestamp = *ago(time.Minute)
	for _, objects := range [][]olmcore.Object{{&rbacv1.ClusterRole{ObjectMeta: orphan("role", cool)}}, {&rbacv1.ClusterRole{ObjectMeta: young}}} {
		in.Objects = olmcore.Found(objects...)
		require.NoError(t, invariant.CheckpointSound(sweep.Reconcile, in))
		require.NoError(t, invariant.CheckpointCovers(sweep.Reconcile, in))
		out := reconciled(t, in)
		require.NotNil(t, out.Checkpoint)
		in.Checkpoint = out.Checkpoint
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = sweep.Reconcile(in) }))
		in.Checkpoint = nil
	}
}

// TestAtMostOneHundredOrphansAreDeletedAtOnce checks that a Diagnostic contains the number of other orphans.
func TestAtMostOneHundredOrphansAreDeletedAtOnce(t *testing.T) {
	in := cluster()
	for i := range 150 {
		in.Objects.Items = append(in.Objects.Items, &rbacv1.ClusterRole{ObjectMeta: orphan(fmt.Sprintf("role-%03d", i), olmcore.Owner{Kind: "OperatorGroup", Namespace: "x", Name: "gone"})})
	}
	res := reconciled(t, in).Result
	require.Len(t, res.Actions, 100)
	require.Len(t, res.Diagnostics, 101)
	require.Equal(t, "50 more objects have no owner. They are reported once these are deleted", res.Diagnostics[100].Message)
}

func TestUnreadListsStopTheSweep(t *testing.T) {
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	in, err := sweep.Gather(context.Background(), nothing, cleanup.Config{ClusterKinds: []schema.GroupVersionKind{{Group: "x", Version: "v1", Kind: "More"}}}, nil)
	require.NoError(t, err)
	require.Contains(t, in.Unread, schema.GroupKind{Group: "x", Kind: "More"})
	in.Now = now
	res := reconciled(t, in).Result
	require.Empty(t, res.Actions)
	require.Equal(t, sweep.ReasonNotObserved, res.Diagnostics[0].Reason)
}

// BenchmarkReconcile checks objects whose owners exist, with and without the Checkpoint.
func BenchmarkReconcile(b *testing.B) {
	for _, n := range []int{100, 10000} {
		in := cluster()
		for i := range n {
			in.Objects.Items = append(in.Objects.Items, &rbacv1.ClusterRole{ObjectMeta: orphan(fmt.Sprintf("role-%05d", i), cool)})
		}
		out := reconciled(b, in)
		for name, checkpoint := range map[string]*olmcore.Checkpoint{"plain": nil, "checkpoint": out.Checkpoint} {
			in.Checkpoint = checkpoint
			b.Run(fmt.Sprintf("%s/objects=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if out, err := sweep.Reconcile(in); err != nil || !out.Empty() {
						b.Fatal(out, err)
					}
				}
			})
		}
	}
}

// TestObjectsOfAnotherCSVAreNoOrphans checks that an object stays if another ClusterServiceVersion is recorded on it,
// or if an applied step of an InstallPlan contains it.
func TestObjectsOfAnotherCSVAreNoOrphans(t *testing.T) {
	lost := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "lost.v1"}
	for name, c := range map[string]struct {
		uid    types.UID
		record bool
		plan   bool
		stays  bool
	}{
		"recorded":                    {"cool", true, false, true},
		"recorded for an earlier CSV": {"before", true, false, false},
		"in a plan":                   {"", false, true, true},
		"neither":                     {"", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := cluster()
			role := &rbacv1.ClusterRole{ObjectMeta: orphan("role", lost)}
			in.Objects.Items = []olmcore.Object{role}
			if c.record {
				role.Annotations = olmcore.SetCoOwners(nil, []olmcore.Owner{{Namespace: "ns", Name: "cool.v1", UID: c.uid}})
			}
			if c.plan {
				p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plan", UID: "plan", ResourceVersion: "1"}}
				p.Status.Phase = v1alpha1.InstallPlanPhaseComplete
				p.Status.Plan = []*v1alpha1.Step{{Resolving: "cool.v1", Status: v1alpha1.StepStatusPresent,
					Resource: v1alpha1.StepResource{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "role"}}}
				in.InstallPlans.Items = append(in.InstallPlans.Items, p)
			}
			require.Equal(t, c.stays, len(reconciled(t, in).Actions) == 0)
		})
	}
}

// TestOwnersOfARecentInstallPlanHaveAGracePeriod checks that objects stay whose InstallPlan finished a short time ago.
// A cache may show the finished plan before it shows the ClusterServiceVersion.
func TestOwnersOfARecentInstallPlanHaveAGracePeriod(t *testing.T) {
	for name, tt := range map[string]struct {
		finished time.Duration
		want     []string
		requeue  time.Duration
	}{
		"just now":      {time.Minute, nil, 9 * time.Minute},
		"ten minutes":   {10 * time.Minute, []string{"delete ClusterRole role"}, 0},
		"in the future": {-time.Hour, nil, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			in := cluster()
			lost := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: "ns", Name: "lost.v1"}
			in.Objects.Items = append(in.Objects.Items, &rbacv1.ClusterRole{ObjectMeta: orphan("role", lost)})
			p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", ResourceVersion: "1"}}
			p.Spec.ClusterServiceVersionNames, p.Status.Phase = []string{"lost.v1"}, v1alpha1.InstallPlanPhaseComplete
			p.Status.Conditions = []v1alpha1.InstallPlanCondition{{
				Type: v1alpha1.InstallPlanInstalled, Status: corev1.ConditionTrue, LastTransitionTime: ago(tt.finished),
			}}
			in.InstallPlans.Items = append(in.InstallPlans.Items, p)
			require.NoError(t, invariant.Laws(reconcile, in))
			res := reconciled(t, in).Result
			require.Equal(t, tt.want, csvtest.Writes(res.Actions))
			require.Equal(t, tt.requeue, res.RequeueAfter)
		})
	}
}
