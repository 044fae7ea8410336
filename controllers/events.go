// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/subscription"
)

// Event contains the fields of a Kubernetes Event to record, named as in the event recorders of client-go.
type Event struct {
	// Regarding is the object of the Event. Its namespace is that of the Event: for a Namespace its own name, for other
	// cluster-scoped objects empty.
	Regarding corev1.ObjectReference
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type, Reason string
	// Note is the text, cut to the limit of the API server.
	Note string
}

// Events returns an Event for each Transition of a Report that is not Assumed, and for each of the News.
func Events(r controller.Report) []Event {
	var all []Event
	for _, t := range r.Result.Transitions {
		if t.Certainty == olmcore.CertaintyAssumed {
			continue
		}
		note := t.Type + " " + cmp.Or(t.From, "None") + " -> " + t.To
		if t.Message != "" {
			note += ": " + t.Message
		}
		kind, reason := typeAndReason(t)
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

// typeAndReason returns the type and the reason of the Event of a Transition. The reason for a stage of the InstallPlan
// of a Subscription is the name of the stage, not the reason in the plan.
func typeAndReason(t olmcore.Transition) (kind, reason string) {
	kind, reason = corev1.EventTypeNormal, cmp.Or(t.Reason, t.To)
	if t.Type == subscription.TransitionInstallPlan && t.To != string(subscription.StageNoPlan) {
		reason = "InstallPlan" + t.To
	}
	if subscription.IsWarning(t) {
		kind = corev1.EventTypeWarning
	}
	return kind, reason
}

// maxNote is the longest text of an Event that an API server accepts.
const maxNote = 1024

func event(target olmcore.Ref, kind, reason, note string) Event {
	note = printable.Text(note)
	namespace := target.Namespace
	if target.APIVersion == "v1" && target.Kind == "Namespace" {
		namespace = target.Name // users of this namespace cannot read Events in namespace default
	}
	return Event{
		Regarding: corev1.ObjectReference{
			APIVersion: target.APIVersion, Kind: target.Kind, Namespace: namespace, Name: target.Name,
			UID: target.UID, ResourceVersion: target.ResourceVersion,
		},
		Type: kind, Reason: printable.OneLine(reason), Note: strings.ToValidUTF8(note[:min(len(note), maxNote)], ""),
	}
}
