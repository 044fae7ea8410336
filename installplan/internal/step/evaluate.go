// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/reasons"
	"github.com/olmcore/olm/olmcore"
)

const (
	// MaxSteps is the maximum number of steps in a plan.
	MaxSteps = 2000
	// MaxBundles is the maximum number of unpacked bundles that the steps of a plan may reference.
	MaxBundles = 100
)

// Evaluation is the result of evaluating the steps of a plan.
type Evaluation struct {
	// Decisions contains one decision for each step, in plan order, followed by one decision for each bundle lookup that
	// has failed or is pending.
	Decisions []Decision
	// Targets contains the objects that the steps describe, in plan order. A step has no Target if its Decision is known
	// without reading its manifest, or if it describes no valid object.
	Targets []*Target
	// Diagnostics contains the diagnostics about the steps.
	Diagnostics []olmcore.Diagnostic
	// Changes contains the schema changes for which custom resources must be validated.
	Changes []SchemaChange
	// Lost contains a lookup for each bundle that is no longer unpacked although steps need its content.
	Lost []v1alpha1.BundleLookup

	plan *v1alpha1.InstallPlan
}

// Evaluate evaluates every step of a plan. A plan with too many steps or bundles is Invalid as a whole.
func Evaluate(in Input) Evaluation {
	plan := in.Plan
	e := Evaluation{plan: plan, Decisions: make([]Decision, len(plan.Status.Plan))}
	if len(e.Decisions) > MaxSteps || len(bundle.Referred(plan)) > MaxBundles {
		for i, s := range plan.Status.Plan {
			if s != nil {
				e.Decisions[i].Status = s.Status
			}
		}
		e.Decisions[0].Outcome, e.Decisions[0].Message = Invalid, InvalidPlan
		return e
	}
	w := newWorld(in)
	var known, generic []int // steps whose status does not decide
	for i, s := range plan.Status.Plan {
		v, answered := fromStatus(w, s)
		if answered {
			e.Decisions[i] = v
		} else if kinds.IsGeneric(s) {
			generic = append(generic, i)
		} else {
			known = append(known, i)
		}
	}
	if open := slices.Concat(known, generic); len(open) > 0 {
		w.literals, e.Lost = literals(w, open)
		e.judge(w, known)
		e.judge(w, generic) // a CustomResourceDefinition of the plan may define these kinds
		slices.SortFunc(e.Targets, func(a, b *Target) int { return cmp.Compare(a.Steps[0], b.Steps[0]) })
	}
	e.requireAccount(in.HasAccount)
	e.lookups()
	return e
}

// judge sets the decisions of steps. All steps of one object get the same decision.
func (e *Evaluation) judge(w *world, steps []int) {
	targets := e.describe(w, steps)
	for _, t := range targets {
		if t.Key.Kind == kinds.CSV {
			if o, err := typed(t, t.desired.Object); err == nil {
				w.described[t.Key.Name] = o.(*v1alpha1.ClusterServiceVersion)
			}
		}
	}
	for _, t := range targets {
		v := judge(w, t)
		e.Diagnostics = append(e.Diagnostics, v.Diagnostics...)
		if v.Change != nil {
			e.Changes = append(e.Changes, *v.Change)
		}
		e.settle(t, v)
		if t.Key.Kind == kinds.CRD && v.Outcome != Done {
			spec := bundle.Fields(t.desired.Object, "spec")
			group, _ := spec["group"].(string)
			kind, _ := bundle.Fields(spec, "names")["kind"].(string)
			gk := schema.GroupKind{Group: group, Kind: kind}
			w.defining[gk] = cmp.Or(w.defining[gk], t.Key.Name)
		}
	}
	e.Targets = append(e.Targets, targets...)
}

// describe returns the objects that steps describe. It sets the decisions of steps that describe none.
func (e *Evaluation) describe(w *world, steps []int) []*Target {
	var targets []*Target
	byKey := map[olmcore.Key]*Target{}
	for _, i := range steps {
		s := e.plan.Status.Plan[i]
		t, v := describe(w, i, s)
		e.Diagnostics = append(e.Diagnostics, v.Diagnostics...)
		switch {
		case t == nil:
			if v.NotServed && s.Optional {
				e.Diagnostics = append(e.Diagnostics, w.about(i, olmcore.Info, reasons.OptionalStepSkipped, "%s", v.Message))
				v = Decision{Outcome: Done, Status: v1alpha1.StepStatusNotCreated}
			}
			v.Status = cmp.Or(v.Status, s.Status)
			e.Decisions[i] = v
		case byKey[t.Key] != nil:
			byKey[t.Key].join(t)
		default:
			t.Observed = w.objects[t.Key]
			byKey[t.Key] = t
			targets = append(targets, t)
		}
	}
	return targets
}

// join adds the step of another target for the same object.
func (t *Target) join(other *Target) {
	t.Steps = append(t.Steps, other.Steps...)
	for _, v := range other.Versions {
		if !slices.Contains(t.Versions, v) {
			t.Versions = append(t.Versions, v)
		}
	}
	if !t.Kind.CreateOnly && !other.Kind.CreateOnly {
		t.desired.Object = fold(t.desired.Object, other.desired.Object, t.Kind)
	}
}

// fold merges the second description of an object into the first. The result is as if both were applied in turn.
func fold(first, second map[string]any, kind kinds.Kind) map[string]any {
	out := merge(first, second, kind, true)
	metadata := bundle.Fields(out, "metadata")
	for _, field := range [...]string{"ownerReferences", "finalizers"} {
		if list, ok := bundle.Fields(second, "metadata")[field].([]any); ok {
			have, _ := metadata[field].([]any)
			metadata[field] = slices.Concat(have, list)
		}
	}
	return out
}

// settle sets the decision of all steps of a target. The status of a step whose object exists becomes Created if the
// plan created the object, as its recorded status shows. Otherwise it becomes Present.
func (e *Evaluation) settle(t *Target, v Decision) {
	t.Decision = v
	for _, i := range t.Steps {
		own, have := v, e.plan.Status.Plan[i].Status
		if v.Outcome == Done && v.Status == "" {
			own.Status = v1alpha1.StepStatusPresent
			if have == v1alpha1.StepStatusNotPresent || have == v1alpha1.StepStatusCreated ||
				have == v1alpha1.StepStatusWaitingForAPI && t.Key.Kind == kinds.CRD {
				own.Status = v1alpha1.StepStatusCreated
			}
		}
		own.Status = cmp.Or(own.Status, have)
		e.Decisions[i] = own
	}
}

// requireAccount blocks the plan if its ServiceAccount does not exist. The plan never runs as the controller instead.
func (e *Evaluation) requireAccount(exists bool) {
	ref := e.plan.Status.AttenuatedServiceAccountRef
	if ref != nil && !exists {
		i := slices.IndexFunc(e.Targets, func(t *Target) bool { return t.Decision.Action != nil && t.Decision.Action.Identity() != nil })
		if i >= 0 {
			e.settle(e.Targets[i], blocked("serviceaccounts %q not found", ref.Name))
		}
	}
}

// lookups adds the decisions about bundles that are not unpacked.
func (e *Evaluation) lookups() {
	for _, l := range e.plan.Status.BundleLookups {
		name := cmp.Or(l.Identifier, l.Path)
		if c := l.GetCondition(v1alpha1.BundleLookupFailed); c.Status == corev1.ConditionTrue {
			e.Decisions = append(e.Decisions, blocked("%s", cmp.Or(c.Message, "bundle "+name+" cannot be unpacked")))
		} else if c := l.GetCondition(v1alpha1.BundleLookupPending); c.Status == corev1.ConditionTrue {
			e.Decisions = append(e.Decisions, waiting("bundle %s is not unpacked", name))
		}
	}
}

// Path returns the field of the plan that the decision with index i is about, for example status.plan[0].
func (e Evaluation) Path(i int) string {
	if i >= len(e.plan.Status.Plan) {
		return "status.bundleLookups"
	}
	return path(i)
}

func path(i int) string { return fmt.Sprintf("status.plan[%d]", i) }

// Refused reports whether a step prevents the whole plan from being applied.
func (e Evaluation) Refused() bool { return slices.ContainsFunc(e.Decisions, Decision.Refused) }

// Statuses returns the new status of each step. The status is NotPresent if an action creates the object of the step.
// If any step is refused, no action runs, so no status changes to NotPresent.
func (e Evaluation) Statuses() []v1alpha1.StepStatus {
	held := e.Refused()
	statuses := make([]v1alpha1.StepStatus, len(e.plan.Status.Plan))
	for i := range statuses {
		statuses[i] = e.Decisions[i].Status
		_, asked := e.Decisions[i].Action.(olmcore.Create)
		if asked && !held {
			statuses[i] = v1alpha1.StepStatusNotPresent
		}
	}
	return statuses
}

// Actions returns the actions of all steps in plan order, or nil if a step is refused.
func (e Evaluation) Actions() (actions []olmcore.Action) {
	if e.Refused() {
		return nil
	}
	for _, t := range e.Targets {
		if t.Decision.Action != nil {
			actions = append(actions, t.Decision.Action)
		}
	}
	return actions
}
