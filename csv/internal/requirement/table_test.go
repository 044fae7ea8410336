// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"context"
	"reflect"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// TestOneRowAddsARequirement: a ServiceAccount with the name of the CSV is read, judged, reported, made again and
// watched, because one row says so.
func TestOneRowAddsARequirement(t *testing.T) {
	table := append(Table{}, All...)
	table = append(table, Requirement{
		Name: "Namesake",
		Gather: func(r *read.Reads, o *Observed) {
			o.ServiceAccounts = read.Named[*corev1.ServiceAccount](r, o.CSV.Namespace, []string{o.CSV.Name})
		},
		Unread: func(o *Observed) string { return unless(o.ServiceAccounts.Complete, "ServiceAccounts") },
		Judge: func(o *Observed) []v1alpha1.RequirementStatus {
			r := v1alpha1.RequirementStatus{Version: "v1", Kind: "ServiceAccount", Name: o.CSV.Name, Status: present}
			if _, exists := owned.Find(o.ServiceAccounts.Items, o.CSV.Namespace, o.CSV.Name); !exists {
				r.Status = notPresent
			}
			return []v1alpha1.RequirementStatus{r}
		},
		Concerns: func(o olmcore.Object) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetName()}}
		},
		TakenBy: func(*Observed, *owned.CSV, v1alpha1.RequirementStatus) bool { return true },
		Heal:    func(o *Observed) []olmcore.Object { return []olmcore.Object{account(o.CSV.Name)} },
	})
	c := &owned.CSV{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "u"}}

	unread := Observed{CSV: c}
	require.Equal(t, "ServiceAccounts", table.Unread(&unread))
	require.Empty(t, All.Unread(&unread))

	snapshot, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	reads := read.From(context.Background(), snapshot)
	o := table.Gather(reads, c)
	require.NoError(t, reads.Err())
	require.Empty(t, table.Unread(&o))
	report := table.Judge(&o)
	require.False(t, report.Met())
	entries := report.Entries()
	require.Equal(t, "cool.v1", entries[len(entries)-1].Name)
	require.Len(t, table.Heal(&o, report), 1)
	require.True(t, table.TakenBy(&o, report, c))
	require.Contains(t, table.Concerned(account("cool.v1")), types.NamespacedName{Namespace: "ns", Name: "cool.v1"})

	o.ServiceAccounts = olmcore.Found(account("cool.v1"))
	report = table.Judge(&o)
	require.True(t, report.Met())
	require.Empty(t, table.Heal(&o, report))
}

// TestEachRowIsWhole names what a row lacks: whoever reads objects says when they were not read, and whose change
// matters.
func TestEachRowIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, row := range All {
		require.NotEmpty(t, row.Name)
		require.False(t, names[row.Name], "there are two rows %s", row.Name)
		names[row.Name] = true
		require.NotNil(t, row.Judge, "%s: Judge", row.Name)
		require.Equal(t, row.Gather == nil, row.Unread == nil, "%s: Gather and Unread belong together", row.Name)
		require.Equal(t, row.Gather == nil, row.Concerns == nil, "%s: Gather and Concerns belong together", row.Name)
	}
}

// TestEachListIsRead: a list of Observed that no row reads is named.
func TestEachListIsRead(t *testing.T) {
	snapshot, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	require.NoError(t, err)
	o := reflect.ValueOf(All.Gather(read.From(context.Background(), snapshot), &owned.CSV{}))
	for i := range o.NumField() {
		field := o.Type().Field(i)
		complete := o.Field(i)
		if complete.Kind() != reflect.Struct || field.Name == "ServedAPIs" { // those are the caller's to fill in
			continue
		}
		require.True(t, complete.FieldByName("Complete").Bool(), "no row reads %s", field.Name)
	}
}

func account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
}
