// SPDX-License-Identifier: Apache-2.0

// Package workqueue is the clock of a simulated cluster and the work queue of its controllers. Only the order of the
// calls determines the order of the tasks.
package workqueue

import (
	"cmp"
	"slices"
	"time"

	"github.com/olmcore/olm/olmcore"
)

// Task is one object that a simulated controller should reconcile.
type Task struct {
	Controller Controller
	Key        olmcore.Key
}

// Controller is one of the simulated controllers. Tasks that are due at the same time run in the order of their
// controllers.
type Controller uint8

// The simulated controllers.
const (
	GarbageCollector Controller = iota
	Namespaces
	Nodes
	Pods // scheduler, kubelet, taint eviction and garbage collection of Pods
	Deployments
	CRDs
	APIServices
)

var names = [...]string{"garbage collector", "namespace controller", "node controller", "pod controllers",
	"deployment controller", "CRD controller", "APIService controller"}

// String returns the name of the controller and the key.
func (t Task) String() string { return names[t.Controller] + " on " + t.Key.String() }

// Queue is a clock with the tasks that are due now, in the order in which they were added, and those that are due
// later.
type Queue struct {
	now    time.Time
	tasks  []Task // tasks[head:] are due
	head   int
	queued map[Task]bool
	timers map[Task]time.Time
}

// New returns an empty queue whose clock shows start.
func New(start time.Time) *Queue {
	return &Queue{now: start.UTC(), queued: map[Task]bool{}, timers: map[Task]time.Time{}}
}

// Now returns the time of the clock.
func (q *Queue) Now() time.Time { return q.now }

// Add adds a task that is due now, unless it is queued already.
func (q *Queue) Add(c Controller, key olmcore.Key) {
	t := Task{c, key}
	if !q.queued[t] {
		q.queued[t] = true
		q.tasks = append(q.tasks, t)
	}
}

// AddAll adds a task for each object.
func (q *Queue) AddAll(c Controller, objects []olmcore.Object) {
	for _, o := range objects {
		q.Add(c, olmcore.KeyOf(o))
	}
}

// AddAt adds a task that is due at a time. If it was added for several times, the earliest applies.
func (q *Queue) AddAt(t Task, at time.Time) {
	if was, ok := q.timers[t]; !ok || at.Before(was) {
		q.timers[t] = at
	}
}

// Next removes and returns the next task that is due now, and its timer. ok is false if no task is due.
func (q *Queue) Next() (t Task, ok bool) {
	if q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
		return Task{}, false
	}
	t = q.tasks[q.head]
	q.head++
	delete(q.queued, t)
	delete(q.timers, t)
	return t, true
}

// AdvanceTo moves the clock forward to a time and queues the tasks that are due by then. It never moves the clock back.
func (q *Queue) AdvanceTo(at time.Time) {
	if at.After(q.now) {
		q.now = at
	}
	var due []Task
	for t, deadline := range q.timers {
		if !deadline.After(q.now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b Task) int {
		return cmp.Or(q.timers[a].Compare(q.timers[b]), cmp.Compare(a.Controller, b.Controller), a.Key.Compare(b.Key))
	})
	for _, t := range due {
		delete(q.timers, t)
		q.Add(t.Controller, t.Key)
	}
}

// NextDeadline returns the earliest time at which a task is due later. ok is false if there is none.
func (q *Queue) NextDeadline() (at time.Time, ok bool) {
	for _, t := range q.timers {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}
