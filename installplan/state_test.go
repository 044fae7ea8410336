// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryEdgeIsTaken by a state of its own; who takes it is told apart by the cases of TestPhases and
// TestCreateMakesAPlanInTwoRounds.
func TestEveryEdgeIsTaken(t *testing.T) {
	blocked := plan(installing, []*v1alpha1.Step{step("", "", "v1", "Gizmo", "g", "{}")}, started(0))
	done := plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, started(0))
	asked := func(approved bool) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, approved }
	}
	retried := input(plan(failed, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) {
		p.Status.AttenuatedServiceAccountRef = olmReference("scoped")
	}))
	retried.RBACChanged = true
	taken := map[installplan.State]bool{"": true}
	for _, in := range []installplan.Input{
		input(plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, asked(true))),
		input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, asked(false))),
		input(done, with(csv("a.v1"))), input(blocked), retried,
		input(plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(subscription("a"))), with(follows("a", "install-y", 2))),
		input(plan(installing, []*v1alpha1.Step{csvStep("a.v1")}, ownedBy(subscription("a"))), with(follows("a", "install-y", 2))),
	} {
		a := assess(t, in)
		require.Contains(t, installplan.Phases(), edge(in.InstallPlan.Status.Phase, a.Phase, a.State))
		taken[a.State] = true
	}
	for _, e := range installplan.Phases() {
		require.True(t, taken[installplan.State(e.By)], "%+v", e)
	}
}

// repairs reports an Update of the plan's metadata.
func repairs(a olmcore.Action) bool {
	return slices.Contains([]string{installplan.ReasonRelationRepaired, installplan.ReasonManualOwner, installplan.ReasonPlanDone}, reasonOf(a))
}

func reasonOf(a olmcore.Action) string {
	_, _, cause := a.Describe()
	return cause.Reason
}

// TestAssessLooksPastRelations: a plan of OLM's has neither our finalizer nor all of our labels, and one that is done
// may have them still.
func TestAssessLooksPastRelations(t *testing.T) {
	a := subscription("a", refersTo("install-x"))
	asked := func(p *v1alpha1.InstallPlan) { p.Spec.Approval, p.Spec.Approved = v1alpha1.ApprovalManual, false }
	for name, c := range map[string]struct {
		plan  *v1alpha1.InstallPlan
		phase v1alpha1.InstallPlanPhase
		want  installplan.State
	}{
		"waits":    {plan(requiresApproval, []*v1alpha1.Step{csvStep("a.v1")}, asked), requiresApproval, installplan.StateRequiresApproval},
		"complete": {plan(complete, []*v1alpha1.Step{csvStep("a.v1")}), complete, installplan.StateComplete},
		"held":     {plan(complete, []*v1alpha1.Step{csvStep("a.v1")}, func(p *v1alpha1.InstallPlan) { p.Finalizers = []string{installplan.Finalizer} }), complete, installplan.StateComplete},
		"failed":   {plan(failed, []*v1alpha1.Step{csvStep("a.v1")}), failed, installplan.StateFailed},
		"starts":   {plan(installing, []*v1alpha1.Step{csvStep("a.v1")}), installing, installplan.StateStarting},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.plan, with(a))
			require.Len(t, reconcile(t, in).Actions, 1)
			require.True(t, repairs(reconcile(t, in).Actions[0]))
			got := assess(t, in)
			require.Equal(t, c.want, got.State)
			require.Equal(t, c.phase, got.Phase)
		})
	}
}

// TestNoOtherEdgeOccurs, whatever the input, and Assess decides as Reconcile does.
func TestNoOtherEdgeOccurs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := eitherInput(t)
		r, err := reconcileResult(in)
		require.NoError(t, err)
		from, to := in.InstallPlan.Status.Phase, statusOf(in, r).Phase
		a := assess(t, in)
		if len(r.Actions) == 1 && repairs(r.Actions[0]) {
			require.Empty(t, r.Transitions)
			return // Assess looks past it
		}
		require.Equal(t, to, a.Phase)
		require.Equal(t, r.RequeueAfter, a.RequeueAfter)
		if from == to {
			require.Empty(t, r.Transitions)
			return
		}
		require.True(t, slices.Contains(installplan.Phases(), edge(from, to, a.State)), "%s -> %s in %s", from, to, a.State)
		require.Len(t, r.Transitions, 1)
		require.Equal(t, string(to), r.Transitions[0].To)
	})
}

// TestRulesOfEveryRound are what must hold of a single decision.
func TestRulesOfEveryRound(t *testing.T) {
	rounds, asked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		rounds++
		in := eitherInput(t)
		p := in.InstallPlan
		r, err := reconcileResult(in)
		require.NoError(t, err)
		got := statusOf(in, r)
		var steps []olmcore.Action
		for _, a := range r.Actions {
			_, target, _ := a.Describe()
			if target.Kind == "InstallPlan" {
				continue
			}
			if p.DeletionTimestamp == nil {
				steps = append(steps, a)
			} else {
				require.Equal(t, "Subscription", target.Kind)
			}
			rulesOfActions(t, in, a)
			asked++
		}
		if len(steps) > 0 {
			require.Equal(t, installing, p.Status.Phase)
			require.Equal(t, installing, got.Phase)
			require.NotNil(t, p.Status.StartTime)
			require.NotEmpty(t, in.OperatorGroups)
		}
		if got.Phase == complete && p.Status.Phase != complete {
			require.Empty(t, steps)
			for _, s := range got.Plan {
				require.True(t, s.Status == created || s.Status == present || s.Optional && s.Status == v1alpha1.StepStatusNotCreated)
				require.True(t, s.Status == v1alpha1.StepStatusNotCreated || observes(in, s), "%s was not seen", s.Resource.Name)
			}
		}
		if before := p.Status.StartTime; before != nil && got.StartTime == nil {
			require.Equal(t, failed, p.Status.Phase)
		} else if before != nil {
			require.Equal(t, before, got.StartTime)
		}
		for _, d := range r.Diagnostics {
			if d.Reason == installplan.ReasonStepRefused {
				require.Empty(t, steps, "a step is refused")
			}
		}
		changes, err := schemaChanges(in)
		require.NoError(t, err)
		for _, change := range changes {
			require.Same(t, in.CustomResourceDefinitions.Items[0], change.Before)
			for _, v := range in.CustomResources.Items {
				if len(v.New) > 0 && len(v.Old) == 0 && slices.Contains(change.Versions, v.Version) {
					require.Empty(t, steps, "a resource would become invalid")
				}
			}
		}
		for _, a := range steps {
			if u, ok := a.(olmcore.Update); ok {
				require.True(t, judged(u, changes), "a schema changes and nobody was asked")
			}
		}
		for i, s := range got.Plan {
			if len(got.Plan) == len(p.Status.Plan) && s != nil && s.Status == waitingAPI && p.Status.Plan[i] != nil && p.Status.Plan[i].Status != waitingAPI {
				require.Equal(t, "CustomResourceDefinition", s.Resource.Kind)
			}
		}
	})
	if rounds >= 100 {
		require.Greater(t, asked, rounds/10, "the rules were hardly tried")
	}
}

// judged reports whether the schemas that an update changes were asked about.
func judged(u olmcore.Update, changes []installplan.SchemaChange) bool {
	before, ok := u.Before.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || len(before.Spec.Versions) == 0 {
		return true
	}
	after := u.After.(*apiextensionsv1.CustomResourceDefinition)
	if after.Spec.Versions[0].Name != before.Spec.Versions[0].Name || cmp.Equal(after.Spec.Versions[0].Schema, before.Spec.Versions[0].Schema) {
		return true
	}
	return slices.ContainsFunc(changes, func(c installplan.SchemaChange) bool { return c.Before == before })
}

// observes reports whether the object of a step is in the input.
func observes(in installplan.Input, s *v1alpha1.Step) bool {
	switch name := s.Resource.Name; s.Resource.Kind {
	case "ClusterServiceVersion":
		return versionIn(in, name) != nil
	case "CustomResourceDefinition":
		return slices.ContainsFunc(in.CustomResourceDefinitions.Items, func(o *apiextensionsv1.CustomResourceDefinition) bool { return o.Name == name })
	case "Subscription":
		return slices.ContainsFunc(in.Subscriptions.Items, func(o *v1alpha1.Subscription) bool { return o.Name == name })
	}
	kind := strings.TrimPrefix(s.Resource.Kind, "Bundle")
	return slices.ContainsFunc(in.Objects.Items, func(o olmcore.Object) bool { return olmcore.KeyOf(o).Kind == kind && o.GetName() == s.Resource.Name })
}

// rulesOfActions are what must hold of a write to the object of a step.
func rulesOfActions(t *rapid.T, in installplan.Input, a olmcore.Action) {
	_, target, _ := a.Describe()
	var o olmcore.Object
	switch a := a.(type) {
	case olmcore.Create:
		o = a.Object
		require.Equal(t, "true", o.GetLabels()[olmcore.LabelManaged], "%s", target)
		for _, s := range in.InstallPlan.Status.Plan {
			if s == nil || s.Resolving == "" || s.Resource.Name != target.Name || strings.TrimPrefix(s.Resource.Kind, "Bundle") != target.Kind || s.Resource.Kind == "Secret" {
				continue
			}
			if owner := versionIn(in, s.Resolving); owner != nil && target.Namespace != "" && target.Kind != "ClusterServiceVersion" && target.Kind != "Subscription" {
				require.True(t, olmcore.OwnedBy(o, owner.UID), "%s is not owned by %s", target, s.Resolving)
			}
		}
	case olmcore.Update:
		o = a.After
		keeps(t, target, a.Before, a.After)
		if !isManaged(a.Before) && target.Kind != "CustomResourceDefinition" {
			require.False(t, isManaged(o), "%s became ours", target)
		}
		if crd, ok := a.Before.(*apiextensionsv1.CustomResourceDefinition); ok {
			for _, stored := range crd.Status.StoredVersions {
				require.True(t, slices.ContainsFunc(a.After.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions,
					func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }), "version %s is lost", stored)
			}
		}
	case olmcore.Delete:
		require.NotEmpty(t, a.Target.UID)
		i := slices.IndexFunc(in.Objects.Items, func(o olmcore.Object) bool { return o.GetUID() == a.Target.UID && olmcore.KeyOf(o) == target.Key() })
		require.GreaterOrEqual(t, i, 0, "%s is no object of a step", target)
		require.True(t, isManaged(in.Objects.Items[i]), "%s is not ours", target)
		for _, ref := range in.Objects.Items[i].GetOwnerReferences() {
			require.True(t, ref.Kind != "ClusterServiceVersion" || describedFor(in, target, ref.Name), "%s belongs to %s", target, ref.Name)
		}
	}
	if o == nil {
		return
	}
	seen := map[string]bool{}
	for _, ref := range o.GetOwnerReferences() {
		require.NotEmpty(t, ref.UID)
		require.False(t, seen[string(ref.UID)], "%s has an owner twice", target)
		seen[string(ref.UID)] = true
	}
}

// describedFor reports whether a step describes an object for a version.
func describedFor(in installplan.Input, target olmcore.Ref, version string) bool {
	return slices.ContainsFunc(in.InstallPlan.Status.Plan, func(s *v1alpha1.Step) bool {
		return s != nil && s.Resolving == version && s.Resource.Name == target.Name && strings.TrimPrefix(s.Resource.Kind, "Bundle") == target.Kind
	})
}

// keeps requires of an update that what others wrote is still there.
func keeps(t *rapid.T, target olmcore.Ref, before, after olmcore.Object) {
	for key := range before.GetLabels() {
		require.Contains(t, after.GetLabels(), key, "%s lost a label", target)
	}
	for key, value := range before.GetAnnotations() {
		if key != installplan.AnnotationGeneratedBy && key != stepHash {
			require.Equal(t, value, after.GetAnnotations()[key], "%s lost an annotation", target)
		}
	}
	require.Subset(t, after.GetFinalizers(), before.GetFinalizers(), "%s lost a finalizer", target)
	for _, ref := range before.GetOwnerReferences() {
		require.True(t, olmcore.OwnedBy(after, ref.UID), "%s lost an owner", target)
	}
}

func versionIn(in installplan.Input, name string) *v1alpha1.ClusterServiceVersion {
	for _, c := range in.ClusterServiceVersions.Items {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func isManaged(o olmcore.Object) bool {
	return o.GetLabels()[olmcore.LabelManaged] == "true" || o.GetLabels()[olmcore.LabelOwner] != "" ||
		slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == "ClusterServiceVersion" })
}

func edge(from, to v1alpha1.InstallPlanPhase, state installplan.State) olmcore.Edge[v1alpha1.InstallPlanPhase] {
	return olmcore.Edge[v1alpha1.InstallPlanPhase]{From: from, To: to, By: string(state)}
}
