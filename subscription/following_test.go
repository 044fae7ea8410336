// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"context"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestASubscriptionFollowsWhatReplacedItsVersion: two plans of one namespace bring two versions of a dependency. Its
// Subscription was made by the plan with the older one.
func TestASubscriptionFollowsWhatReplacedItsVersion(t *testing.T) {
	replaces := func(name string) func(*v1alpha1.ClusterServiceVersion) {
		return func(c *v1alpha1.ClusterServiceVersion) { c.Spec.Replaces = name }
	}
	brings := func(csv string, generation int) func(*v1alpha1.InstallPlan) {
		return func(p *v1alpha1.InstallPlan) {
			p.Spec.ClusterServiceVersionNames, p.Spec.Generation, p.OwnerReferences = []string{csv}, generation, nil
		}
	}
	generated := func(s *v1alpha1.Subscription) {
		s.Annotations, s.Spec.StartingCSV = map[string]string{"olm.generated-by": "p"}, "etcd.v1"
	}
	stale := newSub("a", follows("p", "etcd.v1"), installed)
	older, newer := newPlan("p", "Complete", done(8)), newPlan("q", "Complete", brings("etcd.v2", 2))
	v2 := newCSV("etcd.v2", replaces("etcd.v1"))

	const wedged, moved = "etcd.v1 etcd.v1 UpgradePending p", "etcd.v2 etcd.v2 AtLatestKnown q"
	for name, tc := range map[string]struct {
		objects []olmcore.Object
		want    string // currentCSV, installedCSV, state, plan
	}{
		"with the plan that brought it":             {objects: []olmcore.Object{stale, older, newer, v2}, want: moved},
		"its own plan may be gone":                  {objects: []olmcore.Object{stale, newer, v2}, want: moved},
		"the other plan may be gone":                {objects: []olmcore.Object{stale, older, v2}, want: "etcd.v2 etcd.v2 AtLatestKnown p"},
		"its own version was not seen when it came": {objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), older, newer, v2}, want: moved},
		"it refers to no plan yet":                  {objects: []olmcore.Object{newSub("a", generated), older, newer, v2}, want: "etcd.v2 etcd.v2 AtLatestKnown p"},
		"not any version when it names none": {
			objects: []olmcore.Object{
				newSub("a", generated, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = "" }),
				newSub("b", generated, func(s *v1alpha1.Subscription) { s.Spec.StartingCSV = "other.v1" }), older, newCSV("other.v1"),
			},
			want: "   ",
		},
		"not while its plan is under way": {
			objects: []olmcore.Object{newSub("a", follows("p", "etcd.v1")), newPlan("p", "Installing"), newer, v2},
			want:    "etcd.v1  UpgradePending p",
		},
		"not while its version is there": {
			objects: []olmcore.Object{stale, older, newer, v2, newCSV("etcd.v1")},
			want:    "etcd.v1 etcd.v1 AtLatestKnown p",
		},
		"not what replaces another version": {objects: []olmcore.Object{stale, older, newCSV("etcd.v2", replaces("etcd.v0"))}, want: wedged},
		"not what another Subscription follows": {
			objects: []olmcore.Object{stale, newSub("b", follows("q", "etcd.v2"), installed), older, newer, v2}, want: wedged,
		},
		"not a copy": {objects: []olmcore.Object{stale, older, newCSV("etcd.v2", replaces("etcd.v1"), func(c *v1alpha1.ClusterServiceVersion) {
			c.Labels["olm.copiedFrom"] = "elsewhere"
		})}, want: wedged},
		"not what goes, too": {objects: []olmcore.Object{stale, older, newCSV("etcd.v2", replaces("etcd.v1"), func(c *v1alpha1.ClusterServiceVersion) {
			c.DeletionTimestamp, c.Finalizers = secondp(50), []string{"x"}
		})}, want: wedged},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot(tc.objects, olmcore.Everything)
			require.NoError(t, err)
			in, err := subscription.Gather(context.Background(), snapshot, ns, subscription.Config{})
			require.NoError(t, err)
			in.Now, in.OperatorGroups.Items, in.Live = now, inputOf().OperatorGroups.Items, true
			out := reconcile(t, in)
			got := statusOf(t, in, out, "a")
			plan := ""
			if got.InstallPlanRef != nil {
				plan = got.InstallPlanRef.Name
			}
			require.Equal(t, tc.want, got.CurrentCSV+" "+got.InstalledCSV+" "+string(got.State)+" "+plan)
			carryOut(&in, out)
			require.Empty(t, reconcile(t, in).Actions, "at rest after one write")
		})
	}
}
