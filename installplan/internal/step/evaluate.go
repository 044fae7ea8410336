// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/report"
	"github.com/olmcore/olm/olmcore"
)

const (
	// MaxSteps bounds the steps of a plan.
	MaxSteps = 2000
	// MaxBundles bounds the unpacked bundles that the steps of a plan may refer to.
	MaxBundles = 100
)

// Evaluation is what a round finds about the steps of a plan.
type Evaluation struct {
	// Verdicts are those of the steps in plan order, then of the bundle lookups.
	Verdicts []Verdict
	// Targets are the objects that steps describe, in plan order.
	Targets []*Target
	// Diagnostics are what is said about the steps.
	Diagnostics []olmcore.Diagnostic
	// Changes are the changes of schemas that custom resources must be judged for.
	Changes []crd.SchemaChange
	// Lost are the lookups of bundles whose content the steps need and that is lost.
	Lost []v1alpha1.BundleLookup

	plan *v1alpha1.InstallPlan
}

// Evaluate looks at every step of a plan before anything is applied.
func Evaluate(in Input) Evaluation {
	w := newWorld(in)
	e := Evaluation{plan: in.Plan, Verdicts: make([]Verdict, len(in.Plan.Status.Plan))}
	if len(e.Verdicts) > MaxSteps || len(bundle.Referred(in.Plan)) > MaxBundles {
		for i, s := range in.Plan.Status.Plan {
			e.Verdicts[i].Status = Recorded(s)
		}
		e.Verdicts[0].Outcome, e.Verdicts[0].Message = Invalid, InvalidPlan
		return e
	}
	known, generic := e.open(&w)
	w.literals, e.Lost = literals(&w, append(slices.Clone(known), generic...))
	targets := e.describe(&w, known)
	w = w.describing(targets)
	e.judge(&w, targets)
	// Kinds that a CustomResourceDefinition of the plan defines are judged after it.
	w = w.judged(targets)
	others := e.describe(&w, generic)
	e.judge(&w, others)
	e.Targets = append(targets, others...)
	slices.SortFunc(e.Targets, func(a, b *Target) int { return cmp.Compare(a.Steps[0], b.Steps[0]) })
	e.requireAccount(&w)
	e.lookups()
	return e
}

// Recorded returns the status that is recorded for a step.
func Recorded(s *v1alpha1.Step) v1alpha1.StepStatus {
	if s == nil {
		return ""
	}
	return s.Status
}

// open gives their verdicts to the steps whose status says enough, and returns the
// others by their index: those of kinds of the table, and the generic ones.
func (e *Evaluation) open(w *world) (known, generic []int) {
	for i, s := range w.Plan.Status.Plan {
		verdict, answered := fromStatus(w, s)
		if answered {
			e.Verdicts[i] = verdict
		} else if _, isKnown := w.Kinds[s.Resource.Kind]; isKnown {
			known = append(known, i)
		} else {
			generic = append(generic, i)
		}
	}
	return known, generic
}

// describe returns the objects that steps describe, and gives their verdicts to the steps
// that describe none.
func (e *Evaluation) describe(w *world, steps []int) []*Target {
	var targets []*Target
	byKey := map[olmcore.Key]*Target{}
	for _, i := range steps {
		s := w.Plan.Status.Plan[i]
		t, v := describe(w, i, s)
		e.say(i, v.Said)
		if t == nil {
			if v.NotServed && s.Optional {
				e.say(i, []report.Finding{report.Step(olmcore.Info, report.OptionalStepSkipped, "%s", v.Message)})
				v = Verdict{Outcome: Done, Status: v1alpha1.StepStatusNotCreated}
			}
			v.Status = cmp.Or(v.Status, s.Status)
			v.Asked = v.Status
			e.Verdicts[i] = v
			continue
		}
		if have := byKey[t.Key]; have != nil {
			have.join(t)
			continue
		}
		t.Observed = w.find(t.Key)
		byKey[t.Key] = t
		targets = append(targets, t)
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

func (e *Evaluation) judge(w *world, targets []*Target) {
	for _, t := range targets {
		v := judge(w, t)
		e.say(t.Steps[0], v.Said)
		if v.Change != nil {
			e.Changes = append(e.Changes, *v.Change)
		}
		e.settle(t, v)
	}
}

// settle gives all steps of a target its verdict.
func (e *Evaluation) settle(t *Target, v Verdict) {
	t.Verdict = v
	for _, i := range t.Steps {
		own := v
		have := e.plan.Status.Plan[i].Status
		own.Status = cmp.Or(v.Status, have)
		if v.Outcome == Done && v.Status == "" {
			own.Status = present(have, t.Kind)
		}
		own.Asked = cmp.Or(own.Asked, own.Status)
		e.Verdicts[i] = own
	}
}

// present is the status of a step whose object exists: Created when the plan asked for
// it, as the step remembers, else Present.
func present(have v1alpha1.StepStatus, k kinds.Kind) v1alpha1.StepStatus {
	switch {
	case have == v1alpha1.StepStatusNotPresent || have == v1alpha1.StepStatusWaitingForAPI && k.GVK.Kind == kinds.CRD:
		return v1alpha1.StepStatusCreated
	case have == v1alpha1.StepStatusCreated:
		return have
	}
	return v1alpha1.StepStatusPresent
}

// requireAccount blocks the plan when the account it runs as is gone: it never falls
// back to the controller's own.
func (e *Evaluation) requireAccount(w *world) {
	ref := w.Plan.Status.AttenuatedServiceAccountRef
	if ref == nil || w.HasAccount {
		return
	}
	for _, t := range e.Targets {
		if t.Verdict.Action != nil && t.Verdict.Action.Identity() != nil {
			e.settle(t, blocked("serviceaccounts %q not found", ref.Name))
			return
		}
	}
}

// lookups judges bundles that were not unpacked when the plan was made.
func (e *Evaluation) lookups() {
	for i := range e.plan.Status.BundleLookups {
		l := &e.plan.Status.BundleLookups[i]
		name := cmp.Or(l.Identifier, l.Path)
		if c := l.GetCondition(v1alpha1.BundleLookupFailed); c.Status == corev1.ConditionTrue {
			e.Verdicts = append(e.Verdicts, blocked("%s", cmp.Or(c.Message, "bundle "+name+" cannot be unpacked")))
		} else if c := l.GetCondition(v1alpha1.BundleLookupPending); c.Status == corev1.ConditionTrue {
			e.Verdicts = append(e.Verdicts, waiting("bundle %s%s", name, NotUnpacked))
		}
	}
}

func (e *Evaluation) say(i int, said []report.Finding) {
	for _, f := range said {
		path := ""
		if f.OfStep {
			path = Path(i)
		}
		e.Diagnostics = append(e.Diagnostics, olmcore.Diagnose(f.Severity, f.Reason, olmcore.RefOf(e.plan), path, "%s", f.Message))
	}
}

// Path returns the field that a verdict is about, by its index.
func (e Evaluation) Path(i int) string {
	if i >= len(e.plan.Status.Plan) {
		return "status.bundleLookups"
	}
	return Path(i)
}

// Refused reports whether the plan as a whole may not be applied.
func (e Evaluation) Refused() bool { return slices.ContainsFunc(e.Verdicts, Verdict.Refused) }

// Record returns the steps of the plan with the status that each gets. Where actions are
// held back, no step remembers that its object was asked for. A nil step stays.
func (e Evaluation) Record() []*v1alpha1.Step {
	held := e.Refused()
	steps := make([]*v1alpha1.Step, len(e.plan.Status.Plan))
	for i, s := range e.plan.Status.Plan {
		if s == nil {
			continue
		}
		next := *s
		if next.Status = e.Verdicts[i].Asked; held {
			next.Status = e.Verdicts[i].Status
		}
		steps[i] = &next
	}
	return steps
}

// Actions returns what is to be written, in plan order; nothing when a step is refused.
func (e Evaluation) Actions() []olmcore.Action {
	if e.Refused() {
		return nil
	}
	var actions []olmcore.Action
	for _, t := range e.Targets {
		if t.Verdict.Action != nil {
			actions = append(actions, t.Verdict.Action)
		}
	}
	return actions
}
