// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"context"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview/rollback"
)

// TestAPlanThatFailed: "The InstallPlan of the upgrade failed, and is tried again and again."
func TestAPlanThatFailed(t *testing.T) {
	w := upgradetest.New(t, func(_, second *bundle) {
		spec := second.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Required = []string{"size"}
		second.CRD.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	})
	w.OLM.Judge = func(context.Context, olmcore.Reader, []installplan.SchemaChange) ([]installplan.ResourceVerdict, error) {
		return []installplan.ResourceVerdict{{CustomResourceDefinition: upgradetest.Definition, Version: "v1", Namespace: "ops", Name: "gold", New: []string{"spec.size: Required value"}}}, nil
	}
	failed := w.Plan(t)
	w.Approve(t)
	require.Equal(t, v1alpha1.InstallPlanPhaseFailed, fake.Find[*v1alpha1.InstallPlan](w.Cluster, failed.Namespace, failed.Name).Status.Phase)
	a := advised(t, w, upgradetest.First, false)
	require.Contains(t, lines(a), "delete InstallPlan: it would bring vault.v2.0.0 again")
	goBack(t, w, upgradetest.First, false)
	requireBack(t, w)
}

// TestTheWayLeadsThere: whatever the upgrade was and however far it came, and whatever a user does between two steps, a
// way that is advised ends with the version before, and writes nothing but what it names.
func TestTheWayLeadsThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) bool { return rapid.Bool().Draw(rt, label) }
		isBroken, cleans, more := draw("broken"), draw("cleans"), draw("more")
		w := upgradetest.New(rt, func(first, second *bundle) {
			if isBroken {
				breakSecond(first, second)
			}
			second.CSV.Spec.Cleanup.Enabled = cleans
			if more {
				second.CRD.Spec.Versions = append(second.CRD.Spec.Versions, upgradetest.Version("v2", false, "size"))
			}
		})
		w.Cluster.Image(broken).Break("ImagePullBackOff")
		if draw("automatic") {
			require.NoError(rt, fake.Edit(w.Cluster, vault.Namespace, vault.Name, func(s *v1alpha1.Subscription) { s.Spec.InstallPlanApproval = v1alpha1.ApprovalAutomatic }))
		}
		key := w.Plan(rt)
		require.NoError(rt, fake.Edit(w.Cluster, key.Namespace, key.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
		for range rapid.IntRange(0, 6).Draw(rt, "rounds") {
			_, err := w.Driver.Round(context.Background())
			require.NoError(rt, err)
		}
		if draw("settled") {
			w.Run(rt)
		}
		for range 40 {
			a, err := rollback.Run(context.Background(), w.Cluster, vault, upgradetest.First, true, w.Cluster.Now(), w.OLM.Options)
			require.NoError(rt, err)
			require.Empty(rt, a.Refused)
			if len(a.Steps) == 0 {
				require.Equal(rt, v1alpha1.CSVPhaseSucceeded, w.Phase(upgradetest.First))
				require.Equal(rt, upgradetest.First, w.Subscribed().Status.InstalledCSV)
				w.Run(rt)
				require.Equal(rt, v1alpha1.CSVPhaseSucceeded, w.Phase(upgradetest.First))
				require.Empty(rt, w.Phase(upgradetest.Second))
				return
			}
			if action := a.Steps[0].Action; action != nil {
				// The answer may be lost: it is asked again, and another actor may have been faster.
				require.NoError(rt, olmcore.Run(context.Background(), w.Cluster, []olmcore.Action{action}))
				if draw("controllers run") {
					_, err := w.Driver.Round(context.Background())
					require.NoError(rt, err)
				}
			} else {
				w.Run(rt)
			}
		}
		rt.Fatal("it does not end")
	})
}
