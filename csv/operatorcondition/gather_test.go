// SPDX-License-Identifier: Apache-2.0

package operatorcondition_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/operatorcondition"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

var key = types.NamespacedName{Namespace: "ns", Name: "cool.v1"}

// objects returns the objects of an Input.
func objects(in operatorcondition.Input) (all []olmcore.Object) {
	all = appendAll(all, in.ClusterServiceVersions.Items)
	all = appendAll(all, in.OperatorConditions.Items)
	all = appendAll(all, in.Roles.Items)
	all = appendAll(all, in.RoleBindings.Items)
	return appendAll(all, in.Deployments.Items)
}

func appendAll[T olmcore.Object](all []olmcore.Object, items []T) []olmcore.Object {
	for _, o := range items {
		all = append(all, o)
	}
	return all
}

func gathered(t require.TestingT, objects ...olmcore.Object) (operatorcondition.Input, error) {
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	return operatorcondition.Gather(context.Background(), snapshot, key)
}

func TestGatherReadsAllListsOfTheInput(t *testing.T) {
	want := atRest(t)
	world := objects(want)
	other := want.Roles.Items[0].DeepCopy()
	other.Name = "other"
	unlisted := want.Deployments.Items[0].DeepCopy()
	unlisted.Name = "unlisted"
	in, err := gathered(t, append(world, other, unlisted)...)
	require.NoError(t, err)
	in.Now = now
	require.Equal(t, want, in)
	in, err = gathered(t, append(world[:1:1], want.Roles.Items[0])...)
	require.NoError(t, err)
	require.Empty(t, in.Roles.Items, "a Role without the OperatorCondition is ignored")
}

func TestGatherReturnsFailedReads(t *testing.T) {
	_, err := gathered(t, atRest(t).Roles.Items[0])
	require.True(t, apierrors.IsNotFound(err))
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	in, err := operatorcondition.Gather(context.Background(), nothing, key)
	require.NoError(t, err)
	in.Now = now
	require.Equal(t, []string{"NotObserved OperatorCondition cool.v1"}, lines(reconciled(t, in).Result))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = operatorcondition.Gather(cancelled, failing{nothing}, key)
	require.ErrorIs(t, err, context.Canceled)
}

// failing is a Reader that returns the error of its context.
type failing struct{ olmcore.Reader }

func (failing) Get(ctx context.Context, _ schema.GroupVersionKind, _, _ string) (olmcore.Object, error) {
	return nil, ctx.Err()
}

func TestAffectedReturnsKeys(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1"}
	one := []types.NamespacedName{key}
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"a version":                  {&v1alpha1.ClusterServiceVersion{ObjectMeta: meta}, one},
		"a copy":                     {csvtest.Copied("ns"), nil},
		"an OperatorCondition":       {&operatorsv2.OperatorCondition{ObjectMeta: meta}, one},
		"a Role":                     {&rbacv1.Role{ObjectMeta: meta}, one},
		"a RoleBinding":              {&rbacv1.RoleBinding{ObjectMeta: meta}, one},
		"a Deployment":               {deployment(operator()), one},
		"a Deployment without owner": {&appsv1.Deployment{ObjectMeta: meta}, nil},
		"a Deployment with the labels of another kind": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "cool", Labels: olmcore.Owner{Kind: "OperatorGroup", Namespace: "ns", Name: "cool.v1"}.Labels(),
		}}, nil},
		"a Deployment with the labels of another namespace": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: "other", Name: "cool", Labels: deployment(operator()).Labels,
		}}, nil},
		"another kind":        {&corev1.Pod{ObjectMeta: meta}, nil},
		"without a namespace": {&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "cool.v1"}}, nil},
	} {
		require.Equal(t, c.want, operatorcondition.Affected(c.object), name)
	}
}

// TestAffectedReturnsTheKeyIfTheResultChanges checks that Affected returns the key for an object whose creation, change
// or deletion changes the Result.
func TestAffectedReturnsTheKeyIfTheResultChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := draw(t), draw(t)
		world := objects(before)
		old := rapid.SampledFrom(append(slices.Clone(world), nil)).Draw(t, "old")
		next := rapid.SampledFrom(append(objects(after), nil)).Draw(t, "new")
		changed := slices.DeleteFunc(slices.Clone(world), func(o olmcore.Object) bool {
			return o == old || next != nil && olmcore.KeyOf(o) == olmcore.KeyOf(next)
		})
		var keys []types.NamespacedName
		for _, o := range world {
			if !slices.Contains(changed, o) {
				keys = append(keys, operatorcondition.Affected(o)...)
			}
		}
		if next != nil {
			changed = append(changed, next)
			keys = append(keys, operatorcondition.Affected(next)...)
		}
		was, fine := decision(t, world)
		is, still := decision(t, changed)
		if fine && still && was != is {
			require.Contains(t, keys, key)
		}
	})
}

// decision returns the Result for the key in a random world. ok is false if no cluster can contain these objects.
func decision(t *rapid.T, world []olmcore.Object) (decided string, ok bool) {
	snapshot, err := olmcore.NewSnapshot(world, olmcore.Everything)
	if err != nil {
		return "", false
	}
	in, err := operatorcondition.Gather(context.Background(), snapshot, key)
	if err != nil {
		require.True(t, apierrors.IsNotFound(err))
		return "[]", true
	}
	in.Now = now
	res, err := reconcile(in)
	if err != nil {
		return "", false
	}
	lines := lines(res)
	for _, a := range res.Actions {
		record, err := olmcore.RecordOf(a)
		require.NoError(t, err)
		lines = append(lines, fmt.Sprint(record.Patch, record.Object))
	}
	return fmt.Sprint(lines), true
}
