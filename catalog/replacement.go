// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// restartBackoff is how long the replacement of a failed Pod waits.
var restartBackoff = olmcore.Backoff{Base: 10 * time.Second, Max: 5 * time.Minute}

const (
	// restartReset is how long a Pod must run before it fails so that the backoff starts again.
	restartReset = 10 * time.Minute
	// failoverCooldown is the minimum time between two replacements because of Nodes.
	failoverCooldown = time.Minute
)

// createMissing creates missing Pods. Each of them replaces a Pod that cannot serve any more, if there is one. The
// backoff after a failure, the cooldown after a failover and a disruption of the cluster limit how many are created.
func createMissing(f *facts, missing int, asCandidates bool) decision {
	replaced := map[types.UID]bool{}
	for _, p := range f.pods.all {
		if p.owned && p.replaces != "" {
			replaced[p.replaces] = true
		}
	}
	var d decision
	for range allowedCreates(f, missing) {
		old := nextToReplace(f, replaced, d.keep)
		if old == nil {
			d = d.and(create(registry.PodRequest{
				Candidate: asCandidates, Purpose: registry.PurposeInitial, Attempt: 1,
				Cause: olmcore.Cause{Reason: ReasonPodMissing, Message: "fewer registry Pods exist than desired"},
			}))
			continue
		}
		request, left := replacementOf(f, old)
		request.Candidate = asCandidates
		if left > 0 {
			d = d.and(backOff(left, old))
			continue
		}
		d = d.and(create(request))
		replaced[old.UID] = true
	}
	return d
}

// replacementOf returns the request for the Pod that replaces another one, and how long it has to wait.
func replacementOf(f *facts, old *pod) (request registry.PodRequest, left time.Duration) {
	request = registry.PodRequest{
		Purpose: old.class.Purpose, Attempt: 1, Replaces: old.UID,
		Cause: olmcore.Cause{Reason: cmp.Or(old.class.Reason, old.lost), Message: "replaces " + old.Name + ": " + old.explanation()},
	}
	switch {
	case old.lostWithNode():
		request.Purpose = registry.PurposeFailover
		request.Attempt = old.attempt
		left = failoverCooldownLeft(f)
	case old.lost != "":
		request.Attempt = old.attempt
	case old.class.Fails && old.DeletionTimestamp != nil: // it was deleted and did not fail
		request.Purpose = registry.PurposeRefill
	case old.class.Fails:
		left, request.Attempt = restartAfter(f, old)
	}
	return request, left
}

// failoverCooldownLeft returns the time until the next Pod of a failed Node may be replaced.
func failoverCooldownLeft(f *facts) (left time.Duration) {
	for _, p := range f.pods.all {
		if p.owned && p.purpose == registry.PurposeFailover {
			left = max(left, p.CreationTimestamp.Add(failoverCooldown).Sub(f.now))
		}
	}
	return left
}

// createForRollout creates candidates of a new spec. A candidate that finished is kept until the next one may start.
func createForRollout(f *facts, missing int) decision {
	missing = allowedCreates(f, missing)
	attempt := 1
	failed := f.pods.all.where(func(p *pod) bool { return p.role == roleCandidate && p.owned && p.finished && p.current }).newest()
	if failed != nil && missing > 0 {
		var left time.Duration
		left, attempt = restartAfter(f, failed)
		if left > 0 {
			return backOff(left, failed)
		}
	}
	request := registry.PodRequest{
		Candidate: true, Purpose: registry.PurposeRollout, Attempt: attempt,
		Cause: olmcore.Cause{Reason: ReasonPodOutdated, Message: "the registry Pods were created from another spec"},
	}
	return create(slices.Repeat([]registry.PodRequest{request}, missing)...)
}

// backOff waits before a Pod is replaced. A Pod that failed is kept, because it records the failure.
func backOff(left time.Duration, old *pod) decision {
	d := stopped(ReasonBackOff).and(waitFor(left))
	if !old.class.Fails {
		return d
	}
	return d.and(decision{keep: podList{old}})
}

// allowedCreates returns how many of the missing Pods may be created now. It limits the number of active Pods. While
// many Nodes fail, Pods are replaced one after the other.
func allowedCreates(f *facts, missing int) int {
	allowed := max(0, min(missing, 2*f.config.Replicas-f.pods.active))
	if f.pods.disruption != partialDisruption {
		return allowed
	}
	if f.pods.all.any(func(p *pod) bool { return p.isCurrent() && !p.ready && !p.class.Leaving }) {
		return 0
	}
	return min(allowed, 1)
}

// nextToReplace returns the Pod that the next new Pod replaces, or nil.
func nextToReplace(f *facts, replaced map[types.UID]bool, keep podList) *pod {
	candidates := f.pods.all.where(func(p *pod) bool {
		return p.role == roleServing && p.class.Order > 0 && !replaced[p.UID] && !slices.Contains(keep, p)
	})
	if len(candidates) == 0 {
		return nil
	}
	return slices.MinFunc(candidates, func(a, b *pod) int { return cmp.Or(a.class.Order-b.class.Order, byAge(b, a)) })
}

// restartAfter returns how long the replacement of a failed Pod waits, and the number of the next attempt.
func restartAfter(f *facts, failed *pod) (left time.Duration, attempt int) {
	started, finished := failed.lastRun()
	if !started.IsZero() && finished.Sub(started) >= restartReset {
		return finished.Add(restartBackoff.After(1)).Sub(f.now), 1
	}
	return finished.Add(restartBackoff.After(failed.attempt)).Sub(f.now), min(failed.attempt+1, maxAttempt)
}

// backOffAfterRejection lets a Pod that the API server rejected wait like a Pod that failed. The rejection is known
// while Input.LastRun contains the name of the next Pod. LastRun only contains the objects of the last run, so
// outcome only skips the attempt if there is nothing else to do.
func backOffAfterRejection(f *facts, d decision) decision {
	if len(d.creates) == 0 || len(f.in.LastRun) == 0 {
		return decision{}
	}
	name := f.registry.FreeNames(f.in.Pods.Items, 1)[0]
	last := f.in.LastRun[olmcore.Key{Kind: "Pod", Namespace: f.source.Namespace, Name: name}]
	if last.Class != olmcore.Invalid && last.Class != olmcore.Forbidden && last.Class != olmcore.Webhook {
		return decision{}
	}
	rejected := rejection{
		message: "the API server rejected the pod: " + clip(last.Message, 500),
		retryIn: last.Last.Add(restartBackoff.After(last.Count)).Sub(f.now),
	}
	// Every answer may contain another number. The recorded message stays until the next attempt, so that the status is
	// written once for each attempt.
	recorded := f.recordedForSpec(ConditionProgressing)
	if recorded != nil && recorded.Reason == ReasonPodRejected && rejected.retryIn > 0 {
		rejected.message = cmp.Or(clip(recorded.Message, maxRecorded), rejected.message)
	}
	return stopped(ReasonPodRejected).and(waitFor(rejected.retryIn), decision{rejected: rejected})
}
