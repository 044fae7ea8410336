// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/olmcore"
)

// Bounds of what a clean-up reports.
const (
	pendingInStatus  = 50
	pendingInMessage = 5
	skippedSaid      = 20
	statusPace       = 5 * time.Second
)

// release removes the finalizer: the last action, and the only one of its
// result.
func (k *cleaner) release(why string) Outcome {
	if len(k.c.Name) > maxLabelValue {
		k.note(olmcore.Warning, ReasonNameTooLong, "the name has more than 63 characters, so no object could be labelled as belonging to it")
	}
	k.note(olmcore.Info, ReasonCleanupComplete, why)
	k.saySkipped()
	return Outcome{Result: olmcore.Result{
		Actions:     []olmcore.Action{withoutFinalizer(k.c, olmcore.Cause{Reason: ReasonCleanupComplete, Message: why})},
		Diagnostics: k.notes,
	}}
}

// abandon releases the CSV and says what stays.
func (k *cleaner) abandon(why string) Outcome {
	left := k.pending
	k.actions, k.pending = nil, nil
	for _, p := range left {
		k.skip(p.ref, why)
	}
	k.leaveAll(why)
	return k.release(why)
}

func (k *cleaner) saySkipped() {
	slices.SortFunc(k.skipped, func(a, b skippedObject) int { return cmp.Or(a.ref.Compare(b.ref), strings.Compare(a.why, b.why)) })
	k.skipped = slices.CompactFunc(k.skipped, func(a, b skippedObject) bool { return a.ref.Key() == b.ref.Key() })
	for i, s := range k.skipped {
		if i == skippedSaid {
			k.note(olmcore.Warning, ReasonCleanupSkipped, fmt.Sprintf("and %d more objects are left behind", len(k.skipped)-i))
			break
		}
		k.notes = append(k.notes, olmcore.Diagnostic{
			Severity: olmcore.Warning, Reason: ReasonCleanupSkipped, Message: "left behind: " + s.why, Target: s.ref,
		})
	}
}

// hold keeps the finalizer, and reports what is waited for.
func (k *cleaner) hold() Outcome {
	out := Outcome{Operands: k.need}
	paused := k.isPaused()
	for _, a := range k.actions {
		if !paused {
			out.Actions = append(out.Actions, a.Action)
		}
	}
	switch {
	case len(k.unobserved) > 0:
		for _, list := range k.unobserved {
			k.note(olmcore.Warning, ReasonNotObserved, "the list of "+list+" was not read, so clean-up waits")
		}
		k.requeueAfter(5 * time.Second)
	case len(k.need) > 0:
		k.requeueAfter(5 * time.Second)
	default:
		k.requeueAfter(wait(k.elapsed(), time.Minute))
		if !paused {
			k.report(&out)
		}
	}
	if len(out.Actions) > 0 {
		out.Actions = append(k.givenUp, out.Actions...)
	}
	out.Diagnostics = k.notes
	out.RequeueAfter = k.requeue
	return out
}

// report writes the pending objects into the status, at most every five seconds.
func (k *cleaner) report(out *Outcome) {
	s := &k.c.Status
	phase, reason, message := v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonWaitingForCleanupToComplete, k.message()
	started := s.Reason == reason
	if k.superseded {
		phase, reason, message = s.Phase, s.Reason, s.Message
		started = len(s.Cleanup.PendingDeletion) > 0
	}
	lists := k.pendingLists()
	moved := s.Phase != phase || s.Reason != reason
	if !moved && s.Message == message && samePending(s.Cleanup.PendingDeletion, lists) {
		return
	}
	if pause := statusPace - since(s.LastUpdateTime, k.in.Now); started && s.LastUpdateTime != nil && pause > 0 {
		k.requeueAfter(pause)
		return
	}
	after := k.c.DeepCopy()
	after.Status.Cleanup.PendingDeletion = lists
	if k.superseded {
		at := olmcore.Timestamp(k.in.Now)
		after.Status.LastUpdateTime = &at
	} else {
		setPhase(&after.Status, phase, reason, message, k.in.Now)
	}
	out.Actions = append(out.Actions, olmcore.UpdateStatusOf(k.c, after, olmcore.Cause{Reason: ReasonStatusChanged, Message: k.message()}))
	if moved {
		out.Transitions = []olmcore.Transition{transition(k.c, &after.Status)}
	}
	if !started {
		k.note(olmcore.Info, ReasonCleanupStarted, k.message())
	}
	if slices.ContainsFunc(k.pending, func(p pendingObject) bool { return p.blocked }) {
		k.note(olmcore.Warning, ReasonCleanupBlocked, k.message())
	}
}

func (k *cleaner) message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cleanup stage %s: waiting for %d object(s): ", k.stage, len(k.pending))
	for i, p := range k.pending {
		if i == pendingInMessage {
			fmt.Fprintf(&b, " and %d more", len(k.pending)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		key := p.ref.Key()
		kind, name := key.Kind, key.Name
		if key.Group != "" {
			kind += "." + key.Group
		}
		if key.Namespace != "" {
			name = key.Namespace + "/" + name
		}
		fmt.Fprintf(&b, "%s %s (%s)", kind, name, p.why)
	}
	return b.String()
}

// pendingLists groups what is pending by kind.
func (k *cleaner) pendingLists() []v1alpha1.ResourceList {
	list := slices.Clone(k.pending[:min(len(k.pending), pendingInStatus)])
	slices.SortFunc(list, func(a, b pendingObject) int {
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

func samePending(a, b []v1alpha1.ResourceList) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.ResourceList) bool {
		return x.Group == y.Group && x.Kind == y.Kind && slices.Equal(x.Instances, y.Instances)
	})
}
