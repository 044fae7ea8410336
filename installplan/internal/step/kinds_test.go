// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// TestOneRowAddsAKindOfStep checks that a row of the table is enough for a kind: its objects are created with their
// owner as the ServiceAccount of the plan, updated, keep the fields in the row, are replaced if an immutable field
// differs, and have messages for their failures.
func TestOneRowAddsAKindOfStep(t *testing.T) {
	t.Cleanup(func() { delete(kinds.Known, "Lease") })
	kinds.Known["Lease"] = kinds.Kind{
		GVK: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Namespaced: true, Owned: true, Word: "lease",
		Keep: func(have, want map[string]any, _ bool) map[string]any {
			want["kept"] = have["kept"]
			return want
		},
		Immutable: func(have, want map[string]any) string {
			if have["sealed"] == true {
				return "sealed"
			}
			return ""
		},
	}
	version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "a.v1", UID: "7"}}
	evaluate := func(change func(*step.Input)) step.Evaluation {
		in := step.Input{
			Now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), HasAccount: true,
			Plan: &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "x"}, Status: v1alpha1.InstallPlanStatus{
				AttenuatedServiceAccountRef: &corev1.ObjectReference{Namespace: "ops", Name: "scoped"},
				Plan: []*v1alpha1.Step{{Resolving: "a.v1", Status: v1alpha1.StepStatusUnknown, Resource: v1alpha1.StepResource{
					Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Name: "l", Manifest: `{"metadata":{"name":"l"},"spec":{"holder":"x"}}`,
				}}},
			}},
			ClusterServiceVersions: []*v1alpha1.ClusterServiceVersion{version},
		}
		change(&in)
		return step.Evaluate(in)
	}
	observing := func(change func(o olmcore.Object, values map[string]any)) func(*step.Input) {
		made := evaluate(func(*step.Input) {}).Actions()[0].(olmcore.Create).Object
		return func(in *step.Input) {
			values, err := olmcore.ToMap(made)
			require.NoError(t, err)
			change(made, values)
			o := olmcore.NewObject(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
			require.NoError(t, decode.FromMap(values, o))
			o.SetUID("1")
			o.SetResourceVersion("1")
			in.Objects = []olmcore.Object{o}
		}
	}

	created := evaluate(func(*step.Input) {}).Actions()[0].(olmcore.Create)
	require.Equal(t, "scoped", created.As.Name)
	require.True(t, olmcore.OwnedBy(created.Object, "7"))
	require.Equal(t, "true", created.Object.GetLabels()[olmcore.LabelManaged])

	same := evaluate(observing(func(olmcore.Object, map[string]any) {}))
	require.Equal(t, step.Done, same.Decisions[0].Outcome)
	require.Equal(t, v1alpha1.StepStatusPresent, same.Decisions[0].Status)

	edited := func(values map[string]any) {
		values["metadata"].(map[string]any)["annotations"] = map[string]any{"olmcore/step-hash": "another"}
		values["spec"] = map[string]any{"holder": "y"}
	}
	updated := evaluate(observing(func(_ olmcore.Object, values map[string]any) { edited(values); values["kept"] = "this" })).Actions()[0].(olmcore.Update)
	after, err := olmcore.ToMap(updated.After)
	require.NoError(t, err)
	require.Equal(t, "this", after["kept"])
	require.Equal(t, map[string]any{"holder": "x"}, after["spec"])

	replaced := evaluate(observing(func(_ olmcore.Object, values map[string]any) { edited(values); values["sealed"] = true }))
	require.IsType(t, olmcore.Delete{}, replaced.Actions()[0])

	unmanaged := evaluate(observing(func(_ olmcore.Object, values map[string]any) {
		edited(values)
		delete(values["metadata"].(map[string]any), "labels")
		delete(values["metadata"].(map[string]any), "ownerReferences")
	}))
	require.Equal(t, step.Blocked, unmanaged.Decisions[0].Outcome)
	require.Contains(t, unmanaged.Decisions[0].Message, "is not managed by OLM")

	orphan := evaluate(func(in *step.Input) { in.ClusterServiceVersions = nil })
	require.Contains(t, orphan.Decisions[0].Message, "error generating ownerrefs for lease l:")
	require.Equal(t, "error creating lease l: no", kinds.Known["Lease"].Explain("l", false, "no"))
}
