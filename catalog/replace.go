// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// restart is how long the replacement of a Pod that failed waits; one that ran for restartReset starts over.
var restart = olmcore.Backoff{Base: 10 * time.Second, Max: 5 * time.Minute}

const (
	restartReset = 10 * time.Minute
	// failoverCooldown is the least distance between two replacements because of nodes.
	failoverCooldown = time.Minute
)

// fill asks for missing Pods, one for each Pod that counts no more, as far as backoff, cooldown and the state of the cluster
// allow.
func (pl *planner) fill(missing int, candidates bool) {
	replaced := map[types.UID]bool{}
	for _, p := range pl.pods.choose(func(p *registryPod) bool { return p.Owned && p.Replaces != "" }) {
		replaced[p.Replaces] = true
	}
	for range pl.allowed(missing) {
		gone := nextReplaced(pl.pods, replaced, pl.keep)
		if gone == nil {
			cause := olmcore.Cause{Reason: ReasonPodMissing, Message: "fewer registry Pods exist than asked for"}
			pl.creates = append(pl.creates, registry.PodRequest{Candidate: candidates, Purpose: registry.PurposeInitial, Attempt: 1, Cause: cause})
			continue
		}
		request, left := pl.replacement(gone)
		request.Candidate = candidates
		if left > 0 {
			pl.hold(left, gone)
			continue
		}
		pl.creates = append(pl.creates, request)
		replaced[gone.UID] = true
	}
}

// replacement returns the Pod that replaces another, and how long it waits.
func (pl *planner) replacement(gone *registryPod) (request registry.PodRequest, left time.Duration) {
	cause := olmcore.Cause{Reason: cmp.Or(gone.Reason, gone.Lost), Message: "replaces " + gone.Name + ": " + gone.explain()}
	request = registry.PodRequest{Purpose: gone.Purpose, Attempt: 1, Replaces: gone.UID, Cause: cause}
	switch {
	case gone.lostWithNode():
		request.Purpose, request.Attempt = registry.PurposeFailover, gone.Attempt
		for _, p := range pl.pods.choose(func(p *registryPod) bool { return p.Owned && p.MadeFor == registry.PurposeFailover }) {
			left = max(left, pl.left(p.CreationTimestamp.Time, failoverCooldown))
		}
	case gone.Lost != "":
		request.Attempt = gone.Attempt
	case gone.Fails && gone.DeletionTimestamp != nil: // it was deleted, and did not fail
		request.Purpose = registry.PurposeRefill
	case gone.Fails:
		left, request.Attempt = pl.restartAfter(gone)
	}
	return request, left
}

// fillRollout asks for candidates of a new spec. A candidate that finished is remembered until the next may start.
func (pl *planner) fillRollout(missing int) {
	missing = pl.allowed(missing)
	attempt := 1
	failed := pl.pods.newest(func(p *registryPod) bool { return p.Role == roleCandidate && p.Owned && p.Finished && p.Current })
	if failed != nil && missing > 0 {
		var left time.Duration
		if left, attempt = pl.restartAfter(failed); left > 0 {
			pl.hold(left, failed)
			return
		}
	}
	cause := olmcore.Cause{Reason: ReasonPodOutdated, Message: "the registry Pods were made from another spec"}
	request := registry.PodRequest{Candidate: true, Purpose: registry.PurposeRollout, Attempt: attempt, Cause: cause}
	pl.creates = append(pl.creates, slices.Repeat([]registry.PodRequest{request}, missing)...)
}

// hold waits with the replacement of a Pod; one that failed is kept to remember that.
func (pl *planner) hold(left time.Duration, gone *registryPod) {
	pl.waitFor(left)
	pl.stop(ReasonBackOff)
	if gone.Fails {
		pl.keep = append(pl.keep, gone)
	}
}

// allowed bounds the Pods that run at once, and while many nodes fail lets one replacement start after the other.
func (pl *planner) allowed(missing int) int {
	missing = max(0, min(missing, 2*pl.Config.Replicas-pl.pods.Active))
	if pl.pods.Disruption != partialDisruption {
		return missing
	}
	if pl.pods.any(func(p *registryPod) bool { return p.Present && !p.Ready && !p.Leaves }) {
		return 0
	}
	return min(missing, 1)
}

// nextReplaced returns the Pod that the next new one replaces: of the serving role, of no more use, and not replaced yet.
func nextReplaced(l podList, replaced map[types.UID]bool, keep []*registryPod) *registryPod {
	list := l.choose(func(p *registryPod) bool {
		return p.Role == roleServing && p.Rank > 0 && !replaced[p.UID] && !slices.Contains(keep, p)
	})
	if len(list) == 0 {
		return nil
	}
	return slices.MinFunc(list, func(a, b *registryPod) int { return cmp.Or(a.Rank-b.Rank, byAge(b, a)) })
}

// restartAfter returns how long the replacement of a Pod that failed must wait, and the number of the next attempt.
func (pl *planner) restartAfter(p *registryPod) (left time.Duration, attempt int) {
	tries, next := p.Attempt, p.Attempt+1
	started, finished := p.ran()
	if !started.IsZero() && finished.Sub(started) >= restartReset {
		tries, next = 1, 1
	}
	return pl.left(finished, restart.After(tries)), min(next, maxAttempt)
}

// candidateBackoff reports whether the last candidate failed so recently that the next one waits, and how long; 0: until
// it is gone. The condition is the memory: it is there from the moment that the candidate was late.
func (pl *planner) candidateBackoff() (waits bool, left time.Duration) {
	if pl.pods.any(func(p *registryPod) bool { return p.Role == roleCandidate && p.Active && !p.outdated() && p.expired() }) {
		return true, 0
	}
	c := pl.recordedNow(ConditionProgressing)
	if pl.pods.Candidates > 0 || c == nil || c.Reason != ReasonProgressDeadlineExceeded {
		return false, 0
	}
	left = pl.left(c.LastTransitionTime.Time, restart.Max)
	return left > 0, left
}

// refusal starts the last sentence of ConditionDegraded while a Pod is refused.
const refusal = "the API server refuses the pod: "

// heedRefusal makes a Pod that the API server refuses wait like one that failed. What is remembered of a run is what it
// named; so the Pod is held back only while nothing else is to be done, see Reconcile.
func (pl *planner) heedRefusal() {
	if len(pl.creates) == 0 || len(pl.LastRun) == 0 {
		return
	}
	next := olmcore.Key{Kind: "Pod", Namespace: pl.CatalogSource.Namespace, Name: pl.registry.FreeNames(pl.Pods.Items, 1)[0]}
	last := pl.LastRun[next]
	if last.Class != olmcore.Invalid && last.Class != olmcore.Forbidden && last.Class != olmcore.Webhook {
		return
	}
	pl.refused = refusal + clip(last.Message, 500)
	pl.stop(ReasonBackOff)
	pl.backoff = pl.left(last.Last, restart.After(last.Count))
	pl.waitFor(pl.backoff)
	if c := pl.recordedNow(ConditionDegraded); c != nil && pl.backoff > 0 {
		if i := strings.Index(c.Message, refusal); i >= 0 {
			pl.refused = c.Message[i:] // each answer may hold a number of its own: one write for each try
		}
	}
}

// waitPhase says what is under way while Pods that should be ready are not, or why nothing is.
func (pl *planner) waitPhase(acting bool) (phase, halt string) {
	l := &pl.pods
	all := func(is func(*registryPod) bool) bool { // of those that are not ready
		return !l.any(func(p *registryPod) bool { return p.Role == roleServing && p.Present && !p.Ready && !is(p) })
	}
	waiting := !acting && l.Current > 0
	switch {
	case waiting && all(func(p *registryPod) bool { return p.Node.doubtful() }):
		return "", ReasonWaitingForNodes
	case waiting && all(func(p *registryPod) bool { return p.Late }):
		return "", ReasonProgressDeadlineExceeded
	case l.Lost > 0 || l.starting(registry.PurposeFailover):
		return ReasonNodeFailover, ""
	case l.Outdated > 0 || l.starting(registry.PurposeRollout):
		return ReasonSpecRollout, ""
	case l.Ended == 0 && neverServed(pl.facts):
		return ReasonInitialRollout, ""
	}
	return ReasonRefill, ""
}

// neverServed reports whether the status knows of no Pod that was ready, apart from those of the rollout that is under way.
func neverServed(f *facts) bool {
	if c := f.recorded(ConditionAvailable); c != nil && c.Status == "True" && f.pods.Ready == 0 {
		return false
	}
	last := f.recorded(ConditionProgressing)
	return last == nil || !slices.Contains([]string{
		ReasonSpecRollout, ReasonContentUpdate, ReasonNodeFailover, ReasonRefill, ReasonComplete, ReasonBackOff,
		ReasonProgressDeadlineExceeded, ReasonWaitingForNodes,
	}, last.Reason)
}
