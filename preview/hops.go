// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"maps"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/internal/simulation"
)

// MaxHops is how many approvals Hops follows.
const MaxHops = 20

// Hops returns what each approval for a Subscription would do, one after another, from what was observed until the
// catalogs have nothing newer, something is in the way, or MaxHops are told. The first may be of a plan that waits
// already, or of one that the resolution has yet to become. Options.Resolve is asked after each hop, of the objects as
// they would be then; without it there is one hop at most. What comes in images alone, and would have to be unpacked,
// ends the way with a Block. That one has no Plan, nor has one where the Subscription cannot be resolved. Custom
// resources are those of today at every hop. The error is as that of Of.
func Hops(ctx context.Context, in Input, subscription string) ([]Preview, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	key := olmcore.Key{Group: v1alpha1.GroupName, Kind: v1alpha1.SubscriptionKind, Namespace: in.Plan.Namespace, Name: subscription}
	s, err := in.simulation()
	if err != nil {
		return nil, err
	}
	if s.State()[key] == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "subscriptions"}, subscription)
	}
	// What is approved by itself must stop at each hop, too.
	err = s.Edit(key, func(o olmcore.Object) {
		if sub := o.(*v1alpha1.Subscription); sub.Spec != nil {
			sub.Spec.InstallPlanApproval = v1alpha1.ApprovalManual
		}
	})
	if err != nil {
		return nil, err
	}
	hops := []Preview{}
	for range MaxHops {
		if err := s.Run(ctx, maxBeforeApproval); err != nil {
			return hops, err
		}
		plan, waits := waiting(s, key)
		if !waits {
			if all := withoutPlan(s, key); len(all) > 0 {
				p := Between(nil, nil)
				p.NotRead, p.Blocked = append(p.NotRead, in.NotRead...), append(p.Blocked, all...)
				hops = append(hops, p)
			}
			break
		}
		clear(s.Packed) // what comes after it is asked anew
		p, err := in.approve(ctx, s, plan)
		if err != nil {
			return hops, err
		}
		hops = append(hops, p)
		if len(p.Blocked) > 0 {
			break
		}
	}
	return hops, nil
}

// waiting returns the plan of a Subscription that waits for approval, or for what was not unpacked.
func waiting(s *simulation.Simulation, subscription olmcore.Key) (types.NamespacedName, bool) {
	state := s.State()
	sub, is := state[subscription].(*v1alpha1.Subscription)
	if !is || sub.Status.InstallPlanRef == nil {
		return types.NamespacedName{}, false
	}
	key := types.NamespacedName{Namespace: sub.Namespace, Name: sub.Status.InstallPlanRef.Name}
	plan, is := state[planKey(key)].(*v1alpha1.InstallPlan)
	return key, is && plan.Status.Phase != v1alpha1.InstallPlanPhaseComplete && !plan.Spec.Approved
}

// reasonPacked: a bundle's content is in its image alone.
const reasonPacked = "BundleNotUnpacked"

// withoutPlan returns why a Subscription gets no plan, although there may be something newer.
func withoutPlan(s *simulation.Simulation, subscription olmcore.Key) (all []Block) {
	sub, is := s.State()[subscription].(*v1alpha1.Subscription)
	if !is {
		return nil
	}
	for _, failed := range []v1alpha1.SubscriptionConditionType{
		v1alpha1.SubscriptionResolutionFailed, v1alpha1.SubscriptionBundleUnpackFailed,
	} {
		if c := sub.Status.GetCondition(failed); c.Status == corev1.ConditionTrue {
			return []Block{{Object: named(sub), Reason: c.Reason, Message: c.Message}}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Packed)) {
		all = append(all, Block{Object: named(sub), Reason: reasonPacked,
			Message: "the bundle of " + name + " is unpacked from image " + s.Packed[name] + " first, which a preview does not do"})
	}
	return all
}
