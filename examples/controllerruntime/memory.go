// SPDX-License-Identifier: Apache-2.0

package olmruntime

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// over are the objects that were written last, as they were before, and at is
	// when that was.
	over []olmcore.Ref
	at   time.Time
}

// remember keeps what the next reconcile of a key has to know.
func remember(last remembered, result olmcore.Result, runErr error, now time.Time) remembered {
	next := remembered{said: result.Diagnostics, at: now}
	if len(result.Actions) == 0 {
		if !result.Empty() || result.RequeueAfter > 0 {
			next.outcomes = last.outcomes
		}
		return next
	}
	next.outcomes = olmcore.OutcomesOf(last.outcomes, result.Actions, runErr, now)
	for _, a := range result.Actions {
		verb, target, _ := a.Describe()
		outcome, ran := next.outcomes[target.Key()]
		if ran && (outcome.Class == olmcore.ClassNone || outcome.Class == olmcore.Conflict) && verb != olmcore.VerbDelete {
			next.over = append(next.over, target)
		}
	}
	return next
}

// catchUp bounds how long a cache is waited for.
const catchUp = time.Second

// behind reports whether the cache still shows what was written over.
func (m remembered) behind(ctx context.Context, r olmcore.Reader, now time.Time) bool {
	if now.Sub(m.at) > catchUp {
		return false
	}
	return slices.ContainsFunc(m.over, func(ref olmcore.Ref) bool {
		if _, cached := watchedKinds[ref.GVK()]; !cached {
			return false
		}
		o, err := r.Get(ctx, ref.GVK(), ref.Namespace, ref.Name)
		if err != nil {
			return ref.ResourceVersion == "" && apierrors.IsNotFound(err) // it was created
		}
		return o.GetResourceVersion() == ref.ResourceVersion
	})
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
	case len(r.outcomes) == 0 && len(r.said) == 0 && len(r.over) == 0:
		delete(m.keys, key)
	case m.keys == nil:
		m.keys = map[types.NamespacedName]remembered{key: r}
	default:
		m.keys[key] = r
	}
}

// tell records Events for the transitions of a result, and for those diagnostics
// that the last result did not have.
func tell(recorder events.EventRecorder, result olmcore.Result, said []olmcore.Diagnostic) {
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
}

// maxNote is what the API server takes as the text of an Event.
const maxNote = 1024

func record(recorder events.EventRecorder, target olmcore.Ref, kind, reason, message string) {
	recorder.Eventf(&corev1.ObjectReference{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: target.Namespace, Name: target.Name,
		UID: target.UID, ResourceVersion: target.ResourceVersion,
	}, nil, kind, reason, "Reconcile", "%s", strings.ToValidUTF8(message[:min(len(message), maxNote)], ""))
}
