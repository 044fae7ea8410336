// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

const (
	// namespaceHold is how long a ClusterServiceVersion is held whose namespace is Terminating, from its deletion on.
	namespaceHold = 30 * time.Second
	// unreadPace is how often a cleanup looks again whose lists were not read.
	unreadPace = 5 * time.Second
	// maxSkipped is how many of the objects that are left behind are named.
	maxSkipped = 20
)

// Reconcile decides the next step of the cleanup of a ClusterServiceVersion that is being deleted and carries the
// finalizer; for any other it returns the zero Outcome, and for a copy that carries the finalizer the removal of it.
// The error is an *olmcore.InputError; whatever is wrong with the cluster goes into status and Diagnostics. Package csv
// calls it.
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
		return Outcome{Result: olmcore.Result{Actions: []olmcore.Action{withoutFinalizer(c, ReasonCopyReleased, "a copy has nothing to clean up")}}}
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

func withoutFinalizer(c *owned.CSV, reason, message string) olmcore.Action {
	after := c.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == Finalizer })
	return olmcore.UpdateOf(c, after, olmcore.Cause{Reason: reason, Message: message})
}

func (f *facts) outcome(p progress) Outcome {
	out := Outcome{Operands: p.ask, Mode: f.mode, Stage: p.stage, Pending: len(p.targets)}
	if value, ok := f.c.Annotations[AnnotationCleanup]; ok && f.override == "" {
		out.say(f, olmcore.Warning, ReasonBadOverride, "annotation %s has the unknown value %s", AnnotationCleanup, value)
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
	out.Actions = []olmcore.Action{withoutFinalizer(f.c, ReasonCleanupComplete, why)}
	slices.SortFunc(p.skipped, func(a, b skipped) int { return cmp.Or(a.ref.Compare(b.ref), strings.Compare(a.why, b.why)) })
	left := slices.CompactFunc(p.skipped, func(a, b skipped) bool { return a.ref.Key() == b.ref.Key() })
	for _, s := range left[:min(len(left), maxSkipped)] {
		out.Diagnostics = append(out.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonCleanupSkipped, s.ref, "", "left behind: %s", s.why))
	}
	if more := len(left) - maxSkipped; more > 0 {
		out.say(f, olmcore.Warning, ReasonCleanupSkipped, "and %d more objects are left behind", more)
	}
	return out
}

// abandon releases the ClusterServiceVersion and says what stays: everything that is known to belong to it.
func abandon(f *facts, p progress, why string) Outcome {
	for _, t := range p.targets {
		p.skipped = append(p.skipped, skipped{t.ref.Unversioned(), why})
	}
	for _, others := range f.others {
		p.skipped = append(p.skipped, others...)
	}
	for _, objects := range f.ours {
		for _, o := range objects {
			p.skipped = append(p.skipped, skip(o, why))
		}
	}
	p.targets, p.ask = nil, nil
	return release(f, p, why)
}

// hold keeps the finalizer, and reports what is waited for.
func hold(f *facts, p progress) Outcome {
	out := f.outcome(p)
	out.Requeue(p.requeue)
	if f.mode == ModeNamespaceGone {
		out.Requeue(namespaceHold - f.age)
	}
	paused := p.isPaused()
	for _, t := range p.targets {
		out.Requeue(t.wait)
		if t.write != nil && !paused {
			out.Actions = append(out.Actions, t.write)
		}
	}
	for _, list := range p.unread {
		out.say(f, olmcore.Warning, ReasonNotObserved, "the list of %s was not read, so cleanup waits", list)
	}
	if len(p.unread)+len(p.ask) > 0 {
		out.Requeue(unreadPace)
	} else {
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
