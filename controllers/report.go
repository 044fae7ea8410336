// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// Report is what one reconcile came to.
type Report struct {
	// Controller is the name of the controller.
	Controller string
	Key        types.NamespacedName
	Result     olmcore.Result
	// News are those of the Result's Diagnostics that the last one did not have.
	News []olmcore.Diagnostic
	// Err is the error of olmcore.Run. It also holds failed writes that Runner.Run does not return as an error.
	Err error
}

// String returns one line for each action, each of the News, and the error. Texts with line ends add no lines. It
// leaves out an error that needs no attention: a conflict, an object or a namespace that is gone or terminating, and
// the end of the program.
func (r Report) String() string {
	var text strings.Builder
	line := func(format string, args ...any) {
		text.WriteString(printable.OneLine(fmt.Sprintf("%s %s: %s", r.Controller, r.Key, fmt.Sprintf(format, args...))) + "\n")
	}
	for _, a := range r.Result.Actions {
		verb, target, cause := a.Describe()
		line("%s %s (%s)", verb, target, cause.Reason)
	}
	for _, d := range r.News {
		line("%s %s: %s", d.Severity, d.Reason, d.Message)
	}
	if r.Err != nil && !isExpected(r.Err) {
		line("%v", r.Err)
	}
	return text.String()
}

// Event is what to record as a Kubernetes Event, in the words of client-go's event recorders.
type Event struct {
	// Regarding is the object that the Event is about. Its namespace is that of the Event. For a Namespace it is the
	// Namespace itself, for any other cluster-scoped object it is empty.
	Regarding corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type, Reason string
	// Note is the text, cut to what an API server takes.
	Note string
}

// Events returns an Event for each Transition that is more than assumed and for each of the News.
func (r Report) Events() []Event {
	var all []Event
	for _, t := range r.Result.Transitions {
		if t.Certainty == olmcore.CertaintyAssumed {
			continue
		}
		note := t.Type + " " + cmp.Or(t.From, "None") + " -> " + t.To
		if t.Message != "" {
			note += ": " + t.Message
		}
		kind, reason := nature(t)
		all = append(all, event(t.Target, kind, reason, note))
	}
	for _, d := range r.News {
		kind := corev1.EventTypeWarning
		if d.Severity == olmcore.Info {
			kind = corev1.EventTypeNormal
		}
		all = append(all, event(d.Target, kind, d.Reason, d.Message))
	}
	return all
}

// nature returns type and reason of the Event of a Transition. The stages of a Subscription's plan have reasons of
// their own, whatever the plan says.
func nature(t olmcore.Transition) (kind, reason string) {
	kind, reason = corev1.EventTypeNormal, cmp.Or(t.Reason, t.To)
	if t.Type == subscription.TransitionInstallPlan && t.To != string(subscription.StageNoPlan) {
		reason = "InstallPlan" + t.To
	}
	if subscription.IsWarning(t) {
		kind = corev1.EventTypeWarning
	}
	return kind, reason
}

// maxNote is what an API server takes as the text of an Event.
const maxNote = 1024

func event(target olmcore.Ref, kind, reason, note string) Event {
	note = printable.Text(note)
	namespace := target.Namespace
	if target.APIVersion == "v1" && target.Kind == "Namespace" {
		namespace = target.Name // else the Event would be in namespace default, where the users of this one cannot read it
	}
	return Event{
		Regarding: corev1.ObjectReference{
			APIVersion: target.APIVersion, Kind: target.Kind, Namespace: namespace, Name: target.Name,
			UID: target.UID, ResourceVersion: target.ResourceVersion,
		},
		Type: kind, Reason: printable.OneLine(reason), Note: strings.ToValidUTF8(note[:min(len(note), maxNote)], ""),
	}
}

// news are the diagnostics that were not said before.
func news(before, now []olmcore.Diagnostic) []olmcore.Diagnostic {
	return slices.DeleteFunc(slices.Clone(now), func(d olmcore.Diagnostic) bool {
		return slices.ContainsFunc(before, func(s olmcore.Diagnostic) bool {
			return s.Reason == d.Reason && s.Path == d.Path && s.Target.Key() == d.Target.Key()
		})
	})
}
