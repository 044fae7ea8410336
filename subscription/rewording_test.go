// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription"
)

// TestNoDecisionDependsOnTheTextOfAMessage writes the statuses of one call, replaces every message in them and in the
// statuses of InstallPlans and ClusterServiceVersions, and checks that the next call decides the same.
func TestNoDecisionDependsOnTheTextOfAMessage(t *testing.T) {
	reworded := 0
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		if rapid.Bool().Draw(t, "wrong number of OperatorGroups") {
			in.OperatorGroups.Items = nil
		}
		in = afterWriting(t, in)
		in.OperatorGroups.Items = drawNamespace(t).OperatorGroups.Items
		in.Now = in.Now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * time.Second)
		if rapid.Bool().Draw(t, "without an answer") {
			in.Resolution = nil
		}
		other, changed := withOtherMessages(in)
		reworded += changed
		want, got := assess(t, in), assess(t, other)
		require.Equal(t, want.Blocked, got.Blocked)
		require.Len(t, got.Decisions, len(want.Decisions))
		for i := range want.Decisions {
			require.Empty(t, cmp.Diff(decisionOf(&want.Decisions[i]), decisionOf(&got.Decisions[i])))
		}
	})
	require.NotZero(t, reworded)
	t.Log(reworded, "messages")
}

// afterWriting returns an Input whose Subscriptions have the statuses that Reconcile writes.
func afterWriting(t *rapid.T, in subscription.Input) subscription.Input {
	assessed := assess(t, in)
	out, err := subscription.Reconcile(in)
	require.NoError(t, err)
	in.Subscriptions.Items = nil
	for i := range assessed.Decisions {
		v := &assessed.Decisions[i]
		s := v.Subscription.DeepCopy()
		v.Status.DeepCopyInto(&s.Status)
		in.Subscriptions.Items = append(in.Subscriptions.Items, s)
	}
	if in.Histories != nil {
		in.Histories = maps.Clone(in.Histories)
		maps.Copy(in.Histories, out.Histories)
	}
	return in
}

// withOtherMessages returns an Input in which every message of a status is another one, and the number of messages.
func withOtherMessages(in subscription.Input) (other subscription.Input, changed int) {
	replace := func(message *string) {
		if *message != "" {
			*message = "reworded"
			changed++
		}
	}
	other = in
	other.Subscriptions.Items, other.InstallPlans.Items, other.ClusterServiceVersions.Items = nil, nil, nil
	for _, s := range in.Subscriptions.Items {
		s = s.DeepCopy()
		for i := range s.Status.Conditions {
			replace(&s.Status.Conditions[i].Message)
		}
		other.Subscriptions.Items = append(other.Subscriptions.Items, s)
	}
	for _, p := range in.InstallPlans.Items {
		p = p.DeepCopy()
		replace(&p.Status.Message)
		for i := range p.Status.Conditions {
			replace(&p.Status.Conditions[i].Message)
		}
		other.InstallPlans.Items = append(other.InstallPlans.Items, p)
	}
	for _, c := range in.ClusterServiceVersions.Items {
		c = c.DeepCopy()
		replace(&c.Status.Message)
		for i := range c.Status.Conditions {
			replace(&c.Status.Conditions[i].Message)
		}
		for i := range c.Status.RequirementStatus {
			replace(&c.Status.RequirementStatus[i].Message)
		}
		other.ClusterServiceVersions.Items = append(other.ClusterServiceVersions.Items, c)
	}
	return other, changed
}

// decision is what a Decision decides, without texts and without the times of conditions whose text changed.
type decision struct {
	Status     v1alpha1.SubscriptionStatus
	Stage      subscription.Stage
	Shown      subscription.Stage
	Plan       types.UID
	CSV        string
	Kept       []v1alpha1.SubscriptionConditionType
	Waits      bool
	After      time.Duration
	Conditions map[v1alpha1.SubscriptionConditionType]string
}

func decisionOf(v *subscription.Decision) decision {
	d := decision{
		Status: *v.Status.DeepCopy(), Stage: v.Plan.Stage, Shown: v.Plan.Shown, Plan: v.Plan.UID, Kept: v.Kept, Waits: v.Waits,
		After: v.RequeueAfter, Conditions: map[v1alpha1.SubscriptionConditionType]string{},
	}
	if v.CSV != nil {
		d.CSV = v.CSV.Name
	}
	for _, c := range d.Status.Conditions {
		d.Conditions[c.Type] = string(c.Status) + " " + c.Reason
	}
	d.Status.Conditions = nil
	return d
}
