// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"slices"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/internal/plans"
)

func TestAVersionIsNeverInstalledOnlyIfItsHistoryProvesIt(t *testing.T) {
	const pending, failed, succeeded = v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseSucceeded
	type phases = []v1alpha1.ClusterServiceVersionPhase
	for name, c := range map[string]struct {
		phase   v1alpha1.ClusterServiceVersionPhase
		history phases
		want    bool
	}{
		"just created":                        {v1alpha1.CSVPhaseNone, nil, true},
		"pending, without conditions":         {pending, nil, true},
		"pending from the start":              {pending, phases{pending}, true},
		"pending after it was installed":      {pending, phases{pending, v1alpha1.CSVPhaseInstalling, succeeded, pending}, false},
		"failed from the start":               {failed, phases{pending, failed}, true},
		"failed after it was installed":       {failed, phases{pending, succeeded, failed}, false},
		"failed, without conditions":          {failed, nil, false},
		"the history is almost cut":           {pending, slices.Repeat(phases{pending}, v1alpha1.ConditionsLengthLimit-1), true},
		"the history is cut":                  {pending, slices.Repeat(phases{pending}, v1alpha1.ConditionsLengthLimit), false},
		"it is being installed":               {v1alpha1.CSVPhaseInstalling, phases{pending}, false},
		"its requirements are met":            {v1alpha1.CSVPhaseInstallReady, phases{pending}, false},
		"it is installed":                     {succeeded, phases{pending, succeeded}, false},
		"it is being replaced":                {v1alpha1.CSVPhaseReplacing, phases{pending}, false},
		"it is deleted after its replacement": {v1alpha1.CSVPhaseDeleting, phases{pending}, false},
		"its phase is unknown":                {v1alpha1.CSVPhaseUnknown, phases{pending}, false},
	} {
		version := &v1alpha1.ClusterServiceVersion{}
		version.Status.Phase = c.phase
		for _, p := range c.history {
			version.Status.Conditions = append(version.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: p})
		}
		require.Equal(t, c.want, plans.NeverInstalled(version), name)
	}
}
