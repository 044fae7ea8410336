// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/olmcore"
)

// tell records Events for the transitions and the news of a report.
func tell(recorder events.EventRecorder, report controllers.Report) {
	for _, t := range report.Result.Transitions {
		message := t.Type + " " + cmp.Or(t.From, "None") + " -> " + t.To
		if t.Message != "" {
			message += ": " + t.Message
		}
		record(recorder, t.Target, corev1.EventTypeNormal, cmp.Or(t.Reason, t.To), message)
	}
	for _, d := range report.News {
		kind := corev1.EventTypeNormal
		if d.Severity != olmcore.Info {
			kind = corev1.EventTypeWarning
		}
		record(recorder, d.Target, kind, d.Reason, d.Message)
	}
}

// maxNote is what the API server takes as the text of an Event.
const maxNote = 1024

func record(recorder events.EventRecorder, target olmcore.Ref, kind, reason, message string) {
	recorder.Eventf(&corev1.ObjectReference{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: target.Namespace, Name: target.Name,
		UID: target.UID, ResourceVersion: target.ResourceVersion,
	}, nil, kind, reason, "Reconcile", "%s", strings.ToValidUTF8(message[:min(len(message), maxNote)], ""))
}
