// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

// TestWhoIsInvolvedInAPlan: each way in which a resolution ties a Subscription to
// an operator gives the plan the label of its package.
func TestWhoIsInvolvedInAPlan(t *testing.T) {
	for name, c := range map[string]struct {
		sub    *v1alpha1.Subscription
		change func(*olmcore.Operator)
		want   bool
	}{
		"the operator is for it":            {subscription("b"), func(o *olmcore.Operator) { o.For = []string{"b"} }, true},
		"it follows the operator's package": {subscription("b"), func(o *olmcore.Operator) { o.Package = "b" }, true},
		"it has the operator's version":     {subscription("b", current("a.v1")), func(*olmcore.Operator) {}, true},
		"nothing ties it":                   {subscription("b"), func(*olmcore.Operator) {}, false},
		"it follows no package":             {subscription("b", func(s *v1alpha1.Subscription) { s.Spec.Package = "" }), func(o *olmcore.Operator) { o.Package = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := createInput([]*v1alpha1.Subscription{subscription("a"), c.sub}, operator("a"))
			in.Resolution.Operators[0].Package, in.Resolution.Operators[0].For = "none", nil
			c.change(&in.Resolution.Operators[0])
			_, labelled := made(t, planned(t, in)).Labels["operators.coreos.com/b.ops"]
			require.Equal(t, c.want, labelled)
		})
	}
}

// TestWhichOfSeveralPlansIsMet: the one of the highest generation, then the
// oldest.
func TestWhichOfSeveralPlansIsMet(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	another := func(name string, generation int, age time.Duration) *v1alpha1.InstallPlan {
		q := p.DeepCopy()
		q.Name, q.Spec.Generation, q.CreationTimestamp = name, generation, *ago(age)
		return q
	}
	in.InstallPlans = olmcore.Found(another("a", 1, time.Hour), another("c", 2, time.Second), another("b", 2, time.Minute), another("d", 1, 0))
	require.Equal(t, "b", planned(t, in).Plan.Name)
	in.InstallPlans = olmcore.Found(another("c", 2, time.Minute), another("b", 2, time.Second))
	require.Equal(t, "c", planned(t, in).Plan.Name)
}

// TestWhatMakesAResolutionStale: a version that it did not decide on, a
// Subscription that it did not see, and one that is gone.
func TestWhatMakesAResolutionStale(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a"), subscription("b")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	in.InstallPlans = olmcore.Found(p)
	for name, change := range map[string]func([]*v1alpha1.Subscription) []*v1alpha1.Subscription{
		"another version":       func(s []*v1alpha1.Subscription) []*v1alpha1.Subscription { s[0].Status.CurrentCSV = "a.v9"; return s },
		"one that was not seen": func(s []*v1alpha1.Subscription) []*v1alpha1.Subscription { return append(s, subscription("c")) },
		"one that is gone":      func(s []*v1alpha1.Subscription) []*v1alpha1.Subscription { return s[:1] },
	} {
		next := in
		next.Subscriptions = olmcore.Found(change(referring(subs, p))...)
		require.Equal(t, []string{create.ReasonStaleResolution}, reasons(planned(t, next).Result), name)
	}
}

// TestWhatIsNotWaitedFor: plans that go, and versions that go.
func TestWhatIsNotWaitedFor(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	done := p.DeepCopy()
	done.Status.Phase = complete
	done.Status.Conditions = []v1alpha1.InstallPlanCondition{condition("True", "", "")}
	going := done.DeepCopy()
	going.DeletionTimestamp = ago(0)
	in.InstallPlans = olmcore.Found(going)
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation)

	done.Status.Conditions = nil
	in.InstallPlans = olmcore.Found(done)
	in.ClusterServiceVersions = olmcore.Found(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.DeletionTimestamp = ago(0) }))
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation, "the version goes")
	in.ClusterServiceVersions = olmcore.Found(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) { c.Labels = map[string]string{"olm.copiedFrom": "x"} }))
	require.Equal(t, 2, made(t, planned(t, in)).Spec.Generation, "a copy is not the version")

	// Another plan took the name since: what is referred to is still not visible.
	seen := referring(subs, p)
	seen[0].Status.InstallPlanGeneration, seen[0].Status.LastUpdated = 1, metav1.NewTime(noon)
	in.Subscriptions, in.Resolution = olmcore.Found(seen...), installs(operator("a"))(seen)
	other := p.DeepCopy()
	other.UID, other.Annotations = "uid-other", nil
	in.InstallPlans = olmcore.Found(other)
	require.Equal(t, []string{create.ReasonPlanNotVisible}, reasons(planned(t, in).Result))
}

// TestWhatAMetPlanKeeps: approval, once it has started; and its steps wait for
// references by UID.
func TestWhatAMetPlanKeeps(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a"))
	p := made(t, planned(t, in))
	unnamed := referring(subs, p)
	unnamed[0].Status.InstallPlanRef.UID = ""
	waits := in
	waits.InstallPlans, waits.Subscriptions = olmcore.Found(p), olmcore.Found(unnamed...)
	require.Equal(t, []string{create.ReasonReferencesAwaited}, reasons(planned(t, waits).Result))

	steps, _, err := create.StepsFromBundle(operator("a"), ns)
	require.NoError(t, err)
	running := p.DeepCopy()
	running.Status = v1alpha1.InstallPlanStatus{Phase: installing, StartTime: ago(time.Minute), Plan: steps, CatalogSources: []string{}}
	late := subscription("b", manual)
	in = createInput([]*v1alpha1.Subscription{subs[0], late}, operator("a"))
	in.InstallPlans = olmcore.Found(running)
	after := planned(t, in).Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
	require.Equal(t, v1alpha1.ApprovalAutomatic, after.Spec.Approval)
	require.True(t, olmcore.OwnedBy(after, late.UID))
}

// TestWhoseReferenceMovesOn: only of one that refers to the plan that never
// started.
func TestWhoseReferenceMovesOn(t *testing.T) {
	a, b := subscription("a"), subscription("b", current("b.v1"))
	in := createInput([]*v1alpha1.Subscription{a, b}, operator("a"), operator("b"))
	empty := plan(none, nil)
	p := made(t, planned(t, in))
	in.InstallPlans = olmcore.Found(empty, p)
	require.Equal(t, []string{"a"}, planned(t, in).Subscriptions)
}

// TestPlansThatJustFit.
func TestPlansThatJustFit(t *testing.T) {
	subs := []*v1alpha1.Subscription{subscription("a")}
	in := createInput(subs, operator("a", &corev1.ConfigMap{ObjectMeta: bare("x")}))
	p := made(t, planned(t, in))
	many := createInput(subs, operator("a", slices.Repeat([]olmcore.Object{&corev1.ConfigMap{ObjectMeta: bare("x")}}, 1999)...))
	require.Len(t, planned(t, many).Actions, 1)
	many = createInput(subs, operator("a", slices.Repeat([]olmcore.Object{&corev1.ConfigMap{ObjectMeta: bare("x")}}, 2000)...))
	require.Equal(t, []string{create.ReasonPlanTooLarge}, reasons(planned(t, many).Result))

	in.InstallPlans, in.Subscriptions = olmcore.Found(p), olmcore.Found(referring(subs, p)...)
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](planned(t, in).Actions)
	size := 0
	for _, s := range got.Status.Plan {
		data, err := json.Marshal(s)
		require.NoError(t, err)
		size += len(data)
	}
	in.InstallPlans, in.Subscriptions = olmcore.Found[*v1alpha1.InstallPlan](), olmcore.Found(subs...)
	in.Config.MaxStatusBytes = size
	require.Len(t, planned(t, in).Actions, 1)
	in.Config.MaxStatusBytes = size - 1
	require.Equal(t, []string{create.ReasonPlanTooLarge}, reasons(planned(t, in).Result))
}

// TestManifestsOfANewPlan: no status, and what has no name goes by its prefix.
func TestManifestsOfANewPlan(t *testing.T) {
	o := operator("a", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}})
	o.Bundle.Objects[0].(*v1alpha1.ClusterServiceVersion).Status.Phase = v1alpha1.CSVPhaseSucceeded
	steps, found, err := create.StepsFromBundle(o, ns)
	require.NoError(t, err)
	require.Empty(t, found)
	require.NotContains(t, steps[0].Resource.Manifest, "Succeeded")
	require.Equal(t, "x-", steps[1].Resource.Name)

	in := createInput([]*v1alpha1.Subscription{subscription("a")}, operator("a"))
	in.Resolution.Generated = []*v1alpha1.Subscription{subscription("dep", current("dep.v1"))}
	p := made(t, planned(t, in))
	in.InstallPlans, in.Subscriptions.Items = olmcore.Found(p), referring(in.Subscriptions.Items, p)
	got, _ := olmcore.StatusOf[*v1alpha1.InstallPlan](planned(t, in).Actions)
	require.NotContains(t, got.Status.Plan[1].Resource.Manifest, "status")
}

// TestPermissionsThatAreAskedForTwice give one pair of objects, and an account of
// the cluster's permissions alone has no namespace, as in OLM.
func TestPermissionsThatAreAskedForTwice(t *testing.T) {
	permission := v1alpha1.StrategyDeploymentPermissions{ServiceAccountName: "x", Rules: rules()}
	twice := []v1alpha1.StrategyDeploymentPermissions{permission, permission}
	kinds := func(namespaced, cluster []v1alpha1.StrategyDeploymentPermissions) (out []string) {
		objects, err := create.PermissionObjects(csv("a.v1", func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.Permissions, c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = namespaced, cluster
		}))
		require.NoError(t, err)
		for _, o := range objects {
			out = append(out, o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetNamespace())
		}
		return out
	}
	require.Equal(t, []string{"ServiceAccount ops", "Role ops", "RoleBinding ops"}, kinds(twice, nil))
	require.Equal(t, []string{"ServiceAccount ", "ClusterRole ", "ClusterRoleBinding "}, kinds(nil, twice))
}
