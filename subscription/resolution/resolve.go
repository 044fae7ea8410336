// SPDX-License-Identifier: Apache-2.0

package resolution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/olmcore"
)

// Resolve answers for one namespace: which operators are to be installed or
// upgraded next, which Subscriptions change, which are generated for
// dependencies, or why nothing can be done. Equal inputs, in any order, give
// equal results. There is no error: whatever is wrong with the input is in the
// Result.
//
// Source: operator-lifecycle-manager pkg/controller/registry/resolver.
// Differs: the order in which demands are met is fixed, Subscriptions first; one
// failing Subscription does not stop the others, unless the policy says so; see
// Policy for the rest.
func Resolve(in Input) Result {
	return newProblem(&in).answer()
}

func (p *problem) answer() Result {
	res := p.resolve()
	p.finish(&res)
	return res
}

// resolve decides; finish adds what every result has.
func (p *problem) resolve() Result {
	blocked := p.operatorGroup()
	p.subscriptions()
	if blocked != "" {
		return p.stopped(Blocked, blocked)
	}
	if failure := p.prepare(); failure != "" {
		return p.stopped(Failed, failure)
	}
	if p.slow.eager {
		p.considered()
	}
	s, cores, v := p.solve()
	if v == exhausted {
		res := p.stopped(Failed, fmt.Sprintf("resolution stopped after %d steps", p.policy.maxSteps()))
		res.Cores = cores // those that were found before
		return res
	}
	if v == unsatisfiable {
		return p.refused(cores)
	}
	res := p.solution(s)
	s.done()
	res.Cores = cores
	if !p.policy.OmitHeldBack {
		res.HeldBack = p.heldBack()
	}
	return res
}

// prepare reads the input; a failure stops the namespace.
func (p *problem) prepare() (failure string) {
	p.catalogs()
	if p.policy.FailOnUnavailableCatalog && len(p.missing) > 0 {
		return catalogError(p.missing)
	}
	p.csvs()
	p.readCSVs()
	if p.policy.FailOnInvalidBundle {
		for _, c := range p.existing {
			if c.error != "" {
				return fmt.Sprintf("error using catalogsource %s/@existing: %s", p.in.Namespace, c.error)
			}
		}
	}
	if failure := p.transitions(); failure != "" {
		return failure
	}
	p.candidates()
	return p.unusable()
}

// unusable returns the text of a malformed channel or an invalid bundle that
// could be considered, when the policy lets it stop the namespace.
func (p *problem) unusable() string {
	if p.policy.FailOnMalformedChannel && slices.ContainsFunc(p.sources, func(s source) bool { return len(s.content.malformed) > 0 }) {
		if text := p.malformedTouched(); text != "" {
			return text
		}
	}
	if !p.policy.FailOnInvalidBundle || !slices.ContainsFunc(p.sources, func(s source) bool { return s.content.invalid > 0 }) {
		return ""
	}
	for _, n := range p.considered() {
		if n.blocked == BundleInvalid {
			return n.blockedText
		}
	}
	return ""
}

// malformedTouched finds a malformed channel that a Subscription follows or that
// would offer something for a requirement.
func (p *problem) malformedTouched() string {
	for _, s := range p.subs {
		spec := s.object.Spec
		if s.pkg == nil || (s.current == nil && spec.StartingCSV != "") {
			continue
		}
		for _, ch := range s.pkg.channels {
			if ch.malformed != "" && (spec.Channel == "" || spec.Channel == ch.name) {
				return ch.malformed
			}
		}
	}
	for _, n := range p.considered() {
		for _, q := range n.entry.requirements {
			for i := range p.sources {
				for _, ch := range p.sources[i].content.malformed {
					for _, e := range ch.byName {
						if p.satisfies(e, q.predicate) {
							return ch.malformed
						}
					}
				}
			}
		}
	}
	return ""
}

// stopped is the result when no search took place, or none came to an end.
func (p *problem) stopped(outcome Outcome, message string) Result {
	res := Result{Outcome: outcome}
	res.Failure = &olmcore.ResolutionFailure{Message: message}
	p.unchanged(&res)
	return res
}

// refused is the result when no Subscription can be served.
func (p *problem) refused(cores []Core) Result {
	res := Result{Outcome: Unsatisfiable, Cores: cores}
	first := &cores[0]
	for i := range cores {
		if len(cores[i].Subscriptions) == 0 {
			first = &cores[i] // it stops all of them
		}
	}
	if first.Error {
		res.Outcome = Failed
	}
	res.Failure = failureOf(first)
	p.unchanged(&res)
	return res
}

func failureOf(c *Core) *olmcore.ResolutionFailure {
	return &olmcore.ResolutionFailure{Unsatisfiable: !c.Error, Message: c.Message}
}

// unchanged says of every Subscription that it stays as it is.
func (p *problem) unchanged(res *Result) {
	for _, s := range p.subs {
		d := olmcore.SubscriptionDecision{Name: s.object.Name, CurrentCSV: s.object.Status.CurrentCSV}
		d.Failure = p.failures[s.object.Name]
		res.Decisions = append(res.Decisions, d)
		t := Target{Subscription: s.object.Name}
		if s.current != nil {
			t.Current = s.current.object.Name
			t.Target = t.Current
		}
		res.Targets = append(res.Targets, t)
	}
}

// finish sorts, and adds what was observed.
func (p *problem) finish(res *Result) {
	res.Observed = make([]olmcore.SubscriptionFingerprint, 0, len(p.subs))
	for _, s := range p.subs {
		res.Observed = append(res.Observed, olmcore.FingerprintOf(s.object))
	}
	slices.SortFunc(res.Observed, func(a, b olmcore.SubscriptionFingerprint) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(res.Decisions, func(a, b olmcore.SubscriptionDecision) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(res.Targets, func(a, b Target) int { return strings.Compare(a.Subscription, b.Subscription) })
	slices.SortFunc(res.HeldBack, func(a, b HeldBack) int { return strings.Compare(a.Subscription, b.Subscription) })
	res.Diagnostics = p.diagnostics
	slices.SortStableFunc(res.Diagnostics, compareDiagnostics)
	res.Stats = p.stats
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
