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
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
)

func stepless(p *v1alpha1.InstallPlan) { p.Status.Plan = nil }

func bornAgo(d time.Duration) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) { s.CreationTimestamp = *ago(d) }
}

// TestWhichPlansASweepTakes: six plans, of which the first is the oldest; what
// speaks for keeping it, and what does not.
func TestWhichPlansASweepTakes(t *testing.T) {
	reference := func(name string, uid types.UID) *v1alpha1.Subscription {
		return subscription("b", func(s *v1alpha1.Subscription) {
			s.Status.LastUpdated = metav1.NewTime(noon)
			s.Status.InstallPlanRef = &corev1.ObjectReference{Namespace: ns, Name: name, UID: uid}
		})
	}
	olderCreation := func(p *v1alpha1.InstallPlan) *v1alpha1.InstallPlan { p.CreationTimestamp = *ago(time.Minute); return p }
	sub := subscription("a")
	for name, c := range map[string]struct {
		objects []olmcore.Object
		taken   string
	}{
		"nothing":                                  {history(6, subscription("a")), "install-1"},
		"a reference by name alone":                {append(history(6, subscription("a")), reference("install-1", "before")), ""},
		"a reference by UID alone":                 {append(history(6, subscription("a")), reference("install-7", "uid-install-1")), ""},
		"a Subscription that it made, no more":     {append(history(6, subscription("a")), subscription("b", generated("install-1"))), ""},
		"a Subscription that it made, moved on":    {append(history(6, subscription("a")), subscription("b", generated("install-1"), refersTo("install-6"))), "install-1"},
		"the generation, whatever the time":        {swapped(history(6, subscription("a")), olderCreation(owned(numbered(1, complete), sub))), "install-1"},
		"steps that a finished plan does not have": {swapped(history(6, subscription("a")), owned(numbered(1, failed, stepless), sub)), "install-1"},
	} {
		t.Run(name, func(t *testing.T) {
			taken := ""
			for _, a := range swept(t, sweepInput(c.objects...)).Actions {
				if verb, target, _ := a.Describe(); verb == olmcore.VerbDelete {
					taken += target.Name
				}
			}
			require.Equal(t, c.taken, taken)
		})
	}
	finished := owned(numbered(1, complete, stepless), sub)
	require.Empty(t, swept(t, sweepInput(sub, finished)).Actions, "history without steps is history")
	five := append(active(sub)[:6], owned(numbered(9, complete), sub))
	require.Empty(t, swept(t, sweepInput(five...)).Diagnostics, "five active ones are not too many")
}

// TestWhatASweepDeletesItDoesNotRepair, nor report.
func TestWhatASweepDeletesItDoesNotRepair(t *testing.T) {
	objects := history(6, subscription("a"))
	objects[1].(*v1alpha1.InstallPlan).OwnerReferences = nil
	got := swept(t, sweepInput(objects...))
	require.Equal(t, []string{"delete InstallPlan ops/install-1 (PlanHistory)"}, describe(got))
	require.Empty(t, got.Diagnostics)
}

// TestFindingsThatAreNone: what looks like a finding of the audit, and is none
// yet, or any more.
func TestFindingsThatAreNone(t *testing.T) {
	inOrder := func(change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
		return owned(numbered(1, complete, change...), subscription("a"))
	}
	copyOf := func(generation int, hash string, change ...func(*v1alpha1.InstallPlan)) *v1alpha1.InstallPlan {
		p := owned(numbered(2, complete, change...), subscription("a"))
		p.Spec.Generation = generation
		p.Annotations = map[string]string{"olmcore/content-hash": hash}
		return p
	}
	hashed := func(p *v1alpha1.InstallPlan) { p.Annotations = map[string]string{"olmcore/content-hash": "h"} }
	ungenerated := inOrder()
	ungenerated.Spec.Generation = 0
	earlier := func(age time.Duration) *v1alpha1.Subscription {
		return subscription("a", func(s *v1alpha1.Subscription) { s.UID, s.CreationTimestamp = "other", *ago(age) })
	}
	notMade := inOrder()
	notMade.Status.Plan = append(notMade.Status.Plan, withStatus(v1alpha1.StepStatusNotCreated, roleStep("a.v1", "r")))
	misnamed := inOrder()
	misnamed.Status.Plan[0].Resource.Name = "step"
	made := inOrder()
	made.Status.Plan = append(made.Status.Plan, withStatus(created, step("", "operators.coreos.com", "v1alpha1", "Subscription", "s", `{"metadata":{"name":"s"}}`)))
	there := []sweep.StepObjects{{InstallPlan: "uid-install-1", Objects: []olmcore.Object{csv("a.v1")}}}

	for name, c := range map[string]struct {
		world   []olmcore.Object
		steps   []sweep.StepObjects
		requeue time.Duration
	}{
		"a reference that was just written":          {world: []olmcore.Object{subscription("a", refersTo("install-9"), writtenAgo(time.Minute))}, requeue: 4 * time.Minute},
		"a Subscription that was just made":          {world: []olmcore.Object{subscription("a", generated("install-9"), bornAgo(time.Minute))}, requeue: 4 * time.Minute},
		"a Subscription whose plan is there":         {world: []olmcore.Object{subscription("a", generated("install-1")), inOrder(func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} })}},
		"another version before the plan has steps":  {world: []olmcore.Object{subscription("a", refersTo("install-1"), current("a.v2")), owned(numbered(1, none, withoutSteps, func(p *v1alpha1.InstallPlan) { p.Status.BundleLookups = make([]v1alpha1.BundleLookup, 1) }), subscription("a"))}},
		"two plans without generation":               {world: []olmcore.Object{subscription("a"), ungenerated, copyOf(0, "")}},
		"two plans of one content, one of them done": {world: []olmcore.Object{subscription("a"), inOrder(hashed), copyOf(2, "h")}},
		"two plans of one generation, one goes":      {world: []olmcore.Object{subscription("a"), inOrder(), copyOf(1, "", gone)}},
		"an owner that is older than the plan":       {world: []olmcore.Object{earlier(200 * time.Hour), inOrder()}},
		"a step that was left out":                   {world: []olmcore.Object{subscription("a", refersTo("install-1")), notMade}, steps: there},
		"a Subscription that a user deleted":         {world: []olmcore.Object{subscription("a", refersTo("install-1")), made}, steps: there},
		"an object under the name of its manifest":   {world: []olmcore.Object{subscription("a", refersTo("install-1")), misnamed}, steps: there},
		"a label that names nobody who came later": {world: []olmcore.Object{subscription("a", bornAgo(time.Minute)), numbered(1, complete, func(p *v1alpha1.InstallPlan) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Subscription", Name: "z", UID: "z"}}
			p.Labels = map[string]string{"operators.coreos.com/a.ops": ""}
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			in := sweepInput(c.world...)
			in.Steps = c.steps
			got := swept(t, in)
			require.Empty(t, got.Diagnostics)
			require.Empty(t, describe(got))
			require.Equal(t, c.requeue, got.RequeueAfter)
		})
	}
}

// TestALabelProvesNobodyWhoCameLater: a Subscription that is younger than the plan
// does not inherit it.
func TestALabelProvesNobodyWhoCameLater(t *testing.T) {
	p := numbered(1, complete, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/a.ops": ""} })
	got := swept(t, sweepInput(subscription("a", bornAgo(time.Minute)), p))
	require.Empty(t, describe(got))
	require.Equal(t, []string{"PlanWithoutOwner"}, reasons(got))
	require.Equal(t, "no Subscription owns the plan, and nothing says which should", got.Diagnostics[0].Message)
}

// TestAPackageThatThePlanRemembers: its label is missed although the Subscription
// moved on.
func TestAPackageThatThePlanRemembers(t *testing.T) {
	p := owned(numbered(1, complete), subscription("a"))
	p.Labels = nil
	p.Annotations = map[string]string{"olmcore/packages": "a"}
	got := swept(t, sweepInput(subscription("a"), p))
	require.Equal(t, []string{"ComponentLabelMissing"}, reasons(got))
	require.Equal(t, []string{"update InstallPlan ops/install-1 (RelationRepaired)"}, describe(got))
}

// TestUnpackedBundlesThatStay, and when to look again.
func TestUnpackedBundlesThatStay(t *testing.T) {
	first, other := unpackedBundle(23*time.Hour), unpackedBundle(22*time.Hour)
	first.Name = "0" + bundleName[1:]
	require.Equal(t, time.Hour, swept(t, sweepInput(first, unpackedBundle(22*time.Hour))).RequeueAfter)
	other.Name = "0" + bundleName[1:]
	require.Equal(t, time.Hour, swept(t, sweepInput(other, unpackedBundle(23*time.Hour))).RequeueAfter)
	require.Equal(t, time.Hour, swept(t, sweepInput(unpackedBundle(23*time.Hour), other)).RequeueAfter)
	for name, change := range map[string]func(*corev1.ConfigMap){
		"goes already":                  func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = ago(0) },
		"not OLM's":                     func(cm *corev1.ConfigMap) { cm.Labels = nil },
		"of a CatalogSource of another": func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].APIVersion = "example.com/v1" },
	} {
		cm := unpackedBundle(25 * time.Hour)
		change(cm)
		require.Empty(t, swept(t, sweepInput(cm)).Actions, name)

		p := plan(installing, []*v1alpha1.Step{step("a.v1", "", "v1", "ConfigMap", "x", reference())}, func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = ago(0) })
		in := input(p, func(in *installplan.Input) { in.ConfigMaps = []*corev1.ConfigMap{cm} })
		if name != "goes already" {
			require.IsType(t, olmcore.Update{}, reconcile(t, in).Actions[0], name)
		}
	}
}

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

// TestAGeneratedSubscriptionIsAnOwnerAsAMatterOfCourse: nothing is said about one
// that has just been made.
func TestAGeneratedSubscriptionIsAnOwnerAsAMatterOfCourse(t *testing.T) {
	for age, want := range map[time.Duration][]string{
		0: nil, 9 * time.Second: nil, 10 * time.Second: {sweep.ReasonGeneratedOwnerMissing},
	} {
		p := plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(subscription("a")))
		g := subscription("g", generated("install-x"), func(s *v1alpha1.Subscription) { s.CreationTimestamp = *ago(age) })
		r := swept(t, sweepInput(p, subscription("a"), g))
		require.Len(t, r.Actions, 1, "it is made one")
		got := slices.DeleteFunc(reasons(r), func(reason string) bool { return reason != sweep.ReasonGeneratedOwnerMissing })
		same(t, want, got)
	}
}
