// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
)

// report is what the facts and the plan come to: the conditions of the status, nil for one that is to be absent. Messages
// hold no times and no counters that tick.
type report struct {
	*facts
	plan
	available, progressing, degraded metav1.Condition
	updatePolled, replicasSpread     *metav1.Condition
	// before is the recorded state, state what the conditions say.
	before, state State
	// lastPoll is when the image was polled for the last time; zero: never.
	lastPoll time.Time
}

func newReport(f *facts) *report {
	r := &report{facts: f, plan: planPods(f), before: recordedState(f.CatalogSource.Status.Conditions)}
	r.lastPoll = cmp.Or(r.verdict.Polled, r.poll.Last)
	r.available, r.progressing, r.degraded = r.newAvailable(), r.newProgressing(), r.newDegraded()
	r.updatePolled, r.replicasSpread = r.newUpdatePolled(), r.newReplicasSpread()
	r.state = stateOf(&r.available, &r.progressing)
	return r
}

// conditions returns those that are there.
func (r *report) conditions() (list []metav1.Condition) {
	add := func(kind string, c metav1.Condition) {
		c.Type, c.ObservedGeneration = kind, r.CatalogSource.Generation
		list = append(list, c)
	}
	add(ConditionAvailable, r.available)
	add(ConditionProgressing, r.progressing)
	add(ConditionDegraded, r.degraded)
	if r.updatePolled != nil {
		add(ConditionUpdatePolled, *r.updatePolled)
	}
	if r.replicasSpread != nil {
		add(ConditionReplicasSpread, *r.replicasSpread)
	}
	return list
}

func isTrue(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func isUnknown(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// newAvailable says whether the catalog serves, by which Pods on which nodes.
func (r *report) newAvailable() metav1.Condition {
	s, text := r.standing, "registry at "+r.CatalogSource.Spec.Address
	switch {
	case s.mode == modeDeleting:
		return isFalse(s.reason, s.message)
	case s.mode == modeAddress && r.link.isConnected():
		return isTrue(ReasonConnectionReady, text)
	case s.mode == modeAddress && (r.link.state == stateFailure || r.link.state == stateShutdown):
		return isFalse(ReasonConnectionFailed, text)
	case s.mode == modeAddress:
		return isUnknown(ReasonConnecting, text)
	case s.is(ReasonNameConflict):
		return isFalse(s.reason, r.taken)
	case r.pods.Ready > 0:
		return isTrue(ReasonRegistryServing, r.distribution())
	case s.mode == modeInvalid, s.is(ReasonConfigMapMissing):
		return isFalse(s.reason, s.message)
	case s.mode == modeBlocked:
		return isUnknown(s.reason, s.message)
	}
	return isFalse(ReasonNoReadyPods, r.distribution())
}

// distribution says how many Pods are ready, and which Pod is on which node in what state, and why it replaced another.
func (r *report) distribution() string {
	var items []string
	for _, p := range r.pods.choose(func(p *registryPod) bool { return p.Role == roleServing && p.Owned }) {
		item := p.Name + " (" + cmp.Or(p.node(), "no node")
		if note := p.describe(); note != "" {
			item += ", " + note
		}
		if why := clip(p.Annotations[registry.KeyCause], 200); why != "" {
			item += "; " + why
		}
		items = append(items, item+")")
	}
	text := fmt.Sprintf("%d/%d registry pods ready", r.pods.Ready, r.Config.Replicas)
	if len(items) == 0 {
		return text
	}
	return text + ": " + listed(items, " and more")
}

// clip cuts text that others wrote to a length; nothing is left of what is not UTF-8, which would not come back as it was
// written.
func clip(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most]
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// listed joins the items of a message, 10 at most.
func listed(items []string, more string) string {
	if len(items) > 10 {
		return strings.Join(items[:10], ", ") + more
	}
	return strings.Join(items, ", ")
}

// progressTexts are the messages of ConditionProgressing.
var progressTexts = map[string]string{
	ReasonInitialRollout:           "registry pods are starting",
	ReasonSpecRollout:              "registry pods of the new spec replace the others",
	ReasonContentUpdate:            "registry pods with newer content replace the others",
	ReasonNodeFailover:             "replacing the registry pods of failed nodes:",
	ReasonRefill:                   "missing registry pods are being replaced",
	ReasonBackOff:                  "waiting before the next registry pod is started",
	ReasonProgressDeadlineExceeded: "registry pods did not become ready in time",
	ReasonWaitingForNodes:          "waiting for nodes",
	ReasonComplete:                 "nothing left to do",
}

func (r *report) newProgressing() metav1.Condition {
	switch text := progressTexts[r.phase]; {
	case r.standing.reason != "":
		return isFalse(r.standing.reason, r.standing.message)
	case r.phase == ReasonNodeFailover:
		lost := ""
		for _, c := range r.pods.complaints() {
			if c.reason == ReasonNodeLost {
				lost = c.String()
			}
		}
		return isTrue(r.phase, text+" "+lost)
	case r.phase != "":
		return isTrue(r.phase, text)
	}
	reason := cmp.Or(r.halt, ReasonComplete)
	return isFalse(reason, progressTexts[reason])
}

// newDegraded lists everything that needs attention, the most telling first: the Reason is that of the first, or that of a
// Pod that the API server refuses when only what comes last is wrong.
func (r *report) newDegraded() metav1.Condition {
	s, fine := r.standing, isFalse(ReasonAsExpected, "nothing needs attention")
	if s.mode == modeDeleting {
		return fine
	}
	var found []string
	first := ""
	add := func(reason, text string) {
		if text != "" {
			first = cmp.Or(first, reason)
			found = append(found, text)
		}
	}
	if s.mode == modeInvalid || s.is(ReasonConfigMapMissing) || s.is(ReasonNamespaceUnknown) {
		add(s.reason, s.message)
	}
	add(ReasonPollIntervalInvalid, r.poll.Problem)
	for _, c := range r.pods.complaints() {
		// No Service of an address selects Pods: who runs the registry may label them.
		if c.reason != ReasonForeignPod || s.mode != modeAddress {
			add(c.reason, c.String())
		}
	}
	add(ReasonNameConflict, r.taken)
	if first == "" && r.refused != "" {
		first = ReasonPodRejected
	}
	if r.pods.Disruption != noDisruption {
		add(ReasonMassDisruption, "so many nodes are not ready that replacements are limited")
	}
	text, _ := r.connectionFailure()
	add(ReasonConnectionFailed, text)
	add(ReasonPodRejected, r.refused) // what the API server says is the last sentence, so that it can be found again
	switch {
	case first != "":
		return isTrue(first, strings.Join(found, "; "))
	case s.runsPods() && r.phase == "" && r.pods.Ready < r.Config.Replicas:
		return isTrue(ReasonReplicasUnavailable, r.distribution())
	}
	return fine
}

// newUpdatePolled is what became of the last poll.
func (r *report) newUpdatePolled() *metav1.Condition {
	recorded := r.recorded(ConditionUpdatePolled)
	switch {
	case !asksForPolls(&r.CatalogSource.Spec) || r.standing.mode == modeDeleting:
		return nil
	case r.standing.mode != modeInvalid:
		return new(r.poll.polled(&r.CatalogSource.Spec, r.pods, r.verdict, recorded))
	case recorded == nil:
		return nil
	}
	// It ended as it did, whatever the spec says now.
	return &metav1.Condition{Status: recorded.Status, Reason: recorded.Reason, Message: recorded.Message}
}

// newReplicasSpread says whether the replicas are on as many nodes as can be.
func (r *report) newReplicasSpread() *metav1.Condition {
	switch {
	case r.Config.Replicas < 2 || !r.standing.runsPods():
		return nil
	case !r.Nodes.Complete:
		return new(isUnknown(ReasonNodesUnknown, "the nodes were not read"))
	}
	placed, nodes := 0, map[string]bool{}
	for _, p := range r.pods.live(roleServing) {
		if p.node() != "" {
			placed++
			nodes[p.node()] = true
		}
	}
	text := fmt.Sprintf("registry pods: %d, nodes: %d", placed, len(nodes))
	if len(nodes) < placed && len(nodes) < min(r.Config.Replicas, len(r.usable())) {
		return new(isFalse(ReasonCoLocated, text))
	}
	return new(isTrue(ReasonSpread, text))
}
