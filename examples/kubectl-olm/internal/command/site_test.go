// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
	"github.com/olmcore/olm/olmcore"
)

// TestPreviewsSeparatePlansAsTheControllersDo checks that the newest InstallPlan shows whether the controllers make separate plans.
func TestPreviewsSeparatePlansAsTheControllersDo(t *testing.T) {
	plan := func(name string, generation int, annotations map[string]string) olmcore.Object {
		return &v1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, Annotations: annotations},
			Spec:       v1alpha1.InstallPlanSpec{Generation: generation},
		}
	}
	separate := map[string]string{olmcore.AnnotationSeparatePlan: "true"}
	for name, tt := range map[string]struct {
		plans []olmcore.Object
		want  bool
	}{
		"no plan":                {},
		"one plan for all":       {plans: []olmcore.Object{plan("p", 1, nil)}},
		"a plan of a set":        {plans: []olmcore.Object{plan("p", 1, nil), plan("q", 2, separate)}, want: true},
		"switched off meanwhile": {plans: []olmcore.Object{plan("p", 3, nil), plan("q", 2, separate)}},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot(tt.plans)
			require.NoError(t, err)
			options := command.OptionsIn(t.Context(), snapshot, "ops")
			require.Equal(t, tt.want, options.InstallPlan.SeparatePlans)
		})
	}
}
