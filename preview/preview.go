// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/internal/simulation"
)

// Version is a ClusterServiceVersion that comes.
type Version struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	// Replaces is the one that goes for it, empty for none.
	Replaces string `json:"replaces,omitempty"`
}

// Deprecation is what a catalog says of what is installed.
type Deprecation struct {
	Subscription string `json:"subscription"`
	// Of is PackageDeprecated, ChannelDeprecated or BundleDeprecated.
	Of      string `json:"of"`
	Message string `json:"message"`
}

// Block is what keeps a plan from succeeding.
type Block struct {
	Object  olmcore.Ref `json:"object"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

// How long the simulations last at most, by their own clocks: longer than what the library waits for by itself, such as
// a plan that fails or a version that is replaced.
const (
	before = 10 * time.Minute
	after  = 30 * time.Minute
)

// Simulate returns what approving a plan would do. What a plan that is approved already does is told as well; one that
// is complete does nothing. The error is an *olmcore.InputError, one for which apierrors.IsNotFound holds when the
// plan is not among the objects, or that of ctx.
func Simulate(ctx context.Context, in Input) (Preview, error) {
	if err := in.validate(); err != nil {
		return Preview{}, err
	}
	if in.Plan.Name == "" {
		return Preview{}, &olmcore.InputError{Field: "Plan.Name", Problem: "is empty"}
	}
	in.Options.Resolve, in.Options.Fingerprint = nil, nil
	observed := simulation.StateOf(in.Objects)
	s, err := in.simulation()
	if err != nil {
		return Preview{}, err
	}
	plan, is := observed[planKey(in.Plan)].(*v1alpha1.InstallPlan)
	if !is {
		return Preview{}, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "installplans"}, in.Plan.Name)
	}
	if observed.IsTerminating(in.Plan.Namespace) { // nothing can be created in it, and all of it goes
		p := between(nil, nil)
		p.Plan, p.NotRead = olmcore.RefOf(plan), append(p.NotRead, in.NotRead...)
		p.Blocked = append(p.Blocked, Block{
			Object: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: in.Plan.Namespace},
			Reason: string(corev1.NamespaceTerminating), Message: "the namespace is being deleted",
		})
		return p, nil
	}
	if !plan.Spec.Approved { // else it is on its way already, and all that happens is its doing
		if err := s.Run(ctx, before); err != nil {
			return Preview{}, err
		}
	}
	p, err := in.approve(ctx, s, in.Plan)
	p.Plan = olmcore.RefOf(plan)
	return p, err
}

func planKey(plan types.NamespacedName) olmcore.Key {
	return olmcore.Key{Group: v1alpha1.GroupName, Kind: v1alpha1.InstallPlanKind, Namespace: plan.Namespace, Name: plan.Name}
}

func (in *Input) simulation() (*simulation.Simulation, error) {
	options := in.Options
	options.Namespaces = []string{in.Plan.Namespace}
	return simulation.New(in.Now, in.Objects, options, in.CustomResources)
}

// approve approves a plan of a simulation, lets it go on, and tells what came of it.
func (in *Input) approve(ctx context.Context, s *simulation.Simulation, plan types.NamespacedName) (Preview, error) {
	was, key := s.State(), planKey(plan)
	err := s.Edit(key, func(o olmcore.Object) { o.(*v1alpha1.InstallPlan).Spec.Approved = true })
	if err == nil {
		err = s.Run(ctx, after)
	}
	if err != nil {
		return Preview{}, err
	}
	p := between(was, s.State())
	p.Plan, p.NotRead = named(was[key]), append(p.NotRead, in.NotRead...)
	p.Blocked = append(p.Blocked, blocked(s.State(), key)...)
	p.judge(in.CustomResources, s.Changes)
	s.Changes = nil // those of the next hop are others
	return p, nil
}
