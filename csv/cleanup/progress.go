// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/internal/status"
	"github.com/olmcore/olm/olmcore"
)

// progress is how far the stages got: what holds the ClusterServiceVersion in the first
// stage that is not done, and what was left behind until then.
type progress struct {
	stage   Stage
	pending []pending
	skipped []skipped
	// givenUp are writes that were refused for too long. They run again beside others,
	// because an adapter forgets the outcome of what a run leaves out, and with it how long
	// the object has been refused.
	givenUp []olmcore.Action
	unread  []string
	ask     []schema.GroupVersionKind
	requeue time.Duration
}

// pending is a target that holds the ClusterServiceVersion. Its write is due unless it
// waits for another try; it runs all the same when another one is due, for the same reason
// as givenUp.
type pending struct {
	target
	due bool
}

func (p *progress) holds() bool { return len(p.pending)+len(p.unread)+len(p.ask) > 0 }

// isPaused reports whether all writes wait for another try.
func (p *progress) isPaused() bool {
	isWrite := func(x pending) bool { return x.write != nil }
	isDue := func(x pending) bool { return x.due }
	return slices.ContainsFunc(p.pending, isWrite) && !slices.ContainsFunc(p.pending, isDue)
}

// progressOf goes through the stages up to the first that holds.
func progressOf(f *facts, stages []stage) progress {
	p := progress{stage: StageRelease, unread: f.unread}
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
	all := s.find(f)
	var deadline olmcore.Result
	p.stage, p.unread, p.ask = s.name, all.unread, all.ask
	p.skipped = append(p.skipped, all.skipped...)
	writes := 0
	for _, t := range all.targets {
		if s.batch > 0 && writes >= s.batch && t.write != nil {
			t.why, t.write = "queued", nil
			p.pending = append(p.pending, pending{target: t})
			continue
		}
		a := s.limits.attempt(f, t)
		deadline.Requeue(a.wait)
		switch {
		case a.givenUp != "":
			p.skipped = append(p.skipped, skipped{t.ref.Unversioned(), a.givenUp})
			if t.write != nil {
				p.givenUp = append(p.givenUp, t.write)
			}
		case !a.done:
			t.why, t.blocked = a.why, a.blocked
			p.pending = append(p.pending, pending{t, t.write != nil && a.wait <= 0})
			if t.write != nil {
				writes++
			}
		}
	}
	if len(p.pending) > 0 {
		deadline.Requeue(all.requeue)
		p.requeue = deadline.RequeueAfter
	}
	return p
}

// attempt is what the last try, or how long it takes, means for a target: done, given up
// and why, or why it is waited for and until when.
type attempt struct {
	done, blocked bool
	givenUp, why  string
	wait          time.Duration // until the next try or the end of its limit; 0: none
}

func (l limits) attempt(f *facts, t target) attempt {
	switch {
	case t.deleted != nil:
		waited := status.Since(t.deleted, f.in.Now)
		if l.terminating > 0 && waited >= l.terminating {
			return attempt{givenUp: "still Terminating"}
		}
		return attempt{why: t.why, wait: max(0, l.terminating-waited)}
	case t.write == nil:
		return attempt{why: t.why, blocked: t.blocked}
	}
	last, tried := f.in.LastRun[t.ref.Key()]
	if !tried || last.Class == olmcore.ClassNone || last.Last.Before(f.c.DeletionTimestamp.Time) {
		return attempt{why: t.why}
	}
	a := attempt{}
	limit, pause := l.failing, olmcore.Backoff{Base: time.Second, Max: time.Minute}.After(last.Count)
	switch last.Class {
	case olmcore.Gone, olmcore.NoMatch:
		return attempt{done: true}
	case olmcore.Invalid:
		return attempt{givenUp: "the API server refuses to change it: " + last.Message}
	case olmcore.Conflict:
		a.why, pause = "changed meanwhile", time.Second
	case olmcore.Forbidden:
		a.why, a.blocked, limit = "refused: "+last.Message, true, l.forbidden
	case olmcore.Webhook:
		a.why, a.blocked, limit = "refused: "+last.Message, true, l.webhook
	default:
		a.why = "failed: " + last.Message
	}
	a.wait = pause - max(0, f.in.Now.Sub(last.Last))
	if limit > 0 {
		if last.Last.Sub(last.First) >= limit {
			return attempt{givenUp: a.why}
		}
		// After downtime, too, the last try comes when the time is over.
		a.wait = min(a.wait, limit-f.in.Now.Sub(last.First))
	}
	return a
}

// deletionOf returns the target that an object is which must go.
func deletionOf(f *facts, o olmcore.Object) target {
	t := target{ref: olmcore.RefOf(o), deleted: o.GetDeletionTimestamp(), why: "deleting"}
	if t.deleted != nil {
		t.why = "Terminating"
		if finalizers := o.GetFinalizers(); len(finalizers) > 0 {
			t.why += ", held by " + strings.Join(slices.Sorted(slices.Values(finalizers)), ", ")
		}
		return t
	}
	a := olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonCleanup, Message: "ClusterServiceVersion " + f.c.Name + " is being deleted"})
	a.PropagationPolicy = metav1.DeletePropagationBackground
	t.write = a
	return t
}

func deletionsOf(f *facts, objects []olmcore.Object) (targets []target) {
	for _, o := range objects {
		targets = append(targets, deletionOf(f, o))
	}
	return targets
}
