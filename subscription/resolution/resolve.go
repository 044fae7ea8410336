// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// Resolve resolves one namespace. The Result contains the operators to install or upgrade next, the Subscriptions that
// change and the Subscriptions that are generated for dependencies. If there is no solution, the Result contains the
// reasons. Equal inputs give equal Results, even if their lists have different orders. Resolve returns no error,
// because the Result also reports problems of the input.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver. Differs: rules are satisfied in a fixed order,
// Subscriptions first. A Subscription that fails does not stop the others, unless Policy.AllOrNothing is set. See
// Policy for other differences.
func Resolve(in Input) Result {
	s, res := resolve(&in)
	if s.served && !in.Policy.OmitHeldBack {
		res.HeldBack = explain.HeldBackOf(&s.View, &s.limits.heldBack)
	}
	finish(s, &res)
	return res
}

// Explain explains why a bundle is or is not chosen for a Subscription. bundle is the name of its
// ClusterServiceVersion. If subscription is empty, Explain considers the whole namespace. Explain resolves the
// namespace like Resolve, and then searches for the rules that exclude the bundle.
func Explain(in Input, subscription, bundle string) Explanation {
	s, res := resolve(&in)
	if subscription == "" || s.SubscriptionNamed(subscription) != nil {
		if text := s.whyInstalled(&res, subscription, bundle); text != "" {
			return Explanation{Subscription: subscription, Bundle: bundle, Chosen: true, Summary: text}
		}
	}
	return explain.Explain(&s.View, res.Failure, res.Cores, subscription, bundle, &s.limits.heldBack)
}

// resolve decides. What every result has, and what only explains it, is not in the Result yet.
func resolve(in *Input) (*service, Result) {
	p := model.Read(in)
	s := &service{
		View: search.View{Problem: p, Scope: &model.Scope{}, Solver: &search.Solver{}}, failures: map[string]*olmcore.ResolutionFailure{},
		limits: newLimits(p),
	}
	res := Result{}
	switch {
	case p.Blocked != "":
		res.Outcome, res.Failure = Blocked, &olmcore.ResolutionFailure{Message: p.Blocked}
	case p.Failure != "":
		res.Outcome, res.Failure = Failed, &olmcore.ResolutionFailure{Message: p.Failure}
	default:
		s.serve()
		if s.served {
			return s, solution(s)
		}
		res.Outcome, res.Failure = refused(s.cores)
	}
	res.Cores = s.cores
	decide(s, &res, nil)
	return s, res
}

// refused is why no Subscription can be served.
func refused(cores []Core) (Outcome, *olmcore.ResolutionFailure) {
	first := &cores[0]
	for i := range cores {
		if len(cores[i].Subscriptions) == 0 {
			first = &cores[i] // it stops all of them
		}
	}
	if first.Error {
		return Failed, failureOf(first)
	}
	return Unsatisfiable, failureOf(first)
}

func failureOf(c *Core) *olmcore.ResolutionFailure {
	return &olmcore.ResolutionFailure{Unsatisfiable: !c.Error, Message: c.Message}
}

// finish sorts, and adds what was observed.
func finish(p *service, res *Result) {
	res.Observed = make([]olmcore.SubscriptionFingerprint, 0, len(p.Subs))
	for _, s := range p.Subs {
		res.Observed = append(res.Observed, olmcore.FingerprintOf(s.Object))
	}
	slices.SortFunc(res.Observed, func(a, b olmcore.SubscriptionFingerprint) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(res.Decisions, func(a, b olmcore.SubscriptionDecision) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(res.Targets, func(a, b Target) int { return strings.Compare(a.Subscription, b.Subscription) })
	slices.SortFunc(res.HeldBack, func(a, b model.HeldBack) int { return strings.Compare(a.Subscription, b.Subscription) })
	res.Diagnostics = p.Diagnostics
	slices.SortStableFunc(res.Diagnostics, func(a, b olmcore.Diagnostic) int {
		return cmp.Or(
			strings.Compare(a.Target.Kind, b.Target.Kind), strings.Compare(a.Target.Namespace, b.Target.Namespace),
			strings.Compare(a.Target.Name, b.Target.Name), strings.Compare(a.Reason, b.Reason),
			strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	res.Stats = p.Stats
	res.Stats.Reading += p.TakeSteps(len(res.Targets) * (16 + len(res.Operators)/8))
	res.Stats.Steps, res.Stats.Explaining = p.limits.spent, p.limits.explaining.Spent+p.limits.heldBack.Spent
}
