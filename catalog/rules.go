// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// decide returns the decision about the Pods.
func decide(f *facts) decision {
	// 1. Create Pods and promote candidates, as the situation requires.
	d := decideSituation(f)
	// 2. Let the next Pod wait if the API server rejected it.
	d = d.and(backOffAfterRejection(f, d))
	if d.leavePods {
		return d
	}
	// 3. Remove Pods that are not needed any more.
	d = d.and(removeUseless(f, d))
	d = d.and(removeSurplus(f))
	// 4. Repair the labels of the Pods that stay.
	d = d.and(repairLabels(f, d))
	// 5. Hold back the deletion of Pods that serve until the Pod that stays is recorded.
	return keepOnePod(f, d)
}

// decideSituation returns the decision of the first situation that applies.
func decideSituation(f *facts) decision {
	switch {
	case !f.standing.runsPods():
		return decision{leavePods: true}
	case f.pods.disruption == totalDisruption:
		return waitForNodes(f)
	case len(f.pods.serving.ready()) == 0:
		return recoverService(f)
	case len(f.pods.outdated) > 0:
		return rollOut(f)
	case f.missing > 0:
		return refill(f)
	}
	return pollImage(f)
}

// decision contains the changes to the Pods, before any object is built. A decision is a value: rules return decisions
// and combine them with the method and. Every part may be executed alone: each step leaves the catalog serving if it
// served before.
type decision struct {
	progress progress              // what ConditionProgressing reports
	creates  []registry.PodRequest // Pods to create
	promotes podList               // Pods that the Service should select
	deletes  []deletion            // at most one for each Pod
	kept     keptPod               // must be recorded before Pods that serve are deleted
	keep     podList               // finished Pods that record how often the start failed
	poll     pollResult            // how the last poll ended
	rejected rejection             // the next Pod, if the API server rejected it
	waits    []time.Duration       // the times until parts that wait are due
	// leavePods is true if existing Pods must not be changed or removed for any other reason.
	leavePods bool
}

// progress is the reason of ConditionProgressing. The zero value means that nothing is left to do.
type progress struct {
	reason   string
	underWay bool // false: reason says why nothing is under way
}

// deletion is the deletion of a Pod.
type deletion struct {
	pod                *pod
	gracePeriodSeconds int64
	cause              olmcore.Cause
	needsKeptPod       bool // if the Pod serves, it is only deleted while a recorded Pod stays
}

// rejection is the API server's rejection of a Pod.
type rejection struct {
	message string        // empty: the Pod was not rejected
	retryIn time.Duration // the time until the next attempt; zero or negative: it is due
}

// and returns a decision with the parts of all decisions. If several decide about the progress, the last one is used.
// If several delete the same Pod, the first deletion is used.
func (d decision) and(others ...decision) decision {
	// Clipped slices are copied by append, so no other decision shares them.
	d.creates = slices.Clip(d.creates)
	d.promotes = slices.Clip(d.promotes)
	d.deletes = slices.Clip(d.deletes)
	d.keep = slices.Clip(d.keep)
	d.waits = slices.Clip(d.waits)
	for _, o := range others {
		d.creates = append(d.creates, o.creates...)
		d.promotes = append(d.promotes, o.promotes...)
		d.keep = append(d.keep, o.keep...)
		d.waits = append(d.waits, o.waits...)
		for _, deletion := range o.deletes {
			if !d.deletesPod(deletion.pod) {
				d.deletes = append(d.deletes, deletion)
			}
		}
		d.progress = cmp.Or(o.progress, d.progress)
		d.poll = cmp.Or(o.poll, d.poll)
		d.rejected = cmp.Or(o.rejected, d.rejected)
		d.leavePods = d.leavePods || o.leavePods
	}
	return d
}

func (d decision) deletesPod(p *pod) bool {
	return slices.ContainsFunc(d.deletes, func(o deletion) bool { return o.pod == p })
}

// The following functions return decisions with one part.

func create(requests ...registry.PodRequest) decision { return decision{creates: requests} }

func promote(pods ...*pod) decision { return decision{promotes: pods} }

// remove deletes Pods. Those that serve are deleted once the Pod that stays is recorded, see keepOnePod.
func remove(gracePeriodSeconds int64, reason, message string, pods ...*pod) decision {
	cause := olmcore.Cause{Reason: reason, Message: message}
	var d decision
	for _, p := range pods {
		d.deletes = append(d.deletes, deletion{pod: p, gracePeriodSeconds: gracePeriodSeconds, cause: cause, needsKeptPod: true})
	}
	return d
}

// removeWithoutKeptPod deletes Pods even if no other Pod serves.
func removeWithoutKeptPod(gracePeriodSeconds int64, reason, message string, pods ...*pod) decision {
	cause := olmcore.Cause{Reason: reason, Message: message}
	var d decision
	for _, p := range pods {
		d.deletes = append(d.deletes, deletion{pod: p, gracePeriodSeconds: gracePeriodSeconds, cause: cause})
	}
	return d
}

// underWay reports what is under way.
func underWay(reason string) decision { return decision{progress: progress{reason, true}} }

// stopped reports why nothing is under way.
func stopped(reason string) decision { return decision{progress: progress{reason, false}} }

func waitFor(d time.Duration) decision { return decision{waits: []time.Duration{d}} }

// waitForNodes decides while no Node is ready. It does not delete or replace Pods, because that would make the outage
// worse. It creates Pods if none is left, because a pending Pod may make the cluster autoscaler add a Node.
func waitForNodes(f *facts) decision {
	d := decision{leavePods: true}
	if f.pods.unfinished == 0 {
		d = d.and(createMissing(f, f.config.Replicas, false))
	}
	return d.and(stopped(ReasonWaitingForNodes))
}

// recoverService decides while no Pod serves. There is nothing to protect, so new Pods serve as soon as they are ready.
func recoverService(f *facts) decision {
	missing := f.config.Replicas - len(f.pods.current)

	// 1. Ready candidates become active. While Pods are missing, candidates that start become active, too.
	var takeOver podList
	starting := f.pods.candidates.where(func(p *pod) bool { return !p.ready })
	for _, p := range slices.Concat(f.pods.candidates.ready(), starting) {
		if p.ready || missing > 0 {
			takeOver = append(takeOver, p)
			missing--
		}
	}
	// 2. Pods of another spec make room, and the missing Pods are created.
	d := promote(takeOver...).and(trimOutdated(f), createMissing(f, missing, false))
	acts := len(d.creates)+len(d.promotes) > 0
	if acts || len(f.pods.current) > 0 {
		d = d.and(remove(1, ReasonPodOutdated, "the Pod was created from another spec and does not serve", f.pods.outdated...))
	}
	// 3. What is under way.
	switch {
	case d.progress.reason != "":
		return d // a replacement waits
	case acts:
		return d.and(underWay(startReason(f)))
	case len(f.pods.outdated) == 0 && len(f.pods.current) > 0:
		return pollImage(f) // Pods with newer content may become ready
	}
	return d.and(progressWhileWaiting(f))
}

// rollOut decides while Pods of another spec serve. They stay until as many new Pods are ready as configured.
func rollOut(f *facts) decision {
	d := underWay(ReasonSpecRollout).and(trimOutdated(f))
	removeOutdated := remove(1, ReasonPodOutdated, "Pods of the current spec serve", f.pods.outdated...)
	ready := f.pods.current.ready()
	candidates := f.pods.candidates.ready()
	missing := f.config.Replicas - len(f.pods.current) - len(f.pods.candidates)
	left, backsOff := candidateBackoff(f)
	switch {
	case len(f.pods.outdated.ready()) == 0:
		return d.and(removeOutdated, createMissing(f, missing, true))
	case len(ready) >= f.config.Replicas:
		return d.and(removeOutdated)
	case len(ready)+len(candidates) >= f.config.Replicas:
		return d.and(promote(candidates...))
	case backsOff:
		return d.and(stopped(ReasonProgressDeadlineExceeded), waitFor(left))
	}
	return d.and(createForRollout(f, missing))
}

// refill decides while Pods of the current spec serve, but fewer than configured, or some are about to be evicted.
// New Pods are candidates until their content is known.
func refill(f *facts) decision {
	candidates := f.pods.candidates.ready()
	same := candidates.where(func(p *pod) bool { // unknown content counts as the same
		return p.content == f.pods.content || p.content == "" || f.pods.content == ""
	})
	missing := f.config.Replicas - len(f.pods.candidates)
	left, backsOff := candidateBackoff(f)
	switch {
	case len(same) > 0:
		return underWay(refillReason(f)).and(promote(same[:min(f.missing, len(same))]...))
	case candidates.canReplace(f.config.Replicas):
		return underWay(ReasonContentUpdate).and(promote(candidates...))
	case backsOff:
		return stopped(ReasonProgressDeadlineExceeded).and(waitFor(left))
	case len(candidates) > 0:
		return underWay(ReasonContentUpdate).and(removeOlderContent(f), createMissing(f, missing, true))
	}
	return underWay(refillReason(f)).and(createMissing(f, f.missing-len(f.pods.candidates), true))
}

// refillReason returns the reason of ConditionProgressing while missing Pods are replaced.
func refillReason(f *facts) string {
	if len(f.pods.lost) > 0 || f.pods.all.isStarting(registry.PurposeFailover) {
		return ReasonNodeFailover
	}
	return ReasonRefill
}

// candidateBackoff reports whether the next candidate waits because the last one did not become ready in time, and how
// long. left is 0 while the failed candidate exists. ConditionProgressing records the failure.
func candidateBackoff(f *facts) (left time.Duration, backsOff bool) {
	failed := func(p *pod) bool { return p.role == roleCandidate && p.class.Active && !p.isOutdated() && p.expired() }
	if f.pods.all.any(failed) {
		return 0, true
	}
	c := f.recordedForSpec(ConditionProgressing)
	if len(f.pods.candidates) > 0 || c == nil || c.Reason != ReasonProgressDeadlineExceeded {
		return 0, false
	}
	left = c.LastTransitionTime.Add(restartBackoff.Max).Sub(f.now)
	return left, left > 0
}

// progressWhileWaiting reports the progress of Pods that exist and are not ready yet.
func progressWhileWaiting(f *facts) decision {
	if len(f.pods.current.ready()) >= f.config.Replicas {
		return decision{}
	}
	unready := f.pods.current.where(func(p *pod) bool { return !p.ready })
	switch {
	case len(f.pods.current) == 0:
	case !unready.any(func(p *pod) bool { return !p.node.mayFail() }):
		return stopped(ReasonWaitingForNodes)
	case !unready.any(func(p *pod) bool { return !p.late }):
		return stopped(ReasonProgressDeadlineExceeded)
	}
	return underWay(startReason(f))
}

// startReason returns the reason of ConditionProgressing while Pods of the serving role start.
func startReason(f *facts) string {
	switch {
	case len(f.pods.lost) > 0 || f.pods.all.isStarting(registry.PurposeFailover):
		return ReasonNodeFailover
	case len(f.pods.outdated) > 0 || f.pods.all.isStarting(registry.PurposeRollout):
		return ReasonSpecRollout
	case len(f.pods.ended) == 0 && neverServed(f):
		return ReasonInitialRollout
	}
	return ReasonRefill
}

// neverServed reports whether no Pod was ready before the rollout that is under way, as far as the recorded status
// shows.
func neverServed(f *facts) bool {
	available := f.recorded(ConditionAvailable)
	if available != nil && available.Status == metav1.ConditionTrue && len(f.pods.serving.ready()) == 0 {
		return false
	}
	last := f.recorded(ConditionProgressing)
	return last == nil || !slices.Contains([]string{
		ReasonSpecRollout, ReasonContentUpdate, ReasonNodeFailover, ReasonRefill, ReasonComplete, ReasonBackOff, ReasonPodRejected,
		ReasonProgressDeadlineExceeded, ReasonWaitingForNodes,
	}, last.Reason)
}

// trimOutdated removes Pods of another spec beyond the configured number, so that new Pods can be created.
func trimOutdated(f *facts) decision {
	ordered := f.pods.outdated.best()
	surplus := ordered[min(f.config.Replicas, len(ordered)):]
	return remove(1, ReasonPodSurplus, "better Pods of the same old spec serve", surplus...)
}

// repairLabels makes the Service select Pods of the serving role that lost a label.
func repairLabels(f *facts, d decision) decision {
	return promote(f.pods.serving.where(func(p *pod) bool {
		return p.Labels[olmcore.LabelManaged] != "true" && !d.deletesPod(p)
	})...)
}
