// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestRelationsThatNeedNoRepair, and those that do.
func TestRelationsThatNeedNoRepair(t *testing.T) {
	a := subscription("a")
	marked := subscription("g", generated("install-x"))
	ref := func(change func(*corev1.ObjectReference)) *v1alpha1.Subscription {
		return subscription("b", refersTo("install-x"), func(s *v1alpha1.Subscription) { change(s.Status.InstallPlanRef) })
	}
	formed := func(change func(*metav1.OwnerReference)) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { change(&p.OwnerReferences[0]) }
	}
	for name, c := range map[string]struct {
		plan   *v1alpha1.InstallPlan
		subs   []olmcore.Object
		config installplan.Config
		repair bool
	}{
		"a reference to a plan of another namespace": {plan: plan(complete, nil), subs: []olmcore.Object{ref(func(r *corev1.ObjectReference) { r.Namespace = "there" })}},
		"a reference to an earlier plan of its name": {plan: plan(complete, nil), subs: []olmcore.Object{ref(func(r *corev1.ObjectReference) { r.UID = "before" })}},
		"a reference without UID":                    {plan: plan(complete, nil), subs: []olmcore.Object{ref(func(r *corev1.ObjectReference) { r.UID = "" })}, repair: true},
		"a Subscription without UID":                 {plan: plan(complete, nil, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/b.ops": ""} }), subs: []olmcore.Object{subscription("b", refersTo("install-x"), func(s *v1alpha1.Subscription) { s.UID = "" })}},
		"a version that a finished plan installed":   {plan: plan(complete, []*v1alpha1.Step{csvStep("b.v1")}), subs: []olmcore.Object{subscription("b", current("b.v1"))}},
		"a version that a running plan installs":     {plan: plan(installing, []*v1alpha1.Step{csvStep("b.v1")}), subs: []olmcore.Object{subscription("b", current("b.v1"))}, repair: true},
		"an owner under another name":                {plan: plan(complete, nil, ownedBy(a), formed(func(r *metav1.OwnerReference) { r.Name = "old" })), subs: []olmcore.Object{subscription("a", refersTo("install-x"))}, repair: true},
		"an owner that controls":                     {plan: plan(complete, nil, ownedBy(a), formed(func(r *metav1.OwnerReference) { r.Controller = new(true) })), subs: []olmcore.Object{subscription("a", refersTo("install-x"))}, repair: true},
		"no finalizer where there shall be none":     {plan: plan(installing, nil, func(p *v1alpha1.InstallPlan) { p.Finalizers = nil }), config: installplan.Config{DisableFinalizer: true}},
		"a finalizer where there shall be none":      {plan: plan(installing, nil, held), config: installplan.Config{DisableFinalizer: true}, repair: true},
		"a running plan without finalizer":           {plan: plan(installing, []*v1alpha1.Step{csvStep("a.v1")})},
		"a mark that is left, without finalizer":     {plan: plan(complete, nil, ownedBy(marked)), subs: []olmcore.Object{marked}},
		"a mark of one that moved on":                {plan: plan(complete, nil, ownedBy(marked)), subs: []olmcore.Object{subscription("g", generated("install-x"), refersTo("install-y"))}},
		"a Manual owner of a finished plan":          {plan: plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(a)), subs: []olmcore.Object{subscription("a", manual)}},
		"a Manual owner of a plan that has started":  {plan: plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(a), started(time.Second)), subs: []olmcore.Object{subscription("a", manual)}},
		"a Manual owner of a plan that was retried":  {plan: plan(installing, []*v1alpha1.Step{withStatus(created, csvStep("a.v1"))}, ownedBy(a)), subs: []olmcore.Object{subscription("a", manual)}},
		"a Manual owner that goes":                   {plan: plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(a)), subs: []olmcore.Object{subscription("a", manual, func(s *v1alpha1.Subscription) { s.DeletionTimestamp = ago(0) })}},
		"a Manual owner of a plan that has not":      {plan: plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(a)), subs: []olmcore.Object{subscription("a", manual)}, repair: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.plan, with(c.subs...))
			in.Config = c.config
			actions := reconcile(t, in).Actions
			require.Equal(t, c.repair, len(actions) > 0 && slices.Contains([]string{installplan.ReasonRelationRepaired, installplan.ReasonManualOwner}, reasonOf(actions[0])))
		})
	}
}
