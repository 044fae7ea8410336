// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

// Bounds of what a cleanup reports.
const (
	pendingInStatus  = 50
	pendingInMessage = 5
	maxSkipped       = 20
	// statusPace is how often the status follows what is waited for.
	statusPace = 5 * time.Second
	// unreadPace is how often a cleanup looks again whose lists were not read.
	unreadPace = 5 * time.Second
)

func (f *facts) outcome(p progress) Outcome {
	out := Outcome{Operands: p.ask, Mode: f.mode(), Stage: p.stage, Pending: len(p.pending)}
	if f.badOverride {
		out.say(f, olmcore.Warning, ReasonBadOverride, "annotation %s has the unknown value %s", AnnotationCleanup, f.c.Annotations[AnnotationCleanup])
	}
	return out
}

func (out *Outcome) say(f *facts, severity olmcore.Severity, reason, format string, args ...any) {
	out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(f.c), "", format, args...))
}

// release removes the finalizer: the last action, and the only one of its result.
func release(f *facts, p progress, why string) Outcome {
	out := f.outcome(p)
	if !owned.IsLabelValue(f.c.Name) {
		out.say(f, olmcore.Warning, ReasonNameTooLong, "the name has more than 63 characters, so no object could be labelled as belonging to it")
	}
	out.say(f, olmcore.Info, ReasonCleanupComplete, "%s", why)
	out.Actions = []olmcore.Action{withoutFinalizer(f.c, olmcore.Cause{Reason: ReasonCleanupComplete, Message: why})}
	left := slices.SortedFunc(slices.Values(p.skipped), func(a, b skipped) int { return cmp.Or(a.ref.Compare(b.ref), strings.Compare(a.why, b.why)) })
	left = slices.CompactFunc(left, func(a, b skipped) bool { return a.ref.Key() == b.ref.Key() })
	for _, s := range left[:min(len(left), maxSkipped)] {
		out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonCleanupSkipped, s.ref, "", "left behind: %s", s.why))
	}
	if more := len(left) - maxSkipped; more > 0 {
		out.say(f, olmcore.Warning, ReasonCleanupSkipped, "and %d more objects are left behind", more)
	}
	return out
}

// abandon releases the ClusterServiceVersion and says what stays.
func abandon(f *facts, p progress, why string) Outcome {
	for _, x := range p.pending {
		p.skipped = append(p.skipped, skipped{x.ref.Unversioned(), why})
	}
	p.pending, p.ask = nil, nil
	p.skipped = append(p.skipped, leaveAll(f, why)...)
	return release(f, p, why)
}

// hold keeps the finalizer, and reports what is waited for.
func hold(f *facts, p progress) Outcome {
	out := f.outcome(p)
	out.Requeue(p.requeue)
	if f.namespaceGone {
		out.Requeue(namespaceHold - f.age)
	}
	paused := p.isPaused()
	for _, x := range p.pending {
		if x.write != nil && !paused {
			out.Actions = append(out.Actions, x.write)
		}
	}
	switch {
	case len(p.unread) > 0:
		for _, list := range p.unread {
			out.say(f, olmcore.Warning, ReasonNotObserved, "the list of %s was not read, so cleanup waits", list)
		}
		out.Requeue(unreadPace)
	case len(p.ask) > 0:
		out.Requeue(unreadPace)
	default:
		out.Requeue(status.Wait(f.age, time.Minute))
		if !paused {
			report(f, p, &out)
		}
	}
	if len(out.Actions) > 0 {
		out.Actions = append(slices.Clone(p.givenUp), out.Actions...)
	}
	return out
}

// report writes the pending objects into the status, at most every five seconds. The
// phase of a ClusterServiceVersion that a newer one replaces stays as it is.
func report(f *facts, p progress, out *Outcome) {
	s := &f.c.Status
	message := p.message()
	after := f.c.DeepCopy()
	after.Status.Cleanup.PendingDeletion = pendingLists(p.pending)
	started := len(s.Cleanup.PendingDeletion) > 0
	if f.superseded {
		at := olmcore.Timestamp(f.in.Now)
		after.Status.LastUpdateTime = &at
	} else {
		started = s.Reason == v1alpha1.CSVReasonWaitingForCleanupToComplete
		status.SetPhase(&after.Status, v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonWaitingForCleanupToComplete, message, f.in.Now)
	}
	moved := s.Phase != after.Status.Phase || s.Reason != after.Status.Reason
	if !moved && s.Message == after.Status.Message && equality.Semantic.DeepEqual(s.Cleanup, after.Status.Cleanup) {
		return
	}
	if pause := statusPace - status.Since(s.LastUpdateTime, f.in.Now); started && s.LastUpdateTime != nil && pause > 0 {
		out.Requeue(pause)
		return
	}
	out.Actions = append(out.Actions, olmcore.UpdateStatusOf(f.c, after, olmcore.Cause{Reason: ReasonStatusChanged, Message: message}))
	if moved {
		out.Transitions = []olmcore.Transition{status.Moved(f.c, &after.Status)}
	}
	if !started {
		out.say(f, olmcore.Info, ReasonCleanupStarted, "%s", message)
	}
	if slices.ContainsFunc(p.pending, func(x pending) bool { return x.blocked }) {
		out.say(f, olmcore.Warning, ReasonCleanupBlocked, "%s", message)
	}
}

// message says what is waited for.
func (p *progress) message() string {
	var parts []string
	for _, x := range p.pending[:min(len(p.pending), pendingInMessage)] {
		key := x.ref.Key()
		kind, name := key.Kind, key.Name
		if key.Group != "" {
			kind += "." + key.Group
		}
		if key.Namespace != "" {
			name = key.Namespace + "/" + name
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", kind, name, x.why))
	}
	text := fmt.Sprintf("cleanup stage %s: waiting for %d object(s): %s", p.stage, len(p.pending), strings.Join(parts, ", "))
	if more := len(p.pending) - pendingInMessage; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// pendingLists groups the first of what is pending by kind.
func pendingLists(list []pending) []v1alpha1.ResourceList {
	list = slices.SortedFunc(slices.Values(list[:min(len(list), pendingInStatus)]), func(a, b pending) int {
		x, y := a.ref.Key(), b.ref.Key()
		return cmp.Or(strings.Compare(x.Group, y.Group), x.Compare(y))
	})
	var lists []v1alpha1.ResourceList
	for _, p := range list {
		key := p.ref.Key()
		if n := len(lists); n == 0 || lists[n-1].Group != key.Group || lists[n-1].Kind != key.Kind {
			lists = append(lists, v1alpha1.ResourceList{Group: key.Group, Kind: key.Kind})
		}
		last := &lists[len(lists)-1]
		last.Instances = append(last.Instances, v1alpha1.ResourceInstance{Name: key.Name, Namespace: key.Namespace})
	}
	return lists
}
