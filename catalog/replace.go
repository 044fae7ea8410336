// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
			left = max(left, p.CreationTimestamp.Add(failoverCooldown).Sub(pl.Now))
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
	if slices.ContainsFunc(pl.pods.Items, func(p *registryPod) bool { return p.Present && !p.Ready && !p.Leaves }) {
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
	return finished.Add(restart.After(tries)).Sub(pl.Now), min(next, maxAttempt)
}

// refusal starts the last sentence of ConditionDegraded while a Pod is refused.
const refusal = "the API server refuses the pod: "

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

// planCleanup removes own Pods that are of no more use. Nothing waits for it.
func (pl *planner) planCleanup() {
	l, forced := &pl.pods, false
	newestStuck := l.newest(func(p *registryPod) bool { return p.Role == roleServing && p.Remove == removeStuck })
	for _, p := range l.choose(func(p *registryPod) bool { return p.Role != roleNone && !slices.Contains(pl.promotes, p) }) {
		switch p.Remove {
		case removeFinished:
			// One that a finalizer holds was deleted already.
			if !slices.Contains(pl.keep, p) && !p.held() {
				pl.delete(0, ReasonPodTerminated, "the Pod has finished", p)
			}
		case removeLost:
			forced = pl.removeLost(p, forced) || forced
		case removeDisrupted:
			if pl.Config.ForceDelete == ForceDeleteUpstream && p.is(corev1.DisruptionTarget) && !p.forced() && !pl.dooms(p) {
				// The policy is OLM's, which deletes the Pod whether another serves or not.
				pl.deletes = append(pl.deletes, deleteOf(p, 0, ReasonPodDisrupted, "the Pod is a target of disruption"))
			}
		case removeStuck:
			if p.Role == roleServing && (l.Ready > 0 || p != newestStuck) {
				pl.delete(1, p.Reason, "the Pod"+strings.TrimPrefix(p.explain(), "it"), p)
			}
		}
		switch {
		case p.Role != roleCandidate || !p.Active:
		case p.outdated():
			pl.delete(1, ReasonCandidateObsolete, "the Pod was made from another spec", p)
		case p.expired():
			pl.delete(1, ReasonProgressDeadlineExceeded, "the Pod did not become ready in time", p)
		}
	}
}

// removeLost deletes a lost Pod once that costs nothing, and removes it by force when nothing is left that could confirm its
// end; it returns whether it did. While many nodes fail one is forced after the other.
func (pl *planner) removeLost(p *registryPod, forced bool) bool {
	certain := p.Lost == ReasonNodeGone || p.Lost == ReasonNodeOutOfService
	partial := pl.pods.Disruption == partialDisruption
	if p.DeletionTimestamp == nil {
		switch {
		case certain && pl.Config.ForceDelete != ForceDeleteNever && !(forced && partial):
			pl.delete(0, p.Lost, p.explain(), p)
			return true
		case certain:
			pl.delete(1, p.Lost, p.explain(), p)
		case pl.pods.Ready > 0:
			pl.delete(1, ReasonPodReplaced, "another Pod serves; "+p.explain(), p)
		}
		return false
	}
	if p.forced() || partial && (!certain || forced) {
		return false
	}
	left, may := pl.forceAfter(p, certain)
	if pl.waitFor(left); !may || left > 0 {
		return false
	}
	pl.delete(0, p.Lost, p.explain(), p)
	return true
}

// forceAfter returns how long it is until the policy allows a lost and Terminating Pod to be removed, and whether it does at
// all. One that outlived its deletion waits until nothing is known to work that could confirm its end: its node, if it has
// one, was given its grace period.
func (pl *planner) forceAfter(p *registryPod, certain bool) (left time.Duration, may bool) {
	policy := pl.Config.ForceDelete
	switch {
	case policy == ForceDeleteNodeGone:
		return 0, certain
	case policy == ForceDeleteNever:
		return 0, false
	case p.Lost == ReasonNodeUnreachable || p.Lost == ReasonNodeNotReady:
		return p.DeletionTimestamp.Sub(pl.Now), true
	case p.Lost != ReasonOverdue || policy == ForceDeleteUpstream:
		return 0, true
	case p.Node.doubtful():
		return p.NodeSince.Add(pl.Config.grace(p.Node)).Sub(pl.Now), true
	}
	return 0, p.Node != NodeHealthy && p.Node != NodeRecovering && p.Node != NodeLeaving
}

// dropOlderContent deletes the ready candidates that have other content than the newest: the image changed while they
// started, and they would wait for each other for ever.
func (pl *planner) dropOlderContent() {
	if !pl.contentIsOrdered() {
		return
	}
	compared := func(p *registryPod) bool { return p.Role == roleCandidate && p.Ready && p.usable() && p.Content != "" }
	newest := pl.pods.newest(compared)
	for _, p := range pl.pods.choose(compared) {
		if p.Content != newest.Content {
			pl.delete(1, ReasonContentDiffers, "a newer candidate has newer content of the same image", p)
		}
	}
}

// contentIsOrdered reports whether creation times show which content is newer. Pods of different content that were created in the
// same second do not show it: while that second lasts, a deleted Pod might be created again with the same content. A manager whose
// clock is ahead would end the second too early, so every manager also waits for olmcore.ClockTolerance.
func (pl *planner) contentIsOrdered() bool {
	contents := map[int64]string{} // by the second
	var wait time.Duration
	for _, p := range pl.pods.choose(func(p *registryPod) bool { return p.Ready && p.Content != "" }) {
		created := p.CreationTimestamp.Truncate(time.Second)
		left := created.Add(time.Second + olmcore.ClockTolerance).Sub(pl.Now)
		if left <= 0 || isFuture(created, pl.Now) {
			continue
		}
		if content, found := contents[created.Unix()]; found && content != p.Content {
			wait = max(wait, left)
		}
		contents[created.Unix()] = p.Content
	}
	pl.waitFor(wait)
	return wait == 0
}

// planSurplus deletes surplus Pods and keeps the best Pods of the newest content. It deletes none while the newest content is unknown.
func (pl *planner) planSurplus() {
	l, n := &pl.pods, pl.Config.Replicas
	other := func(p *registryPod) bool { return p.Ready && p.Content != l.Content && p.Content != "" }
	mixed := slices.ContainsFunc(l.Items, func(p *registryPod) bool { return p.serves() && other(p) })
	if l.Outdated > 0 || l.Current <= n && !mixed || mixed && !pl.contentIsOrdered() {
		return
	}
	ranked := l.live(roleServing)
	if mixed {
		pl.delete(1, ReasonContentDiffers, "other Pods serve newer content of the same image", l.choose(func(p *registryPod) bool {
			return p.Role == roleServing && p.Live && other(p)
		})...)
		ranked = slices.DeleteFunc(ranked, other)
	}
	pl.rank(ranked)
	spreadHosts(ranked, n)
	steady := 0
	for _, p := range ranked {
		steady += one(p.stays() && p.Node != NodeRecovering && !p.Node.doubtful())
	}
	for _, p := range ranked[min(n, len(ranked)):] {
		// A Pod that still starts may be needed when the node of a ready one fails again.
		if p.Ready || steady >= n {
			pl.delete(1, ReasonPodSurplus, "better Pods serve already", p)
		}
	}
}

func byWorth(a, b *registryPod) int { return cmp.Or(a.worth()-b.worth(), byAge(a, b)) }

func (p *registryPod) worth() (w int) {
	switch p.Node {
	case NodeHealthy, NodeNotObserved:
	case NodeRecovering:
		w = 1
	case NodeLeaving:
		w = 2
	default:
		w = 3
	}
	return w + 4*one(p.Leaves) + 10*one(!p.Ready)
}

// spreadHosts moves, among the Pods of equal worth, the first of each host before the others.
func spreadHosts(ranked []*registryPod, n int) {
	if len(ranked) <= n || n < 2 {
		return
	}
	for i := 1; i < n; i++ {
		for j := i; j < len(ranked) && ranked[j].worth() == ranked[i].worth(); j++ {
			p := ranked[j]
			if !slices.ContainsFunc(ranked[:i], func(q *registryPod) bool { return q.Spec.NodeName == p.Spec.NodeName }) {
				copy(ranked[i+1:j+1], ranked[i:j])
				ranked[i] = p
				break
			}
		}
	}
}

func (p *registryPod) explain() string {
	node := "node " + p.Spec.NodeName
	switch {
	case p.Explanation != "":
		return strings.ReplaceAll(p.Explanation, "{node}", node)
	case p.Lost == ReasonOverdue || p.Lost == ReasonEvicted:
		return "it was deleted and is still there, " + node
	case p.Lost != "":
		return node + " " + p.Node.word()
	}
	return p.describe()
}

// forced reports whether a force delete has been accepted already: what holds the Pod now is a finalizer.
func (p *registryPod) forced() bool {
	return p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
}
