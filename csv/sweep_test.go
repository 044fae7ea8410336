// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/sweep"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

func orphan(name string, owner olmcore.Owner) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: owner.Labels(), CreationTimestamp: *ago(time.Hour)}
}

func TestSweep(t *testing.T) {
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
		"nothing was left behind": {func(*sweep.Input) {}, nil, 0},
		"an orphan":               {role(func(*metav1.ObjectMeta) {}), []string{"delete ClusterRole role"}, 0},
		"its owner lives":         {role(func(m *metav1.ObjectMeta) { m.Labels["olm.owner"] = "cool.v1" }), nil, 0},
		"a copy is no owner": {role(func(m *metav1.ObjectMeta) {
			m.Labels["olm.owner"], m.Labels["olm.owner.namespace"] = "cool.v1", "copies"
		}), []string{"delete ClusterRole role"}, 0},
		"it is too young": {role(func(m *metav1.ObjectMeta) { m.CreationTimestamp = *ago(9 * time.Minute) }), nil, time.Minute},
		"it is going":     {role(func(m *metav1.ObjectMeta) { m.DeletionTimestamp = ago(0) }), nil, 0},
		"it has another owner": {role(func(m *metav1.ObjectMeta) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: "CustomResourceDefinition", Name: "x"}}
		}), nil, 0},
		"the label of another kind of owner":           {role(func(m *metav1.ObjectMeta) { m.Labels["olm.owner.kind"] = "Subscription" }), nil, 0},
		"an install plan is about to create its owner": {plan(v1alpha1.InstallPlanPhaseInstalling), nil, 0},
		"the install plan is done":                     {plan(v1alpha1.InstallPlanPhaseComplete), []string{"delete ClusterRole role"}, 0},
		"an orphan of a group": {role(func(m *metav1.ObjectMeta) {
			m.Labels["olm.owner.kind"], m.Labels["olm.owner"] = "OperatorGroup", "lost"
		}), []string{"delete ClusterRole role"}, 0},
		"the group lives": {role(func(m *metav1.ObjectMeta) {
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
		"the mark of a group that is gone": {func(in *sweep.Input) {
			in.Namespaces.Items[0].ResourceVersion = "1"
			in.Namespaces.Items[0].Labels = map[string]string{"olm.operatorgroup.uid/gone": "", "olm.operatorgroup.uid/group": "", "x": ""}
		}, []string{"update Namespace ns"}, 0},
		"the CSVs were not read": {func(in *sweep.Input) {
			role(func(*metav1.ObjectMeta) {})(in)
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		}, nil, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := sweep.Input{
				Now: now, Config: cleanup.Config{SweepDelete: true},
				ClusterServiceVersions: olmcore.Found(operator("cool.v1", 1)), OperatorGroups: olmcore.Found(group()),
				InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](), Namespaces: olmcore.Found(namespace("ns", nil)), Objects: olmcore.Found[olmcore.Object](),
			}
			copied := operator("cool.v1", 1)
			copied.Namespace, copied.Status.Reason = "copies", "Copied"
			in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, copied)
			c.change(&in)
			require.NoError(t, invariant.Laws(reconcileSweep, in))
			res, err := reconcileSweep(in)
			require.NoError(t, err)
			var got []string
			for _, a := range res.Actions {
				verb, target, _ := a.Describe()
				got = append(got, fmt.Sprintf("%s %s %s", verb, target.Kind, target.Name))
			}
			require.Equal(t, c.want, got)
			require.Equal(t, c.requeue, res.RequeueAfter)
			in.Config.SweepDelete = false
			reported, err := reconcileSweep(in)
			require.NoError(t, err)
			require.Empty(t, reported.Actions, "it reports only, unless told otherwise")
			require.Equal(t, res.Diagnostics, reported.Diagnostics)
		})
	}
}

func TestSweepInput(t *testing.T) {
	for field, in := range map[string]sweep.Input{
		"Now":                           {},
		"Config.Cleanup.OperandTimeout": {Now: now, Config: cleanup.Config{OperandTimeout: -1}},
		"ClusterServiceVersions[0]":     {Now: now, ClusterServiceVersions: olmcore.Found[*v1alpha1.ClusterServiceVersion](nil)},
		"OperatorGroups[0]":             {Now: now, OperatorGroups: olmcore.Found[*operatorsv1.OperatorGroup](nil)},
		"InstallPlans[0]":               {Now: now, InstallPlans: olmcore.Found[*v1alpha1.InstallPlan](nil)},
		"Namespaces[0]":                 {Now: now, Namespaces: olmcore.Found[*corev1.Namespace](nil)},
		"Objects[0]":                    {Now: now, Objects: olmcore.Found[olmcore.Object](nil)},
	} {
		_, err := reconcileSweep(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

// TestSweepFindsWhatAnOldControllerLeft: somebody takes the finalizer off, and
// deletes the group; a sweep removes what is left of both.
func TestSweepFindsWhatAnOldControllerLeft(t *testing.T) {
	ctx := context.Background()
	cluster, driver := install(t, small(t))
	live := fake.Find[*v1alpha1.ClusterServiceVersion](cluster, "ns", "cool.v1")
	bare := live.DeepCopy()
	bare.Finalizers = nil
	require.NoError(t, cluster.Do(ctx, olmcore.UpdateOf(live, bare, olmcore.Cause{})))
	require.NoError(t, cluster.Delete(refOf(live)))
	require.NoError(t, cluster.Delete(olmcore.Ref{APIVersion: "operators.coreos.com/v1", Kind: "OperatorGroup", Namespace: "ns", Name: "group"}))
	require.NoError(t, driver.RunUntilIdle(ctx, time.Hour))
	require.NoError(t, cluster.RunFor(time.Hour))
	require.NotEmpty(t, clusterObjectsOf(cluster, live))

	in, err := sweep.Gather(ctx, cluster, cleanup.Config{SweepDelete: true})
	require.NoError(t, err)
	in.Now = cluster.Now()
	res, err := reconcileSweep(in)
	require.NoError(t, err)
	require.NoError(t, olmcore.Run(ctx, cluster, res.Actions))
	require.Empty(t, clusterObjectsOf(cluster, live))
	for _, o := range cluster.Objects() {
		_, owned := olmcore.OwnerOf(o.GetLabels())
		require.False(t, owned && o.GetNamespace() == "", "%s", olmcore.KeyOf(o))
	}
	in, err = sweep.Gather(ctx, cluster, cleanup.Config{})
	require.NoError(t, err)
	in.Now = cluster.Now()
	res, err = reconcileSweep(in)
	require.NoError(t, err)
	require.Empty(t, res)
}
