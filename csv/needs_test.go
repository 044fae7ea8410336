// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/ruletable"
	"github.com/olmcore/olm/olmcore"
)

// eachList visits the fields of a struct that are lists of objects or kinds.
func eachList(in reflect.Value, visit func(name string, list reflect.Value)) {
	for i := range in.NumField() {
		if list := in.Field(i); list.Kind() == reflect.Struct && list.FieldByName("Complete").IsValid() {
			visit(in.Type().Field(i).Name, list)
		}
	}
}

// TestGatherReadsEveryList names a list that Gather does not read.
func TestGatherReadsEveryList(t *testing.T) {
	c := &version{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v1", UID: "u"}}
	c.Status.Phase = v1alpha1.CSVPhaseInstallReady
	snapshot, err := olmcore.NewSnapshot([]olmcore.Object{c}, olmcore.Everything)
	require.NoError(t, err)
	in, err := Gather(context.Background(), snapshot, types.NamespacedName{Namespace: "ns", Name: "cool.v1"}, Config{})
	require.NoError(t, err)
	eachList(reflect.ValueOf(in), func(name string, list reflect.Value) {
		if name != "ServedAPIs" { // it is the caller's to fill in
			require.True(t, list.FieldByName("Complete").Bool(), "Gather does not read %s", name)
		}
	})
}

// TestEveryListIsValidated names a list of objects that is not validated.
func TestEveryListIsValidated(t *testing.T) {
	c := &version{}
	c.Namespace, c.Name, c.UID = "ns", "cool.v1", "u"
	in := Input{Now: time.Unix(0, 0), ClusterServiceVersion: c}
	require.NoError(t, in.validate())
	eachList(reflect.ValueOf(in), func(name string, list reflect.Value) {
		if list.FieldByName("Items").Type().Elem().Kind() != reflect.Pointer {
			return
		}
		broken := in
		items := reflect.ValueOf(&broken).Elem().FieldByName(name).FieldByName("Items")
		items.Set(reflect.MakeSlice(items.Type(), 1, 1)) // an entry that is nil, of a read that was not completed
		var wrong *olmcore.InputError
		require.True(t, errors.As(broken.validate(), &wrong), "validateLists leaves out %s", name)
		require.Equal(t, name, wrong.Field)
	})
}

// TestEveryRuleHasAName checks the names of rules, which an Assessment contains.
func TestEveryRuleHasAName(t *testing.T) {
	for _, table := range [][]rule{gates, rules} {
		for _, r := range table {
			require.NotEmpty(t, r.Name)
			require.NotNil(t, r.Decide, r.Name)
		}
	}
}

// TestFirstDecidingRuleWins checks that the first rule of the phase that decides is used.
func TestFirstDecidingRuleWins(t *testing.T) {
	decides := func(*facts) (decision, bool) { return move("", "", "decided"), true }
	passes := func(*facts) (decision, bool) { return move("", "", "passed"), false }
	table := []rule{
		{Name: "Other", From: pending, Decide: decides}, {Name: "Passes", From: everyPhase, Decide: passes},
		{Name: "Decides", From: failed, Decide: decides}, {Name: "Later", From: failed, Decide: decides},
	}
	_, name := ruletable.FirstDecision(table, failed[0], &facts{})
	require.Equal(t, "Decides", name)
	_, name = ruletable.FirstDecision(table, succeeded[0], &facts{})
	require.Empty(t, name)
}
