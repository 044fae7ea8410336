// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

const (
	// transientRetry is the pause after a failure that trying again may help.
	transientRetry = time.Second
	// unpackRecheck is the pause between two looks at bundles that are being unpacked, unpackRetry the one after a failure.
	unpackRecheck = 5 * time.Second
	unpackRetry   = 5 * time.Minute

	unpackGuidance = "Auto-retry: it is tried again every 5 minutes. Common causes: the image does not exist or cannot be pulled, " +
		"or its Pod finds no node; to try at once, delete the failing Job with the label operatorframework.io/bundle-unpack-ref " +
		"in the namespace of the catalog"
)

// retries times the next try after other failures.
var retries = olmcore.Backoff{Base: 5 * time.Millisecond, Max: 5 * time.Minute}

// answer is what a Resolution means for the Subscriptions that are there now.
type answer struct {
	n  *namespace
	in *Resolved
	// again is the reason to ask again, empty while the answer holds; wait is the time until asking again may help.
	again string
	wait  time.Duration
	// stale: it was computed from other Subscriptions, and is not carried out yet.
	stale bool
	// failed: there is no solution. succeeded: there is one. speaks: one of the decisions changes something or failed.
	failed, succeeded, speaks bool
	resolution                want // ResolutionFailed
	decisions                 map[string]*olmcore.SubscriptionDecision
	parts                     []*part
	partNamed                 map[string]*part // by Subscription
}

// newAnswer returns what a Resolution means; nil is none.
func newAnswer(n *namespace, in *Resolved) answer {
	if in == nil {
		return answer{again: ResolveUnanswered}
	}
	a := answer{n: n, in: in, decisions: make(map[string]*olmcore.SubscriptionDecision, len(in.Resolution.Decisions))}
	for i := range in.Resolution.Decisions {
		d := &in.Resolution.Decisions[i]
		a.decisions[d.Name] = d
		a.speaks = a.speaks || d.Changed || d.Failure != nil
	}
	a.divide()
	if !a.isFresh() {
		a.again, a.stale = ResolveStale, in.Resolution.Failure != nil || a.hasUndone()
		return a
	}
	for _, d := range in.Resolution.Decisions {
		a.retry(d.Failure)
	}
	if f := in.Resolution.Failure; f != nil {
		a.failed, a.resolution = true, failureWant(f)
		a.retry(f)
		return a
	}
	a.succeeded, a.resolution = true, absent
	for _, p := range a.parts {
		p.carry()
	}
	return a
}

// failureWant returns what ResolutionFailed says of a failure.
func failureWant(f *olmcore.ResolutionFailure) want {
	const prefix = "constraints not satisfiable: "
	switch {
	case f.Unsatisfiable:
		return present(ReasonConstraintsNotSatisfiable, prefix+strings.TrimPrefix(f.Message, prefix))
	case f.Transient:
		return want{}
	}
	return present(ReasonErrorPreventedResolution, f.Message)
}

// retry plans the next try after a failure. Contradicting constraints need a change, which drops the answer.
func (a *answer) retry(f *olmcore.ResolutionFailure) {
	switch {
	case f == nil || f.Unsatisfiable:
	case f.Transient:
		a.retryAfter(transientRetry)
	default:
		a.retryAfter(retries.After(min(a.in.Attempts, 62) + 1))
	}
}

// retryAfter asks again once a pause has passed since the answer.
func (a *answer) retryAfter(pause time.Duration) {
	if a.in.At.IsZero() {
		return
	}
	left := a.in.At.Add(pause).Sub(a.n.now)
	if left <= 0 || left > 2*pause { // the clock went back: what is left would be a pause for ever
		a.again = ResolveRetry
	} else {
		a.waitAtMost(left)
	}
}

// waitAtMost lowers the time until the answer is checked again to the given pause.
func (a *answer) waitAtMost(pause time.Duration) {
	if a.wait == 0 || pause < a.wait {
		a.wait = pause
	}
}

// isFresh reports whether the Subscriptions are those that were resolved, but for what carrying it out has changed.
func (a *answer) isFresh() bool {
	observed := a.in.Resolution.Observed
	if len(observed) != len(a.n.subs) {
		return false
	}
	byName := make(map[string]*olmcore.SubscriptionFingerprint, len(observed))
	for i := range observed {
		byName[observed[i].Name] = &observed[i]
	}
	for _, s := range a.n.subs {
		is, was, d := olmcore.FingerprintOf(s), byName[s.Name], a.decisions[s.Name]
		switch {
		case was == nil:
			return false
		case is == *was:
			continue
		case d == nil || !d.Changed || is.CurrentCSV != d.CurrentCSV || !a.partOf(s.Name).isReached(s):
			return false
		}
		if is.CurrentCSV = was.CurrentCSV; is != *was {
			return false
		}
	}
	return true
}

// hasUndone reports whether a decision is not carried out yet.
func (a *answer) hasUndone() bool {
	return slices.ContainsFunc(a.parts, (*part).hasUndone)
}

// facts returns what the answer says of one Subscription.
func (j *judgement) facts() facts {
	a, f := &j.answer, facts{Verdict: j.Verdict}
	d := a.decisions[j.Subscription.Name]
	said := j.Subscription.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed)
	switch {
	case j.blocked != "":
		f.resolution = present(ReasonErrorPreventedResolution, j.blocked)
		return f
	case a.failed, a.succeeded:
		p := a.partOf(j.Subscription.Name)
		f.resolution, f.unpacking, f.unpackFailed = a.resolution, p.unpacking, p.unpackFailed
	case said.Reason == ReasonErrorPreventedResolution && strings.HasPrefix(said.Message, "found ") && strings.HasSuffix(said.Message, " operatorGroups, expected 1"):
		f.resolution = absent // nothing else takes that back while the Subscription waits for its plan
	}
	// A failure in an answer that does not hold any more is not published: two managers would overwrite each other without end.
	if d != nil && d.Failure != nil && (a.failed || a.succeeded) {
		f.resolution = failureWant(d.Failure) // more exact than that of the namespace
	}
	return f
}
