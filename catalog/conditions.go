// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/polling"
	"github.com/olmcore/olm/catalog/internal/registry"
)

// conditions are those of the status; nil: it is to be absent. Messages hold no times
// and no counters that tick.
type conditions struct {
	available, progressing, degraded metav1.Condition
	updatePolled, replicasSpread     *metav1.Condition
}

func (f *facts) conditions(pl *plan) conditions {
	return conditions{
		available: f.available(), progressing: f.progressing(pl), degraded: f.degraded(pl),
		updatePolled: f.updatePolled(pl), replicasSpread: f.replicasSpread(),
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
func (f *facts) available() metav1.Condition {
	switch s := f.standing; {
	case s.mode == modeDeleting:
		return isFalse(s.reason, s.message)
	case s.mode == modeAddress:
		return f.addressAvailable()
	case s.is(ReasonNameConflict):
		return isFalse(s.reason, f.takenText())
	case f.pods.Ready() > 0:
		return isTrue(ReasonRegistryServing, f.distribution())
	case s.mode == modeInvalid, s.is(ReasonConfigMapMissing):
		return isFalse(s.reason, s.message)
	case s.mode == modeBlocked:
		return isUnknown(s.reason, s.message)
	}
	return isFalse(ReasonNoReadyPods, f.distribution())
}

func (f *facts) addressAvailable() metav1.Condition {
	text := "registry at " + f.source.Spec.Address
	switch {
	case f.link.isConnected():
		return isTrue(ReasonConnectionReady, text)
	case f.link.state == stateFailure || f.link.state == stateShutdown:
		return isFalse(ReasonConnectionFailed, text)
	}
	return isUnknown(ReasonConnecting, text)
}

func (f *facts) takenText() string { return f.taken + " is unmanaged or owned by another" }

// mostListed bounds the Pods that a message names.
const mostListed = 10

// distribution says how many Pods are ready, and which Pod is on which node in what
// state, and why it replaced another.
func (f *facts) distribution() string {
	var items []string
	for _, p := range f.pods.Select(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Owned }) {
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
	text := fmt.Sprintf("%d/%d registry pods ready", f.pods.Ready(), f.set.replicas)
	switch {
	case len(items) == 0:
		return text
	case len(items) > mostListed:
		return text + ": " + strings.Join(items[:mostListed], ", ") + " and more"
	}
	return text + ": " + strings.Join(items, ", ")
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

func (f *facts) progressing(pl *plan) metav1.Condition {
	switch {
	case f.standing.reason != "":
		return isFalse(f.standing.reason, f.standing.message)
	case pl.phase == ReasonNodeFailover:
		return isTrue(pl.phase, progressTexts[pl.phase]+" "+f.complaints(ReasonNodeLost))
	case pl.phase != "":
		return isTrue(pl.phase, progressTexts[pl.phase])
	case pl.halt != "":
		return isFalse(pl.halt, progressTexts[pl.halt])
	}
	return isFalse(ReasonComplete, progressTexts[ReasonComplete])
}

// complaints lists the Pods that give a Reason of ConditionDegraded.
func (f *facts) complaints(reason string) string {
	var items []string
	for i := range f.pods.Items {
		p := &f.pods.Items[i]
		why, text := p.Complain()
		if why != reason {
			continue
		}
		item := p.Name()
		if node := p.Object.Spec.NodeName; node != "" {
			item += " on " + node
		}
		items = append(items, item+": "+text)
	}
	if len(items) > mostListed {
		items = append(items[:mostListed], "and more")
	}
	return strings.Join(items, ", ")
}

// degraded lists everything that needs attention, the most telling first: the Reason is
// that of the first.
func (f *facts) degraded(pl *plan) metav1.Condition {
	if f.standing.mode == modeDeleting {
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
	if f.standing.mode == modeInvalid || f.standing.is(ReasonConfigMapMissing) || f.standing.is(ReasonNamespaceUnknown) {
		add(f.standing.reason, f.standing.message)
	}
	add(ReasonPollIntervalInvalid, f.poll.Problem)
	for _, reason := range []string{ReasonNodeLost, ReasonPodUnschedulable, ReasonImagePullFailed, ReasonCrashLooping, ReasonStuckTerminating} {
		add(reason, f.complaints(reason))
	}
	if f.standing.mode != modeAddress { // no Service selects it: the registry's operator may label its Pods
		add(ReasonForeignPod, f.complaints(ReasonForeignPod))
	}
	if f.taken != "" {
		add(ReasonNameConflict, f.takenText())
	}
	f.addLast(pl, &c, add)
	if c.Status == metav1.ConditionFalse && f.standing.runsPods() && pl.phase == "" && f.pods.Ready() < f.set.replicas {
		return isTrue(ReasonReplicasUnavailable, f.distribution())
	}
	if c.Status == metav1.ConditionFalse {
		c.Message = "nothing needs attention"
	}
	return c
}

// addLast adds the causes that come last. What the API server says of a Pod is the last
// sentence, so that it can be found again.
func (f *facts) addLast(pl *plan, c *metav1.Condition, add func(reason, text string)) {
	rejected := pl.refused != "" && c.Status == metav1.ConditionFalse
	if f.pods.Disruption != pods.NoDisruption {
		add(ReasonMassDisruption, "so many nodes are not ready that replacements are limited")
	}
	text, _ := f.connectionFailure()
	add(ReasonConnectionFailed, text)
	add(ReasonPodRejected, pl.refused)
	if rejected {
		c.Reason = ReasonPodRejected
	}
}

// updatePolled is what became of the last poll.
func (f *facts) updatePolled(pl *plan) *metav1.Condition {
	recorded := f.recorded(ConditionUpdatePolled)
	strategy := f.source.Spec.UpdateStrategy
	switch {
	case strategy == nil || strategy.RegistryPoll == nil || f.standing.mode == modeDeleting:
		return nil
	case f.standing.mode == modeInvalid && recorded != nil: // it ended as it did, whatever the spec says now
		return &metav1.Condition{Status: recorded.Status, Reason: recorded.Reason, Message: recorded.Message}
	case f.standing.mode == modeInvalid:
		return nil
	}
	return f.poll.Condition(&f.source.Spec, pl.verdict, f.pods, recorded)
}

// replicasSpread says whether the replicas are on as many nodes as can be.
func (f *facts) replicasSpread() *metav1.Condition {
	switch {
	case f.set.replicas < 2 || !f.standing.runsPods():
		return nil
	case !f.nodesRead:
		return new(isUnknown(ReasonNodesUnknown, "the nodes were not read"))
	}
	var nodes []string
	placed := f.pods.Select(func(p *pods.Pod) bool { return p.Role == pods.RoleServing && p.Live && p.Object.Spec.NodeName != "" })
	for _, p := range placed {
		nodes = append(nodes, p.Object.Spec.NodeName)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	text := fmt.Sprintf("registry pods: %d, nodes: %d", len(placed), len(nodes))
	if len(nodes) < len(placed) && len(nodes) < min(f.set.replicas, len(f.usable)) {
		return new(isFalse(ReasonCoLocated, text))
	}
	return new(isTrue(ReasonSpread, text))
}

// pollFailure says what the last poll came to, when it failed; empty otherwise.
func pollFailure(v polling.Verdict) string {
	if v.Outcome == ReasonCandidateFailed || v.Outcome == ReasonCandidateTimedOut {
		return polling.Text(v)
	}
	return ""
}
