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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

const (
	// pendingInStatus and pendingInMessage are how many of the objects that are waited for are named.
	pendingInStatus  = 50
	pendingInMessage = 5
	// statusPace is how often the status follows what is waited for.
	statusPace = 5 * time.Second
)

// report writes the pending objects into the status, at most every five seconds. The phase of a ClusterServiceVersion
// that a newer one replaces stays as it is.
func report(f *facts, p progress, out *Outcome) {
	s := &f.c.Status
	message := p.message()
	after := f.c.DeepCopy()
	after.Status.Cleanup.PendingDeletion = pendingLists(p.targets)
	started := len(s.Cleanup.PendingDeletion) > 0
	if f.superseded {
		after.Status.LastUpdateTime = new(olmcore.Timestamp(f.Now))
	} else {
		started = s.Reason == v1alpha1.CSVReasonWaitingForCleanupToComplete
		status.SetPhase(&after.Status, v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonWaitingForCleanupToComplete, message, f.Now)
	}
	moved := s.Phase != after.Status.Phase || s.Reason != after.Status.Reason
	if !moved && s.Message == after.Status.Message && equality.Semantic.DeepEqual(s.Cleanup, after.Status.Cleanup) {
		return
	}
	if pause := statusPace - status.Since(s.LastUpdateTime, f.Now); started && s.LastUpdateTime != nil && pause > 0 {
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
	if slices.ContainsFunc(p.targets, func(t target) bool { return t.blocked }) {
		out.say(f, olmcore.Warning, ReasonCleanupBlocked, "%s", message)
	}
}

// message says what is waited for.
func (p *progress) message() string {
	var parts []string
	for _, t := range p.targets[:min(len(p.targets), pendingInMessage)] {
		key := t.ref.Key()
		key.Kind = schema.GroupKind{Group: key.Group, Kind: key.Kind}.String()
		parts = append(parts, fmt.Sprintf("%s (%s)", key, t.why))
	}
	text := fmt.Sprintf("cleanup stage %s: waiting for %d object(s): %s", p.stage, len(p.targets), strings.Join(parts, ", "))
	if more := len(p.targets) - pendingInMessage; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// pendingLists groups the first of what is pending by kind.
func pendingLists(list []target) []v1alpha1.ResourceList {
	list = slices.SortedFunc(slices.Values(list[:min(len(list), pendingInStatus)]), compareByGroup)
	var lists []v1alpha1.ResourceList
	for _, t := range list {
		key := t.ref.Key()
		if n := len(lists); n == 0 || lists[n-1].Group != key.Group || lists[n-1].Kind != key.Kind {
			lists = append(lists, v1alpha1.ResourceList{Group: key.Group, Kind: key.Kind})
		}
		last := &lists[len(lists)-1]
		last.Instances = append(last.Instances, v1alpha1.ResourceInstance{Name: key.Name, Namespace: key.Namespace})
	}
	return lists
}

func compareByGroup(a, b target) int {
	x, y := a.ref.Key(), b.ref.Key()
	return cmp.Or(strings.Compare(x.Group, y.Group), x.Compare(y))
}
