// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

func content(csv string) func(*v1alpha1.InstallPlan) {
	return func(p *v1alpha1.InstallPlan) { p.Spec.ClusterServiceVersionNames = []string{csv} }
}

func TestDeletedSubscriptionDeletesItsUnfinishedPlan(t *testing.T) {
	going := newPlan("p", "RequiresApproval", func(p *v1alpha1.InstallPlan) { p.DeletionTimestamp = secondp(50) })
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		want    string
		requeue time.Duration
		reason  string
	}{
		"none is deleted": {
			[]olmcore.Object{newSub("a", follows("p", "etcd.v1")), newPlan("p", "RequiresApproval")}, "", 0, "",
		},
		"without the finalizer":               {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.DeletionTimestamp = secondp(50) }), newPlan("p", "RequiresApproval")}, "", 0, ""},
		"without a plan":                      {[]olmcore.Object{newSub("a", leaving(50))}, "update Subscription a", 0, ""},
		"an unfinished plan is deleted first": {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(50)), newPlan("p", "RequiresApproval")}, "delete InstallPlan p", 5 * time.Second, ""},
		"the plan is being deleted": {
			[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(50)), going}, "", 5 * time.Second, "",
		},
		"the plan cannot be deleted within the grace period": {
			[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(-600)), going}, "update Subscription a", 0, "DeletionGivenUp",
		},
		"a finished plan stays": {
			[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(50)), newPlan("p", "Complete")}, "update Subscription a", 0, "",
		},
		"another one refers to the plan":    {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(50)), vault("b", follows("p", "vault.v1")), newPlan("p", "Installing")}, "update Subscription a", 0, ""},
		"another one waits for its version": {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(50)), vault("b", follows("q", "etcd.v1")), newPlan("p", "Installing")}, "update Subscription a", 0, ""},
		"both Subscriptions are being deleted": {[]olmcore.Object{newSub("a", follows("p", "etcd.v1"), leaving(50)), vault("b", follows("p", "vault.v1"), leaving(50)), newPlan("p", "Installing")},
			"delete InstallPlan p", 5 * time.Second, ""},
		"both are being deleted, each with its own plan": {[]olmcore.Object{newSub("a", follows("q", "etcd.v1"), leaving(50)), vault("b", follows("p", "vault.v1"), leaving(50)), newPlan("p", "Installing", content("vault.v1")), newPlan("q", "Installing")},
			"delete InstallPlan p, delete InstallPlan q", 5 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(tc.objects...)
			out, err := subscription.PlanDeletion(in)
			require.NoError(t, err)
			require.Equal(t, tc.want, words(out))
			require.Equal(t, tc.requeue, out.RequeueAfter)
			require.Equal(t, tc.reason, reasons(out))
			for _, a := range out.Actions {
				switch a := a.(type) {
				case olmcore.Update:
					require.Equal(t, []string{"mine"}, a.After.GetFinalizers())
				case olmcore.Delete:
					require.NotEmpty(t, a.Target.UID)
					require.NotEmpty(t, a.Target.ResourceVersion)
				}
			}
			require.NoError(t, invariant.Laws(subscription.PlanDeletion, in))
		})
	}
}

func TestPlanDeletionFollowsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawNamespace(t)
		for _, s := range in.Subscriptions.Items {
			if rapid.Bool().Draw(t, "leaves") {
				leaving(rapid.SampledFrom([]int{-300, -239, 0, 50}).Draw(t, "since"))(s)
			}
		}
		require.NoError(t, invariant.Laws(subscription.PlanDeletion, in))
	})
}

// TestDeletedSubscriptionAndPlanLeaveTheCluster deletes a Subscription in a cluster. It checks that an InstallPlan
// that waits for approval is deleted with it.
func TestDeletedSubscriptionAndPlanLeaveTheCluster(t *testing.T) {
	c := fake.NewCluster(epoch)
	c.AutoCreateNamespaces = true
	a := newSub("a", follows("p", "etcd.v1"), func(s *v1alpha1.Subscription) { s.Finalizers = []string{subscription.Finalizer} })
	require.NoError(t, c.Load(a, vault("b"), newPlan("p", "RequiresApproval", manual(1)), newPlan("q", "Complete")))
	require.NoError(t, c.Do(t.Context(), olmcore.DeleteOf(fake.Find[*v1alpha1.Subscription](c, ns, "a"), olmcore.Cause{Reason: "Test"})))
	for range 3 {
		in, err := subscription.Gather(t.Context(), c, ns, subscription.Config{})
		require.NoError(t, err)
		in.Now = c.Now()
		out, err := subscription.PlanDeletion(in)
		require.NoError(t, err)
		require.NoError(t, olmcore.Run(t.Context(), c, out.Actions))
	}
	require.Nil(t, fake.Find[*v1alpha1.Subscription](c, ns, "a"))
	require.Nil(t, fake.Find[*v1alpha1.InstallPlan](c, ns, "p"))
	require.NotNil(t, fake.Find[*v1alpha1.Subscription](c, ns, "b"))
	require.NotNil(t, fake.Find[*v1alpha1.InstallPlan](c, ns, "q"), "what is finished stays")
}
