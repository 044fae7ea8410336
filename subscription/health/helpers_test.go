// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
	"github.com/olmcore/olm/subscription/health"
	"github.com/olmcore/olm/subscription/internal/sample"
)

var (
	epoch         = sample.Epoch
	now           = sample.Now
	second        = sample.Second
	secondp       = sample.Secondp
	newSub        = sample.Sub
	newPlan       = sample.Plan
	newCSV        = sample.CSV
	newCatalog    = sample.Catalog
	meta          = sample.Meta
	follows       = sample.Follows
	installed     = sample.Installed
	pending       = sample.Pending
	withCondition = sample.WithCondition
	manual        = sample.Manual
	started       = sample.Started
	done          = sample.Done
	failed        = sample.Failed
	installedIs   = sample.InstalledIs
	inputOf       = sample.Input
	carryOut      = sample.CarryOut
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

// healthOf returns the health of the first Subscription.
func healthOf(t require.TestingT, in subscription.Input) health.Health {
	all, err := health.Of(in)
	require.NoError(t, err)
	return all[in.Subscriptions.Items[0].Name]
}

func lookup(t v1alpha1.BundleLookupConditionType, reason, message string) v1alpha1.BundleLookup {
	return v1alpha1.BundleLookup{Path: "quay.io/etcd:1", Identifier: "etcd.v1", Conditions: []v1alpha1.BundleLookupCondition{
		{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message},
	}}
}

func empty(p *v1alpha1.InstallPlan) { p.Status = v1alpha1.InstallPlanStatus{} }

func leaving(at int) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.DeletionTimestamp, s.Finalizers = secondp(at), []string{"mine", subscription.Finalizer}
	}
}
