// SPDX-License-Identifier: Apache-2.0

package subscription

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// transientRetry is the pause after a transient failure.
const transientRetry = time.Second

// retries is the backoff after all other failures.
var retries = olmcore.Backoff{Base: 5 * time.Millisecond, Max: 5 * time.Minute}

// answer is what the last resolution means for the Subscriptions that exist now. It is read-only.
type answer struct {
	decisions map[string]*olmcore.SubscriptionDecision // by Subscription
	operators []olmcore.Operator                       // that the resolution installs
	parts     []part
	partIndex map[string]int // by Subscription; see partOf
	isDivided bool           // the Subscriptions have separate InstallPlans
	// speaks means that a decision changes something or failed.
	speaks bool
	// stale means that the resolution read other Subscriptions than those that exist now, and is not carried out yet.
	stale bool
	// failed means that there is no solution, succeeded that there is one. Neither is true if the answer is not fresh.
	failed, succeeded bool
	resolution        want // the condition ResolutionFailed
	next              nextResolution
}

// nextResolution says when the namespace is resolved again.
type nextResolution struct {
	// reason is why the namespace must be resolved now. It is empty while the answer holds.
	reason string
	// wait is the time until the answer must be examined again. 0: only a change can affect it.
	wait time.Duration
}

// and returns the earlier of two next resolutions. If both must happen now, the later one gives the reason.
func (r nextResolution) and(later nextResolution) nextResolution {
	return nextResolution{reason: cmp.Or(later.reason, r.reason), wait: olmcore.Nearest(r.wait, later.wait)}
}

// newAnswer returns what a resolution means. in is nil if there is none.
func newAnswer(n *namespace, in *Resolved) answer {
	// 1. There is no answer yet.
	if in == nil {
		return answer{next: nextResolution{reason: ResolveUnanswered}}
	}
	a := divide(in)
	// 2. It is stale.
	if !a.isFresh(n, in.Resolution.Observed) {
		a.stale = in.Resolution.Failure != nil || a.hasUndone(n)
		a.next.reason = ResolveStale
		return a
	}
	// 3. It failed, or a decision did. The resolution is retried.
	for i := range in.Resolution.Decisions {
		a.next = a.next.and(resolveAfter(n.now, in.At, pauseAfter(in.Resolution.Decisions[i].Failure, in.Attempts)))
	}
	if failure := in.Resolution.Failure; failure != nil {
		a.failed, a.resolution = true, failureWant(failure)
		a.next = a.next.and(resolveAfter(n.now, in.At, pauseAfter(failure, in.Attempts)))
		return a
	}
	// 4. It succeeded. Its parts are carried out.
	a.succeeded, a.resolution = true, absent
	for i := range a.parts {
		carried, next := carryOut(n, in, a.parts[i])
		a.parts[i], a.next = carried, a.next.and(next)
	}
	return a
}

// failureWant returns the condition ResolutionFailed for a failure. A transient failure leaves it as it is.
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

// pauseAfter returns the pause until the next try after a failure. It is 0 if only a change can help, which makes the
// answer stale.
func pauseAfter(f *olmcore.ResolutionFailure, attempts int) time.Duration {
	switch {
	case f == nil || f.Unsatisfiable:
		return 0
	case f.Transient:
		return transientRetry
	}
	return backoffAfter(attempts)
}

func backoffAfter(attempts int) time.Duration { return retries.After(min(attempts, 62) + 1) }

// resolveAfter returns the next resolution if the namespace is resolved again after a pause since the answer. A pause
// of 0 never ends, and so does every pause if the time of the answer is not known.
func resolveAfter(now, answered time.Time, pause time.Duration) nextResolution {
	if answered.IsZero() || pause == 0 {
		return nextResolution{}
	}
	left := answered.Add(pause).Sub(now)
	wasClockSetBack := left > 2*pause
	if left <= 0 || wasClockSetBack {
		return nextResolution{reason: ResolveRetry}
	}
	return nextResolution{wait: left}
}

// isFresh reports whether the Subscriptions are those that were resolved, except for the changes of the answer itself.
func (a *answer) isFresh(n *namespace, observed []olmcore.SubscriptionFingerprint) bool {
	if len(observed) != len(n.subs) {
		return false
	}
	byName := make(map[string]*olmcore.SubscriptionFingerprint, len(observed))
	for i := range observed {
		byName[observed[i].Name] = &observed[i]
	}
	return !slices.ContainsFunc(n.subs, func(s *v1alpha1.Subscription) bool {
		was := byName[s.Name]
		return was == nil || !a.explains(s, *was)
	})
}

// explains reports whether a Subscription is as it was when it was resolved, except that its status.currentCSV may be
// the version of the decision about it.
func (a *answer) explains(s *v1alpha1.Subscription, was olmcore.SubscriptionFingerprint) bool {
	is := olmcore.FingerprintOf(s)
	if is == was {
		return true
	}
	d := a.decisions[s.Name]
	if d == nil || !d.Changed || is.CurrentCSV != d.CurrentCSV || !a.partOf(s.Name).mayHaveChanged(s) {
		return false
	}
	is.CurrentCSV = was.CurrentCSV
	return is == was
}

// hasUndone reports whether a decision was not written to its Subscription yet.
func (a *answer) hasUndone(n *namespace) bool {
	return slices.ContainsFunc(a.parts, func(p part) bool { return p.hasUndone(n) })
}

// answeredConditions returns the conditions that follow from the last resolution.
func answeredConditions(f *facts) (resolution, unpacking, unpackFailed want) {
	a := &f.n.answer
	recorded := f.sub.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed)
	switch {
	case f.n.blocked != "":
		return present(ReasonOperatorGroupCount, f.n.blocked), want{}, want{}
	case !a.failed && !a.succeeded && recorded.Reason == ReasonOperatorGroupCount:
		return absent, want{}, want{} // nothing else removes it while the Subscription waits for its InstallPlan
	case !a.failed && !a.succeeded:
		// A failure in an answer that does not hold any more is not published. Two managers would overwrite each other.
		return want{}, want{}, want{}
	}
	p := a.partOf(f.sub.Name)
	resolution = a.resolution
	d := a.decisions[f.sub.Name]
	if d != nil && d.Failure != nil {
		resolution = failureWant(d.Failure) // it is more exact than the failure of the namespace
	}
	return resolution, p.unpack.unpacking, p.unpack.failed
}
