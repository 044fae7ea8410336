// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/relation"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/internal/ruletable"
	"github.com/olmcore/olm/olmcore"
)

type phase = v1alpha1.InstallPlanPhase

// Sets of phases. A phase that the API does not have is treated as none.
var (
	none       = []phase{v1alpha1.InstallPlanPhaseNone}
	requires   = []phase{v1alpha1.InstallPlanPhaseRequiresApproval}
	installing = []phase{v1alpha1.InstallPlanPhaseInstalling}
	complete   = []phase{v1alpha1.InstallPlanPhaseComplete}
	failed     = []phase{v1alpha1.InstallPlanPhaseFailed}

	unfinished = slices.Concat(none, requires, installing)
	everyPhase = slices.Concat(unfinished, complete, failed)
)

// stays is the target of a row that keeps the recorded phase.
var stays []phase

// rule is a row of the table: in a phase of From, the first row whose situation holds decides.
type rule = ruletable.Rule[phase, *facts, decision]

// rules contains all that can happen to a plan, in the order in which the rows are tried. The table sets the phase.
// Each part of the table stands beside the situations of its rows.
var rules = slices.Concat(everyPhaseRules, withoutStepsRules, failedRules, checkRules, approvalRules, installingRules)

// row returns the rule that takes a plan from the phases of from to the phase to if the situation when holds. then
// returns the rest of the decision.
func row(state State, from, to []phase, when func(*facts) bool, then func(*facts) decision) rule {
	return rule{Name: string(state), From: from, To: to, Decide: func(f *facts) (decision, bool) {
		if !when(f) {
			return decision{}, false
		}
		d := then(f)
		if len(to) > 0 {
			d.status.Phase = to[0]
		}
		return d, true
	}}
}

func always(*facts) bool { return true }

// decide returns the decision of the first row that applies.
func decide(f *facts) decision {
	d, name := ruletable.FirstDecision(rules, f.phase, f)
	d.state = State(name)
	return d
}

// decision is what one row makes of the facts. Functions never change a decision that their caller holds; they return a
// new one.
type decision struct {
	state State
	// status is the new status of the plan, except for the statuses of its steps.
	status v1alpha1.InstallPlanStatus
	// steps are the new statuses of the steps, nil if they do not change.
	steps []v1alpha1.StepStatus
	// reason is the reason of the phase Failed, "" if the plan failed of a step.
	reason string
	// result contains everything but the write of the status, which comes first.
	result olmcore.Result
	// found is set if the decision reports what was found about the steps.
	found *findings
}

// stay returns the decision that keeps the recorded status.
func (f *facts) stay() decision {
	return decision{status: f.plan.Status}
}

// withFindings returns the decision with the diagnostics and requests that result from the steps.
func (d decision) withFindings(found *findings) decision {
	d.found = found
	return d.report(found.Diagnostics...)
}

// report returns the decision with further diagnostics.
func (d decision) report(diagnostics ...olmcore.Diagnostic) decision {
	d.result.Diagnostics = slices.Concat(d.result.Diagnostics, diagnostics)
	return d
}

// requeue returns the decision with a deadline. Values of 0 and below are no deadline.
func (d decision) requeue(left time.Duration) decision {
	d.result.Requeue(left)
	return d
}

// withoutDeadline returns the decision without the deadlines that it had.
func (d decision) withoutDeadline() decision {
	d.result.RequeueAfter = 0
	return d
}

// diagnose returns a Diagnostic about the plan.
func (f *facts) diagnose(severity olmcore.Severity, reason, path, format string, args ...any) olmcore.Diagnostic {
	return olmcore.Diagnose(severity, reason, olmcore.RefOf(f.plan), path, format, args...)
}

// cleanupGrace is the longest time for which the finalizer holds a deleted plan.
const cleanupGrace = time.Minute

// everyPhaseRules are the rows for plans in every phase, and the row for plans that are Complete.
var everyPhaseRules = []rule{
	row(StateDeleting, everyPhase, stays, isBeingDeleted, cleanUp),
	row(StateNamespaceTerminating, everyPhase, stays, isNamespaceTerminating, releaseForNamespace),
	row(StateRepairing, everyPhase, stays, hasWrongRelations, repairRelations),
	row(StateComplete, complete, stays, always, removeStall),
}

// removeStall removes the conditions about a stalled plan. OLM leaves them when it completes the plan.
func removeStall(f *facts) decision {
	d := f.stay()
	d.status = without(without(d.status, ConditionProgressing), ConditionRetrying)
	return d
}

// isBeingDeleted reports whether the plan is being deleted. Its decision cleans up what the plan leaves behind, and
// then removes the finalizer in a write of its own. Objects that the steps created are never deleted.
func isBeingDeleted(f *facts) bool { return f.plan.DeletionTimestamp != nil }

func cleanUp(f *facts) decision {
	d := f.stay()
	if !relation.HasFinalizer(f.plan) {
		return d
	}
	marked, bundles := relation.Marked(f.plan, f.in.Subscriptions.Items), f.in.unusedBundles()
	if inputs.Terminating(f.in.Namespace) {
		marked, bundles = nil, nil // package sweep finds bundles outside of the namespace
	}
	left := f.plan.DeletionTimestamp.Add(cleanupGrace).Sub(f.in.Now)
	switch {
	case len(marked)+len(bundles) == 0:
		d.result.Actions = f.removeFinalizer(olmcore.Cause{Reason: ReasonPlanDeleted, Message: "nothing is left to clean up"})
		return d
	case left <= 0:
		d.result.Actions = f.removeFinalizer(olmcore.Cause{Reason: ReasonPlanDeleted, Message: "the time for its cleanup is over"})
		return d.report(f.leftBehind(marked, bundles)...)
	}
	d.result.Actions = f.cleanupActions(marked, bundles)
	for _, a := range d.result.Actions {
		_, target, _ := a.Describe()
		if last := f.in.LastRun[target.Key()]; last.Class == olmcore.Forbidden {
			d = d.report(f.diagnose(olmcore.Warning, ReasonCleanupForbidden, "", "%s: %s", target.Key(), last.Message))
		}
	}
	return d.requeue(left)
}

// unusedBundles returns the unpacked bundles to which no other plan refers, sorted by name. Young bundles are left out,
// because a new plan may refer to them soon.
func (in *Input) unusedBundles() []*corev1.ConfigMap {
	plan := in.InstallPlan
	if !in.OtherPlans.Complete {
		return nil
	}
	unneeded := bundle.Referred(plan)
	for _, p := range in.OtherPlans.Items {
		if p.Name != plan.Name || p.Namespace != plan.Namespace {
			for key := range bundle.Needed(p) {
				delete(unneeded, key)
			}
		}
	}
	unused := slices.DeleteFunc(slices.Clone(in.ConfigMaps.Items), func(cm *corev1.ConfigMap) bool {
		isUnneeded := unneeded[types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name}]
		mayRefer := bundle.MayRefer(plan.Namespace, cm.Namespace, in.Config.globalNamespace())
		return !isUnneeded || !mayRefer || !bundle.IsUnpacked(cm) || bundle.Retained(cm, in.Now) > 0
	})
	slices.SortFunc(unused, func(a, b *corev1.ConfigMap) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return unused
}

// removeFinalizer returns the write of the plan without its finalizer, nil if the plan does not have it.
func (f *facts) removeFinalizer(cause olmcore.Cause) []olmcore.Action {
	if !relation.HasFinalizer(f.plan) {
		return nil
	}
	after := f.plan.DeepCopy()
	relation.RemoveFinalizer(after)
	return []olmcore.Action{olmcore.UpdateOf(f.plan, after, cause)}
}

// leftBehind reports the objects and annotations that remain because the cleanup of a deleted plan did not end in time.
func (f *facts) leftBehind(marked []*v1alpha1.Subscription, bundles []*corev1.ConfigMap) (diagnostics []olmcore.Diagnostic) {
	const path = "metadata.finalizers"
	if len(marked) > 0 {
		diagnostics = append(diagnostics, f.diagnose(olmcore.Warning, ReasonCleanupIncomplete, path,
			"annotation %s is left on Subscription %s", AnnotationGeneratedBy, joinNames(marked)))
	}
	if len(bundles) > 0 {
		diagnostics = append(diagnostics, f.diagnose(olmcore.Warning, ReasonCleanupIncomplete, path, "ConfigMap %s is left", joinNames(bundles)))
	}
	return diagnostics
}

func joinNames[T olmcore.Object](objects []T) string {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.GetName()
	}
	return strings.Join(names, ", ")
}

// cleanupActions returns the writes that remove the bundles and annotations of a deleted plan.
func (f *facts) cleanupActions(marked []*v1alpha1.Subscription, bundles []*corev1.ConfigMap) (actions []olmcore.Action) {
	for _, s := range marked {
		cause := olmcore.Cause{Reason: ReasonPlanDeleted, Message: "the InstallPlan that generated it is being deleted"}
		actions = append(actions, relation.Unmark(s, cause))
	}
	for _, cm := range bundles {
		actions = append(actions, bundle.Delete(cm, ReasonPlanDeleted, "no InstallPlan references it any more"))
	}
	return actions
}

// isNamespaceTerminating reports whether the namespace of the plan is being deleted, so that nothing is installed
// there.
func isNamespaceTerminating(f *facts) bool { return inputs.Terminating(f.in.Namespace) }

func releaseForNamespace(f *facts) decision {
	d := f.stay()
	d.result.Actions = f.removeFinalizer(olmcore.Cause{Reason: ReasonNamespaceTerminating, Message: "the namespace is being deleted"})
	if relation.Terminal(f.plan) {
		return d
	}
	return d.report(f.diagnose(olmcore.Info, ReasonNamespaceTerminating, "", "namespace %s is being deleted", f.plan.Namespace))
}

// hasWrongRelations reports whether the owners, labels, approval or finalizer of the plan have to be corrected. Assess
// looks only at the approval. A plan does not get the finalizer in a write of its own, but together with another
// correction.
func hasWrongRelations(f *facts) bool {
	return f.repair.ToManual || !f.assessing && (f.repair.Needed || f.in.mustRelease())
}

// mustRelease reports whether the finalizer has to be removed: the plan is done, or the configuration disables
// finalizers.
func (in *Input) mustRelease() bool {
	return in.Config.DisableFinalizer && relation.HasFinalizer(in.InstallPlan) || relation.Terminal(in.InstallPlan) && in.isReleasable()
}

// isReleasable reports whether the plan has the finalizer and would leave no marked Subscription behind.
func (in *Input) isReleasable() bool {
	return relation.HasFinalizer(in.InstallPlan) && len(relation.Marked(in.InstallPlan, in.Subscriptions.Items)) == 0
}

func repairRelations(f *facts) decision {
	after, cause := f.repair.Update(f.plan)
	if f.in.mustRelease() {
		relation.RemoveFinalizer(after)
	} else if !f.in.Config.DisableFinalizer && !relation.Terminal(f.plan) && len(f.plan.Status.Plan) > 0 {
		relation.AddFinalizer(after)
	}
	d := f.stay()
	d.result.Actions = []olmcore.Action{olmcore.UpdateOf(f.plan, after, cause)}
	return d
}
