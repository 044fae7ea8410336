// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

// TestWhoOwnsAPlan has the acceptance table of the relation between plans and
// their Subscriptions.
func TestWhoOwnsAPlan(t *testing.T) {
	a, b := subscription("a"), subscription("b")
	installedA := subscription("a", manual, func(s *v1alpha1.Subscription) {
		s.Status.CurrentCSV, s.Status.InstalledCSV, s.Status.InstallPlanGeneration = "a.v0", "a.v0", 4
	})
	both := []*v1alpha1.Subscription{installedA, b}

	t.Run("a resolution of other Subscriptions is not acted on", func(t *testing.T) {
		in := createInput([]*v1alpha1.Subscription{a, b}, operator("b"))
		in.Subscriptions = olmcore.Found(a)
		out := planned(t, in)
		require.Empty(t, out.Actions)
		require.Equal(t, []string{create.ReasonStaleResolution}, reasons(out.Result))

		in.Subscriptions = olmcore.Found(a, subscription("b", func(s *v1alpha1.Subscription) { s.Generation = 2 }))
		require.Equal(t, []string{create.ReasonStaleResolution}, reasons(planned(t, in).Result))
	})
	t.Run("a Manual Subscription and a new Automatic one both own the new plan", func(t *testing.T) {
		out := planned(t, createInput(both, operator("b")))
		p := made(t, out)
		same(t, []metav1.OwnerReference{ownerRef(installedA), ownerRef(b)}, p.OwnerReferences)
		require.Equal(t, map[string]string{"olm.managed": "true", "operators.coreos.com/b.ops": ""}, p.Labels)
		require.Equal(t, v1alpha1.ApprovalManual, p.Spec.Approval)
		require.False(t, p.Spec.Approved)
		require.Equal(t, 5, p.Spec.Generation)
		require.Equal(t, []string{create.ReasonManualBecauseOf}, reasons(out.Result))
		require.Equal(t, "the plan needs approval because of Subscription a", out.Diagnostics[0].Message)
	})
	t.Run("a waits for its plan, b is new: the second plan has both", func(t *testing.T) {
		first := made(t, planned(t, createInput([]*v1alpha1.Subscription{a}, operator("a"))))
		pending := referring([]*v1alpha1.Subscription{a}, first)[0]
		pending.Status.CurrentCSV = "a.v1"
		in := createInput([]*v1alpha1.Subscription{pending, b}, operator("a"), operator("b"))
		in.InstallPlans = olmcore.Found(first)
		second := made(t, planned(t, in))
		require.Equal(t, []string{"a.v1", "b.v1"}, second.Spec.ClusterServiceVersionNames)
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(b)}, second.OwnerReferences)
		require.Equal(t, 2, second.Spec.Generation)
		require.False(t, in.Resolution.Decisions[0].Changed, "a keeps its reference")
	})
	t.Run("a reference without an owner is repaired", func(t *testing.T) {
		p := plan(installing, []*v1alpha1.Step{csvStep("b.v1")}, ownedBy(a))
		r := reconcile(t, input(p, with(a, subscription("b", refersTo("install-x")))))
		after := r.Actions[0].(olmcore.Update).After
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(b)}, after.GetOwnerReferences())
		require.Contains(t, after.GetLabels(), "operators.coreos.com/b.ops")
	})
	t.Run("a dependency's Subscription becomes an owner", func(t *testing.T) {
		d := subscription("d", func(s *v1alpha1.Subscription) {
			s.Annotations = map[string]string{installplan.AnnotationGeneratedBy: "install-x"}
		})
		r := reconcile(t, input(plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(a)), with(a, d)))
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(d)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a Subscription that was made anew replaces its former self", func(t *testing.T) {
		again := subscription("b", refersTo("install-x"), func(s *v1alpha1.Subscription) {
			s.UID, s.CreationTimestamp = "uid-b-again", metav1.NewTime(noon)
		})
		r := reconcile(t, input(plan(requiresApproval, []*v1alpha1.Step{csvStep("b.v1")}, ownedBy(a, b)), with(a, again)))
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(again)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("a cache that is behind drops no newer owner", func(t *testing.T) {
		old := subscription("b", refersTo("install-x"), func(s *v1alpha1.Subscription) {
			s.UID, s.CreationTimestamp = "uid-b-before", metav1.NewTime(born.Add(-time.Hour))
		})
		r := reconcile(t, input(plan(requiresApproval, []*v1alpha1.Step{csvStep("b.v1")}, ownedBy(b)), with(old)))
		same(t, []metav1.OwnerReference{ownerRef(b), ownerRef(old)}, r.Actions[0].(olmcore.Update).After.GetOwnerReferences())
	})
	t.Run("two workers with one view ask for one name", func(t *testing.T) {
		in := createInput(both, operator("b"))
		require.Equal(t, made(t, planned(t, in)).Name, made(t, planned(t, in)).Name)
	})
	t.Run("a second worker with another view joins the plan of the first", func(t *testing.T) {
		first := made(t, planned(t, createInput([]*v1alpha1.Subscription{b}, operator("b"))))
		in := createInput(both, operator("b"))
		in.InstallPlans = olmcore.Found(first)
		out := planned(t, in)
		require.Equal(t, []string{"update InstallPlan ops/" + first.Name + " (ManualOwner)"}, describe(out.Result))
		after := out.Actions[0].(olmcore.Update).After.(*v1alpha1.InstallPlan)
		same(t, []metav1.OwnerReference{ownerRef(b), ownerRef(installedA)}, after.OwnerReferences)
		require.Equal(t, v1alpha1.ApprovalManual, after.Spec.Approval)
		require.False(t, after.Spec.Approved)
	})
	t.Run("lost references and labels come back from the plan's own memory", func(t *testing.T) {
		p := made(t, planned(t, createInput([]*v1alpha1.Subscription{a, b}, operator("a"), operator("b"))))
		p.OwnerReferences, p.Labels = nil, nil
		p.Status.Phase, p.Status.Plan, p.Finalizers = complete, []*v1alpha1.Step{csvStep("a.v1")}, nil
		after := reconcile(t, input(p, with(a, b))).Actions[0].(olmcore.Update).After
		same(t, []metav1.OwnerReference{ownerRef(a), ownerRef(b)}, after.GetOwnerReferences())
		same(t, map[string]string{"operators.coreos.com/a.ops": "", "operators.coreos.com/b.ops": ""}, after.GetLabels())
	})
}
