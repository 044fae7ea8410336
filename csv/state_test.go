// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// TestEveryEdgeIsTaken: each edge of the table has a situation that leads over it. That no other edge is taken is a
// property, in TestOnlyKnownEdgesAreTaken.
func TestEveryEdgeIsTaken(t *testing.T) {
	everything := []phaseName{none, pending, installReady, installing, succeeded, failed, replacing, deleting}
	type situation struct {
		from   []phaseName
		to     phaseName
		change func(in *csv.Input)
	}
	noCRD := func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }
	noHash := func(in *csv.Input) { delete(in.Deployments.Items[0].Labels, "olm.deployment-spec-hash") }
	situations := []situation{
		{[]phaseName{none}, pending, func(*csv.Input) {}},
		{[]phaseName{none, pending, installReady, installing, succeeded, failed}, failed, func(in *csv.Input) { in.OperatorGroups.Items = nil }},
		{[]phaseName{none, pending, installReady, installing, succeeded, failed}, replacing, func(in *csv.Input) { successorOf(in, installing) }},
		{everything, deleting, func(in *csv.Input) {
			in.ClusterServiceVersion.DeletionTimestamp = ago(0)
			in.Deletion = csvtest.Deletion()
			in.Deletion.ClusterObjects = olmcore.Found[olmcore.Object](&rbacv1.ClusterRole{ObjectMeta: ours("r")})
		}},
		{[]phaseName{pending, failed}, pending, noCRD},
		{[]phaseName{pending}, installReady, func(*csv.Input) {}},
		{[]phaseName{installReady}, installing, func(*csv.Input) {}},
		{[]phaseName{installing, failed}, succeeded, func(*csv.Input) {}},
		{[]phaseName{installing, succeeded, failed}, installReady, noHash},
		{[]phaseName{installing}, installing, func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }},
		{[]phaseName{succeeded}, succeeded, func(*csv.Input) {}},
		{[]phaseName{replacing}, pending, func(*csv.Input) {}},
		{[]phaseName{replacing}, deleting, func(in *csv.Input) { successorOf(in, succeeded) }},
	}
	taken := map[edge]bool{
		// A Deployment that cannot be computed; nothing in a CSV leads there without serving certificates.
		{From: installReady, To: pending}: true, {From: installing, To: pending}: true, {From: succeeded, To: pending}: true,
	}
	for _, s := range situations {
		for _, from := range s.from {
			in := input(from, "SomeReason", "")
			deploy(t, &in)
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(time.Minute)
			s.change(&in)
			if from == replacing && s.to == deleting && in.ClusterServiceVersion.DeletionTimestamp != nil {
				continue // a superseded CSV keeps its phase while it is cleaned up after
			}
			out := reconciled(t, in)
			require.Len(t, out.Transitions, 1, "%s -> %s", from, s.to)
			x := out.Transitions[0]
			require.Equal(t, edge{From: from, To: s.to}, edge{From: phaseName(x.From), To: phaseName(x.To)})
			taken[edge{From: from, To: s.to}] = true
		}
	}
	for _, e := range csv.Edges() {
		require.NotEmpty(t, e.By)
		require.True(t, taken[edge{From: e.From, To: e.To}], "no situation takes %s -> %s by %s", e.From, e.To, e.By)
	}
	for e := range taken {
		require.True(t, csv.Edges().Allows(e.From, e.To), "the table does not have %s -> %s", e.From, e.To)
	}
}

// OLM's case: the history is trimmed at, below and above its limit.
func TestHistoryIsBounded(t *testing.T) {
	in := input(succeeded, "InstallSucceeded", "")
	s := &in.ClusterServiceVersion.Status
	for len(s.Conditions) < 20 {
		s.Conditions = append(s.Conditions, s.Conditions[0])
	}
	out := reconciled(t, in)
	after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
	require.True(t, ok)
	require.Len(t, after.Status.Conditions, 20)
	require.Equal(t, failed, after.Status.Conditions[19].Phase)
}
