// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/explain"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// Resolve answers for one namespace: which operators are to be installed or upgraded next, which Subscriptions
// change, which are generated for dependencies, or why nothing can be done. Equal inputs, in any order, give equal
// results. There is no error: whatever is wrong with the input is in the Result.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver.
// Differs: the order in which demands are met is fixed, Subscriptions first; one failing Subscription does not stop
// the others, unless the policy says so; see Policy for the rest.
func Resolve(in Input) Result {
	s, res := resolve(&in)
	if s.served && !in.Policy.OmitHeldBack {
		res.HeldBack = explain.HeldBackOf(&s.View, &s.limits.heldBack)
	}
	finish(s, &res)
	return res
}

// resolve decides. What every result has, and what only explains it, is not in the Result yet.
func resolve(in *Input) (*service, Result) {
	p := model.Read(in)
	switch {
	case p.Blocked != "":
		return stopped(p, Blocked, p.Blocked)
	case p.Failure != "":
		return stopped(p, Failed, p.Failure)
	}
	s := serve(p)
	if !s.served {
		return s, refused(s)
	}
	res := solution(s)
	res.Cores = s.cores
	return s, res
}

// stopped is the result when no search took place.
func stopped(p *model.Problem, outcome Outcome, message string) (*service, Result) {
	s := &service{View: explain.View{Problem: p, Scope: &model.Scope{}, Solver: &search.Solver{}}}
	res := Result{Outcome: outcome}
	res.Failure = &olmcore.ResolutionFailure{Message: message}
	unchanged(s, &res)
	return s, res
}

// refused is the result when no Subscription can be served.
func refused(s *service) Result {
	res := Result{Outcome: Unsatisfiable, Cores: s.cores}
	first := &s.cores[0]
	for i := range s.cores {
		if len(s.cores[i].Subscriptions) == 0 {
			first = &s.cores[i] // it stops all of them
		}
	}
	if first.Error {
		res.Outcome = Failed
	}
	res.Failure = failureOf(first)
	unchanged(s, &res)
	return res
}

func failureOf(c *Core) *olmcore.ResolutionFailure {
	return &olmcore.ResolutionFailure{Unsatisfiable: !c.Error, Message: c.Message}
}

// unchanged says of every Subscription that it stays as it is.
func unchanged(s *service, res *Result) {
	for _, sub := range s.Subs {
		d := olmcore.SubscriptionDecision{Name: sub.Object.Name, CurrentCSV: sub.Object.Status.CurrentCSV}
		d.Failure = s.failures[sub.Object.Name]
		res.Decisions = append(res.Decisions, d)
		t := Target{Subscription: sub.Object.Name}
		if sub.Current != nil {
			t.Current = sub.Current.Object.Name
			t.Target = t.Current
		}
		res.Targets = append(res.Targets, t)
	}
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
	slices.SortFunc(res.HeldBack, func(a, b explain.HeldBack) int { return strings.Compare(a.Subscription, b.Subscription) })
	res.Diagnostics = p.Diagnostics
	slices.SortStableFunc(res.Diagnostics, compareDiagnostics)
	res.Stats = p.Stats
	res.Stats.Steps, res.Stats.Explaining = p.limits.spent, p.limits.explaining.Spent+p.limits.heldBack.Spent
}

func compareDiagnostics(a, b olmcore.Diagnostic) int {
	for _, c := range [...]int{
		strings.Compare(a.Target.Kind, b.Target.Kind), strings.Compare(a.Target.Namespace, b.Target.Namespace),
		strings.Compare(a.Target.Name, b.Target.Name), strings.Compare(a.Reason, b.Reason),
		strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}
