// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/olmcore"
)

// outcome is what a round finds about one step.
type outcome int

const (
	// pending: an action is asked for, or another step must come first.
	pending outcome = iota
	// done: the object is there as the step wants it.
	done
	// waiting: the cluster must do something first.
	waiting
	// blocked: it cannot be applied as things are.
	blocked
	// invalid: it can never be applied.
	invalid
)

// verdict is the answer for one step.
type verdict struct {
	outcome outcome
	// status is what is recorded for the step; asked instead when its action is
	// part of the result.
	status, asked v1alpha1.StepStatus
	message       string
	// deadline is when waiting becomes blocked, or did; zero means never.
	deadline time.Time
	// absentAPI: it is refused because its kind is not there.
	absentAPI bool
	// follows: it waits for nothing but another step of the plan.
	follows bool
}

func (v verdict) refused() bool { return v.outcome == blocked || v.outcome == invalid }

// evaluation is what a round finds about all steps of a plan.
type evaluation struct {
	d    *decision
	plan *v1alpha1.InstallPlan
	// preflight: nothing is applied in this round, whatever is found.
	preflight bool
	csvs      named[*v1alpha1.ClusterServiceVersion]
	crds      named[*apiextensionsv1.CustomResourceDefinition]
	objects   map[olmcore.Key]olmcore.Object
	// verdicts are those of the steps, in plan order, then of the bundle lookups.
	verdicts []verdict
	targets  map[olmcore.Key]*target
	// order are the targets in plan order; while kinds are still judged, those of
	// the kinds that a plan may define come last.
	order    []*target
	csvSteps map[string]bool // see versions
	referred map[pinnedRef]referred
	contents map[*corev1.ConfigMap]bundleContent
	inflated int // bytes of the files in contents
}

// target is one object that one or more steps describe.
type target struct {
	key  olmcore.Key
	kind stepKind
	// resolving is the ClusterServiceVersion of the first step that has one, others
	// are those of further steps.
	resolving string
	others    []string
	// steps are positions in the plan, ascending.
	steps    []int
	desired  manifest
	observed olmcore.Object
	action   olmcore.Action
	// satisfied targets need nothing, so errors of earlier tries do not count.
	satisfied bool
}

// operators returns the ClusterServiceVersions that the object is made for.
func (t *target) operators() []string {
	if t.resolving == "" {
		return nil
	}
	return append([]string{t.resolving}, t.others...)
}

// also adds the ClusterServiceVersion of another step.
func (t *target) also(resolving string) {
	switch {
	case t.resolving == "":
		t.resolving = resolving
	case resolving != "" && resolving != t.resolving:
		t.others = append(t.others, resolving)
	}
}

// evaluate looks at every step before anything is applied.
func (d *decision) evaluate(preflight bool) (*evaluation, error) {
	plan := d.next
	e := &evaluation{d: d, plan: plan, preflight: preflight, verdicts: make([]verdict, len(plan.Status.Plan))}
	if err := e.index(); err != nil {
		return nil, err
	}
	if len(plan.Status.Plan) > or(d.in.Config.MaxSteps, DefaultMaxSteps) || len(bundlesOf(plan)) > maxBundles {
		for i := range e.verdicts {
			e.verdicts[i].status = recorded(plan.Status.Plan[i])
		}
		e.verdicts[0].outcome, e.verdicts[0].message = invalid, errInvalidPlan
		return e, nil
	}
	// Kinds that a CustomResourceDefinition of the plan defines are judged after it.
	for _, generic := range [...]bool{false, true} {
		for i, s := range plan.Status.Plan {
			if s == nil && !generic {
				e.verdicts[i] = verdict{outcome: invalid, message: errInvalidPlan}
			} else if s != nil && isGeneric(s) == generic {
				e.screen(i, s)
			}
		}
		for _, t := range e.order {
			if t.kind.generic == generic {
				e.settle(t, e.judge(t))
			}
		}
	}
	slices.SortFunc(e.order, func(a, b *target) int { return cmp.Compare(a.steps[0], b.steps[0]) })
	e.requireAccount()
	e.lookups()
	return e, nil
}

func isGeneric(s *v1alpha1.Step) bool {
	_, known := knownKinds[s.Resource.Kind]
	return !known
}

func recorded(s *v1alpha1.Step) v1alpha1.StepStatus {
	if s == nil {
		return ""
	}
	return s.Status
}

// path is the field that a verdict is about.
func (e *evaluation) path(i int) string {
	if i >= len(e.plan.Status.Plan) {
		return "status.bundleLookups"
	}
	return stepPath(i)
}

// versions are the ClusterServiceVersions that steps of this plan make.
func (e *evaluation) versions() map[string]bool {
	if e.csvSteps == nil {
		e.csvSteps = map[string]bool{}
		for _, s := range e.plan.Status.Plan {
			if s != nil && s.Resource.Kind == kindCSV {
				e.csvSteps[s.Resource.Name] = true
			}
		}
	}
	return e.csvSteps
}

// settle gives all steps of a target its verdict.
func (e *evaluation) settle(t *target, v verdict) {
	t.satisfied = v.outcome == done
	for _, i := range t.steps {
		own := v
		have := e.plan.Status.Plan[i].Status
		if v.outcome == done {
			own.status = seen(have, v.status, t.kind)
		} else if v.status == "" {
			own.status = have
		}
		if own.asked == "" {
			own.asked = own.status
		}
		e.verdicts[i] = own
	}
}

// seen is the status of a step whose object is there: Created when we asked for
// it, as the step remembers, else Present.
func seen(have, judged v1alpha1.StepStatus, k stepKind) v1alpha1.StepStatus {
	switch {
	case judged != "":
		return judged
	case have == v1alpha1.StepStatusNotPresent || have == v1alpha1.StepStatusWaitingForAPI && k.gvk.Kind == kindCRD:
		return v1alpha1.StepStatusCreated
	case have == v1alpha1.StepStatusCreated:
		return have
	}
	return v1alpha1.StepStatusPresent
}

// anyRefused reports whether the plan as a whole may not be applied.
func (e *evaluation) anyRefused() bool {
	return slices.ContainsFunc(e.verdicts, verdict.refused)
}

// record writes the steps' statuses. Where actions are held back, no step
// remembers that its object was asked for.
func (e *evaluation) record(steps []*v1alpha1.Step) {
	held := e.anyRefused()
	for i, s := range steps {
		switch {
		case s == nil:
		case held:
			s.Status = e.verdicts[i].status
		default:
			s.Status = e.verdicts[i].asked
		}
	}
}

// actions returns what is to be written, in plan order; nothing when a step is
// refused.
func (e *evaluation) actions() []olmcore.Action {
	if e.anyRefused() {
		return nil
	}
	var actions []olmcore.Action
	for _, t := range e.order {
		if t.action != nil {
			actions = append(actions, t.action)
		}
	}
	return actions
}

// identity is the account that writes a kind.
func (e *evaluation) identity(k stepKind) *corev1.ObjectReference {
	if k.gvk.Kind == kindCRD {
		return nil
	}
	return e.plan.Status.AttenuatedServiceAccountRef
}

// requireAccount blocks the plan when the account it runs under is gone: it
// never falls back to the controller's own.
func (e *evaluation) requireAccount() {
	ref := e.plan.Status.AttenuatedServiceAccountRef
	if ref == nil || e.d.in.ServiceAccount != nil {
		return
	}
	for _, t := range e.order {
		if t.action != nil && t.action.Identity() != nil {
			e.settle(t, verdict{outcome: blocked, message: fmt.Sprintf("serviceaccounts %q not found", ref.Name)})
			return
		}
	}
}

// lookups judges bundles that were not unpacked when the plan was made.
func (e *evaluation) lookups() {
	for i := range e.plan.Status.BundleLookups {
		l := &e.plan.Status.BundleLookups[i]
		name := or(l.Identifier, l.Path)
		if c := l.GetCondition(v1alpha1.BundleLookupFailed); c.Status == corev1.ConditionTrue {
			e.verdicts = append(e.verdicts, verdict{outcome: blocked, message: or(c.Message, "bundle "+name+" cannot be unpacked")})
		} else if c := l.GetCondition(v1alpha1.BundleLookupPending); c.Status == corev1.ConditionTrue {
			e.verdicts = append(e.verdicts, verdict{outcome: waiting, message: "bundle " + name + notUnpacked})
		}
	}
}
