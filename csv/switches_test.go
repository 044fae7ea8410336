// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
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

// TestAHalfMadeVersionGivesWay: one that never ran and lacks something holds its
// successor up for five minutes, while that one lacks nothing else.
func TestAHalfMadeVersionGivesWay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *csv.Input, s *v1alpha1.ClusterServiceVersion)
		gives  bool
		after  time.Duration
	}{
		"an hour on": {func(*csv.Input, *v1alpha1.ClusterServiceVersion) {}, true, 0},
		"not before its time": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(295 * time.Second)
		}, false, 5 * time.Second},
		"sooner or later":                {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) { in.Config.HalfMadeGrace = 2 * time.Hour }, false, hourOn},
		"the successor lacks something":  {func(_ *csv.Input, s *v1alpha1.ClusterServiceVersion) { s.Status.Reason = "RequirementsNotMet" }, false, hourOn},
		"the successor is being deleted": {func(_ *csv.Input, s *v1alpha1.ClusterServiceVersion) { s.DeletionTimestamp = ago(0) }, false, hourOn},
		"there is no successor":          {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) { in.Neighbours.Items = nil }, false, hourOn},
		"its operator runs": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			in.Deployments = olmcore.Found(installed().DeepCopy())
		}, false, hourOn},
		"it ran before": {func(in *csv.Input, _ *v1alpha1.ClusterServiceVersion) {
			s := &in.ClusterServiceVersion.Status
			s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded}}, s.Conditions...)
		}, false, hourOn},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsNotMet", "one or more requirements couldn't be found")
			s := successorOf(&in, pending)
			s.Status.Reason = "AllRequirementsMet"
			in.CustomResourceDefinitions.Items = nil
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			in.ClusterServiceVersion.Status.RequirementStatus = after.Status.RequirementStatus
			c.change(&in, s)
			out, err = csv.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, c.after, out.RequeueAfter)
			if !c.gives {
				require.Empty(t, out.Transitions)
				return
			}
			require.Len(t, out.Transitions, 1)
			require.Equal(t, "Replacing", out.Transitions[0].To)
		})
	}
}
