// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

func TestDriftIsCorrectedWhenAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *appsv1.Deployment)
		drift  bool
	}{
		"nothing": {func(*appsv1.Deployment) {}, false},
		"defaults were filled": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.RestartPolicy = "Always"
			d.Spec.Replicas = new(int32(1))
		}, false},
		"more annotations": {func(d *appsv1.Deployment) { d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "x" }, false},
		"another image":    {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" }, true},
		"one more container": {func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "x"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "cool"
			deploy(t, &in)
			c.change(in.Deployments.Items[0])
			require.Equal(t, succeeded, assess(t, in).Phase, "a live spec is not looked at")
			in.Config.CorrectDrift = true
			a := assess(t, in)
			require.Equal(t, c.drift, a.Phase == installReady, a.Message)
			if !c.drift {
				return
			}
			hold(in.ClusterServiceVersion, installReady, "ComponentUnhealthy", a.Message, 0)
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			require.Len(t, out.Actions, 1)
			in.Deployments.Items[0] = out.Actions[0].(olmcore.Update).After.(*appsv1.Deployment)
			require.Equal(t, installing, assess(t, in).Phase)
		})
	}
}

func TestReplacingWaitsForASuccessorThatCanInstall(t *testing.T) {
	for name, c := range map[string]struct {
		phase phaseName
		why   reason
		want  phaseName
	}{
		"new":                        {none, "", succeeded},
		"its requirements are unmet": {pending, "RequirementsNotMet", succeeded},
		"the operator forbids it":    {pending, "OperatorConditionNotUpgradeable", succeeded},
		"it failed":                  {failed, "InvalidInstallStrategy", succeeded},
		"it could install":           {pending, "AllRequirementsMet", replacing},
		"it installs":                {installReady, "AllRequirementsMet", replacing},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
			deploy(t, &in)
			s := successorOf(&in, pending)
			hold(s, c.phase, c.why, "", 0)
			require.Equal(t, replacing, assess(t, in).Phase, "OLM's way")
			in.Config.GateReplacing = true
			require.Equal(t, c.want, assess(t, in).Phase)
		})
	}
}

// TestAMiddleVersionWithoutSuccessorGoesBack: its predecessor waits for it, so it
// must not wait for its predecessor.
func TestAMiddleVersionWithoutSuccessorGoesBack(t *testing.T) {
	in := input(replacing, "BeingReplaced", "being replaced by csv: cool.v2")
	in.ClusterServiceVersion.Spec.Replaces = "cool.v0"
	p := operator("cool.v0", 0)
	hold(p, replacing, "BeingReplaced", "being replaced by csv: cool.v1", 0)
	in.Neighbours.Items = append(in.Neighbours.Items, p)
	require.Equal(t, pending, assess(t, in).Phase)
	successorOf(&in, pending)
	require.Equal(t, replacing, assess(t, in).Phase)
	require.Equal(t, "T60", assess(t, in).Rule)
}
