// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/installplan/unpack"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// planner makes the plans of one namespace, and unpacks their bundles.
type planner struct {
	*Set
	reader    olmcore.Reader
	namespace string
	now       time.Time
	// unpacking is how many bundle images are being unpacked for the namespace.
	unpacking int
}

// maxUnpacking is how many bundle images are unpacked at a time for one namespace. Each has a Job in the namespace of
// its catalog, which many namespaces share. Without the limit, a user who creates Subscriptions could start a Job for
// each operator of the catalog.
const maxUnpacking = 10

// learn notes why the plans of the answer could not be written. An answer that was handed out is not written to.
func (n *namespace) learn(last olmcore.LastResults) {
	if n.answer == nil {
		return
	}
	next := copyOf(n.answer)
	for i, of := range progressOf(next) {
		if i >= len(n.planKeys) || n.planKeys[i] == (olmcore.Key{}) {
			continue
		}
		problem := ""
		outcome, ran := last[n.planKeys[i]]
		if ran && outcome.Class != olmcore.ClassNone {
			problem = outcome.Message
		}
		if problem != of.PlanError {
			of.PlanError, n.answer = problem, next
		}
	}
}

// copyOf returns a copy of an answer whose PlanProgress and Parts may be written to.
func copyOf(answer *subscription.Resolved) *subscription.Resolved {
	next := *answer
	next.Parts = slices.Clone(answer.Parts)
	return &next
}

// progressOf returns how far the plans of an answer are: that of each part, or the one of all.
func progressOf(answer *subscription.Resolved) (all []*subscription.PlanProgress) {
	if len(answer.Parts) == 0 {
		return []*subscription.PlanProgress{&answer.PlanProgress}
	}
	for i := range answer.Parts {
		all = append(all, &answer.Parts[i].PlanProgress)
	}
	return all
}

// plan returns what create.Plan needs for the answer that is there, and keeps the plans' references for the
// Subscriptions.
func (p *planner) plan(ctx context.Context, n *namespace) (result olmcore.Result, err error) {
	if n.answer == nil {
		return result, nil
	}
	whole, wholeErr := create.Gather(ctx, p.reader, p.namespace, n.answer.Resolution, p.options.planConfig())
	next := copyOf(n.answer)
	sets := setsOf(next, p.options.InstallPlan.SeparatePlans)
	keys, progress := make([]olmcore.Key, len(sets)), progressOf(next)
	for i, set := range sets {
		in, err := whole, wholeErr
		if err != nil && len(sets) > 1 { // another set may need what could not be read
			in, err = create.Gather(ctx, p.reader, p.namespace, set.Resolution, p.options.planConfig())
		}
		if err != nil {
			if err := failSet(ctx, progress[i], set.Subscriptions, err); err != nil {
				return olmcore.Result{}, err
			}
			continue
		}
		in.Now, in.Resolution, in.Owners = p.now, set.Resolution, set.Subscriptions
		more, err := p.planSet(ctx, in, progress[i])
		if err != nil {
			return olmcore.Result{}, err
		}
		withoutWritten(&more, result) // two sets may end the plan that they replace
		keys[i] = createdPlan(more)
		more.Diagnostics = slices.DeleteFunc(more.Diagnostics, func(d olmcore.Diagnostic) bool { return slices.Contains(result.Diagnostics, d) })
		add(&result, more)
	}
	n.answer, n.planKeys = next, keys
	return result, nil
}

// failSet notes an error as the unpack failure of one set, so that it holds up no other set. Trying again helps unless
// the input is invalid. It returns the error if it is not of one set: there are no sets, the caller gave up, or a kind
// was not read.
func failSet(ctx context.Context, progress *subscription.PlanProgress, set []string, err error) error {
	if set == nil || ctx.Err() != nil || errors.Is(err, olmcore.ErrNotRead) {
		return err
	}
	var invalid *olmcore.InputError
	failure := &olmcore.ResolutionFailure{Transient: !errors.As(err, &invalid), Message: err.Error()}
	progress.Unpacking = &subscription.Unpacking{Failure: failure}
	return nil
}

// setsOf returns what plans are made of: the whole answer, or its sets of Subscriptions, for which it gives the answer
// parts.
func setsOf(answer *subscription.Resolved, isSeparate bool) []create.Set {
	if !isSeparate || len(answer.Resolution.Operators)+len(answer.Resolution.Generated) == 0 {
		answer.Parts = nil
		return []create.Set{{Resolution: answer.Resolution}}
	}
	sets := create.Sets(answer.Resolution)
	if len(sets) == 1 && sets[0].Subscriptions == nil {
		answer.Parts = nil
		return sets
	}
	if len(answer.Parts) != len(sets) {
		answer.Parts = make([]subscription.Part, len(sets))
	}
	for i := range sets {
		answer.Parts[i].Subscriptions = sets[i].Subscriptions
	}
	return sets
}

// withoutWritten removes from a Result what it writes of InstallPlans that another Result writes.
func withoutWritten(r *olmcore.Result, other olmcore.Result) {
	written := map[olmcore.Key]bool{}
	for _, a := range other.Actions {
		if _, target, _ := a.Describe(); target.GVK() == installPlanKind {
			written[target.Key()] = true
		}
	}
	r.Actions = slices.DeleteFunc(r.Actions, func(a olmcore.Action) bool {
		_, target, _ := a.Describe()
		return written[target.Key()]
	})
	r.Transitions = slices.DeleteFunc(r.Transitions, func(t olmcore.Transition) bool { return written[t.Target.Key()] })
}

// createdPlan returns the key of the InstallPlan that a Result creates, the zero Key for none.
func createdPlan(r olmcore.Result) olmcore.Key {
	for _, a := range r.Actions {
		create, ok := a.(olmcore.Create)
		if ok && create.Target.GVK() == installPlanKind {
			return create.Target.Key()
		}
	}
	return olmcore.Key{}
}

// planSet returns the actions that create the plan of one set of Subscriptions, or of all of them, and records in
// progress how far the plan is.
func (p *planner) planSet(ctx context.Context, in create.Input, progress *subscription.PlanProgress) (olmcore.Result, error) {
	out, err := create.Plan(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if createdPlan(out.Result) == (olmcore.Key{}) {
		progress.PlanError = "" // the plan exists, or no plan is needed
	}
	progress.PlanRefused = out.Refused
	if progress.PlanRefused.Reason == "" && len(out.Lookups) > 0 && !p.options.unpacks() && p.options.Asked == nil {
		progress.PlanRefused = notUnpacked(out.Diagnostics)
	}
	progress.Unpacking = nil
	if p.options.unpacks() {
		progress.Unpacking = &subscription.Unpacking{}
	}
	if err := p.unpackAll(ctx, out.Lookups, in.Owners, progress, &out.Result); err != nil {
		return olmcore.Result{}, err
	}
	if out.Plan.Name != "" {
		progress.Plan = out.Plan
	}
	return out.Result, nil
}

// unpackAll adds the actions that unpack the bundle images of one plan, and records their state in progress.
func (p *planner) unpackAll(ctx context.Context, lookups []v1alpha1.BundleLookup, owners []string, progress *subscription.PlanProgress,
	result *olmcore.Result) error {
	for _, lookup := range lookups {
		if p.options.unpacks() && p.unpacking >= maxUnpacking {
			progress.Unpacking.Lookups = append(progress.Unpacking.Lookups, lookup) // it waits for those before
			continue
		}
		lookup, err := p.unpack(ctx, lookup, result)
		if err != nil {
			return failSet(ctx, progress, owners, err)
		}
		if lookup.GetCondition(v1alpha1.BundleLookupFailed).Status != corev1.ConditionTrue { // one that failed waits for its next try
			p.unpacking++
		}
		if progress.Unpacking != nil {
			progress.Unpacking.Lookups = append(progress.Unpacking.Lookups, lookup)
		}
	}
	return nil
}

// notUnpacked returns the reason and the message for bundle images that a plan needs and that nothing unpacks.
func notUnpacked(found []olmcore.Diagnostic) olmcore.Cause {
	var messages []string
	for _, d := range found {
		if d.Reason == create.ReasonBundleNotUnpacked {
			messages = append(messages, d.Message)
		}
	}
	return olmcore.Cause{Reason: create.ReasonBundleNotUnpacked, Message: strings.Join(messages, "; ") +
		", and the controller has no images to unpack it with"}
}

// unpacks reports whether there are the images that unpack others.
func (o *Options) unpacks() bool {
	return o.InstallPlan.OPMImage != "" && o.InstallPlan.UtilImage != ""
}

// unpack adds what unpacks one bundle image, and returns how far that is; without the images that do it the lookup
// stays a question.
func (p *planner) unpack(ctx context.Context, lookup v1alpha1.BundleLookup, result *olmcore.Result) (v1alpha1.BundleLookup, error) {
	p.ask(InstallPlan, types.NamespacedName{Namespace: p.namespace}, lookup)
	if !p.options.unpacks() {
		return lookup, nil
	}
	in, err := unpack.Gather(ctx, p.reader, p.namespace, lookup, p.options.planConfig())
	if err != nil {
		return lookup, err
	}
	in.Now = p.now
	out, err := unpack.Bundle(in)
	if err != nil {
		return lookup, err
	}
	add(result, out.Result)
	return out.Lookup, nil
}
