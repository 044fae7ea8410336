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

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

const (
	// pendingInStatus and pendingInMessage are the maximum numbers of pending objects that are named. maxSkipped is the
	// maximum number of objects that are reported as left behind.
	pendingInStatus, pendingInMessage, maxSkipped = 50, 5, 20
	// namespaceHold is how long a ClusterServiceVersion is kept after its deletion if its namespace is Terminating.
	namespaceHold = 30 * time.Second
	// unreadPace is how often a cleanup checks again whether lists were read. statusPace is how often the status is
	// updated with the pending objects.
	unreadPace, statusPace = 5 * time.Second, 5 * time.Second
)

// Reconcile returns the next writes of the cleanup of a ClusterServiceVersion that is being deleted and has the
// finalizer. For a copy that has the finalizer, it removes the finalizer. For any other ClusterServiceVersion, it
// returns the zero Outcome. The error is an *olmcore.InputError. Problems of the cluster are reported in the status and
// in Diagnostics. Package csv calls it.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operator.go.
// Differs: see docs/deviations.md.
func Reconcile(in Input) (Outcome, error) {
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	return decide(&in, stages), nil
}

func decide(in *Input, stages []stage) Outcome {
	c := in.ClusterServiceVersion
	switch {
	case !slices.Contains(c.Finalizers, Finalizer):
		return Outcome{}
	case c.IsCopied():
		release := withoutFinalizer(c, ReasonCopyReleased, "a copy has nothing to clean up")
		return Outcome{Result: olmcore.Result{Actions: []olmcore.Action{release}}}
	case c.DeletionTimestamp == nil:
		return Outcome{}
	}
	f := factsOf(in)
	switch {
	case in.Config.Disabled:
		return release(f, progress{stage: StageRelease}, "cleanup is disabled")
	case f.mode == ModeOrphan:
		return abandon(f, progress{stage: StageRelease}, "deleted with orphan propagation")
	}
	p := progressOf(f, stages)
	switch {
	case f.override == OverrideAbandon:
		return abandon(f, p, "abandoned by annotation")
	case f.mode == ModeNamespaceGone && f.age >= namespaceHold:
		return abandon(f, p, "the namespace is Terminating")
	case p.holds():
		return hold(f, p)
	}
	return release(f, p, "nothing is left to clean up")
}

func withoutFinalizer(c *model.CSV, reason, message string) olmcore.Action {
	after := *c // the rest is shared with the observed object
	after.Finalizers = slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == Finalizer })
	return olmcore.UpdateOf(c, &after, olmcore.Cause{Reason: reason, Message: message})
}

func (f *facts) outcome(p progress) Outcome {
	out := Outcome{Operands: p.ask, Mode: f.mode, Stage: p.stage, Pending: len(p.targets)}
	value, ok := f.c.Annotations[AnnotationCleanup]
	if ok && f.override == "" {
		out.Result = f.report(olmcore.Warning, ReasonBadOverride, "annotation %s has the unknown value %s", AnnotationCleanup, value)
	}
	return out
}

// report returns a Result with a Diagnostic about the ClusterServiceVersion.
func (f *facts) report(severity olmcore.Severity, reason, format string, args ...any) olmcore.Result {
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
		olmcore.Diagnose(severity, reason, olmcore.RefOf(f.c), "", format, args...),
	}}
}

// release removes the finalizer. Its Outcome contains no other action.
func release(f *facts, p progress, why string) Outcome {
	var unlabelled olmcore.Result
	if !model.IsLabelValue(f.c.Name) {
		unlabelled = f.report(olmcore.Warning, ReasonNameTooLong,
			"the name has more than 63 characters, so no object could be labelled as belonging to it")
	}
	complete := f.report(olmcore.Info, ReasonCleanupComplete, "%s", why)
	complete.Actions = []olmcore.Action{withoutFinalizer(f.c, ReasonCleanupComplete, why)}
	out := f.outcome(p)
	out.Result = out.And(unlabelled, complete, reportSkipped(f, p))
	return out
}

// reportSkipped reports the objects that are left behind, at most maxSkipped of them.
func reportSkipped(f *facts, p progress) olmcore.Result {
	skipped := slices.Clone(p.skipped)
	slices.SortFunc(skipped, func(a, b olmcore.Diagnostic) int {
		return cmp.Or(a.Target.Compare(b.Target), strings.Compare(a.Message, b.Message))
	})
	left := slices.CompactFunc(skipped, func(a, b olmcore.Diagnostic) bool { return a.Target.Key() == b.Target.Key() })
	reported := olmcore.Result{Diagnostics: left[:min(len(left), maxSkipped)]}
	if more := len(left) - maxSkipped; more > 0 {
		return reported.And(f.report(olmcore.Warning, ReasonCleanupSkipped, "and %d more objects are left behind", more))
	}
	return reported
}

// abandon removes the finalizer, and reports all known objects that are left behind.
func abandon(f *facts, p progress, why string) Outcome {
	for _, t := range p.targets {
		p.skipped = append(p.skipped, skip(t.ref, why))
	}
	for _, all := range f.labelled {
		p.skipped = append(p.skipped, all.skipped...)
		for _, t := range all.targets {
			p.skipped = append(p.skipped, skip(t.ref, why))
		}
	}
	p.targets, p.ask = nil, nil
	return release(f, p, why)
}

// hold keeps the finalizer, and reports what the cleanup waits for.
func hold(f *facts, p progress) Outcome {
	out := f.outcome(p)
	out.Requeue(p.requeue)
	if f.mode == ModeNamespaceGone {
		out.Requeue(namespaceHold - f.age)
	}
	due := false
	for _, t := range p.targets {
		out.Requeue(t.wait)
		if t.nextOwner != "" && t.write != nil && t.wait <= 0 {
			out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(olmcore.Info, ReasonHandedOver, t.ref, "",
				"it is kept because ClusterServiceVersion %s needs it too", t.nextOwner))
		}
		if t.write != nil {
			out.Actions, due = append(out.Actions, t.write), due || t.wait <= 0
		}
	}
	paused := len(out.Actions) > 0 && !due // all writes wait for their next attempt
	if paused {
		out.Actions = nil
	}
	var waits []olmcore.Result
	for _, list := range p.unread {
		waits = append(waits, f.report(olmcore.Warning, ReasonNotObserved, "the list of %s was not read, so cleanup waits", list))
	}
	if len(p.unread)+len(p.ask) > 0 {
		waits = append(waits, olmcore.Result{RequeueAfter: unreadPace})
	} else {
		waits = append(waits, olmcore.Result{RequeueAfter: model.NextCheck(f.age, time.Minute)})
		if !paused {
			waits = append(waits, writeStatus(f, p))
		}
	}
	out.Result = out.And(waits...)
	if len(out.Actions) > 0 {
		out.Actions = append(slices.Clone(p.givenUp), out.Actions...)
		f.in.LastRun.ConflictsLast(out.Actions)
	}
	return out
}

// writeStatus writes the pending objects into the status, at most every five seconds. The phase of a
// ClusterServiceVersion that a newer one replaces stays as it is.
func writeStatus(f *facts, p progress) olmcore.Result {
	s := &f.c.Status
	message := printable.Keep(s.Message, p.message())
	after := *f.c
	after.Status = *s.DeepCopy()
	after.Status.Cleanup.PendingDeletion = pendingLists(p.targets)
	started := len(s.Cleanup.PendingDeletion) > 0
	if f.superseded {
		after.Status.LastUpdateTime = new(olmcore.Timestamp(f.in.Now))
	} else {
		started = s.Reason == v1alpha1.CSVReasonWaitingForCleanupToComplete
		model.SetPhase(&after.Status, v1alpha1.CSVPhaseDeleting, v1alpha1.CSVReasonWaitingForCleanupToComplete, message, f.in.Now)
	}
	moved := s.Phase != after.Status.Phase || s.Reason != after.Status.Reason
	isSame := !moved && equality.Semantic.DeepEqual(s.Cleanup, after.Status.Cleanup)
	// A manager that has not attempted a write yet keeps the message of another manager about the same objects. Otherwise
	// the two would overwrite each other's message.
	if isSame && (s.Message == after.Status.Message || slices.ContainsFunc(p.targets, func(t target) bool { return t.untried })) {
		return olmcore.Result{}
	}
	pause := statusPace - model.Since(s.LastUpdateTime, f.in.Now)
	if started && s.LastUpdateTime != nil && pause > 0 {
		return olmcore.Result{RequeueAfter: pause}
	}
	cause := olmcore.Cause{Reason: ReasonStatusChanged, Message: message}
	written := olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateStatusOf(f.c, &after, cause)}}
	if moved {
		written.Transitions = []olmcore.Transition{model.PhaseTransition(f.c, &after.Status)}
	}
	if !started {
		written = written.And(f.report(olmcore.Info, ReasonCleanupStarted, "%s", message))
	}
	if slices.ContainsFunc(p.targets, func(t target) bool { return t.blocked }) {
		written = written.And(f.report(olmcore.Warning, ReasonCleanupBlocked, "%s", message))
	}
	return written
}

// message returns the status message about the objects that the cleanup waits for.
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

// pendingLists returns the first pending objects, grouped by kind.
func pendingLists(list []target) []v1alpha1.ResourceList {
	list = slices.SortedFunc(slices.Values(list[:min(len(list), pendingInStatus)]), compareByGroup)
	var lists []v1alpha1.ResourceList
	for _, t := range list {
		key := t.ref.Key()
		n := len(lists)
		if n == 0 || lists[n-1].Group != key.Group || lists[n-1].Kind != key.Kind {
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
