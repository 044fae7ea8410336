// SPDX-License-Identifier: Apache-2.0

// Package simulation lets an observed cluster go on as the library would have it, in memory, with nothing around it
// that fails: what is written exists at once, images can be pulled, Deployments become available. No Pod is simulated
// but by what its Deployment says.
package simulation

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
	"github.com/olmcore/olm/olmcore/decode"
)

// Controllers are those that run: what brings an operator about, and nothing of catalogs, copies and sweeps.
var Controllers = []string{
	controllers.Subscription, controllers.InstallPlan, controllers.Group, controllers.CSV, controllers.Condition, controllers.Permissions,
}

// leftOut are kinds whose objects the simulation has of its own, or has no use for.
var leftOut = []schema.GroupKind{{Kind: "Node"}, {Kind: "Pod"}, {Kind: "Event"}, {Group: "batch", Kind: "Job"},
	{Group: "apps", Kind: "ReplicaSet"}}

// AnyKubernetes satisfies every minKubeVersion, for callers that do not know the version of the API server.
const AnyKubernetes = "v1.999.0"

// Simulation is one cluster in memory. It must not be copied.
type Simulation struct {
	cluster *fake.Cluster
	driver  *fake.Driver
	// Changes are the changes of schemas that were asked about, each once.
	Changes []installplan.SchemaChange
	// Packed are the bundles whose content is in images alone, by name, with the image: the plan that brings them does not
	// come.
	Packed map[string]string
}

// New returns a simulation of objects, which are not written to, at an instant, or at the newest that OLM's objects
// tell where the caller's clock is behind. verdicts answer what is asked about custom resources; where they are not
// complete, it stays unanswered. What else is unanswered in options stays so.
func New(now time.Time, objects []olmcore.Object, options controllers.Options,
	verdicts olmcore.Observed[installplan.ResourceVerdict]) (*Simulation, error) {
	s := &Simulation{cluster: fake.NewCluster(newest(now, objects)), Packed: map[string]string{}}
	s.cluster.TakesEveryPod = true
	kept := slices.DeleteFunc(slices.Clone(objects), func(o olmcore.Object) bool {
		return slices.Contains(leftOut, olmcore.GVKOf(o).GroupKind())
	})
	if err := errors.Join(s.cluster.Node("simulated").Create(nil), s.cluster.Load(kept...)); err != nil {
		return nil, err
	}
	system := &corev1.Namespace{}
	system.Name = metav1.NamespaceSystem // which every cluster has, whatever was read of it
	err := s.cluster.Create(system)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	options.Sweeps, options.Operators, options.Live = false, false, true
	options.Watch, options.Connection, options.Issuer = nil, nil, nil // which reach out
	options.Asked = func(_ string, _ types.NamespacedName, request any) {
		if lookup, is := request.(v1alpha1.BundleLookup); is {
			s.Packed[lookup.Identifier] = lookup.Path
		}
	}
	if options.KubernetesVersion == "" {
		options.KubernetesVersion = AnyKubernetes
	}
	options.Judge = func(_ context.Context, _ olmcore.Reader, changes []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
		for _, c := range changes {
			if !slices.ContainsFunc(s.Changes, func(have installplan.SchemaChange) bool { return have.Before.Name == c.Before.Name }) {
				s.Changes = append(s.Changes, c)
			}
		}
		return verdicts.Items, nil
	}
	o := &olm.OLM{Options: options, Disconnected: true}
	run := slices.DeleteFunc(o.Controllers(), func(c controller.Controller) bool { return !slices.Contains(Controllers, c.Name) })
	s.driver = &fake.Driver{Cluster: s.cluster, Controllers: run}
	return s, nil
}

// maxAhead is how far the clocks of a cluster may be ahead of the caller's. A time beyond that is none: anybody may
// write one.
const maxAhead = 24 * time.Hour

// newest is the latest of now and of the times at which OLM wrote: else what it waits for would seem not to come.
func newest(now time.Time, objects []olmcore.Object) time.Time {
	latest := now
	for _, o := range objects {
		typed, err := decode.Typed(o)
		if err != nil {
			continue
		}
		for _, at := range writtenAt(typed) {
			if at != nil && at.After(latest) && at.Sub(now) <= maxAhead {
				latest = at.Time
			}
		}
	}
	return latest
}

func writtenAt(o olmcore.Object) (all []*metav1.Time) {
	switch o := o.(type) {
	case *v1alpha1.Subscription:
		if o != nil {
			all = append(all, &o.CreationTimestamp, &o.Status.LastUpdated)
		}
	case *v1alpha1.InstallPlan:
		if o != nil {
			all = append(all, &o.CreationTimestamp, o.Status.StartTime)
			for i := range o.Status.Conditions {
				all = append(all, o.Status.Conditions[i].LastUpdateTime, o.Status.Conditions[i].LastTransitionTime)
			}
		}
	case *v1alpha1.ClusterServiceVersion:
		if o != nil {
			all = append(all, &o.CreationTimestamp, o.Status.LastUpdateTime, o.Status.LastTransitionTime)
		}
	}
	return all
}

// Run lets it go on until nothing is left to do, or limit has passed.
func (s *Simulation) Run(ctx context.Context, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.driver.AfterAction = func(controller.Event) error { return ctx.Err() }
	err := s.driver.RunUntilIdle(ctx, limit)
	s.driver.Events = nil
	return err
}

// Do performs actions in order, as a person would.
func (s *Simulation) Do(ctx context.Context, actions ...olmcore.Action) error {
	return olmcore.Run(ctx, s.cluster, actions)
}

// Edit changes one object as a person would.
func (s *Simulation) Edit(key olmcore.Key, change func(olmcore.Object)) error {
	return s.cluster.Edit(key, change)
}

// State is the objects of a cluster at one moment. They must not be written to.
type State map[olmcore.Key]olmcore.Object

// StateOf returns the state that objects are: those of kinds that the library knows by their Go types, if they fit
// them. None is left for nil.
func StateOf(objects []olmcore.Object) State {
	all := make(State, len(objects))
	for _, o := range objects {
		if o == nil || reflect.ValueOf(o).IsNil() || slices.Contains(leftOut, olmcore.GVKOf(o).GroupKind()) {
			continue
		}
		if typed, err := decode.Typed(o); err == nil {
			o = typed
		}
		all[olmcore.KeyOf(o)] = o
	}
	return all
}

// IsTerminating reports whether a namespace is being deleted.
func (s State) IsTerminating(namespace string) bool {
	n, is := s[olmcore.Key{Kind: "Namespace", Name: namespace}].(*corev1.Namespace)
	return is && n.DeletionTimestamp != nil
}

// Objects returns them in no order.
func (s State) Objects() []olmcore.Object { return slices.Collect(maps.Values(s)) }

// State returns all there is now.
func (s *Simulation) State() State { return StateOf(s.cluster.Objects()) }

// Now is its clock.
func (s *Simulation) Now() time.Time { return s.cluster.Now() }
