// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
)

// task is something a simulated controller may have to do about one object.
type task struct {
	controller component
	key        olmcore.Key
}

// component is one of the simulated controllers.
type component uint8

const (
	garbageCollector component = iota
	namespaceController
	nodeController
	podController // scheduler, kubelet, taint eviction and Pod garbage collection
	deploymentController
	crdController
	apiServiceController
)

var controllerNames = [...]string{"garbage collector", "namespace controller", "node controller", "pod controllers",
	"deployment controller", "CRD controller", "APIService controller"}

func (t task) String() string { return controllerNames[t.controller] + " on " + t.key.String() }

// Step lets the simulated controllers and kubelets do one thing, and reports whether anything changed. What is done
// next depends on the order of the writes so far and on nothing else.
func (c *Cluster) Step() bool {
	_, changed := c.step()
	return changed
}

func (c *Cluster) step() (task, bool) {
	for c.head < len(c.queue) {
		t := c.queue[c.head]
		c.head++
		delete(c.queued, t)
		delete(c.timers, t)
		before := c.version
		c.run(t)
		if c.version != before {
			return t, true
		}
	}
	c.queue, c.head = c.queue[:0], 0
	return task{}, false
}

// Settle steps until nothing changes any more at this instant. The error names
// what still changes after a number of steps that no world of this size needs.
func (c *Cluster) Settle() error {
	limit := 1000 + 100*len(c.uids)
	for range limit {
		if !c.Step() {
			return nil
		}
	}
	if last, changed := c.step(); changed {
		return fmt.Errorf("the cluster does not settle within %d steps: %s still has work", limit, last)
	}
	return nil
}

// Advance moves the clock forward. Nothing else happens: what is due by then is done by the next Step or Settle, at the
// new time. Negative durations count as zero.
func (c *Cluster) Advance(d time.Duration) { c.advanceTo(c.now.Add(max(0, d))) }

func (c *Cluster) advanceTo(t time.Time) {
	if t.After(c.now) {
		c.now = t
	}
	var due []task
	for task, at := range c.timers {
		if !at.After(c.now) {
			due = append(due, task)
		}
	}
	sortTasks(due, c.timers)
	for _, t := range due {
		delete(c.timers, t)
		c.enqueue(t.controller, t.key)
	}
}

// NextDeadline returns the time at which a simulated controller or kubelet has
// something to do; ok is false when none waits for a time.
func (c *Cluster) NextDeadline() (at time.Time, ok bool) {
	for _, t := range c.timers {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// RunFor settles, and lets time pass until d is over, stopping at each deadline
// of the simulation on the way. Controllers of the caller do not run.
func (c *Cluster) RunFor(d time.Duration) error {
	end := c.now.Add(max(0, d))
	for {
		if err := c.Settle(); err != nil {
			return err
		}
		at, ok := c.NextDeadline()
		if !ok || at.After(end) {
			break
		}
		c.advanceTo(at)
	}
	c.advanceTo(end)
	return c.Settle()
}

func (c *Cluster) enqueue(who component, key olmcore.Key) {
	t := task{who, key}
	if !c.queued[t] {
		c.queued[t] = true
		c.queue = append(c.queue, t)
	}
}

// wake runs a task again at a time; the earliest wish counts, and every run of the task drops it.
func (c *Cluster) wake(t task, at time.Time) {
	if was, ok := c.timers[t]; !ok || at.Before(was) {
		c.timers[t] = at
	}
}

func (c *Cluster) run(t task) {
	switch t.controller {
	case garbageCollector:
		c.collect(t.key)
	case namespaceController:
		c.runNamespace(t.key)
	case nodeController:
		c.runNode(t)
	case podController:
		c.runPod(t)
	case deploymentController:
		c.runDeployment(t)
	case crdController:
		c.runCRD(t.key)
	case apiServiceController:
		c.runAPIService(t.key)
	}
}

// notify queues what a change may cause.
func (c *Cluster) notify(t *table, current, next olmcore.Object) {
	o := next
	if o == nil {
		o = current
	}
	key := olmcore.Key{Group: t.kind.gvk.Group, Kind: t.kind.gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	c.notifyCollector(key, current, next)
	c.notifyNamespace(key, next)
	switch t.kind.role {
	case roleNamespace:
		c.enqueue(namespaceController, key)
	case roleNode:
		c.notifyNode(key, next)
	case rolePod:
		c.enqueue(podController, key)
	case roleDeployment:
		c.enqueue(deploymentController, key)
		c.enqueueAll(apiServiceController, apiServiceKind, "")
	case roleCRD:
		c.serveCRD(current, next)
		c.enqueue(crdController, key)
	case roleServiceAccount:
		c.enqueueAll(deploymentController, deploymentKind, key.Namespace)
	case roleService:
		c.enqueueAll(apiServiceController, apiServiceKind, "")
	case roleAPIService:
		c.enqueue(apiServiceController, key)
	case roleNone:
		if t.kind.custom && next == nil {
			c.notifyCRDOf(t.kind)
		}
	}
}

// notifyNamespace wakes the namespace controller about the contents of a namespace that is being deleted.
func (c *Cluster) notifyNamespace(key olmcore.Key, next olmcore.Object) {
	if key.Namespace == "" {
		return
	}
	namespace := lookup[*corev1.Namespace](c, namespaceKind, "", key.Namespace)
	if namespace != nil && namespace.DeletionTimestamp != nil {
		c.enqueue(namespaceController, olmcore.Key{Kind: "Namespace", Name: key.Namespace})
	}
}

func (c *Cluster) enqueueAll(who component, kind schema.GroupKind, namespace string) {
	for _, o := range c.tables[kind].list(namespace) {
		c.enqueue(who, olmcore.KeyOf(o))
	}
}

func sortTasks(tasks []task, at map[task]time.Time) {
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a.controller, b.controller), a.key.Compare(b.key))
	})
}
