// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/plans"
	"github.com/olmcore/olm/olmcore"
)

// TestSharedPlans checks which plans were made for other Subscriptions than a, too, and may still be replaced.
func TestSharedPlans(t *testing.T) {
	subscription := func(name, plan string) *v1alpha1.Subscription {
		s := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid")}}
		if plan != "" {
			s.Status.InstallPlanRef = &corev1.ObjectReference{Name: plan}
		}
		return s
	}
	both := func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = append(p.OwnerReferences, olmcore.OwnerReferenceTo(subscription("b", "")))
	}
	manual := func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }
	phase := func(phase v1alpha1.InstallPlanPhase) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Status.Phase = phase }
	}
	approved := func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, true }
	started := func(p *v1alpha1.InstallPlan) { p.Status.StartTime = new(metav1.Now()) }
	applied := func(p *v1alpha1.InstallPlan) { p.Status.Plan[0].Status = v1alpha1.StepStatusCreated }
	empty := func(p *v1alpha1.InstallPlan) { p.Status.Plan = nil }
	deleted := func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = new(metav1.Now()) }
	annotated := func(key, value string) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{key: value} }
	}
	config := func(p *v1alpha1.InstallPlan) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "ConfigMap", UID: "x"})
	}
	type changes = []func(*v1alpha1.InstallPlan)
	for name, tt := range map[string]struct {
		change changes
		ref    string // the plan that b references
		want   bool
	}{
		"for a alone":              {},
		"b owns it":                {change: changes{both}, want: true},
		"b references it":          {ref: "p", want: true},
		"b has another":            {ref: "q"},
		"a waits with b":           {change: changes{both, manual, phase(v1alpha1.InstallPlanPhaseRequiresApproval)}, want: true},
		"it has no steps yet":      {change: changes{both, empty}, want: true},
		"b does not own it now":    {change: changes{annotated(plans.AnnotationContributors, "a-uid,b-uid")}, want: true},
		"an owner of another kind": {change: changes{config}},
		"a user approved it":       {change: changes{both, approved}},
		"it has started":           {change: changes{both, started}},
		"it has applied a step":    {change: changes{both, applied}},
		"it is complete":           {change: changes{both, phase(v1alpha1.InstallPlanPhaseComplete)}},
		"it has failed":            {change: changes{both, phase(v1alpha1.InstallPlanPhaseFailed)}},
		"it is being deleted":      {change: changes{both, deleted}},
		"it was made for a set":    {change: changes{both, annotated(olmcore.AnnotationSeparatePlan, "true")}},
	} {
		p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p-uid"}}
		p.OwnerReferences = []metav1.OwnerReference{olmcore.OwnerReferenceTo(subscription("a", ""))}
		p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalAutomatic, true
		p.Status.Phase, p.Status.Plan = v1alpha1.InstallPlanPhaseInstalling, []*v1alpha1.Step{{Status: v1alpha1.StepStatusUnknown}}
		for _, change := range tt.change {
			change(p)
		}
		all := []*v1alpha1.Subscription{subscription("a", "p"), subscription("b", tt.ref)}
		require.Equal(t, tt.want, plans.IsShared(p, all, func(name string) bool { return name == "a" }), name)
		require.False(t, plans.IsShared(p, all, func(string) bool { return true }), "%s: all are one set", name)
	}
}
