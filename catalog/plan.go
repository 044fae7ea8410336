// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/olmcore"
)

// plan is what shall happen to the Pods, before any object is built. It may be run in part: each step leaves the catalog
// serving when it served before.
type plan struct {
	creates  []registry.PodRequest
	promotes []*registryPod
	deletes  []olmcore.Delete
	pending  []pendingDelete // those of Pods that serve, before the kept Pod is recorded
	kept     keptPod         // what must be written before they are deleted
	keep     []*registryPod  // finished Pods that remember how often the start failed
	phase    string          // the Reason of ConditionProgressing while something is under way
	halt     string          // the one that says why nothing is
	verdict  pollVerdict     // what the last poll came to
	refused  string          // the API server's refusal of the next Pod
	backoff  time.Duration   // how long the next try waits then
	wait     time.Duration   // until a decision that waits may be taken; 0: none does
}

func (pl *plan) promote(list ...*registryPod) { pl.promotes = append(pl.promotes, list...) }

// deleteOf returns the deletion of a Pod, at the version that was judged: one that changed since may serve by now.
func deleteOf(p *registryPod, grace int64, reason, why string) olmcore.Delete {
	action := olmcore.DeleteOf(p.Pod, olmcore.Cause{Reason: reason, Message: why})
	action.GracePeriodSeconds = new(grace)
	return action
}

func (pl *plan) dooms(p *registryPod) bool {
	return slices.ContainsFunc(pl.deletes, func(d olmcore.Delete) bool { return d.Target.Name == p.Name }) ||
		slices.ContainsFunc(pl.pending, func(d pendingDelete) bool { return d.pod == p })
}

// under sets what is under way, stop why nothing is.
func (pl *plan) under(phase string) { pl.phase, pl.halt = phase, "" }
func (pl *plan) stop(halt string)   { pl.phase, pl.halt = "", halt }

func (pl *plan) waitFor(d time.Duration) { pl.wait = olmcore.Nearest(pl.wait, d) }

type planner struct {
	*facts
	plan
}

// delete deletes Pods. Those that serve wait until the Pod that stays is recorded, see planPending.
func (pl *planner) delete(grace int64, reason, why string, list ...*registryPod) {
	for _, p := range list {
		if pl.dooms(p) {
			continue
		}
		if action := deleteOf(p, grace, reason, why); pl.needsKept(p) {
			pl.pending = append(pl.pending, pendingDelete{pod: p, action: action})
		} else {
			pl.deletes = append(pl.deletes, action)
		}
	}
}

func planPods(f *facts) plan {
	if !f.standing.runsPods() {
		return plan{}
	}
	pl := planner{facts: f}
	if f.pods.Disruption == totalDisruption {
		// Deleting or moving anything would only add to the outage. But a Pod that waits for a node may be what makes the
		// autoscaler add one.
		if f.pods.Unfinished == 0 {
			pl.fill(f.Config.Replicas, false)
		}
		pl.stop(ReasonWaitingForNodes)
		pl.heedRefusal()
		return pl.plan
	}
	switch {
	case f.pods.Ready == 0:
		pl.planOutage()
	case f.pods.Outdated > 0:
		pl.planRollout()
	default:
		pl.planRefill()
	}
	pl.heedRefusal()
	pl.planCleanup()
	pl.planSurplus()
	pl.planPending()
	for _, p := range f.pods.live(roleServing) {
		if p.Labels[olmcore.LabelManaged] != "true" && !pl.dooms(p) {
			pl.promote(p) // the Service does not select it
		}
	}
	return pl.plan
}

// planOutage: nothing serves, so there is nothing to protect; new Pods serve as soon as they are ready.
func (pl *planner) planOutage() {
	l := &pl.pods
	missing := pl.Config.Replicas - l.Current
	starting := l.choose(func(p *registryPod) bool { return p.Role == roleCandidate && p.usable() && !p.Ready })
	for _, p := range append(l.readyCandidates(), starting...) {
		if p.Ready || missing > 0 {
			pl.promote(p)
			missing--
		}
	}
	pl.trimOutdated()
	pl.fill(missing, false)
	if l.Current+len(pl.promotes)+len(pl.creates) > 0 {
		pl.delete(1, ReasonPodOutdated, "the Pod was made from another spec and does not serve", l.oldSpec()...)
	}
	if pl.halt != "" {
		return
	}
	acting := len(pl.creates)+len(pl.promotes) > 0
	pl.phase, pl.halt = pl.waitPhase(acting)
	if !acting && l.Outdated == 0 && l.Current > 0 {
		pl.goOnPolling() // newer content may be what helps
	}
}

// planRollout: Pods of another spec serve. They stay until as many new ones are ready as asked for.
func (pl *planner) planRollout() {
	l, n := &pl.pods, pl.Config.Replicas
	backsOff, left := pl.candidateBackoff()
	pl.under(ReasonSpecRollout)
	pl.trimOutdated()
	switch {
	case l.CurrentReady >= n, l.OutdatedReady == 0:
		pl.delete(1, ReasonPodOutdated, "Pods of the present spec serve", l.oldSpec()...)
		if l.OutdatedReady == 0 {
			pl.fill(n-l.Current-l.Candidates, true)
		}
	case l.CurrentReady+l.CandidatesReady >= n:
		pl.promote(l.readyCandidates()...)
	case backsOff:
		pl.waitFor(left)
		pl.stop(ReasonProgressDeadlineExceeded)
	default:
		pl.fillRollout(n - l.Current - l.Candidates)
	}
}

// planRefill: Pods of the present spec serve; fewer than asked for, or some are about to be evicted. New ones wait as
// candidates until they are known to serve the same content.
func (pl *planner) planRefill() {
	l, n := &pl.pods, pl.Config.Replicas
	need := n - l.Steady - nowhereElse(pl.facts)
	if need <= 0 {
		if l.CurrentReady < n {
			pl.phase, pl.halt = pl.waitPhase(false)
		}
		pl.goOnPolling()
		return
	}
	pl.under(ReasonRefill)
	if l.Lost > 0 || l.starting(registry.PurposeFailover) {
		pl.under(ReasonNodeFailover)
	}
	ready := l.readyCandidates()
	same := slices.DeleteFunc(slices.Clone(ready), func(p *registryPod) bool { // what is unknown is taken for the same
		return p.Content != l.Content && l.Content != "" && p.Content != ""
	})
	backsOff, left := pl.candidateBackoff()
	switch {
	case len(same) > 0:
		pl.promote(same[:min(need, len(same))]...)
	case len(ready) > 0 && l.uniformCandidates(n):
		pl.under(ReasonContentUpdate)
		pl.promote(ready...)
	case backsOff:
		pl.waitFor(left)
		pl.stop(ReasonProgressDeadlineExceeded)
	case len(ready) > 0:
		pl.under(ReasonContentUpdate)
		pl.dropOlderContent()
		pl.fill(n-l.Candidates, true)
	default:
		pl.fill(need-l.Candidates, true)
	}
}

// nowhereElse counts the Pods that are about to be evicted and stay, as there is no better place for them.
func nowhereElse(f *facts) (count int) {
	for _, p := range f.pods.choose(func(p *registryPod) bool { return p.Role == roleServing && p.Leaves }) {
		count += one(!slices.ContainsFunc(f.usable(), func(n *corev1.Node) bool { return n.Name != p.Spec.NodeName }))
	}
	return count
}

func (pl *planner) goOnPolling() {
	l := &pl.pods
	for _, p := range l.live(roleCandidate) {
		if !pl.poll.On || !p.Probe {
			pl.delete(1, ReasonCandidateObsolete, "as many Pods serve as asked for", p)
		}
	}
	v := pl.judgePoll(len(pl.creates)+len(pl.promotes) == 0)
	pl.verdict = v
	pl.waitFor(v.Wait)
	probe := registry.PodRequest{Candidate: true, Purpose: registry.PurposePoll, Attempt: 1}
	switch v.Step {
	case pollStart:
		probe.Cause = olmcore.Cause{Reason: ReasonPollDue, Message: "it is time to look for newer content of the image"}
		pl.creates = append(pl.creates, probe)
	case pollAgain:
		pl.under(ReasonContentUpdate)
		pl.dropOlderContent()
		probe.Cause = olmcore.Cause{Reason: ReasonContentUpdate, Message: "the image has newer content"}
		pl.creates = append(pl.creates, slices.Repeat([]registry.PodRequest{probe}, pl.allowed(pl.Config.Replicas-l.Candidates))...)
	case pollPromote:
		pl.under(ReasonContentUpdate)
		pl.promote(l.readyCandidates()...)
	case pollEnd:
		why := "the image has not changed"
		if v.Outcome != ReasonUpToDate {
			why = "the Pod that polls the image " + v.Text
		}
		pl.delete(1, v.Outcome, why, l.live(roleCandidate)...)
	}
}

// podActions turns the plan into actions: new Pods first, then those that take over, then those that go.
func (r *report) podActions() (actions []olmcore.Action) {
	avoided := avoided(r.pods)
	for i, name := range r.registry.FreeNames(r.Pods.Items, len(r.creates)) {
		actions = append(actions, olmcore.CreateOf(r.registry.Pod(name, r.creates[i], avoided), r.creates[i].Cause))
	}
	for _, p := range r.promotes {
		why := olmcore.Cause{Reason: ReasonCandidateReady, Message: "the Pod takes over"}
		if p.Role == roleServing {
			why = olmcore.Cause{Reason: ReasonObjectDiffers, Message: "the Service does not select the Pod"}
		}
		actions = append(actions, olmcore.UpdateOf(p.Pod, registry.Promoted(p.Pod, r.CatalogSource.Name), why))
	}
	slices.SortStableFunc(r.deletes, func(a, b olmcore.Delete) int {
		return cmp.Or(cmp.Compare(*b.GracePeriodSeconds, *a.GracePeriodSeconds), strings.Compare(a.Target.Name, b.Target.Name))
	})
	for _, d := range r.deletes {
		actions = append(actions, d)
	}
	return actions
}

// avoided returns the Nodes of own Pods that a new Pod had better avoid, 10 at most.
func avoided(list podList) (nodes []string) {
	for _, p := range list.choose(func(p *registryPod) bool { return p.Spec.NodeName != "" && (p.Node.failed() || p.AvoidNode) }) {
		nodes = append(nodes, p.Spec.NodeName)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	return nodes[:min(len(nodes), 10)]
}

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
	pl.backoff = last.Last.Add(restart.After(last.Count)).Sub(pl.Now)
	pl.waitFor(pl.backoff)
	if c := pl.recordedNow(ConditionDegraded); c != nil && pl.backoff > 0 {
		if i := strings.Index(c.Message, refusal); i >= 0 {
			pl.refused = c.Message[i:] // each answer may hold a number of its own: one write for each try
		}
	}
}

// candidateBackoff reports whether the last candidate failed so recently that the next one waits, and how long; 0: until
// it is gone. The condition is the memory: it is there from the moment that the candidate was late.
func (pl *planner) candidateBackoff() (waits bool, left time.Duration) {
	if slices.ContainsFunc(pl.pods.Items, func(p *registryPod) bool { return p.Role == roleCandidate && p.Active && !p.outdated() && p.expired() }) {
		return true, 0
	}
	c := pl.recordedNow(ConditionProgressing)
	if pl.pods.Candidates > 0 || c == nil || c.Reason != ReasonProgressDeadlineExceeded {
		return false, 0
	}
	left = c.LastTransitionTime.Add(restart.Max).Sub(pl.Now)
	return left > 0, left
}

// trimOutdated keeps the best Pods of another spec, as many as asked for: more would leave no room for the new ones.
func (pl *planner) trimOutdated() {
	outdated := pl.pods.oldSpec()
	pl.rank(outdated)
	surplus := outdated[min(pl.Config.Replicas, len(outdated)):]
	pl.delete(1, ReasonPodSurplus, "better Pods of the same old spec serve", surplus...)
}

// waitPhase says what is under way while Pods that should be ready are not, or why nothing is.
func (pl *planner) waitPhase(acting bool) (phase, halt string) {
	l := &pl.pods
	all := func(is func(*registryPod) bool) bool { // of those that are not ready
		return !slices.ContainsFunc(l.Items, func(p *registryPod) bool { return p.Role == roleServing && p.Present && !p.Ready && !is(p) })
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
