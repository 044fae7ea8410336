// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"context"
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// TestRequirementIsAddedByOneTableRow adds a row for a ServiceAccount with the name of the CSV. The ServiceAccount is
// then read, judged, reported, created again and watched.
func TestRequirementIsAddedByOneTableRow(t *testing.T) {
	rows := append(slices.Clone(requirements), requirement{
		name: "Namesake",
		gather: func(r *read.Reads, in *Input) {
			in.ServiceAccounts = read.Named[*corev1.ServiceAccount](r, in.ClusterServiceVersion.Namespace, []string{in.ClusterServiceVersion.Name})
		},
		unread: func(in *Input) []string { return read.Missing(in.ServiceAccounts, "ServiceAccounts") },
		judge: func(in *Input) []v1alpha1.RequirementStatus {
			r := v1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: in.ClusterServiceVersion.Name, Status: present}
			if _, exists := model.Find(in.ServiceAccounts.Items, in.ClusterServiceVersion.Namespace, in.ClusterServiceVersion.Name); !exists {
				r.Status = notPresent
			}
			return []v1alpha1.RequirementStatus{r}
		},
		relations: []relation{relationOf(func(o *corev1.ServiceAccount) []olmcore.Term {
			return []olmcore.Term{model.KeyTerm(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})}
		})},
		takenBy: func(*Input, *version, v1alpha1.RequirementStatus) bool { return true },
		heal:    func(in *Input) []olmcore.Object { return []olmcore.Object{account(in.ClusterServiceVersion.Name)} },
	})
	c := &version{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "u"}}

	in := &Input{ClusterServiceVersion: c}
	require.Equal(t, "ServiceAccounts", rows.unread(in))
	require.Empty(t, requirements.unread(in))

	snapshot, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	reads := read.From(context.Background(), snapshot)
	rows.gather(reads, in)
	require.NoError(t, reads.Err())
	require.Empty(t, rows.unread(in))
	report := rows.judge(in)
	require.False(t, report.isMet())
	entries := report.entries()
	require.Equal(t, "cool.v1", entries[len(entries)-1].Name)
	require.Len(t, rows.heal(in, report), 1)
	require.True(t, rows.takenBy(in, report, c))
	concerned := concernedTerms(rows.relations(), nil, account("cool.v1"))
	require.Contains(t, concerned, model.KeyTerm(types.NamespacedName{Namespace: "ns", Name: "cool.v1"}))

	in.ServiceAccounts = olmcore.Found(account("cool.v1"))
	report = rows.judge(in)
	require.True(t, report.isMet())
	require.Empty(t, rows.heal(in, report))
}

// TestEveryRequirementIsComplete names what a row lacks. A row that reads objects must also report unread lists and the
// CSVs that a change of an object concerns.
func TestEveryRequirementIsComplete(t *testing.T) {
	names := map[string]bool{}
	for _, row := range requirements {
		require.NotEmpty(t, row.name)
		require.False(t, names[row.name], "there are two rows %s", row.name)
		names[row.name] = true
		require.NotNil(t, row.judge, "%s: Judge", row.name)
		require.Equal(t, row.gather == nil, row.unread == nil, "%s: Gather and Unread belong together", row.name)
		require.Equal(t, row.gather == nil, row.relations == nil, "%s: Gather and Relations belong together", row.name)
	}
}

func account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
}
