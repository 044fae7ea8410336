// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/examples/kubectl-olm/report"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
	"github.com/olmcore/olm/subscription/resolution"
)

// healthIn is where the Subscriptions of a namespace stand, by name. What cannot be told of a namespace is said of each
// of its Subscriptions by whoever asks: the error is then ErrNotRead or ErrInvalidInput of olmcore.
func (r *root) healthIn(ctx context.Context, w *world.World, namespace string) (map[string]health.Health, error) {
	in, err := health.Gather(ctx, w, namespace, subscription.Config{SkipComponents: true})
	if err != nil {
		return nil, err
	}
	if in.Catalogs, err = r.catalogs.Known(ctx, w, namespace, r.catalogs.GlobalNamespace); err != nil {
		return nil, err
	}
	if len(r.catalogs.Content) > 0 {
		content, err := r.catalogs.Input(ctx, w, namespace)
		if err != nil {
			return nil, err
		}
		in.HeldBack = resolution.Resolve(content).HeldBack
	}
	in.Now, in.Live = w.Now, true
	return health.Assess(in)
}

// reports are where Subscriptions stand, in their order.
func (r *root) reports(ctx context.Context, w *world.World, subs []*v1alpha1.Subscription) ([]report.Subscription, error) {
	type answer struct {
		of  map[string]health.Health
		err error
	}
	answers := map[string]answer{}
	all := make([]report.Subscription, len(subs))
	for i, s := range subs {
		in, asked := answers[s.Namespace]
		if !asked {
			in.of, in.err = r.healthIn(ctx, w, s.Namespace)
			answers[s.Namespace] = in
		}
		all[i] = subscriptionOf(ctx, w, s)
		switch h, told := in.of[s.Name]; {
		case told:
			all[i].Report = report.New(h)
		case errors.Is(in.err, olmcore.ErrNotRead):
			all[i].Report = report.Report{Phase: report.Unknown, Reason: report.NotRead, Message: in.err.Error(), Advice: r.readAdvice()}
		case errors.Is(in.err, olmcore.ErrInvalidInput):
			all[i].Report = report.Report{Phase: report.Unknown, Reason: report.InvalidInput, Message: in.err.Error(), Advice: "Repair the object that the message names."}
		case in.err != nil:
			return nil, in.err
		default:
			return nil, fmt.Errorf("nothing is known of Subscription %s/%s", s.Namespace, s.Name)
		}
	}
	return all, nil
}

// readAdvice is what to do about kinds that were not read.
func (r *root) readAdvice() string {
	if len(r.files) > 0 {
		return "Add these objects to the input, or say --complete if there are none."
	}
	return "Ask for the right to list them."
}

// subscriptionOf is what is known of a Subscription without its health.
func subscriptionOf(ctx context.Context, w *world.World, s *v1alpha1.Subscription) report.Subscription {
	about := report.Subscription{Namespace: s.Namespace, Name: s.Name, InstalledCSV: s.Status.InstalledCSV, CurrentCSV: s.Status.CurrentCSV}
	if s.Spec != nil {
		about.Package, about.Channel = s.Spec.Package, s.Spec.Channel
	}
	if c, err := olmcore.Get[*v1alpha1.ClusterServiceVersion](ctx, w, s.Namespace, s.Status.InstalledCSV); err == nil && c != nil && s.Status.InstalledCSV != "" {
		if v := c.Spec.Version.String(); v != "0.0.0" {
			about.Version = v
		}
	}
	return about
}
