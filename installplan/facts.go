// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// facts are what one call observes about a plan. They are not changed. The steps are evaluated when they are first
// asked for.
type facts struct {
	in   *Input
	plan *v1alpha1.InstallPlan
	// assessing is set by Assess, which ignores writes to the metadata of the plan.
	assessing bool
	// phase is the recorded phase, or none if the API does not have it.
	phase phase
	// repair contains the owners, labels and approval that the plan should have.
	repair relation.Repair
	// later are the plans that the plan has to make way for, newest first.
	later []*v1alpha1.InstallPlan
	// account is the ServiceAccount that the OperatorGroup of the namespace prescribes. obstacle says why that is unknown,
	// or why the plan may not run under it; "" for no obstacle.
	account  *corev1.ObjectReference
	obstacle string

	evaluated *findings
}

// findings are what is found about the steps of a plan.
type findings struct {
	step.Evaluation
	// problems prevent steps from being applied. Problems that can never pass come first, then those of lower steps.
	problems []problem
	// unseen are the targets that were created and that the lists do not show.
	unseen []*step.Target
	// tries is what is known about the last try of a plan that failed.
	tries tries
}

// has reports whether one of the steps has an outcome.
func (s *findings) has(outcome step.Outcome) bool {
	return slices.ContainsFunc(s.Verdicts, func(v step.Verdict) bool { return v.Outcome == outcome })
}

// observe returns the facts about a plan.
func observe(in *Input, assessing bool) *facts {
	plan := in.InstallPlan
	f := &facts{in: in, plan: plan, assessing: assessing, phase: phaseOf(plan), repair: relation.Check(plan, in.Subscriptions.Items)}
	if f.phase == v1alpha1.InstallPlanPhaseComplete {
		return f
	}
	if f.phase != v1alpha1.InstallPlanPhaseFailed {
		f.later = in.later()
	}
	f.account, f.obstacle = relation.AccountOf(in.OperatorGroups.Items)
	if f.obstacle == "" {
		f.obstacle = relation.AccountChange(plan, f.account)
	}
	return f
}

// phaseOf returns the recorded phase of a plan, or none if the API does not have it.
func phaseOf(plan *v1alpha1.InstallPlan) phase {
	if !slices.Contains(everyPhase, plan.Status.Phase) {
		return v1alpha1.InstallPlanPhaseNone
	}
	return plan.Status.Phase
}

// steps returns what is found about the steps, before anything is applied.
func (f *facts) steps() *findings {
	if f.evaluated != nil {
		return f.evaluated
	}
	e := step.Evaluate(stepInput(f.in, f.phase != v1alpha1.InstallPlanPhaseInstalling))
	found := &findings{Evaluation: e}
	switch f.phase {
	case v1alpha1.InstallPlanPhaseInstalling:
		found.unseen = unseenTargets(f, e)
		found.problems = problemsOf(f, e)
	case v1alpha1.InstallPlanPhaseFailed:
		found.tries = triesOf(f, e)
	}
	f.evaluated = found
	return found
}

// stepInput returns the part of an Input by which steps are evaluated. If preflight is set, nothing is applied in this
// call.
func stepInput(in *Input, preflight bool) step.Input {
	takenOver, _ := takenOverIn(in)
	return step.Input{
		Now:                       in.Now,
		Plan:                      in.InstallPlan,
		Preflight:                 preflight,
		HasAccount:                in.ServiceAccount != nil,
		Subscriptions:             in.Subscriptions.Items,
		ClusterServiceVersions:    in.ClusterServiceVersions.Items,
		Alongside:                 in.Alongside.Items,
		Announced:                 in.Announced,
		CustomResourceDefinitions: in.CustomResourceDefinitions.Items,
		APIServices:               in.APIServices,
		CustomResources:           resourceVerdicts(in.CustomResources.Items),
		Objects:                   in.Objects.Items,
		ConfigMaps:                in.ConfigMaps.Items,
		PullSecrets:               in.PullSecrets.Items,
		CatalogSources:            in.CatalogSources.Items,
		LastRun:                   in.LastRun,
		Memory:                    in.Unpacked,
		TakenOver:                 takenOver,
		OLMNamespace:              in.Config.olmNamespace(),
		GlobalNamespace:           in.Config.globalNamespace(),
		OverwriteUnmanaged:        in.Config.OverwriteUnmanaged,
		CopyAnySecret:             in.Config.CopyAnySecret,
		ChangeOwnedCRDs:           in.Config.ChangeOwnedCRDs,
		SupportedKinds:            in.Config.SupportedKinds,
	}
}

func resourceVerdicts(verdicts []ResourceVerdict) []step.ResourceVerdict {
	converted := make([]step.ResourceVerdict, len(verdicts))
	for i, v := range verdicts {
		converted[i] = step.ResourceVerdict(v)
	}
	return converted
}

// unseenTargets returns the targets that were created in the last run and that the lists do not show.
func unseenTargets(f *facts, e step.Evaluation) (unseen []*step.Target) {
	statuses := e.Statuses()
	for _, t := range e.Targets {
		last, ran := f.in.LastRun[t.Key]
		wasCreated := ran && last.Class == olmcore.ClassNone && statuses[t.Steps[0]] == v1alpha1.StepStatusNotPresent
		if wasCreated && isOpen(t) && t.Observed == nil {
			unseen = append(unseen, t)
		}
	}
	return unseen
}

// isOpen reports whether the object of a target still has to be written and may be.
func isOpen(t *step.Target) bool { return t.Verdict.Outcome != step.Done && !t.Verdict.Refused() }
