// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Stage is one step of a cleanup. A stage starts once every object of the previous stage is deleted, updated as needed,
// or skipped. The finalizer of the ClusterServiceVersion is removed after the last stage.
type Stage string

// Stages of a cleanup, in order. The package comment describes their objects.
const (
	StageOperands    Stage = "Operands"
	StageAdmission   Stage = "Admission"
	StageConversion  Stage = "Conversion"
	StageAPIServices Stage = "APIServices"
	StageWorkload    Stage = "Workload"
	StageRBAC        Stage = "RBAC"
	StageOthers      Stage = "Others"
	StageRelease     Stage = "Release"
)

// drain is how long the Deployments of the operator may take to stop before its permissions are deleted. othersHold is
// how long objects on which nothing depends may keep the ClusterServiceVersion.
const (
	drain      = 30 * time.Second
	othersHold = time.Minute
)

// stage is a row of the table. A stage is done when it has no more targets to wait for.
type stage struct {
	name   Stage
	find   func(*facts) found
	limits limits
	batch  int // the maximum number of targets that one call writes; 0: no limit
}

// limits contains how long a target may keep the ClusterServiceVersion, by the class of the error of its write. The
// time starts with the first error of that class. 0 means no limit. After that time, the target is left behind. A
// target that is Gone, or whose kind is not served (NoMatch), is done. A target whose write is Invalid is left behind
// at once.
type limits struct {
	failing            time.Duration // Conflict, Transient, and errors without a class
	terminating        time.Duration // no error: finalizers keep the target. The time starts with its deletion
	forbidden, webhook time.Duration // the classes Forbidden and Webhook
}

var usual = limits{terminating: 5 * time.Minute, forbidden: 10 * time.Minute, webhook: 10 * time.Minute}

// found contains the objects of a stage.
type found struct {
	targets []target
	skipped []olmcore.Diagnostic      // about objects that are left behind on purpose
	unread  []string                  // names of needed lists that were not read
	ask     []schema.GroupVersionKind // kinds whose instances must be listed
	requeue time.Duration             // the time until remaining targets are left behind; 0: never
}

// target is an object that must be deleted or updated before the next stage.
type target struct {
	ref       olmcore.Ref
	write     olmcore.Action // the write that the stage waits for; nil: nothing can be written
	deleted   *metav1.Time   // the deletion timestamp; nil: it is not being deleted
	why       string         // a few words about the wait, or why the object is left behind
	blocked   bool           // the wait does not end by itself
	nextOwner string         // the ClusterServiceVersion that becomes the owner; empty: the object is deleted
	// The consequence of the last attempt, or of the time that the target takes. done means that nothing is left to do.
	// leftBehind means that the object is left behind. wait is the time until the next attempt or the end of the limit, or
	// 0. A write that waits is run anyway if another write is due. The reason is the same as for progress.givenUp.
	done, leftBehind bool
	wait             time.Duration
	untried          bool // this manager does not know the result of the write
}

// skip returns a Diagnostic about an object, or a whole kind, that is left behind.
func skip(ref olmcore.Ref, why string) olmcore.Diagnostic {
	return olmcore.Diagnose(olmcore.Warning, ReasonCleanupSkipped, ref, "", "left behind: %s", why)
}

// progress is the progress of the stages. It contains the targets of the first stage that is not done, and everything
// that was left behind so far.
type progress struct {
	stage Stage
	found
	// givenUp contains writes that were rejected for too long. They are run again together with other writes. A caller
	// forgets the result of a write that is not part of a run, and with it the time since which the write has been
	// rejected.
	givenUp []olmcore.Action
}

func (p *progress) holds() bool { return len(p.targets)+len(p.unread)+len(p.ask) > 0 }

// progressOf returns the progress up to the first stage that is not done.
func progressOf(f *facts, stages []stage) progress {
	p := progress{stage: StageRelease}
	p.unread = slices.Concat(read.Missing(f.in.Namespaces, "Namespaces"), read.Missing(f.in.Neighbours, "ClusterServiceVersions"))
	for _, s := range stages {
		if p.holds() {
			return p
		}
		p = p.through(f, s)
	}
	if !p.holds() {
		p.stage = StageRelease
	}
	return p
}

// through returns the progress after one more stage.
func (p progress) through(f *facts, s stage) progress {
	next := progress{stage: s.name, found: s.find(f), givenUp: p.givenUp}
	targets, writes := next.targets, 0
	next.targets, next.skipped = nil, append(p.skipped, next.skipped...)
	for _, t := range targets {
		if s.batch > 0 && writes >= s.batch && t.write != nil {
			t.why, t.write = "queued", nil
		} else {
			t = s.limits.judge(f, t)
		}
		switch {
		case t.leftBehind:
			next.skipped = append(next.skipped, skip(t.ref, t.why))
			if t.write != nil {
				next.givenUp = append(next.givenUp, t.write)
			}
		case !t.done:
			next.targets = append(next.targets, t)
			if t.write != nil {
				writes++
			}
		}
	}
	return next
}

// judge returns a target with the consequence of its last attempt, or of the time that it takes.
func (l limits) judge(f *facts, t target) target {
	last, tried := f.in.LastRun[t.ref.Key()]
	switch {
	case t.deleted != nil:
		left := l.terminating - model.Since(t.deleted, f.in.Now)
		if l.terminating > 0 && left <= 0 {
			t.why, t.leftBehind = "still Terminating", true
		}
		t.wait = max(0, left)
		return t
	case t.write == nil:
		return t
	case !tried || last.Last.Before(f.c.DeletionTimestamp.Time):
		t.untried = true
		return t
	case last.Class == olmcore.ClassNone:
		return t
	}
	limit, pause := l.failing, olmcore.Backoff{Base: time.Second, Max: time.Minute}.After(last.Count)
	switch last.Class {
	case olmcore.Gone, olmcore.NoMatch:
		t.done = true
		return t
	case olmcore.Invalid:
		t.why, t.leftBehind = "the API server rejects the change: "+last.Message, true
		return t
	case olmcore.Conflict:
		t.why, pause = "changed in the meantime", time.Second
	case olmcore.Forbidden:
		t.why = "rejected: " + last.Message
		t.blocked = true
		limit = l.forbidden
	case olmcore.Webhook:
		t.why = "rejected: " + last.Message
		t.blocked = true
		limit = l.webhook
	default:
		t.why = "failed: " + last.Message
	}
	t.wait = pause - max(0, f.in.Now.Sub(last.Last))
	if limit > 0 {
		t.leftBehind = last.Last.Sub(last.First) >= limit
		// Even after downtime, a last attempt is made when the time is over.
		t.wait = min(t.wait, limit-f.in.Now.Sub(last.First))
	}
	return t
}
