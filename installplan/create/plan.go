// SPDX-License-Identifier: Apache-2.0

package create

import (
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/installplan/internal/input"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/olmcore"
)

// Plan makes the InstallPlan of a resolution, or joins the one that exists: a plan is found again by the hash of its
// content, so that repeated calls, other controllers and a crash between two writes all end with one plan that all of
// them own. In the first round the plan is created without status, which no controller runs. Once it is observed, and
// every Subscription that the resolution changes is observed to refer to it, its status is written. The zero Outcome
// means that there is nothing to install. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ensureInstallPlan and createInstallPlan.
// Differs: OLM takes any plan of the same generation, without looking at its content or owners, and writes the
// Subscriptions' references last.
func Plan(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	if in.Resolution.Failure != nil || len(in.Resolution.Operators)+len(in.Resolution.Generated) == 0 {
		return Outcome{}, nil
	}
	var out Outcome
	r := request{
		namespace: in.Namespace, resolution: in.Resolution,
		subscriptions: input.ByName(in.Subscriptions.Items), plans: input.ByName(in.InstallPlans.Items),
	}
	c, lookups, problems := contentOf(in)
	if r.wanted() {
		out.Lookups = lookups
	}
	out.Diagnostics = problems
	if len(problems) > 0 || len(c.steps) == 0 {
		return out, nil
	}
	plan := existing(r, c, in.ClusterServiceVersions.Items)
	switch {
	case r.stale(plan):
		out.Diagnostics = append(out.Diagnostics, about(in.Namespace, olmcore.Warning, ReasonStaleResolution,
			"the resolution was made for other Subscriptions than those of namespace %s now", in.Namespace))
	case plan == nil && !r.wanted():
	case plan == nil:
		if out.Result = notVisible(r, c, in.Now); out.Empty() {
			out.Result = newPlan(r, c, in.Config)
		}
	case relation.Terminal(plan):
		out.refer(r, plan)
		if plan.Status.Phase == v1alpha1.InstallPlanPhaseFailed {
			out.Diagnostics = append(out.Diagnostics, about(in.Namespace, olmcore.Warning, ReasonPreviousPlanFailed,
				"InstallPlan %s has this content and failed: %s", plan.Name, plan.Status.Message))
		}
	default:
		out.refer(r, plan)
		out.Result = join(r, c, plan, in)
	}
	return out, nil
}

// refer names the plan that Subscriptions must refer to, and them.
func (out *Outcome) refer(r request, plan *v1alpha1.InstallPlan) {
	out.Plan, out.Generation = olmcore.RefOf(plan).Unversioned(), plan.Spec.Generation
	for _, s := range r.subscriptions {
		if r.changed(s) || r.stranded(s, plan.Spec.ClusterServiceVersionNames, plan.UID) {
			out.Subscriptions = append(out.Subscriptions, s.Name)
		}
	}
}

// about returns a Diagnostic about the namespace of a resolution.
func about(namespace string, severity olmcore.Severity, reason, format string, args ...any) olmcore.Diagnostic {
	target := olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace}
	return olmcore.Diagnose(severity, reason, target, "", format, args...)
}

// join makes an existing plan this resolution's plan, too: owners first, then, once it is referred to, its steps.
func join(r request, c content, plan *v1alpha1.InstallPlan, in Input) (result olmcore.Result) {
	after := plan.DeepCopy()
	result.Diagnostics = r.relate(after, in.Config)
	cause := relation.Repaired("another resolution of the namespace came to the same plan")
	if r.manual() && plan.Spec.Approval != v1alpha1.ApprovalManual && relation.Untouched(plan) {
		cause = relation.AskForApproval(after)
	}
	switch waiting, referred := r.awaited(plan); {
	case !sameRelations(plan, after):
		if after.Spec.ClusterServiceVersionNames == nil {
			after.Spec.ClusterServiceVersionNames = []string{} // which the API requires
		}
		result.Actions = append(result.Actions, olmcore.UpdateOf(plan, after, cause))
	case len(plan.Status.Plan)+len(plan.Status.BundleLookups) > 0:
	case len(waiting) > 0:
		result.Diagnostics = append(result.Diagnostics, awaits(plan, fmt.Sprintf("Subscription %s does not refer to the plan yet", strings.Join(waiting, ", "))))
	case !referred:
		result.Diagnostics = append(result.Diagnostics, awaits(plan, "no Subscription refers to the plan yet"))
	default:
		result.Actions, result.Transitions = fill(c, plan, in)
	}
	return result
}

func awaits(plan *v1alpha1.InstallPlan, message string) olmcore.Diagnostic {
	return olmcore.Diagnose(olmcore.Info, ReasonReferencesAwaited, olmcore.RefOf(plan), "", "%s", message)
}

// fill asks for the status that starts the plan.
func fill(c content, plan *v1alpha1.InstallPlan, in Input) ([]olmcore.Action, []olmcore.Transition) {
	after := plan.DeepCopy()
	status := &after.Status
	status.Phase = v1alpha1.InstallPlanPhaseInstalling
	if plan.Spec.Approval == v1alpha1.ApprovalManual {
		status.Phase = v1alpha1.InstallPlanPhaseRequiresApproval
	}
	status.Plan, status.BundleLookups, status.CatalogSources = c.steps, c.lookups, catalogsOf(c.steps)
	write := olmcore.UpdateStatusOf(plan, after, olmcore.Cause{
		Reason: ReasonPlanReady, Message: "every Subscription that it changes refers to it",
	})
	moved := olmcore.Moved(olmcore.RefOf(plan), "Phase", string(plan.Status.Phase), string(status.Phase), in.Now)
	return []olmcore.Action{write}, []olmcore.Transition{moved}
}
