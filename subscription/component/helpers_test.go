// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/internal/sample"
)

const (
	ns       = sample.Namespace
	labelKey = sample.LabelKey
)

var (
	epoch     = sample.Epoch
	now       = sample.Now
	second    = sample.Second
	secondp   = sample.Secondp
	newSub    = sample.Sub
	newPlan   = sample.Plan
	newCSV    = sample.CSV
	meta      = sample.Meta
	follows   = sample.Follows
	installed = sample.Installed
	pending   = sample.Pending
	started   = sample.Started
	done      = sample.Done
	inputOf   = sample.Input
	answered  = sample.Answered
	carryOut  = sample.CarryOut
	vault     = sample.Vault
)

func reconcile(t testing.TB, in subscription.Input) subscription.Outcome {
	t.Helper()
	out, err := subscription.Reconcile(in)
	require.NoError(t, err)
	return out
}

// reasons prints the reasons of the other diagnostics.
func reasons(r olmcore.Result) string {
	var all []string
	for _, d := range r.Diagnostics {
		if d.Reason != olmcore.ReasonHistoryGap {
			all = append(all, d.Reason)
		}
	}
	return strings.Join(all, " ")
}

// statusOf returns the status that an Outcome leaves a Subscription with.
func statusOf(t require.TestingT, in subscription.Input, out subscription.Outcome, name string) v1alpha1.SubscriptionStatus {
	for _, a := range out.Actions {
		if u, ok := a.(olmcore.UpdateStatus); ok && u.Target.Name == name {
			return u.After.(*v1alpha1.Subscription).Status
		}
	}
	for _, s := range in.Subscriptions.Items {
		if s.Name == name {
			return s.Status
		}
	}
	require.Fail(t, "no Subscription "+name)
	return v1alpha1.SubscriptionStatus{}
}

// words prints the actions of a result: verb, kind and name.
func words(r olmcore.Result) string {
	var all []string
	for _, a := range r.Actions {
		verb, ref, _ := a.Describe()
		all = append(all, string(verb)+" "+ref.Kind+" "+ref.Name)
	}
	return strings.Join(all, ", ")
}

// failing is a Reader whose n-th read fails.
type failing struct {
	olmcore.Reader
	left *int
}

var errRead = errors.New("connection refused")

func (f failing) fails() bool { *f.left--; return *f.left < 0 }

func (f failing) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (olmcore.Object, error) {
	if f.fails() {
		return nil, errRead
	}
	return f.Reader.Get(ctx, gvk, namespace, name)
}

func (f failing) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]olmcore.Object, error) {
	if f.fails() {
		return nil, errRead
	}
	return f.Reader.List(ctx, gvk, namespace, selector)
}
