// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/catalog/internal/registry"
	"github.com/olmcore/olm/internal/printable"
)

// conditions contains the conditions of the status. A condition that should be absent is nil. Messages do not contain
// times or counters that change without a change of the cluster.
type conditions struct {
	available, progressing, degraded metav1.Condition

	connected, updatePolled, replicasSpread *metav1.Condition
}

// report returns the conditions that follow from the facts and the decision.
func report(f *facts, d decision) conditions {
	return conditions{
		available:      available(f),
		progressing:    progressing(f, d),
		degraded:       degraded(f, d),
		connected:      connected(f),
		updatePolled:   pollCondition(f, d),
		replicasSpread: replicasSpread(f),
	}
}

// list returns the conditions that are present. Their lastTransitionTime is not set.
func (c conditions) list(generation int64) (list []metav1.Condition) {
	add := func(kind string, condition *metav1.Condition) {
		if condition != nil {
			typed := *condition
			typed.Type = kind
			typed.ObservedGeneration = generation
			list = append(list, typed)
		}
	}
	add(ConditionAvailable, &c.available)
	add(ConditionProgressing, &c.progressing)
	add(ConditionDegraded, &c.degraded)
	add(ConditionConnected, c.connected)
	add(ConditionUpdatePolled, c.updatePolled)
	add(ConditionReplicasSpread, c.replicasSpread)
	return list
}

// absent returns the types of the conditions that should not be present.
func (c conditions) absent() (types []string) {
	for kind, condition := range map[string]*metav1.Condition{
		ConditionConnected: c.connected, ConditionUpdatePolled: c.updatePolled, ConditionReplicasSpread: c.replicasSpread,
	} {
		if condition == nil {
			types = append(types, kind)
		}
	}
	return types
}

// state returns the state that the conditions describe.
func (c conditions) state() State { return stateOf(&c.available, &c.progressing) }

func conditionTrue(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: printable.Text(message)}
}

func conditionFalse(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: printable.Text(message)}
}

func conditionUnknown(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reason, Message: printable.Text(message)}
}

// available says whether the catalog serves, and by which Pods on which Nodes.
func available(f *facts) metav1.Condition {
	s := f.standing
	address := "registry at " + f.source.Spec.Address
	switch {
	case s.mode == modeDeleting:
		return conditionFalse(s.reason, s.message)
	case s.mode == modeAddress && f.connection.isConnected():
		return conditionTrue(ReasonConnectionReady, address)
	case s.mode == modeAddress && (f.connection.state == stateFailure || f.connection.state == stateShutdown):
		return conditionFalse(ReasonConnectionFailed, address)
	case s.mode == modeAddress:
		return conditionUnknown(ReasonConnecting, address)
	case s.reason == ReasonNameConflict:
		return conditionFalse(s.reason, f.conflict)
	case len(f.pods.serving.ready()) > 0:
		return conditionTrue(ReasonRegistryServing, podSummary(f))
	case s.mode == modeInvalid, s.reason == ReasonConfigMapMissing:
		return conditionFalse(s.reason, s.message)
	case s.mode == modeBlocked:
		return conditionUnknown(s.reason, s.message)
	}
	return conditionFalse(ReasonNoReadyPods, podSummary(f))
}

// podSummary lists the Pods: how many are ready, the Node of each Pod, and why it replaced another Pod.
func podSummary(f *facts) string {
	var items []string
	for _, p := range f.pods.all {
		if p.role != roleServing || !p.owned {
			continue
		}
		item := p.Name + " (" + cmp.Or(p.Spec.NodeName, "no node")
		if note := p.note(); note != "" {
			item += ", " + note
		}
		if cause := clip(p.Annotations[registry.KeyCause], 200); cause != "" {
			item += "; " + cause
		}
		items = append(items, item+")")
	}
	text := fmt.Sprintf("%d/%d registry pods ready", len(f.pods.serving.ready()), f.config.Replicas)
	if len(items) == 0 {
		return text
	}
	return text + ": " + joinItems(items, " and more")
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

// progressing reports what is under way, or why nothing is under way.
func progressing(f *facts, d decision) metav1.Condition {
	reason := cmp.Or(d.progress.reason, ReasonComplete)
	text := progressTexts[reason]
	switch {
	case f.standing.reason != "":
		return conditionFalse(f.standing.reason, f.standing.message)
	case reason == ReasonPodRejected:
		text = d.rejected.message
	case reason == ReasonNodeFailover:
		lost := ""
		for _, c := range f.pods.all.complaints() {
			if c.reason == ReasonNodeLost {
				lost = c.String()
			}
		}
		text += " " + lost
	}
	if d.progress.underWay {
		return conditionTrue(reason, text)
	}
	return conditionFalse(reason, text)
}

// sentenceSeparator separates the sentences of a message.
const sentenceSeparator = "; "

// finding is one thing that needs attention.
type finding struct{ reason, text string }

// degraded lists everything that needs attention. Its reason is that of the first finding.
func degraded(f *facts, d decision) metav1.Condition {
	fine := conditionFalse(ReasonAsExpected, "nothing needs attention")
	if f.standing.mode == modeDeleting {
		return fine
	}
	found := findings(f, d)
	if len(found) > 0 {
		var texts []string
		for _, one := range found {
			texts = append(texts, one.text)
		}
		return conditionTrue(found[0].reason, strings.Join(texts, sentenceSeparator))
	}
	waits := f.standing.runsPods() && !d.progress.underWay
	if waits && len(f.pods.serving.ready()) < f.config.Replicas {
		return conditionTrue(ReasonReplicasUnavailable, podSummary(f))
	}
	return fine
}

// findings returns everything that needs attention, the most important first.
func findings(f *facts, d decision) (found []finding) {
	add := func(reason, text string) {
		if text != "" {
			found = append(found, finding{reason, text})
		}
	}
	s := f.standing
	if s.mode == modeInvalid || s.reason == ReasonConfigMapMissing || s.reason == ReasonNamespaceUnknown {
		add(s.reason, s.message)
	}
	add(ReasonPollIntervalInvalid, f.poll.problem)
	for _, c := range f.pods.all.complaints() {
		// No Service of an address selects Pods, so the owner of the registry may use the labels.
		if c.reason != ReasonForeignPod || s.mode != modeAddress {
			add(c.reason, c.String())
		}
	}
	add(ReasonNameConflict, f.conflict)
	add(ReasonPodRejected, d.rejected.message)
	if f.pods.disruption != noDisruption {
		add(ReasonMassDisruption, "so many nodes are not ready that replacements are limited")
	}
	add(ReasonConnectionFailed, f.connection.failure)
	return found
}

// connected returns ConditionConnected while a client has no connection although it should have one.
func connected(f *facts) *metav1.Condition {
	if f.connection.failure == "" || f.standing.mode == modeDeleting {
		return nil
	}
	return new(conditionFalse(ReasonConnectionFailed, f.connection.failure))
}

// pollCondition returns ConditionUpdatePolled.
func pollCondition(f *facts, d decision) *metav1.Condition {
	recorded := f.recorded(ConditionUpdatePolled)
	switch {
	case !asksForPolls(&f.source.Spec) || f.standing.mode == modeDeleting:
		return nil
	case f.standing.mode != modeInvalid:
		return new(updatePolled(f, d.poll, recorded))
	case recorded == nil:
		return nil
	}
	// The result of the last poll stays, whatever the spec says now.
	return &metav1.Condition{Status: recorded.Status, Reason: recorded.Reason, Message: recorded.Message}
}

// replicasSpread says whether several replicas run on as many Nodes as possible.
func replicasSpread(f *facts) *metav1.Condition {
	switch {
	case f.config.Replicas < 2 || !f.standing.runsPods():
		return nil
	case !f.in.Nodes.Complete:
		return new(conditionUnknown(ReasonNodesUnknown, "the nodes were not read"))
	}
	bound := 0
	nodes := map[string]bool{}
	for _, p := range f.pods.serving {
		if p.Spec.NodeName != "" {
			bound++
			nodes[p.Spec.NodeName] = true
		}
	}
	text := fmt.Sprintf("registry pods: %d, nodes: %d", bound, len(nodes))
	if len(nodes) < bound && len(nodes) < min(f.config.Replicas, len(f.usableNodes())) {
		return new(conditionFalse(ReasonCoLocated, text))
	}
	return new(conditionTrue(ReasonSpread, text))
}

// maxRecorded limits a recorded message that is published again. Another client may have written it.
const maxRecorded = 1000

// clip shortens text that others wrote, and escapes invisible characters. It returns an empty string for text that is
// not valid UTF-8, because the API server would change it.
func clip(text string, length int) string {
	if utf8.ValidString(text) {
		text = printable.Text(text)
	}
	if len(text) > length {
		for length > 0 && !utf8.RuneStart(text[length]) {
			length--
		}
		text = text[:length]
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}

// joinItems joins the items of a message, at most 10.
func joinItems(items []string, more string) string {
	if len(items) > 10 {
		return strings.Join(items[:10], ", ") + more
	}
	return strings.Join(items, ", ")
}
