// SPDX-License-Identifier: Apache-2.0

package gen_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

type input struct {
	Now    time.Time
	Plan   *v1alpha1.InstallPlan
	CSVs   []*v1alpha1.ClusterServiceVersion
	Pods   []*corev1.Pod
	Others []olmcore.Object
}

func TestValuesAreObjectsThatAnAPIServerCouldHold(t *testing.T) {
	v := gen.Vocabulary{
		Now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Namespace: "ns", Names: []string{"a", "b"},
		Words:   map[string][]string{"phase": {"Installing", "Complete"}},
		Objects: []olmcore.Object{&corev1.Node{}},
	}
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[input](v).Draw(t, "input")
		require.NotNil(t, in.Plan)
		require.Equal(t, "ns", in.Plan.Namespace)
		require.Contains(t, []string{"a", "b"}, in.Plan.Name)
		require.NotEmpty(t, in.Plan.UID)
		require.Contains(t, []v1alpha1.InstallPlanPhase{"Installing", "Complete"}, in.Plan.Status.Phase)
		for _, csv := range in.CSVs {
			_, err := olmcore.RecordOf(olmcore.CreateOf(csv, olmcore.Cause{Reason: "Test"}))
			require.NoError(t, err)
		}
		for _, o := range in.Others {
			require.IsType(t, &corev1.Node{}, o)
		}
	})
}

func TestHostileValuesDoNotPanic(t *testing.T) {
	v := gen.Vocabulary{Now: time.Unix(0, 0), Namespace: "ns", Names: []string{"a"}, Hostile: true}
	rapid.Check(t, func(t *rapid.T) {
		for _, csv := range gen.Value[input](v).Draw(t, "input").CSVs {
			_, _ = olmcore.RecordOf(olmcore.CreateOf(csv, olmcore.Cause{}))
		}
	})
}
