// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

func TestPackagesOfProperties(t *testing.T) {
	for text, want := range map[string][]string{
		``:   nil,
		`{}`: nil,
		`x`:  nil,
		`{"properties":[{"type":"olm.gvk","value":{"packageName":"a"}},{"type":"olm.package","value":{"packageName":"b"}}]}`: {"b"},
		`{"properties":[{"type":"olm.package","value":{}},{"type":"olm.package","value":"c"},{"type":"x","value":1}]}`:       nil,
		`{"properties":[{"type":"x","value":"y"},{"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}]}`:     {"b"},
	} {
		require.Equal(t, want, olmcore.PackagesOf(text), text)
	}
}

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
		"b does not own it now":    {change: changes{annotated(olmcore.AnnotationContributors, "a-uid,b-uid")}, want: true},
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
		require.Equal(t, tt.want, olmcore.IsSharedPlan(p, all, func(name string) bool { return name == "a" }), name)
		require.False(t, olmcore.IsSharedPlan(p, all, func(string) bool { return true }), "%s: all are one set", name)
	}
}

// TestAVersionIsNeverInstalledOnlyIfItsHistoryProvesIt: the phase, and the conditions as far as they are kept.
func TestAVersionIsNeverInstalledOnlyIfItsHistoryProvesIt(t *testing.T) {
	const pending, failed, succeeded = v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseSucceeded
	type phases = []v1alpha1.ClusterServiceVersionPhase
	for name, c := range map[string]struct {
		phase   v1alpha1.ClusterServiceVersionPhase
		history phases
		want    bool
	}{
		"just created":                        {v1alpha1.CSVPhaseNone, nil, true},
		"pending, without conditions":         {pending, nil, true},
		"pending from the start":              {pending, phases{pending}, true},
		"pending after it was installed":      {pending, phases{pending, v1alpha1.CSVPhaseInstalling, succeeded, pending}, false},
		"failed from the start":               {failed, phases{pending, failed}, true},
		"failed after it was installed":       {failed, phases{pending, succeeded, failed}, false},
		"failed, without conditions":          {failed, nil, false},
		"the history is almost cut":           {pending, slices.Repeat(phases{pending}, v1alpha1.ConditionsLengthLimit-1), true},
		"the history is cut":                  {pending, slices.Repeat(phases{pending}, v1alpha1.ConditionsLengthLimit), false},
		"it is being installed":               {v1alpha1.CSVPhaseInstalling, phases{pending}, false},
		"its requirements are met":            {v1alpha1.CSVPhaseInstallReady, phases{pending}, false},
		"it is installed":                     {succeeded, phases{pending, succeeded}, false},
		"it is being replaced":                {v1alpha1.CSVPhaseReplacing, phases{pending}, false},
		"it is deleted after its replacement": {v1alpha1.CSVPhaseDeleting, phases{pending}, false},
		"its phase is unknown":                {v1alpha1.CSVPhaseUnknown, phases{pending}, false},
	} {
		version := &v1alpha1.ClusterServiceVersion{}
		version.Status.Phase = c.phase
		for _, p := range c.history {
			version.Status.Conditions = append(version.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: p})
		}
		require.Equal(t, c.want, olmcore.NeverInstalled(version), name)
	}
}
