// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// condition is a condition before it is compared with the recorded one: nothing
// of it needs to be allocated for that. Messages hold no times and no counters
// that tick.
type condition struct {
	kind, reason string
	status       metav1.ConditionStatus
	message      []byte
}

// kinds is the number of condition types.
const kinds = 5

// room is where the messages of conditions are written while they are short.
type room [kinds][256]byte

// optional reports whether a condition type of this package may be absent.
func optional(kind string) bool {
	return kind == ConditionUpdatePolled || kind == ConditionReplicasSpread
}

// export turns conditions into those of the API. Everything is copied, so that
// the room of the messages may be anywhere.
func export(conditions *[kinds]condition, generation int64) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(conditions))
	for i := range conditions {
		c := &conditions[i]
		if c.status == "" {
			continue
		}
		out = append(out, metav1.Condition{
			Type: strings.Clone(c.kind), Status: metav1.ConditionStatus(strings.Clone(string(c.status))), Reason: strings.Clone(c.reason),
			Message: string(c.message), ObservedGeneration: generation,
		})
	}
	return out
}

// conditions returns the wanted conditions; those without a status are to be
// absent.
func (v *view) conditions(pl *plan, space *room) [kinds]condition {
	return [kinds]condition{
		v.available(space[0][:0]), v.progressing(pl, space[1][:0]), v.degraded(pl, space[2][:0]), v.updatePolled(space[3][:0]),
		v.replicasSpread(space[4][:0]),
	}
}

func (v *view) available(b []byte) condition {
	c := condition{kind: ConditionAvailable, status: metav1.ConditionFalse}
	switch {
	case v.mode == modeDeleting:
		c.reason, c.message = ReasonDeleting, append(b, "the catalog is being deleted"...)
		return c
	case v.mode == modeAddress:
		return v.availableAddress(b)
	case v.mode == modeBlocked && v.blocked == ReasonNameConflict:
		c.reason, c.message = ReasonNameConflict, append(append(b, v.taken...), " belongs to somebody else"...)
		return c
	case v.tally.ready() > 0:
		c.status, c.reason = metav1.ConditionTrue, ReasonRegistryServing
	case v.mode == modeInvalid:
		c.reason, c.message = ReasonSpecInvalid, append(b, v.problem.message...)
		return c
	case v.mode == modeBlocked && v.blocked == ReasonConfigMapMissing:
		c.reason, c.message = ReasonConfigMapMissing, append(b, v.haltText()...)
		return c
	case v.mode == modeBlocked:
		c.status, c.reason = metav1.ConditionUnknown, v.haltReason()
		c.message = append(b, v.haltText()...)
		return c
	default:
		c.reason = ReasonNoReadyPods
	}
	c.message = v.appendDistribution(b)
	return c
}

func (v *view) availableAddress(b []byte) condition {
	c := condition{kind: ConditionAvailable, status: metav1.ConditionUnknown, reason: ReasonConnecting}
	switch {
	case v.link.isConnected():
		c.status, c.reason = metav1.ConditionTrue, ReasonConnectionReady
	case v.link.state == stateFailure || v.link.state == stateShutdown:
		c.status, c.reason = metav1.ConditionFalse, ReasonConnectionFailed
	}
	c.message = append(append(b, "registry at "...), v.cs.Spec.Address...)
	return c
}

// appendDistribution writes how many Pods are ready, and which Pod is on which
// node in what state.
func (v *view) appendDistribution(b []byte) []byte {
	const most = 10
	b = strconv.AppendInt(b, int64(v.tally.ready()), 10)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(v.set.replicas), 10)
	b = append(b, " registry pods ready"...)
	listed := 0
	for i := range v.pods {
		p := &v.pods[i]
		if p.role != roleServing || p.class == ClassForeign {
			continue
		}
		switch listed++; {
		case listed == 1:
			b = append(b, ": "...)
		case listed > most:
			return append(b, " and more"...)
		default:
			b = append(b, ", "...)
		}
		b = append(b, p.pod.Name...)
		b = append(b, " ("...)
		if p.pod.Spec.NodeName == "" {
			b = append(b, "no node"...)
		} else {
			b = append(b, p.pod.Spec.NodeName...)
		}
		if note := p.note(); note != "" {
			b = append(append(b, ", "...), note...)
		}
		if why := v.history(p.pod); why != "" {
			b = append(append(b, "; "...), why...)
		}
		b = append(b, ')')
	}
	return b
}

// history is why a Pod was made, when it replaced another.
func (v *view) history(pod *corev1.Pod) string {
	return clip(pod.Annotations[v.set.prefix+keyCause], 200)
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

func (v *view) progressing(pl *plan, b []byte) condition {
	c := condition{kind: ConditionProgressing, status: metav1.ConditionTrue, reason: pl.phase}
	if pl.phase == "" {
		c.status, c.reason = metav1.ConditionFalse, pl.halt
	}
	if !v.runsPods() && v.mode != modeAddress {
		c.status, c.reason = metav1.ConditionFalse, v.haltReason()
		c.message = append(b, v.haltText()...)
		return c
	}
	if c.reason == "" {
		c.reason = ReasonComplete
	}
	c.message = append(b, progressText(c.reason)...)
	if c.reason == ReasonNodeFailover {
		c.message = v.appendPods(append(c.message, ' '), ReasonNodeLost)
	}
	return c
}

func progressText(reason string) string {
	switch reason {
	case ReasonInitialRollout:
		return "registry pods are starting"
	case ReasonSpecRollout:
		return "registry pods of the new spec replace the others"
	case ReasonContentUpdate:
		return "registry pods with newer content replace the others"
	case ReasonNodeFailover:
		return "replacing the registry pods of failed nodes:"
	case ReasonRefill:
		return "missing registry pods are being replaced"
	case ReasonBackOff:
		return "waiting before the next registry pod is started"
	case ReasonProgressDeadlineExceeded:
		return "registry pods did not become ready in time"
	case ReasonWaitingForNodes:
		return "waiting for nodes"
	}
	return "nothing left to do"
}

// haltReason and haltText say why a CatalogSource is not carried out.
func (v *view) haltReason() string {
	switch v.mode {
	case modeDeleting:
		return ReasonDeleting
	case modeInvalid:
		return ReasonSpecInvalid
	case modeBlocked:
		return v.blocked
	}
	return ""
}

func (v *view) haltText() string {
	switch v.haltReason() {
	case ReasonDeleting:
		return "the catalog is being deleted"
	case ReasonSpecInvalid:
		return v.problem.message
	case ReasonConfigMapMissing:
		name := clip(v.cs.Spec.ConfigMap, 253)
		return "failed to get catalog config map " + name + ": configmaps \"" + name + "\" not found"
	case ReasonNamespaceUnknown:
		return "the namespace was not found, so the security context of the pods is unknown"
	case ReasonNameConflict:
		return "the service of the catalog's name belongs to somebody else"
	}
	return ""
}

// causes are the reasons of ConditionDegraded, the most telling first.
var causes = [...]string{
	ReasonSpecInvalid, ReasonConfigMapMissing, ReasonNamespaceUnknown, ReasonPollIntervalInvalid, ReasonNodeLost, ReasonPodUnschedulable,
	ReasonImagePullFailed, ReasonCrashLooping, ReasonStuckTerminating, ReasonForeignPod, ReasonNameConflict, ReasonPodRejected,
	ReasonMassDisruption, ReasonConnectionFailed,
}

func (v *view) degraded(pl *plan, b []byte) condition {
	c := condition{kind: ConditionDegraded, status: metav1.ConditionFalse, reason: ReasonAsExpected, message: b}
	const nothing = "nothing needs attention"
	if v.mode == modeDeleting {
		c.message = append(b, nothing...)
		return c
	}
	for _, cause := range causes {
		if cause == ReasonPodRejected && pl.refused != "" && c.status == metav1.ConditionFalse {
			c.status, c.reason = metav1.ConditionTrue, cause // its text is the last
		}
		length := len(c.message)
		if length > 0 {
			c.message = append(c.message, "; "...)
		}
		start := len(c.message)
		c.message = v.appendCause(c.message, cause)
		if len(c.message) == start {
			c.message = c.message[:length]
		} else if c.status == metav1.ConditionFalse {
			c.status, c.reason = metav1.ConditionTrue, cause
		}
	}
	if pl.refused != "" {
		if len(c.message) > 0 {
			c.message = append(c.message, "; "...)
		}
		c.message = append(c.message, pl.refused...)
	}
	if c.status == metav1.ConditionFalse && v.runsPods() && pl.phase == "" && v.tally.ready() < v.set.replicas {
		c.status, c.reason = metav1.ConditionTrue, ReasonReplicasUnavailable
		c.message = v.appendDistribution(c.message)
	}
	if c.status == metav1.ConditionFalse {
		c.message = append(b, nothing...)
	}
	return c
}

// appendCause writes what there is to say about a cause, and nothing when it
// does not hold.
func (v *view) appendCause(b []byte, cause string) []byte {
	switch cause {
	case ReasonSpecInvalid, ReasonConfigMapMissing, ReasonNamespaceUnknown:
		if v.haltReason() == cause {
			return append(b, v.haltText()...)
		}
	case ReasonPollIntervalInvalid:
		return append(b, v.poll.problem...)
	case ReasonNameConflict:
		if v.taken != "" && (v.runsPods() || v.mode == modeBlocked) {
			return append(append(b, v.taken...), " belongs to somebody else"...)
		}
	case ReasonMassDisruption:
		if v.disruption != noDisruption {
			return append(b, "so many nodes are not ready that replacements are limited"...)
		}
	case ReasonConnectionFailed:
		return v.appendConnectionFailure(b)
	case ReasonForeignPod:
		if v.mode == modeAddress {
			return b // no Service selects it: whoever runs the registry may label its Pods
		}
		return v.appendPods(b, cause)
	default:
		return v.appendPods(b, cause)
	}
	return b
}

// appendPods lists the Pods that a cause is about.
func (v *view) appendPods(b []byte, cause string) []byte {
	const most = 10
	listed := 0
	for i := range v.pods {
		p := &v.pods[i]
		if !p.suffers(cause) {
			continue
		}
		if listed++; listed > 1 {
			b = append(b, ", "...)
		}
		if listed > most {
			return append(b, "and more"...)
		}
		b = append(b, p.pod.Name...)
		if p.pod.Spec.NodeName != "" {
			b = append(append(b, " on "...), p.pod.Spec.NodeName...)
		}
		b = append(append(b, ": "...), p.plight(cause)...)
	}
	return b
}

func (p *podFacts) suffers(cause string) bool {
	if p.role == roleNone {
		return false
	}
	switch cause {
	case ReasonNodeLost:
		return p.class == ClassLost && p.lost != ReasonOverdue
	case ReasonStuckTerminating:
		return p.class == ClassLost && p.lost == ReasonOverdue || p.class == ClassTerminated && isHeld(p.pod)
	case ReasonForeignPod:
		return p.class == ClassForeign
	}
	return p.class == ClassUnhealthy && p.trouble == cause && !p.probe
}

func (p *podFacts) plight(cause string) string {
	switch cause {
	case ReasonStuckTerminating:
		return "it was deleted and is still there"
	case ReasonForeignPod:
		return "it has the catalog's labels and another owner"
	}
	return p.note()
}
