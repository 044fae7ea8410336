// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Stage is one step of a cleanup. A stage starts once every object of the previous stage is deleted, updated as needed
// or left behind. The finalizer of the ClusterServiceVersion is removed after the last stage.
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

// drain is how long the Deployments of the operator may take to stop before its permissions go, othersHold how long
// objects hold the ClusterServiceVersion that nothing depends on.
const (
	drain      = 30 * time.Second
	othersHold = time.Minute
)

// stage is a row of the table. It is done when no target holds the ClusterServiceVersion.
type stage struct {
	name   Stage
	find   func(*facts) found
	limits limits
	batch  int // how many targets one result writes; 0: all
}

// limits say how long a target may hold the ClusterServiceVersion, by the class of the error that its write ended with,
// from the first such error on; 0 is without limit. It is left behind after that. One that is Gone or of a kind that is
// not served (NoMatch) is done, and one whose write is Invalid is left behind at once.
type limits struct {
	failing            time.Duration // Conflict, Transient, and errors of no class
	terminating        time.Duration // no error: finalizers hold it, from its deletion on
	forbidden, webhook time.Duration // the classes of these names
}

var usual = limits{terminating: 5 * time.Minute, forbidden: 10 * time.Minute, webhook: 10 * time.Minute}

// found is what belongs to a stage.
type found struct {
	targets []target
	skipped []olmcore.Diagnostic      // what is left behind on purpose
	unread  []string                  // lists that it needs and that were not read
	ask     []schema.GroupVersionKind // kinds whose instances it must know
	requeue time.Duration             // until it is over whatever is left; 0: never
}

// target is an object that must go, or change, before the next stage.
type target struct {
	ref       olmcore.Ref
	write     olmcore.Action // what it waits for; nil when nothing can be written
	deleted   *metav1.Time   // nil while it is not
	why       string         // a few words about what is waited for, or why it is left behind
	blocked   bool           // it will not pass by itself
	nextOwner string         // the ClusterServiceVersion that it is handed over to; empty where it must go
	// What the last try, or how long it takes, means for it: nothing is left to do about it, or it is left behind, or
	// wait is the time until its next try or the end of its limit; 0: none. A write that waits runs all the same when
	// another one is due, for the same reason as progress.givenUp.
	done, leftBehind bool
	wait             time.Duration
	untried          bool // this manager does not know what became of the write
}

// skip says why an object, or a whole kind, is left behind.
func skip(ref olmcore.Ref, why string) olmcore.Diagnostic {
	return olmcore.Diagnose(olmcore.Warning, ReasonCleanupSkipped, ref, "", "left behind: %s", why)
}

// progress is how far the stages got: what holds the ClusterServiceVersion in the first stage that is not done, and all
// that was left behind until then.
type progress struct {
	stage Stage
	found
	// givenUp are writes that were refused for too long. They run again beside others, because an adapter forgets the
	// outcome of what a run leaves out, and with it how long the object has been refused.
	givenUp []olmcore.Action
}

func (p *progress) holds() bool { return len(p.targets)+len(p.unread)+len(p.ask) > 0 }

// progressOf goes through the stages up to the first that holds.
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

// judge returns a target with what its last try, or how long it takes, means for it.
func (l limits) judge(f *facts, t target) target {
	last, tried := f.in.LastRun[t.ref.Key()]
	switch {
	case t.deleted != nil:
		left := l.terminating - owned.Since(t.deleted, f.in.Now)
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
		t.why, t.leftBehind = "the API server refuses to change it: "+last.Message, true
		return t
	case olmcore.Conflict:
		t.why, pause = "changed meanwhile", time.Second
	case olmcore.Forbidden:
		t.why = "refused: " + last.Message
		t.blocked = true
		limit = l.forbidden
	case olmcore.Webhook:
		t.why = "refused: " + last.Message
		t.blocked = true
		limit = l.webhook
	default:
		t.why = "failed: " + last.Message
	}
	t.wait = pause - max(0, f.in.Now.Sub(last.Last))
	if limit > 0 {
		t.leftBehind = last.Last.Sub(last.First) >= limit
		// After downtime, too, the last try comes when the time is over.
		t.wait = min(t.wait, limit-f.in.Now.Sub(last.First))
	}
	return t
}
