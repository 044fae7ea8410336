// SPDX-License-Identifier: Apache-2.0

package installplan_test

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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestFaultsOnlyDelay: lost writes, lost answers, conflicts and crashes change
// nothing in the end, and on the way no step object appears before the plan says
// that it started.
func TestFaultsOnlyDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects, written := []olmcore.Object{userSubscription("rich")}, map[string]string{"Service": "service", "ConfigMap": "config"}
		if maybe(t, "over objects that are there") {
			objects = append(objects, existing()...)
			delete(written, "Service") // the user's
		}
		c, err := newWorld(objects...)
		require.NoError(t, err)
		faults(t, c)
		started := false
		watch := func(controller fake.Controller) fake.Controller {
			inner := controller.Reconcile
			controller.Reconcile = func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
				result, err := inner(ctx, r, key, now, last)
				plans, _ := olmcore.List[*v1alpha1.InstallPlan](ctx, c, ns, nil)
				for _, p := range plans {
					started = started || p.Status.StartTime != nil && p.Status.Phase == installing
				}
				for _, a := range result.Actions {
					if _, target, _ := a.Describe(); target.Kind != "InstallPlan" && target.Kind != "Subscription" {
						require.True(t, started, "%s before the start was stored", target)
					}
				}
				return result, err
			}
			return controller
		}
		d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), watch(plans(things))}}
		require.NoError(t, d.RunFor(context.Background(), 3*time.Minute))
		c.Recover()
		require.NoError(t, d.RunFor(context.Background(), 3*time.Minute))
		p := onlyPlan(t, c)
		require.Equal(t, complete, p.Status.Phase, p.Status.Message)
		require.Empty(t, p.Finalizers)
		require.Equal(t, "", p.Status.Message)
		for kind, name := range written {
			o, err := c.Get(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: kind}, ns, name)
			require.NoError(t, err)
			require.NotEmpty(t, o.GetAnnotations()[stepHash])
		}
	})
}

// TestAMissingPermissionIsWaitedFor: for ever, and the plan goes on by itself.
func TestAMissingPermissionIsWaitedFor(t *testing.T) {
	c := world(t, userSubscription("rich"))
	allowed := false
	c.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if target.Kind == "Service" && !allowed {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, target.Name, fmt.Errorf("it is not allowed"))
		}
		return nil
	}
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), plans(things)}}
	require.NoError(t, d.RunFor(t.Context(), 4*time.Hour))
	p := onlyPlan(t, c)
	require.Equal(t, installing, p.Status.Phase)
	require.Equal(t, `retrying execution due to error: error updating service: service: services "service" is forbidden: it is not allowed`, p.Status.Message)
	allowed = true
	require.NoError(t, d.RunFor(t.Context(), time.Hour))
	require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
}

// TestWhatIsRejectedFailsThePlanAfterAMinute, not earlier.
func TestWhatIsRejectedFailsThePlanAfterAMinute(t *testing.T) {
	c := world(t, userSubscription("rich"))
	c.Authorize = func(_ *corev1.ObjectReference, _ olmcore.Verb, target olmcore.Ref) error {
		if target.Kind == "Service" {
			return apierrors.NewBadRequest("it is broken")
		}
		return nil
	}
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(rich()), things), plans(things)}}
	require.NoError(t, d.RunFor(t.Context(), 59*time.Second))
	require.Equal(t, installing, onlyPlan(t, c).Status.Phase)
	require.NoError(t, d.RunFor(t.Context(), time.Second))
	p := onlyPlan(t, c)
	require.Equal(t, failed, p.Status.Phase)
	require.Equal(t, "error updating service: service: it is broken", p.Status.Message)
	require.Equal(t, p.Status.Message, p.Status.GetCondition(v1alpha1.InstallPlanInstalled).Message)
	require.NoError(t, d.RunFor(t.Context(), time.Hour))
	require.Equal(t, failed, onlyPlan(t, c).Status.Phase, "an answer of the API server does not go away by itself")
}

// TestAFailedPlanHealsWhenItsCauseIsGone, as what it waits for can be seen.
func TestAFailedPlanHealsWhenItsCauseIsGone(t *testing.T) {
	o := operator("a", &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: bare("x")}, crdObject("v1"))
	old := crdObject("v0")
	old.Labels = map[string]string{"olm.managed": "true"}
	c := world(t, userSubscription("a"), old)
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(installs(o), installplan.Config{}), plans(installplan.Config{})}}
	require.NoError(t, d.RunFor(t.Context(), 2*time.Minute))
	p := onlyPlan(t, c)
	require.Equal(t, failed, p.Status.Phase)
	require.Contains(t, p.Status.Message, "new CRD removes version v0")
	csvs, err := olmcore.List[*v1alpha1.ClusterServiceVersion](t.Context(), c, ns, nil)
	require.NoError(t, err)
	require.Empty(t, csvs, "an upgrade that cannot finish does not begin")
	require.NoError(t, c.Delete(olmcore.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: old.Name}))
	require.NoError(t, d.RunFor(t.Context(), time.Minute))
	require.Equal(t, complete, onlyPlan(t, c).Status.Phase)
}

// TestADependencysSubscriptionIsAnOwnerToo, from the moment it exists.
func TestADependencysSubscriptionIsAnOwnerToo(t *testing.T) {
	generated := subscription("dep")
	generated.ObjectMeta, generated.Spec.StartingCSV = bare("dep-stable-cool-olm"), "dep.v1"
	resolve := func(subs []*v1alpha1.Subscription) olmcore.Resolution {
		r := installs(operator("a"), operator("dep"))(subs)
		if len(subs) == 1 {
			r.Generated = []*v1alpha1.Subscription{generated}
			return r
		}
		return olmcore.Resolution{}
	}
	c := world(t, userSubscription("a"))
	d := &fake.Driver{Cluster: c, Controllers: []fake.Controller{makers(resolve, installplan.Config{}), plans(installplan.Config{})}}
	require.NoError(t, d.Settle(t.Context()))
	p := onlyPlan(t, c)
	require.Equal(t, complete, p.Status.Phase, p.Status.Message)
	require.Len(t, p.OwnerReferences, 2)
	require.Contains(t, p.Labels, "operators.coreos.com/dep.ops")
	dep, err := olmcore.Get[*v1alpha1.Subscription](t.Context(), c, ns, "dep-stable-cool-olm")
	require.NoError(t, err)
	require.Equal(t, p.Name, dep.Annotations[installplan.AnnotationGeneratedBy])
	require.True(t, olmcore.OwnedBy(p, dep.UID))
	require.Equal(t, []string{installplan.Finalizer}, p.Finalizers, "the mark on the Subscription is still there")
}

// TestWhatChangesADecisionIsAffected: taking any object away changes the result
// only of plans that Affected names.
func TestWhatChangesADecisionIsAffected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		want, err := reconcileResult(in)
		require.NoError(t, err)
		differs := func(less installplan.Input, o olmcore.Object) {
			got, err := reconcileResult(less)
			require.NoError(t, err)
			if fmt.Sprint(describe(want), reasons(want), statusOf(in, want)) == fmt.Sprint(describe(got), reasons(got), statusOf(in, got)) {
				return
			}
			known := []types.NamespacedName{key}
			require.Contains(t, olmcore.ExpandKeys(installplan.Affected(o), known), key, "%s", olmcore.KeyOf(o))
		}
		for i := range in.Objects.Items {
			less := in
			less.Objects = without(in.Objects, i)
			differs(less, in.Objects.Items[i])
		}
		for i := range in.Subscriptions.Items {
			less := in
			less.Subscriptions = without(in.Subscriptions, i)
			differs(less, in.Subscriptions.Items[i])
		}
		for i := range in.ClusterServiceVersions.Items {
			less := in
			less.ClusterServiceVersions = without(in.ClusterServiceVersions, i)
			differs(less, in.ClusterServiceVersions.Items[i])
		}
		for _, crd := range in.CustomResourceDefinitions.Items {
			less := in
			less.CustomResourceDefinitions = olmcore.Found[*apiextensionsv1.CustomResourceDefinition]()
			differs(less, crd)
		}
		for _, g := range in.OperatorGroups.Items {
			less := in
			less.OperatorGroups = olmcore.Found[*operatorsv1.OperatorGroup]()
			differs(less, g)
		}
	})
}

// without returns a list without the entry at an index.
func without[T any](list olmcore.Observed[T], i int) olmcore.Observed[T] {
	return olmcore.Found(slices.Delete(slices.Clone(list.Items), i, i+1)...)
}
