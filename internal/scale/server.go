// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// server is an API server: a store, watches that deliver texts, and the counts of what it is asked for.
type server struct {
	*fake.Cluster
	view     *fake.View
	managers []*manager
	// created, when set, hears each object that comes, to play the Jobs.
	created func(o olmcore.Object)
	writes  map[string]int // by verb and kind
	failure error          // of watches
	// deployments are the specs of Deployments as they were written last, by namespace/name.
	deployments map[string]*appsv1.DeploymentSpec
}

func newServer(c *fake.Cluster) *server {
	s := &server{Cluster: c, view: c.View("watches"), writes: map[string]int{}, deployments: map[string]*appsv1.DeploymentSpec{}}
	s.view.Watch = s.deliver
	return s
}

// Do implements olmcore.Executor as an adapter does, which sends patches: a cache may hold less of an object than there
// is.
func (s *server) Do(ctx context.Context, a olmcore.Action) error {
	verb, target, _ := a.Describe()
	s.writes[string(verb)+" "+target.Kind]++
	switch a := a.(type) {
	case olmcore.Create:
		s.noteDeployment(a.Object)
	case olmcore.Update:
		s.noteDeployment(a.After)
	}
	switch a.(type) {
	case olmcore.Update, olmcore.UpdateStatus:
		current, err := s.Get(ctx, target.GVK(), target.Namespace, target.Name)
		if err != nil {
			return err
		}
		record, err := olmcore.RecordOf(a)
		if err != nil {
			return err
		}
		if target.ResourceVersion == "" || target.ResourceVersion == current.GetResourceVersion() {
			if a, err = decode.Action(record, current); err != nil {
				return err
			}
		}
	}
	err := s.Cluster.Do(ctx, a)
	s.view.Sync()
	return err
}

// registryPod returns the Pod that serves the catalog.
func registryPod(o olmcore.Object) *corev1.Pod {
	if pod, is := o.(*corev1.Pod); is && pod.Labels["olm.catalogSource"] == catalog.Name {
		return pod
	}
	return nil
}

func (s *server) noteDeployment(o olmcore.Object) {
	if d, is := o.(*appsv1.Deployment); is {
		s.deployments[nameOf(d)] = d.Spec.DeepCopy()
	}
}

// deliver hands a change to the watches of all managers.
func (s *server) deliver(old, next olmcore.Object) {
	if old == nil && s.created != nil {
		s.created(next)
	}
	for _, m := range s.managers {
		if err := s.deliverTo(m, old, next); err != nil {
			s.failure = err
			return
		}
	}
}

func (s *server) deliverTo(m *manager, old, next olmcore.Object) error {
	o := next
	if next == nil {
		o = old
	}
	switch {
	case !m.cache.watched.Holds(olmcore.GVKOf(o), o.GetNamespace()):
	case next == nil:
		m.changed(m.cache.remove(old), nil)
	case m.cache.shared:
		m.changed(m.cache.put(next), next)
	default:
		began := now()
		data, err := encoded(next)
		m.encoding = m.encoding.plus(now().minus(began))
		if err != nil {
			return err
		}
		kept, err := m.cache.received(data)
		if err != nil {
			return err
		}
		m.changed(m.cache.put(kept), kept)
	}
	return nil
}

// encoded is the text of an object, with its kind.
func encoded(o olmcore.Object) (sent, error) {
	values, err := olmcore.ToMap(o)
	if err != nil {
		return sent{}, err
	}
	data, err := json.Marshal(values)
	return sent{olmcore.GVKOf(o), data}, err
}
