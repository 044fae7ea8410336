// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/registry"
)

// conditions are those of the status; nil: it is to be absent. Messages hold no times
// and no counters that tick.
type conditions struct {
	available, progressing, degraded metav1.Condition
	updatePolled, replicasSpread     *metav1.Condition
}

// report makes the conditions of the facts and the plan.
type report struct {
	*facts
	plan *plan
}

func (r report) conditions() conditions {
	return conditions{
		available: r.available(), progressing: r.progressing(), degraded: r.degraded(),
		updatePolled: r.updatePolled(), replicasSpread: r.replicasSpread(),
	}
}

// list returns the conditions that are there, as they were observed at a generation.
func (c conditions) list(generation int64) []metav1.Condition {
	c.available.Type, c.progressing.Type, c.degraded.Type = ConditionAvailable, ConditionProgressing, ConditionDegraded
	list := []metav1.Condition{c.available, c.progressing, c.degraded}
	if c.updatePolled != nil {
		list = append(list, *c.updatePolled)
		list[len(list)-1].Type = ConditionUpdatePolled
	}
	if c.replicasSpread != nil {
		list = append(list, *c.replicasSpread)
		list[len(list)-1].Type = ConditionReplicasSpread
	}
	for i := range list {
		list[i].ObservedGeneration = generation
	}
	return list
}

// state is what the conditions say in one word.
func (c conditions) state() State { return stateOf(&c.available, &c.progressing) }

func isTrue(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func isUnknown(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// available says whether the catalog serves, by which Pods on which nodes.
func (r report) available() metav1.Condition {
	switch s := r.standing; {
	case s.mode == modeDeleting:
		return isFalse(s.reason, s.message)
	case s.mode == modeAddress:
		return r.addressAvailable()
	case s.is(ReasonNameConflict):
		return isFalse(s.reason, r.takenText())
	case r.pods.Ready() > 0:
		return isTrue(ReasonRegistryServing, r.distribution())
	case s.mode == modeInvalid, s.is(ReasonConfigMapMissing):
		return isFalse(s.reason, s.message)
	case s.mode == modeBlocked:
		return isUnknown(s.reason, s.message)
	}
	return isFalse(ReasonNoReadyPods, r.distribution())
}

func (r report) addressAvailable() metav1.Condition {
	text := "registry at " + r.source.Spec.Address
	switch {
	case r.link.isConnected():
		return isTrue(ReasonConnectionReady, text)
	case r.link.state == stateFailure || r.link.state == stateShutdown:
		return isFalse(ReasonConnectionFailed, text)
	}
	return isUnknown(ReasonConnecting, text)
}

func (r report) takenText() string { return r.taken + " is unmanaged or owned by another" }

// mostListed bounds the Pods that a message names.
const mostListed = 10

// distribution says how many Pods are ready, and which Pod is on which node in what
// state, and why it replaced another.
func (r report) distribution() string {
	var items []string
	for _, p := range r.pods.Select(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Owned }) {
		item := p.Name() + " (no node"
		if node := p.Object.Spec.NodeName; node != "" {
			item = p.Name() + " (" + node
		}
		if note := p.Describe(); note != "" {
			item += ", " + note
		}
		if why := clip(p.Object.Annotations[registry.KeyCause], 200); why != "" {
			item += "; " + why
		}
		items = append(items, item+")")
	}
	text := fmt.Sprintf("%d/%d registry pods ready", r.pods.Ready(), r.set.replicas)
	if len(items) == 0 {
		return text
	}
	return text + ": " + listed(items, " and more")
}

// clip cuts text that others wrote to a length; nothing is left of what is not
// UTF-8, which would not come back as it was written.
func clip(text string, most int) string {
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
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

func (r report) progressing() metav1.Condition {
	switch {
	case r.standing.reason != "":
		return isFalse(r.standing.reason, r.standing.message)
	case r.plan.phase == ReasonNodeFailover:
		_, complaints := r.pods.Complaints()
		return isTrue(r.plan.phase, progressTexts[r.plan.phase]+" "+listed(complaints[ReasonNodeLost], ", and more"))
	case r.plan.phase != "":
		return isTrue(r.plan.phase, progressTexts[r.plan.phase])
	case r.plan.halt != "":
		return isFalse(r.plan.halt, progressTexts[r.plan.halt])
	}
	return isFalse(ReasonComplete, progressTexts[ReasonComplete])
}

// listed joins the items of a message, 10 at most.
func listed(items []string, more string) string {
	if len(items) > mostListed {
		return strings.Join(items[:mostListed], ", ") + more
	}
	return strings.Join(items, ", ")
}

// degraded lists everything that needs attention, the most telling first: the Reason is
// that of the first.
func (r report) degraded() metav1.Condition {
	if r.standing.mode == modeDeleting {
		return isFalse(ReasonAsExpected, "nothing needs attention")
	}
	c := isFalse(ReasonAsExpected, "")
	add := func(reason, text string) {
		switch {
		case text == "":
		case c.Status == metav1.ConditionTrue:
			c.Message += "; " + text
		default:
			c = isTrue(reason, text)
		}
	}
	if r.standing.mode == modeInvalid || r.standing.is(ReasonConfigMapMissing) || r.standing.is(ReasonNamespaceUnknown) {
		add(r.standing.reason, r.standing.message)
	}
	add(ReasonPollIntervalInvalid, r.poll.Problem)
	reasons, complaints := r.pods.Complaints()
	for _, reason := range reasons {
		// No Service of an address selects Pods: who runs the registry may label them.
		if reason != ReasonForeignPod || r.standing.mode != modeAddress {
			add(reason, listed(complaints[reason], ", and more"))
		}
	}
	if r.taken != "" {
		add(ReasonNameConflict, r.takenText())
	}
	r.addLast(&c, add)
	if c.Status == metav1.ConditionFalse && r.standing.runsPods() && r.plan.phase == "" && r.pods.Ready() < r.set.replicas {
		return isTrue(ReasonReplicasUnavailable, r.distribution())
	}
	if c.Status == metav1.ConditionFalse {
		c.Message = "nothing needs attention"
	}
	return c
}

// addLast adds the causes that come last. What the API server says of a Pod is the last
// sentence, so that it can be found again.
func (r report) addLast(c *metav1.Condition, add func(reason, text string)) {
	rejected := r.plan.refused != "" && c.Status == metav1.ConditionFalse
	if r.pods.Disruption != pods.NoDisruption {
		add(ReasonMassDisruption, "so many nodes are not ready that replacements are limited")
	}
	text, _ := r.connectionFailure()
	add(ReasonConnectionFailed, text)
	add(ReasonPodRejected, r.plan.refused)
	if rejected {
		c.Reason = ReasonPodRejected
	}
}

// updatePolled is what became of the last poll.
func (r report) updatePolled() *metav1.Condition {
	recorded := r.recorded(ConditionUpdatePolled)
	strategy := r.source.Spec.UpdateStrategy
	switch {
	case strategy == nil || strategy.RegistryPoll == nil || r.standing.mode == modeDeleting:
		return nil
	case r.standing.mode == modeInvalid && recorded != nil: // it ended as it did, whatever the spec says now
		return &metav1.Condition{Status: recorded.Status, Reason: recorded.Reason, Message: recorded.Message}
	case r.standing.mode == modeInvalid:
		return nil
	}
	return r.poll.Condition(&r.source.Spec, r.plan.verdict, r.pods, recorded)
}

// replicasSpread says whether the replicas are on as many nodes as can be.
func (r report) replicasSpread() *metav1.Condition {
	switch {
	case r.set.replicas < 2 || !r.standing.runsPods():
		return nil
	case !r.nodes.Complete:
		return new(isUnknown(ReasonNodesUnknown, "the nodes were not read"))
	}
	var nodes []string
	placed := r.pods.Select(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Live && p.Object.Spec.NodeName != "" })
	for _, p := range placed {
		nodes = append(nodes, p.Object.Spec.NodeName)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	text := fmt.Sprintf("registry pods: %d, nodes: %d", len(placed), len(nodes))
	if len(nodes) < len(placed) && len(nodes) < min(r.set.replicas, len(r.usable())) {
		return new(isFalse(ReasonCoLocated, text))
	}
	return new(isTrue(ReasonSpread, text))
}
