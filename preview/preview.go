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

// Version is a ClusterServiceVersion that is installed.
type Version struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	// Replaces is the name of the ClusterServiceVersion that it replaces. It is empty if there is none.
	Replaces string `json:"replaces,omitempty"`
}

// Deprecation is a deprecation message of a catalog about an installed package, channel or bundle.
type Deprecation struct {
	Subscription string `json:"subscription"`
	// Of is PackageDeprecated, ChannelDeprecated or BundleDeprecated.
	Of      string `json:"of"`
	Message string `json:"message"`
}

// Block is a reason why a plan does not succeed.
type Block struct {
	Object  olmcore.Ref `json:"object"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
}

// The maximum durations of the simulations, on their own clocks, before and after the plan is approved. They exceed the
// timeouts of the library, for example until a plan fails or a version is replaced.
const (
	maxBeforeApproval = 10 * time.Minute
	maxAfterApproval  = 30 * time.Minute
)

// Simulate returns the changes that the approval of a plan would cause. For an approved plan, it returns the remaining
// changes, and for a complete plan none. The error is an *olmcore.InputError, an error of ctx, or an error for which
// apierrors.IsNotFound holds if the objects do not contain the plan.
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
	if observed.IsTerminating(in.Plan.Namespace) { // nothing can be created in the namespace, and all of its objects are deleted
		p := between(nil, nil)
		p.Plan, p.NotRead = olmcore.RefOf(plan), append(p.NotRead, in.NotRead...)
		p.Blocked = append(p.Blocked, Block{
			Object: olmcore.Ref{APIVersion: "v1", Kind: "Namespace", Name: in.Plan.Namespace},
			Reason: string(corev1.NamespaceTerminating), Message: "the namespace is being deleted",
		})
		return p, nil
	}
	if !plan.Spec.Approved { // otherwise, the plan has started, and every change belongs to it
		if err := s.Run(ctx, maxBeforeApproval); err != nil {
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

// approve approves a plan in a simulation, runs the simulation, and returns the changes.
func (in *Input) approve(ctx context.Context, s *simulation.Simulation, plan types.NamespacedName) (Preview, error) {
	was, key := s.State(), planKey(plan)
	err := s.Edit(key, func(o olmcore.Object) { o.(*v1alpha1.InstallPlan).Spec.Approved = true })
	if err == nil {
		err = s.Run(ctx, maxAfterApproval)
	}
	if err != nil {
		return Preview{}, err
	}
	p := between(was, s.State())
	p.Plan, p.NotRead = named(was[key]), append(p.NotRead, in.NotRead...)
	p.Blocked = append(p.Blocked, blocked(s.State(), key)...)
	p.judge(in.CustomResources, s.Changes)
	s.Changes = nil // the next hop starts without changes
	return p, nil
}
