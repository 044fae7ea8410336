// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// costLimit is far above what the calls below take, and far below what they would take if their cost grew with the
// square of the input, or worse.
const costLimit = 4 * time.Second

func binding(name, role, account string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: "ns"}},
	}
}

// TestHugeInputs: what a CSV asks for, and what the cluster holds, may be large.
func TestHugeInputs(t *testing.T) {
	for name, fill := range map[string]func(in *csv.Input){
		"a thousand permissions": func(in *csv.Input) {
			s := &in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec
			for i := range 1000 {
				rules := []rbacv1.PolicyRule{{Verbs: []string{"get", fmt.Sprint(i)}, APIGroups: []string{"", "apps"}, Resources: []string{"pods", "nodes"}}}
				s.ClusterPermissions = append(s.ClusterPermissions, v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "cool", Rules: rules})
				role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}, Rules: rules}
				in.ClusterRoles.Items = append(in.ClusterRoles.Items, role)
				in.ClusterRoleBindings.Items = append(in.ClusterRoleBindings.Items, binding(role.Name, role.Name, "cool"))
			}
		},
		"a hundred thousand bindings of others": func(in *csv.Input) {
			for i := range 100_000 {
				in.ClusterRoleBindings.Items = append(in.ClusterRoleBindings.Items, binding(fmt.Sprint(i), "x", "other"))
			}
		},
		"a thousand definitions": func(in *csv.Input) {
			spec := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			spec.Owned, in.CustomResourceDefinitions.Items = nil, nil
			for i := range 1000 {
				crd := establishedCRD()
				crd.Name, crd.Spec.Names.Kind = fmt.Sprintf("k%d.example.com", i), fmt.Sprintf("K%d", i)
				spec.Required = append(spec.Required, v1alpha1.CRDDescription{Name: crd.Name, Version: "v1", Kind: crd.Spec.Names.Kind})
				in.CustomResourceDefinitions.Items = append(in.CustomResourceDefinitions.Items, crd)
			}
		},
		"ten thousand other versions": func(in *csv.Input) {
			for i := range 10_000 {
				o := operator(fmt.Sprintf("other.v%d", i), i)
				o.Spec.CustomResourceDefinitions.Owned, o.Spec.Replaces = nil, fmt.Sprintf("other.v%d", i-1)
				in.Neighbours.Items = append(in.Neighbours.Items, o)
			}
		},
		"ten thousand requirements in the status": func(in *csv.Input) {
			in.ClusterServiceVersion.Status.RequirementStatus = make([]v1alpha1.RequirementStatus, 10_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, phase := range []phaseName{pending, installReady, succeeded, failed, replacing} {
				in := input(phase, "RequirementsUnknown", "")
				fill(&in)
				for range 3 { // metadata, annotation of the group, phase
					start := time.Now()
					out := reconciled(t, in)
					require.Less(t, time.Since(start), costLimit, "%s", phase)
					if after, ok := metadataOf(firstOf(out.Actions)); ok {
						in.ClusterServiceVersion = after
					}
				}
			}
		})
	}
}

// TestGatherFollowsALongChain: however far the versions reach that replace each other, and in whatever order they are
// listed.
func TestGatherFollowsALongChain(t *testing.T) {
	const n = 20_000
	objects := make([]olmcore.Object, n)
	for i := range objects {
		c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("chain.v%05d", i), UID: types.UID(fmt.Sprint(i))}}
		if i > 0 {
			c.Spec.Replaces = fmt.Sprintf("chain.v%05d", i-1)
		}
		objects[i] = c
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	for _, at := range []int{0, n / 2, n - 1} {
		start := time.Now()
		in, err := csv.Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("chain.v%05d", at)}, csv.Config{})
		require.NoError(t, err)
		require.Len(t, in.Neighbours.Items, n-1)
		require.Less(t, time.Since(start), costLimit)
	}
}

func firstOf(actions []olmcore.Action) olmcore.Action {
	if len(actions) == 0 {
		return nil
	}
	return actions[0]
}
