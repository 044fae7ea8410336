// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"cmp"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/olmcore/olm/olmcore"
)

// memory is what a runner knows about its keys. It holds no more entries than
// there are keys with something pending.
type memory struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]remembered
}

type remembered struct {
	outcomes olmcore.Outcomes
	said     []olmcore.Diagnostic
}

func (m *memory) get(key types.NamespacedName) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys[key]
}

func (m *memory) set(key types.NamespacedName, r remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(r.outcomes) == 0 && len(r.said) == 0:
		delete(m.keys, key)
	case m.keys == nil:
		m.keys = map[types.NamespacedName]remembered{key: r}
	default:
		m.keys[key] = r
	}
}

// tell records Events for the transitions of a result, and for those diagnostics
// that the last result did not have.
func tell(recorder events.EventRecorder, result olmcore.Result, said []olmcore.Diagnostic) []olmcore.Diagnostic {
	for _, t := range result.Transitions {
		message := t.Type + " " + cmp.Or(t.From, "None") + " -> " + t.To
		if t.Message != "" {
			message += ": " + t.Message
		}
		record(recorder, t.Target, corev1.EventTypeNormal, cmp.Or(t.Reason, t.To), message)
	}
	for _, d := range result.Diagnostics {
		if slices.ContainsFunc(said, func(s olmcore.Diagnostic) bool {
			return s.Reason == d.Reason && s.Path == d.Path && s.Target.Key() == d.Target.Key()
		}) {
			continue
		}
		kind := corev1.EventTypeNormal
		if d.Severity != olmcore.Info {
			kind = corev1.EventTypeWarning
		}
		record(recorder, d.Target, kind, d.Reason, d.Message)
	}
	return result.Diagnostics
}

// maxNote is what the API server takes as the text of an Event.
const maxNote = 1024

func record(recorder events.EventRecorder, target olmcore.Ref, kind, reason, message string) {
	recorder.Eventf(&corev1.ObjectReference{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: target.Namespace, Name: target.Name,
		UID: target.UID, ResourceVersion: target.ResourceVersion,
	}, nil, kind, reason, "Reconcile", "%s", message[:min(len(message), maxNote)])
}
