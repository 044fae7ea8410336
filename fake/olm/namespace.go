// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// subscription reconciles a namespace: the Subscriptions ask, Resolve answers,
// the answer becomes a plan, and the Subscriptions refer to it before it runs.
func (o *OLM) subscription(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.Outcomes) (olmcore.Result, error) {
	n := o.namespaces[key.Namespace]
	if n == nil {
		n = &namespace{histories: map[types.UID]subscription.History{}}
		o.namespaces[key.Namespace] = n
	}
	n.learn(last)
	planned, err := o.plan(ctx, r, key.Namespace, now, n)
	if err != nil {
		return olmcore.Result{}, err
	}
	in, err := subscription.Gather(ctx, r, key.Namespace, o.SubscriptionConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	if in.Catalogs, err = o.knownCatalogs(ctx, r, key.Namespace); err != nil {
		return olmcore.Result{}, err
	}
	in.Now, in.LastRun, in.Histories, in.Resolution = now, last, n.histories, n.answer
	if o.Observations != nil {
		in.Observations = o.Observations(key.Namespace)
	}
	out, err := subscription.Reconcile(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	if out.Resolve != nil && out.Resolve.Fingerprint != n.asked {
		o.ask(Subscription, key, out.Resolve)
		n.asked = out.Resolve.Fingerprint
	}
	if out.Resolve != nil && o.Resolve != nil {
		if n.answer, err = o.answer(ctx, r, *out.Resolve, n.answer, now); err != nil {
			return olmcore.Result{}, err
		}
		if planned, err = o.plan(ctx, r, key.Namespace, now, n); err != nil {
			return olmcore.Result{}, err
		}
		in.Resolution = n.answer
		if out, err = subscription.Reconcile(in); err != nil {
			return olmcore.Result{}, err
		}
	}
	maps.Copy(n.histories, out.Histories)
	result := out.Result
	result.Actions = append(result.Actions, planned.Actions...)
	result.Transitions = append(result.Transitions, planned.Transitions...)
	result.Diagnostics = append(result.Diagnostics, planned.Diagnostics...)
	result.Requeue(planned.RequeueAfter)
	return result, nil
}

func (o *OLM) knownCatalogs(ctx context.Context, r olmcore.Reader, namespace string) (*subscription.Catalogs, error) {
	if o.CatalogsOf != nil {
		return o.CatalogsOf(ctx, r, namespace)
	}
	return subscription.GatherCatalogs(ctx, r, namespace, cmp.Or(o.GlobalNamespace, DefaultGlobalNamespace))
}

// learn notes why the plan of the answer could not be written. An answer that
// was handed out is not written to.
func (n *namespace) learn(last olmcore.Outcomes) {
	if n.answer == nil || n.planKey == (olmcore.Key{}) {
		return
	}
	problem := ""
	if outcome, ran := last[n.planKey]; ran && outcome.Class != olmcore.ClassNone {
		problem = outcome.Message
	}
	if problem != n.answer.PlanError {
		next := *n.answer
		next.PlanError = problem
		n.answer = &next
	}
}

// answer asks the resolver and counts its failures.
func (o *OLM) answer(ctx context.Context, r olmcore.Reader, request subscription.ResolveRequest, before *subscription.Resolved, now time.Time) (*subscription.Resolved, error) {
	resolution, err := o.Resolve(ctx, r, request)
	if err != nil {
		return nil, err
	}
	answer := &subscription.Resolved{Resolution: resolution, At: now}
	if before != nil && (resolution.Failure != nil && before.Resolution.Failure != nil || before.PlanError != "") {
		answer.Attempts = before.Attempts + 1
	}
	return answer, nil
}

// plan returns what installplan.Create needs for the answer that is there, and
// keeps the plan's reference for the Subscriptions.
func (o *OLM) plan(ctx context.Context, r olmcore.Reader, name string, now time.Time, n *namespace) (olmcore.Result, error) {
	if n.answer == nil {
		return olmcore.Result{}, nil
	}
	in, err := installplan.GatherCreate(ctx, r, name, n.answer.Resolution, o.InstallPlanConfig)
	if err != nil {
		return olmcore.Result{}, err
	}
	in.Now = now
	out, err := installplan.Create(in)
	if err != nil {
		return olmcore.Result{}, err
	}
	n.planKey = olmcore.Key{}
	for _, a := range out.Actions {
		if create, ok := a.(olmcore.Create); ok {
			n.planKey = create.Target.Key()
		}
	}
	next := *n.answer
	if o.unpacks() {
		next.Unpacking = &subscription.Unpacking{}
	}
	for _, lookup := range out.Lookups {
		if lookup, err = o.unpack(ctx, r, name, lookup, now, &out.Result); err != nil {
			return olmcore.Result{}, err
		}
		if next.Unpacking != nil {
			next.Unpacking.Lookups = append(next.Unpacking.Lookups, lookup)
		}
	}
	if out.Plan.Name != "" {
		next.Plan = out.Plan
	}
	n.answer = &next
	return out.Result, nil
}

// unpacks reports whether there are the images that unpack others.
func (o *OLM) unpacks() bool {
	return o.InstallPlanConfig.OPMImage != "" && o.InstallPlanConfig.UtilImage != ""
}

// unpack adds what unpacks one bundle image, and returns how far that is; without
// the images that do it the lookup stays a question.
func (o *OLM) unpack(ctx context.Context, r olmcore.Reader, name string, lookup v1alpha1.BundleLookup, now time.Time, result *olmcore.Result) (v1alpha1.BundleLookup, error) {
	o.ask(InstallPlan, types.NamespacedName{Namespace: name}, lookup)
	if !o.unpacks() {
		return lookup, nil
	}
	in, err := installplan.GatherUnpack(ctx, r, name, lookup, o.InstallPlanConfig)
	if err != nil {
		return lookup, err
	}
	in.Now = now
	out, err := installplan.Unpack(in)
	if err != nil {
		return lookup, err
	}
	result.Actions = append(result.Actions, out.Actions...)
	result.Diagnostics = append(result.Diagnostics, out.Diagnostics...)
	result.Requeue(out.RequeueAfter)
	return out.Lookup, nil
}
