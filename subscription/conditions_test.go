// SPDX-License-Identifier: Apache-2.0

package subscription_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription"
)

// TestEveryConditionRowIsComplete checks that every row of the table has the fields that it needs and is
// documented.
func TestEveryConditionRowIsComplete(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	types := subscription.Conditions()
	require.Len(t, types, len(subscription.ConditionTable))
	seen := map[v1alpha1.SubscriptionConditionType]bool{}
	for i, row := range subscription.ConditionTable {
		require.Equal(t, row.Type, types[i])
		require.NotEmpty(t, row.Type, "row %d lacks its type", i)
		require.NotEmpty(t, row.From, "the row of %s lacks the fact that decides", row.Type)
		require.NotNil(t, row.Want, "the row of %s lacks its rule", row.Type)
		require.False(t, seen[row.Type], "%s has two rows", row.Type)
		seen[row.Type] = true
		line := `(?m)^//\t` + string(row.Type) + ` +` + row.From
		if row.Warning {
			line += ` +Warning`
		}
		require.Regexp(t, regexp.MustCompile(line+`$`), string(doc), "the table in doc.go lacks %s", row.Type)
		becomesTrue := olmcore.Transition{Type: string(row.Type), To: "True", Status: "True"}
		require.Equal(t, row.Warning, subscription.IsWarning(becomesTrue))
	}
}

// TestOneRowAddsACondition checks that one row adds a condition that is written beside the others, reported, kept
// and removed.
func TestOneRowAddsACondition(t *testing.T) {
	const added = "CSVPresent"
	require.NotContains(t, subscription.Conditions(), v1alpha1.SubscriptionConditionType(added))
	sub := newSub("a", follows("p", "etcd.v1"), installed, withCondition("Foreign", "X", "", 1), withCondition(v1alpha1.SubscriptionBundleUnpacking, "UnpackingInProgress", "", 6))
	in := answered(inputOf(sub, newPlan("p", "Complete"), newCSV("etcd.v1")))
	step := func() subscription.Outcome {
		out, err := subscription.ReconcileWithCondition(in, added, "Installed", "it is there")
		require.NoError(t, err)
		carryOut(&in, out)
		return out
	}
	out := step()
	require.Equal(t, []v1alpha1.SubscriptionCondition{condition("Foreign", "X", "", 1), condition(added, "Installed", "it is there", 60)}, in.Subscriptions.Items[0].Status.Conditions)
	require.Len(t, out.Transitions, 2, "with the end of BundleUnpacking")
	require.Equal(t, []string{added, "", "True", "Installed"}, []string{out.Transitions[1].Type, out.Transitions[1].From, out.Transitions[1].To, out.Transitions[1].Reason})

	in.Now = in.Now.Add(subscription.AuditGrace)
	require.True(t, step().Empty(), "it stays as it is")

	in.ClusterServiceVersions.Items = nil
	out = step()
	require.Equal(t, []v1alpha1.SubscriptionCondition{condition("Foreign", "X", "", 1)}, in.Subscriptions.Items[0].Status.Conditions)
	require.Equal(t, "True", out.Transitions[len(out.Transitions)-1].From)
	require.Empty(t, out.Transitions[len(out.Transitions)-1].To)
}
