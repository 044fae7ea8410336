// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Event is one action, Transition or Diagnostic of a controller. Exactly one of the three fields is set.
type Event struct {
	At         time.Time
	Controller string
	Key        types.NamespacedName
	Action     olmcore.Action
	// Err is the error of the action. It is nil if the action succeeded, or had nothing to do.
	Err        error
	Transition *olmcore.Transition
	Diagnostic *olmcore.Diagnostic
}

// String returns the Event as one line, without its time:
//
//	catalog olm/cool: create Pod olm/cool-7d9c4 (PodMissing)
//	catalog olm/cool: delete Pod olm/cool-7d9c4 uid=3 grace=0 (NodeNotReady)
//	catalog olm/cool: CONNECTING -> READY (PodReady)
//	catalog olm/cool: Warning NodeSilent: node a does not answer
//
// A failed action ends with "failed: " and the message. A Transition with a type starts with the type. One that was not
// observed ends with its certainty. An empty state is printed as "none".
func (e Event) String() string {
	prefix := e.Controller + " " + keyString(e.Key) + ": "
	switch {
	case e.Action != nil:
		return prefix + actionString(e.Action) + failureString(e.Err)
	case e.Transition != nil:
		return prefix + e.Transition.String()
	case e.Diagnostic != nil:
		return fmt.Sprintf("%s%s %s: %s", prefix, e.Diagnostic.Severity, e.Diagnostic.Reason, e.Diagnostic.Message)
	}
	return prefix + "nothing"
}

func actionString(a olmcore.Action) string {
	verb, target, cause := a.Describe()
	name := string(verb)
	if verb == olmcore.VerbUpdateStatus {
		name = "update status of"
	}
	text := name + " " + target.String()
	if d, ok := a.(olmcore.Delete); ok {
		text += " uid=" + string(target.UID)
		if d.GracePeriodSeconds != nil {
			text += fmt.Sprintf(" grace=%d", *d.GracePeriodSeconds)
		}
		if d.PropagationPolicy != "" {
			text += " " + strings.ToLower(string(d.PropagationPolicy))
		}
	}
	if as := a.Identity(); as != nil {
		text += " as " + as.Namespace + "/" + as.Name
	}
	return text + " (" + cause.Reason + ")"
}

func failureString(err error) string {
	if err == nil {
		return ""
	}
	return " failed: " + err.Error()
}

// Format returns Events as lines that start with their times.
func Format(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s  %s\n", e.At.Format("15:04:05"), e)
	}
	return b.String()
}

// keyString returns a key as namespace/name, without the slash if one of them is empty.
func keyString(key types.NamespacedName) string { return strings.Trim(key.String(), "/") }
