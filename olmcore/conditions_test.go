// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestSetCondition(t *testing.T) {
	at := func(c metav1.Condition, when time.Time) metav1.Condition {
		c.LastTransitionTime = metav1.NewTime(when)
		return c
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Up"}
	down := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Down"}
	renamed := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Better"}
	other := at(metav1.Condition{Type: "Other"}, noon)
	later := noon.Add(time.Hour + 300*time.Millisecond)
	hour := noon.Add(time.Hour)
	type list = []metav1.Condition
	for name, tt := range map[string]struct {
		have    list
		set     metav1.Condition
		want    list
		changed bool
	}{
		"a new type goes to the end, time in whole seconds": {list{other}, ready, list{other, at(ready, hour)}, true},
		"the same status keeps its time":                    {list{at(ready, noon), other}, renamed, list{at(renamed, noon), other}, true},
		"another status takes the new time":                 {list{at(ready, noon)}, down, list{at(down, hour)}, true},
		"an equal condition changes nothing":                {list{at(ready, noon)}, at(ready, later), list{at(ready, noon)}, false},
		"a second entry of the type is dropped":             {list{at(ready, noon), other, at(down, noon)}, ready, list{at(ready, noon), other}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(list(nil), tt.have...)
			got, changed := olmcore.SetCondition(tt.have, tt.set, later)
			require.Empty(t, cmp.Diff(tt.want, got))
			require.Equal(t, tt.changed, changed)
			require.Equal(t, before, tt.have)
		})
	}
	require.Nil(t, meta.FindStatusCondition(nil, "Ready"))
	require.Equal(t, &other, meta.FindStatusCondition(list{other}, "Other"))
}

func TestExpandKeys(t *testing.T) {
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	known := []types.NamespacedName{key("a", "x"), key("b", "y"), key("b", "x")}
	type keys = []types.NamespacedName
	require.Equal(t, keys{key("b", "x"), key("b", "y")}, olmcore.ExpandKeys(keys{key("b", ""), key("b", "x")}, known))
	require.Equal(t, keys{key("a", "x"), key("b", "x"), key("b", "y")}, olmcore.ExpandKeys(keys{{}}, known))
	require.Equal(t, keys{key("c", "z")}, olmcore.ExpandKeys(keys{key("c", "z")}, known))
	require.Empty(t, olmcore.ExpandKeys(nil, known))
}

func TestResultKeepsTheNearestDeadline(t *testing.T) {
	var r olmcore.Result
	require.True(t, r.Empty())
	for _, d := range []time.Duration{0, time.Minute, -time.Second, time.Hour, time.Second} {
		r.Requeue(d)
	}
	require.Equal(t, time.Second, r.RequeueAfter)
	require.True(t, r.Empty())
	r.Diagnostics = []olmcore.Diagnostic{{}}
	require.False(t, r.Empty())
}
