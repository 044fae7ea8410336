// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// TestAMiddleVersionWithoutSuccessorGoesBack: its predecessor waits for it, so it
// must not wait for its predecessor.
func TestAMiddleVersionWithoutSuccessorGoesBack(t *testing.T) {
	in := input(replacing, "BeingReplaced", "being replaced by csv: cool.v2")
	in.ClusterServiceVersion.Spec.Replaces = "cool.v0"
	p := operator("cool.v0", 0)
	hold(p, replacing, "BeingReplaced", "being replaced by csv: cool.v1", 0)
	in.Neighbours.Items = append(in.Neighbours.Items, p)
	require.Equal(t, pending, assess(t, in).Phase)
	successorOf(&in, pending)
	require.Equal(t, replacing, assess(t, in).Phase)
	require.Equal(t, "WaitingForOlderVersions", assess(t, in).Rule)
}

// TestAHalfMadeVersionGivesWay: one that never ran and lacks something holds its
// successor up for five minutes, while that one lacks nothing else.
func TestAHalfMadeVersionGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *csv.Input, s *v1alpha1.ClusterServiceVersion)
		gives  bool
		after  time.Duration
	}{
		"an hour on": {func(*csv.Input, *v1alpha1.ClusterServiceVersion) {}, true, 0},
		"not before its time": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(295 * time.Second)
		}, false, 5 * time.Second},
		"the successor lacks something":  {func(_ *csv.Input, s *v1alpha1.ClusterServiceVersion) { s.Status.Reason = "RequirementsNotMet" }, false, hourOn},
		"the successor is being deleted": {func(_ *csv.Input, s *v1alpha1.ClusterServiceVersion) { s.DeletionTimestamp = ago(0) }, false, hourOn},
		"there is no successor":          {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) { in.Neighbours.Items = nil }, false, hourOn},
		"its operator runs": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			in.Deployments = olmcore.Found(installed().DeepCopy())
		}, false, hourOn},
		"it ran before": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			s := &in.ClusterServiceVersion.Status
			s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded}}, s.Conditions...)
		}, false, hourOn},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsNotMet", "one or more requirements couldn't be found")
			s := successorOf(&in, pending)
			s.Status.Reason = "AllRequirementsMet"
			in.CustomResourceDefinitions.Items = nil
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			in.ClusterServiceVersion.Status.RequirementStatus = after.Status.RequirementStatus
			c.change(&in, s)
			out, err = csv.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, c.after, out.RequeueAfter)
			if !c.gives {
				require.Empty(t, out.Transitions)
				return
			}
			require.Len(t, out.Transitions, 1)
			require.Equal(t, "Replacing", out.Transitions[0].To)
		})
	}
}
