// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"time"

	"github.com/olmcore/olm/fake/internal/store"
	"github.com/olmcore/olm/fake/internal/workqueue"
	"github.com/olmcore/olm/olmcore"
)

// Step lets the simulated controllers and kubelets do one thing, and reports whether anything changed. Only the order
// of the writes so far determines which thing is done.
func (c *Cluster) Step() bool {
	_, changed := c.step()
	return changed
}

func (c *Cluster) step() (workqueue.Task, bool) {
	for {
		t, due := c.queue.Next()
		if !due {
			return workqueue.Task{}, false
		}
		before := c.store.Version()
		c.run(t)
		if c.store.Version() != before {
			return t, true
		}
	}
}

// Settle steps until nothing changes any more at this instant. It returns an error that names the object which still
// changes after more steps than a cluster of this size needs.
func (c *Cluster) Settle() error {
	limit := 1000 + 100*c.store.Len()
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

// Advance moves the clock forward. Nothing else happens: the next Step or Settle does what is due by then, at the new
// time. A negative duration counts as zero.
func (c *Cluster) Advance(d time.Duration) { c.advanceTo(c.Now().Add(max(0, d))) }

func (c *Cluster) advanceTo(t time.Time) { c.queue.AdvanceTo(t) }

// NextDeadline returns the earliest time at which a simulated controller or kubelet has something to do. ok is false if
// none waits for a time.
func (c *Cluster) NextDeadline() (at time.Time, ok bool) { return c.queue.NextDeadline() }

// RunFor settles and moves the clock by d. It settles again at each deadline of the simulation on the way.
// Controllers of the caller do not run.
func (c *Cluster) RunFor(d time.Duration) error {
	end := c.Now().Add(max(0, d))
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

func (c *Cluster) run(t workqueue.Task) {
	switch t.Controller {
	case workqueue.GarbageCollector:
		c.collector.Run(t.Key)
	case workqueue.Namespaces:
		c.namespaces.Run(t.Key)
	case workqueue.Nodes:
		c.nodes.RunNode(t)
	case workqueue.Pods:
		c.nodes.RunPod(t)
	case workqueue.Deployments:
		c.deployments.Run(t)
	case workqueue.CRDs:
		c.crds.Run(t.Key)
	case workqueue.APIServices:
		c.servers.RunAPIService(t.Key)
	}
}

// notify queues the tasks that a change may cause.
func (c *Cluster) notify(t *store.Table, current, next olmcore.Object) {
	o := next
	if o == nil {
		o = current
	}
	key := olmcore.Key{Group: t.Kind.GVK.Group, Kind: t.Kind.GVK.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	c.collector.Observe(key, current, next)
	c.namespaces.Observe(key)
	switch t.Kind.GroupKind() {
	case store.NamespaceKind:
		c.queue.Add(workqueue.Namespaces, key)
	case store.NodeKind:
		c.nodes.Observe(key, next)
	case store.PodKind:
		c.queue.Add(workqueue.Pods, key)
	case store.DeploymentKind:
		c.queue.Add(workqueue.Deployments, key)
		c.queue.AddAll(workqueue.APIServices, c.store.Table(store.APIServiceKind).List(""))
	case store.CRDKind:
		c.crds.Observe(key, current, next)
	case store.ServiceAccountKind:
		c.queue.AddAll(workqueue.Deployments, c.store.Table(store.DeploymentKind).List(key.Namespace))
	case store.ServiceKind:
		c.queue.AddAll(workqueue.APIServices, c.store.Table(store.APIServiceKind).List(""))
	case store.APIServiceKind:
		c.queue.Add(workqueue.APIServices, key)
	default:
		if t.Kind.Custom && next == nil {
			c.crds.ObserveRemoved(t.Kind)
		}
	}
}
