// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// reportDisabled creates the Event that reports disabled copies, or deletes it once copies are enabled again.
func reportDisabled(f *facts) olmcore.Result {
	if !f.targets.All() || !saysWhether(f.config) || !f.in.Events.Complete {
		return olmcore.Result{}
	}
	have, exists := model.Find(f.in.Events.Items, f.in.Key.Namespace, EventName(f.source))
	switch {
	case f.toggle.Disabled && exists:
		return olmcore.Result{RequeueAfter: eventPace}
	case f.toggle.Disabled:
		create := olmcore.CreateOf(newEvent(f.source, f.in.Now), olmcore.Cause{
			Reason: ReasonDisabled, Message: "copies are disabled, so users of other namespaces do not see the operator",
		})
		return olmcore.Result{Actions: []olmcore.Action{create}, RequeueAfter: eventPace}
	case exists && isEventOf(f.source, have):
		remove := olmcore.DeleteOf(have, olmcore.Cause{Reason: ReasonEnabled, Message: "copies are enabled again"})
		return olmcore.Result{Actions: []olmcore.Action{remove}}
	}
	return olmcore.Result{}
}

// EventName returns the name of the Event that reports disabled copies of an original CSV.
func EventName(c *v1alpha1.ClusterServiceVersion) string {
	suffix := olmcore.NameSuffix(10, string(c.UID), EventDisabledCopiedCSVs)
	const limit = 253 - len(".") - 10
	return strings.TrimRight(c.Name[:min(len(c.Name), limit)], "-.") + "." + suffix
}

// newEvent returns the Event that reports disabled copies.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, createCSVCopyingDisabledEvent.
func newEvent(c *v1alpha1.ClusterServiceVersion, now time.Time) *corev1.Event {
	at := olmcore.Timestamp(now)
	e := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind,
			Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		},
		Reason: EventDisabledCopiedCSVs, Message: fmt.Sprintf("CSV copying disabled for %s/%s", c.Namespace, c.Name),
		Source: corev1.EventSource{Component: "operator-lifecycle-manager"}, Type: corev1.EventTypeWarning,
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	e.Namespace, e.Name = c.Namespace, EventName(c)
	return e
}

func isEventOf(c *v1alpha1.ClusterServiceVersion, e *corev1.Event) bool {
	return e.Reason == EventDisabledCopiedCSVs && e.InvolvedObject.UID == c.UID && e.InvolvedObject.Kind == v1alpha1.ClusterServiceVersionKind
}
