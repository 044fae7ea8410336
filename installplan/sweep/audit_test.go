// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/sweep"
	"github.com/olmcore/olm/olmcore"
)

// apply does to the input what a cluster does with the actions.
func apply(in *sweep.Input, result olmcore.Result) {
	for _, a := range result.Actions {
		verb, target, _ := a.Describe()
		for i, p := range in.InstallPlans.Items {
			if p.Name != target.Name || target.Kind != "InstallPlan" {
				continue
			}
			if verb == olmcore.VerbDelete {
				in.InstallPlans.Items = append(in.InstallPlans.Items[:i:i], in.InstallPlans.Items[i+1:]...)
				break
			}
			in.InstallPlans.Items[i] = a.(olmcore.Update).After.(*v1alpha1.InstallPlan)
		}
		for i, s := range in.Subscriptions.Items {
			if s.Name == target.Name && target.Kind == "Subscription" {
				in.Subscriptions.Items[i] = a.(olmcore.Update).After.(*v1alpha1.Subscription)
			}
		}
		if target.Kind == "ConfigMap" {
			in.ConfigMaps = olmcore.Found[*corev1.ConfigMap]()
		}
	}
}

// findings has, for each reason of the audit, a world that has it and the world as it is once a user repaired what
// Reconcile does not repair itself.
var findings = map[string]struct {
	world []olmcore.Object
	steps []sweep.StepObjects
	mend  func(in *sweep.Input)
}{
	"OwnerReferenceMissing": {world: []olmcore.Object{subscription("a", refersTo("install-1")), subscription("b"), owned(numbered(1, complete), subscription("b"))}},
	"OwnerReferenceStale": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, complete), subscription("a", func(s *v1alpha1.Subscription) {
		s.UID = "before"
	}))}},
	"PlanWithoutOwner": {world: []olmcore.Object{subscription("a", func(s *v1alpha1.Subscription) { s.CreationTimestamp = *ago(200 * time.Hour) }),
		numbered(1, complete, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/a.ops": ""} })}},
	"ComponentLabelMissing": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, complete, func(p *v1alpha1.InstallPlan) {}), subscription("a"))},
		mend: func(*sweep.Input) {}},
	"ComponentLabelUnused": {world: []olmcore.Object{subscription("a"), owned(numbered(1, complete), subscription("a"), subscription("b"))},
		mend: func(in *sweep.Input) { in.Subscriptions.Items = append(in.Subscriptions.Items, subscription("b")) }},
	"PlanReferenceDangling": {world: []olmcore.Object{subscription("a", refersTo("install-9"), writtenAgo(time.Hour))},
		mend: func(in *sweep.Input) { in.Subscriptions = olmcore.Found(subscription("a")) }},
	"GeneratedByDangling": {world: []olmcore.Object{subscription("a", generated("install-9"))}},
	"PlansCollide": {world: []olmcore.Object{subscription("a"), owned(numbered(1, complete), subscription("a")),
		owned(numbered(2, complete, func(p *v1alpha1.InstallPlan) {}), subscription("a"))},
		mend: func(in *sweep.Input) { in.InstallPlans.Items = in.InstallPlans.Items[:1] }},
	"GeneratedOwnerMissing":   {world: []olmcore.Object{subscription("a", generated("install-1")), subscription("b"), owned(numbered(1, complete), subscription("b"))}},
	"OwnerReferenceDuplicate": {world: []olmcore.Object{subscription("a"), owned(numbered(1, complete), subscription("a"), subscription("a"))}},
	"CurrentCSVNotInPlan": {world: []olmcore.Object{subscription("a", refersTo("install-1"), current("a.v2")), owned(numbered(1, complete), subscription("a"))},
		mend: func(in *sweep.Input) {
			in.Subscriptions = olmcore.Found(subscription("a", refersTo("install-1"), current("a.v1")))
		}},
	"PlanWithoutStatus": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, none, withoutSteps), subscription("a"))},
		mend: func(in *sweep.Input) { in.Subscriptions = olmcore.Found(subscription("a")) }},
	"UnpackedBundleUnused": {world: []olmcore.Object{unpackedBundle(25 * time.Hour)}},
	"StepObjectAbsent": {world: []olmcore.Object{subscription("a", refersTo("install-1")), owned(numbered(1, complete), subscription("a"))},
		steps: []sweep.StepObjects{{InstallPlan: "uid-install-1"}},
		mend: func(in *sweep.Input) {
			in.Steps = []sweep.StepObjects{{InstallPlan: "uid-install-1", Objects: []olmcore.Object{csv("a.v1")}}}
		}},
}

// TestEachFindingIsReportedAndRepaired: once the repair ran, or a user did what the reason says, the audit finds
// nothing of the kind.
func TestEachFindingIsReportedAndRepaired(t *testing.T) {
	for reason, c := range findings {
		t.Run(reason, func(t *testing.T) {
			in := sweepInput(c.world...)
			in.Steps = c.steps
			switch reason {
			case "ComponentLabelMissing":
				in.InstallPlans.Items[0].Labels = nil
			case "PlansCollide":
				in.InstallPlans.Items[1].Spec.Generation = 1
			}
			require.NoError(t, invariant.Laws(sweepResult, in))
			first := swept(t, in)
			require.Contains(t, reasons(first), reason)
			for range 3 {
				result := swept(t, in)
				apply(&in, result)
			}
			if c.mend != nil {
				c.mend(&in)
			}
			if c.mend != nil {
				apply(&in, swept(t, in))
			}
			last := swept(t, in)
			require.NotContains(t, reasons(last), reason, "%v", last.Diagnostics)
			require.Empty(t, describe(last))
		})
	}
}

// TestWhatIsInOrderIsNotReported: what looks like a finding of the audit, and is none yet, or any more.
func TestWhatIsInOrderIsNotReported(t *testing.T) {
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

// TestLabelProvesNoLaterSubscription: a Subscription that is younger than the plan does not inherit it.
func TestLabelProvesNoLaterSubscription(t *testing.T) {
	p := numbered(1, complete, func(p *v1alpha1.InstallPlan) { p.Labels = map[string]string{"operators.coreos.com/a.ops": ""} })
	got := swept(t, sweepInput(subscription("a", bornAgo(time.Minute)), p))
	require.Empty(t, describe(got))
	require.Equal(t, []string{"PlanWithoutOwner"}, reasons(got))
	require.Equal(t, "no Subscription owns the plan, and nothing says which should", got.Diagnostics[0].Message)
}

// TestAPackageThatThePlanRemembers: its label is missed although the Subscription moved on.
func TestAPackageThatThePlanRemembers(t *testing.T) {
	p := owned(numbered(1, complete), subscription("a"))
	p.Labels = nil
	p.Annotations = map[string]string{"olmcore/packages": "a"}
	got := swept(t, sweepInput(subscription("a"), p))
	require.Equal(t, []string{"ComponentLabelMissing"}, reasons(got))
	require.Equal(t, []string{"update InstallPlan ops/install-1 (RelationRepaired)"}, describe(got))
}

// TestGeneratedSubscriptionIsMadeAnOwner: nothing is said about one that has just been made.
func TestGeneratedSubscriptionIsMadeAnOwner(t *testing.T) {
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
