// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Why a Pod was made; the value of the annotation olmcore/purpose.
const (
	purposeInitial  = "initial"
	purposeFailover = "failover"
	purposeRefill   = "refill"
	purposeRestart  = "restart"
	purposeRollout  = "rollout"
	purposePoll     = "poll"
)

const maxAttempt = 20

// fill asks for missing Pods, one for each Pod that counts no more, as far as
// backoff, cooldown and the state of the cluster allow.
func (v *view) fill(pl *plan, missing int, r role) {
	missing = v.allowed(missing)
	if missing > 0 && v.replaced == nil {
		v.replaced = v.replacedPods()
	}
	for range missing {
		gone := v.nextGone(pl)
		if gone == nil {
			pl.creates = append(pl.creates, creation{role: r, purpose: purposeInitial, attempt: 1, cause: olmcore.Cause{
				Reason: ReasonPodMissing, Message: "fewer registry Pods exist than asked for",
			}})
			continue
		}
		c := creation{role: r, purpose: purposeRefill, attempt: 1, replaces: gone.pod.UID, cause: gone.cause()}
		switch gone.class {
		case ClassLost:
			if c.attempt = v.attemptOf(gone.pod); gone.lost == ReasonOverdue {
				break
			}
			c.purpose = purposeFailover
			if left := v.cooldown(); left > 0 {
				v.hold(pl, left, nil)
				continue
			}
		case ClassTerminated, ClassStuck:
			if gone.pod.DeletionTimestamp != nil {
				break // it ended because somebody wanted it to
			}
			left, attempt := v.backoff(gone)
			c.purpose, c.attempt = purposeRestart, attempt
			if left > 0 {
				v.hold(pl, left, gone.pod)
				continue
			}
		case ClassOutdated:
			c.purpose = purposeRollout
		}
		pl.creates = append(pl.creates, c)
		v.replaced[c.replaces] = true
	}
}

// fillRollout asks for candidates of a new spec. A candidate that finished is
// remembered until the next may start.
func (v *view) fillRollout(pl *plan, missing int) {
	missing = v.allowed(missing)
	attempt := 1
	if failed := v.newestFinishedCandidate(); failed != nil && missing > 0 {
		var left time.Duration
		if left, attempt = v.backoff(failed); left > 0 {
			v.hold(pl, left, failed.pod)
			return
		}
	}
	for range missing {
		pl.creates = append(pl.creates, creation{role: roleCandidate, purpose: purposeRollout, attempt: attempt, cause: olmcore.Cause{
			Reason: ReasonPodOutdated, Message: "the registry Pods were made from another spec",
		}})
	}
}

func (v *view) hold(pl *plan, left time.Duration, keep *corev1.Pod) {
	v.waitFor(left)
	pl.phase, pl.halt = "", ReasonBackOff
	if keep != nil {
		pl.keep = append(pl.keep, keep)
	}
}

// allowed bounds the Pods that run at once, and while many nodes fail lets one
// replacement start after the other.
func (v *view) allowed(missing int) int {
	missing = min(missing, 2*v.set.replicas-v.tally.active)
	if v.disruption == partialDisruption && missing > 0 {
		for i := range v.pods {
			if p := &v.pods[i]; p.class == ClassStarting || p.class == ClassUnhealthy {
				return 0
			}
		}
		return 1
	}
	return max(missing, 0)
}

// nextGone returns the Pod that the next new one stands in for: of the serving
// role, of no more use, and not replaced yet.
func (v *view) nextGone(pl *plan) *podFacts {
	var best *podFacts
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleServing || rankGone(p) == 0 || v.replaced[p.pod.UID] || slices.Contains(pl.keep, p.pod) {
			continue
		}
		if best == nil || rankGone(p) < rankGone(best) || rankGone(p) == rankGone(best) && newer(p.pod, best.pod) {
			best = p
		}
	}
	return best
}

func rankGone(p *podFacts) int {
	switch p.class {
	case ClassLost:
		return 1
	case ClassTerminating:
		return 2
	case ClassTerminated, ClassStuck:
		return 3
	case ClassDisrupted:
		return 4
	case ClassOutdated:
		return 5
	}
	return 0
}

// replacedPods are the UIDs of the Pods that another one was made for.
func (v *view) replacedPods() map[types.UID]bool {
	key, uids := v.set.prefix+keyReplaces, map[types.UID]bool{}
	for i := range v.pods {
		if uid := v.pods[i].pod.Annotations[key]; uid != "" && v.pods[i].class != ClassForeign {
			uids[types.UID(uid)] = true
		}
	}
	return uids
}

func (v *view) newestFinishedCandidate() *podFacts {
	var newest *podFacts
	for i := range v.pods {
		p := &v.pods[i]
		if p.role == roleCandidate && p.class == ClassTerminated && v.current(p.pod) && (newest == nil || newer(p.pod, newest.pod)) {
			newest = p
		}
	}
	return newest
}

// backoff returns how long the replacement of a Pod that failed must wait, and
// the number of the next attempt.
func (v *view) backoff(p *podFacts) (left time.Duration, attempt int) {
	k := v.attemptOf(p.pod)
	started, finished := runOf(p.pod)
	next := k + 1
	if !started.IsZero() && finished.Sub(started) >= v.set.backoffReset {
		k, next = 1, 1
	}
	return v.left(finished, v.backoffAfter(k)), min(next, maxAttempt)
}

// backoffAfter is how long to wait after the k-th attempt in a row.
func (v *view) backoffAfter(k int) time.Duration {
	wait := v.set.backoffBase
	for i := 1; i < k && wait < v.set.backoffMax; i++ {
		wait *= 2
	}
	return min(wait, v.set.backoffMax)
}

// runOf returns when a Pod's containers started last and when they finished.
// A Pod that tells nothing finished when it stopped being ready, or never began.
func runOf(pod *corev1.Pod) (started, finished time.Time) {
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if t := statuses[i].State.Terminated; t != nil && t.FinishedAt.After(finished) {
				started, finished = t.StartedAt.Time, t.FinishedAt.Time
			}
		}
	}
	if finished.IsZero() {
		return time.Time{}, unreadySince(pod)
	}
	return started, finished
}

// heedRefusal makes a Pod that the API server refuses wait like one that failed.
// What is remembered of a run is what it named; so the Pod is held back only while
// nothing else is to be done, see Reconcile.
func (v *view) heedRefusal(pl *plan) {
	if len(pl.creates) == 0 || len(v.in.LastRun) == 0 {
		return
	}
	number := 0
	last := v.in.LastRun[olmcore.Key{Kind: "Pod", Namespace: v.cs.Namespace, Name: v.freeName(&number)}]
	switch last.Class {
	case olmcore.Invalid, olmcore.Forbidden, olmcore.Webhook:
	default:
		return
	}
	pl.refused = refusal + clip(last.Message, 500)
	pl.phase, pl.halt = "", ReasonBackOff
	pl.pause = v.left(last.Last, v.backoffAfter(last.Count))
	v.waitFor(pl.pause)
	if said := v.saidRefusal(); said != "" && pl.pause > 0 {
		pl.refused = said // each answer may hold a number of its own: one write for each try
	}
}

// refusal starts the last sentence of ConditionDegraded while a Pod is refused.
const refusal = "the API server refuses the pod: "

func (v *view) saidRefusal() string {
	c := meta.FindStatusCondition(v.cs.Status.Conditions, ConditionDegraded)
	if c == nil || c.ObservedGeneration != v.cs.Generation {
		return ""
	}
	if i := strings.Index(c.Message, refusal); i >= 0 {
		return c.Message[i:]
	}
	return ""
}

func (v *view) attemptOf(pod *corev1.Pod) int {
	k, err := strconv.Atoi(pod.Annotations[v.set.prefix+keyAttempt])
	if err != nil {
		return 1
	}
	return min(max(k, 1), maxAttempt)
}

// cooldown is how long the next replacement because of a node must wait.
func (v *view) cooldown() (left time.Duration) {
	key := v.set.prefix + keyPurpose
	for i := range v.pods {
		p := &v.pods[i]
		if p.class != ClassForeign && p.pod.Annotations[key] == purposeFailover {
			left = max(left, v.left(p.pod.CreationTimestamp.Time, v.set.cooldown))
		}
	}
	return left
}

// cause says why a Pod that counts no more is replaced.
func (p *podFacts) cause() olmcore.Cause {
	reason := ""
	switch p.class {
	case ClassLost:
		reason = p.lost
	case ClassTerminating:
		reason = ReasonPodTerminating
	case ClassTerminated:
		reason = ReasonPodTerminated
	case ClassStuck:
		reason = ReasonPodStuck
	case ClassDisrupted:
		reason = ReasonPodDisrupted
	default:
		reason = ReasonPodOutdated
	}
	return olmcore.Cause{Reason: reason, Message: "replaces " + p.pod.Name + ": " + p.explain()}
}

// explain says in words what is the matter with a Pod.
func (p *podFacts) explain() string {
	node := "node " + p.pod.Spec.NodeName
	switch p.class {
	case ClassForeign:
		return "it does not belong to the catalog"
	case ClassTerminated:
		return "it has finished"
	case ClassLost:
		if p.lost == ReasonOverdue || p.lost == ReasonEvicted {
			return "it was deleted and is still there, " + node
		}
		return node + " " + p.nodeWord()
	case ClassTerminating:
		return "it is being deleted"
	case ClassOutdated:
		return "it was made from another spec"
	case ClassDisrupted:
		return "it is about to be evicted"
	case ClassStuck:
		return "it does not start on " + node
	}
	return p.note()
}

// nodeWord continues the sentence "node x ...".
func (p *podFacts) nodeWord() string {
	switch p.node {
	case NodeGone:
		return "is gone"
	case NodeOutOfService:
		return "is out of service"
	case NodeUnreachable:
		return "is unreachable"
	case NodeNotReady:
		return "is not ready"
	}
	return ""
}

// note is what a list of Pods says about one, empty for a Pod that serves. It
// allocates nothing.
func (p *podFacts) note() string {
	switch p.class {
	case ClassServing:
		return ""
	case ClassTerminated:
		return "finished"
	case ClassLost:
		if word := p.nodeWord(); word != "" {
			return "lost, its node " + word
		}
		return "lost"
	case ClassTerminating:
		return "terminating"
	case ClassStuck:
		return "does not start"
	case ClassOutdated:
		return "old spec"
	case ClassDisrupted:
		return "about to be evicted"
	}
	if word := p.nodeWord(); word != "" {
		return "not ready, its node " + word
	}
	switch p.trouble {
	case ReasonImagePullFailed:
		return "cannot pull its image"
	case ReasonCrashLooping:
		return "does not stay up"
	case ReasonPodUnschedulable:
		return "no node takes it"
	}
	return "not ready"
}
