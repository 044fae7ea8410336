// SPDX-License-Identifier: Apache-2.0

package operatorgroup_test

import (
	"context"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/olmcore"
)

// TestGatherReadsOnlyNamespacesOfTheGroup checks that Gather reads the namespaces that the OperatorGroup selects, those
// in its status, and those with its label.
func TestGatherReadsOnlyNamespacesOfTheGroup(t *testing.T) {
	label := map[string]string{"olm.operatorgroup.uid/group": ""}
	world := []olmcore.Object{
		namespace("named", nil), namespace("left", label), namespace("before", nil), namespace("bystander", nil), namespace("selected", map[string]string{"team": "a"}),
	}
	for name, c := range map[string]struct {
		spec operatorsv1.OperatorGroupSpec
		want []string
	}{
		"by name": {
			operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{"named", "named", "missing"}}, []string{"named", "before", "left"},
		},
		"by selector": {
			operatorsv1.OperatorGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}, []string{"before", "selected", "left"},
		},
		"all": {operatorsv1.OperatorGroupSpec{}, []string{"before", "left"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group()
			g.Spec, g.Status.Namespaces = c.spec, []string{"before"}
			snapshot, err := olmcore.NewSnapshot(append(world, g), olmcore.Everything)
			require.NoError(t, err)
			in, err := operatorgroup.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "group"})
			require.NoError(t, err)
			var names []string
			for _, n := range in.Namespaces.Items {
				names = append(names, n.Name)
			}
			require.True(t, in.Namespaces.Complete)
			require.Equal(t, c.want, names)
		})
	}
}

func TestGatherReturnsFailedReads(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "group"}
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	_, err = operatorgroup.Gather(context.Background(), nothing, key)
	require.ErrorIs(t, err, olmcore.ErrNotRead)
	require.ErrorContains(t, err, "everything about an OperatorGroup")
	empty, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	_, err = operatorgroup.Gather(context.Background(), empty, key)
	require.True(t, apierrors.IsNotFound(err))
}

func TestUnreadListsAreIncompleteAndReported(t *testing.T) {
	groups, err := olmcore.NewSnapshot([]olmcore.Object{group()}, olmcore.Scope{Kind: operatorsv1.GroupVersion.WithKind("OperatorGroup").GroupKind()})
	require.NoError(t, err)
	in, err := operatorgroup.Gather(context.Background(), groups, types.NamespacedName{Namespace: "ns", Name: "group"})
	require.NoError(t, err)
	in.Now = now
	res := reconciled(t, in).Result
	require.Empty(t, res.Actions)
	require.Contains(t, res.Diagnostics[0].Message, "Namespaces (their labels), ClusterServiceVersions (provided APIs) and ClusterRoles")
}

func TestAffectedReturnsOperatorGroups(t *testing.T) {
	all, ns := []types.NamespacedName{{}}, []types.NamespacedName{{Namespace: "ns"}}
	role := func(name string, labels map[string]string) olmcore.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"a group":     {group(), ns},
		"an operator": {operator("cool.v1", "Cool"), ns},
		"an account":  {&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}, ns},
		"a namespace": {namespace("x", nil), all},
		"a role of a group": {
			role("r", olmcore.Owner{Kind: "OperatorGroup", Namespace: "ns", Name: "group"}.Labels()), []types.NamespacedName{{Namespace: "ns", Name: "group"}},
		},
		"a role without its label": {role("olm.og.group.admin-x", nil), all},
		"another role":             {role("r", nil), nil},
		"another kind":             {&corev1.Pod{}, nil},
		"without a namespace":      {&corev1.ServiceAccount{}, nil},
	} {
		require.Equal(t, c.want, operatorgroup.Affected(c.object), name)
	}
}
