// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// TestRowsThatHoldInSeveralPhases: the rows of the transition table that are the
// same wherever the strategy or the group's account is needed.
func TestRowsThatHoldInSeveralPhases(t *testing.T) {
	unknown := func(in *csv.Input) { in.ClusterServiceVersion.Spec.InstallStrategy.StrategyName = "helm" }
	badRule := func(in *csv.Input) {
		in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules = []rbacv1.PolicyRule{{Resources: []string{"pods"}}}
	}
	noAccount := func(in *csv.Input) { in.OperatorGroups.Items[0].Spec.ServiceAccountName = "limited" }
	const unrecognized = "install strategy invalid: unrecognized install strategy"
	const noVerbs = "install strategy invalid: rule invalid: policy rule must have at least one verb"
	const waits = "waiting for OperatorGroup service account limited"
	for name, c := range map[string]struct {
		phase  phaseName
		reason reason
		change func(in *csv.Input)
		want   csv.Assessment
	}{
		"Pending, unknown strategy":      {pending, "RequirementsUnknown", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"InstallReady, unknown strategy": {installReady, "AllRequirementsMet", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Installing, unknown strategy":   {installing, "InstallSucceeded", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Succeeded, unknown strategy":    {succeeded, "InstallSucceeded", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Failed, unknown strategy":       {failed, "ComponentUnhealthy", unknown, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: unrecognized}},
		"Pending, rule without verbs":    {pending, "RequirementsUnknown", badRule, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: noVerbs}},
		"Succeeded, rule without verbs":  {succeeded, "InstallSucceeded", badRule, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: noVerbs}},
		"Failed, rule without verbs":     {failed, "ComponentUnhealthy", badRule, csv.Assessment{Rule: "InvalidStrategy", Phase: failed, Reason: "InvalidInstallStrategy", Message: noVerbs}},
		"InstallReady, no account":       {installReady, "AllRequirementsMet", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: installReady, Reason: "AllRequirementsMet", Message: waits, RequeueAfter: 10 * time.Second}},
		"Installing, no account":         {installing, "InstallSucceeded", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: installing, Reason: "InstallSucceeded", Message: waits, RequeueAfter: 10 * time.Second}},
		"Succeeded, no account":          {succeeded, "InstallSucceeded", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: succeeded, Reason: "InstallSucceeded", Message: waits, RequeueAfter: 10 * time.Second}},
		"Failed, no account":             {failed, "ComponentUnhealthy", noAccount, csv.Assessment{Rule: "ServiceAccountMissing", Phase: failed, Reason: "ComponentUnhealthy", Message: waits, RequeueAfter: 10 * time.Second}},
		"not a second before its time": {installing, "InstallSucceeded", func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(5*time.Minute - time.Second)
		}, csv.Assessment{Rule: "Health", Phase: installing, Reason: "InstallWaiting", Message: "installing: missing deployment with name=cool", RequeueAfter: time.Second}},
		"at its time": {installing, "InstallSucceeded", func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(5 * time.Minute)
		}, csv.Assessment{Rule: "InstallTimeout", Phase: failed, Reason: "InstallCheckFailed", Message: "install timeout"}},
		"the clock went back": {installing, "InstallSucceeded", func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(-time.Hour)
		}, csv.Assessment{Rule: "Health", Phase: installing, Reason: "InstallWaiting", Message: "installing: missing deployment with name=cool", RequeueAfter: 5 * time.Minute}},
		"fail-forward needs a successor": {failed, "InstallCheckFailed", func(in *csv.Input) {
			in.OperatorGroups.Items[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
		}, csv.Assessment{Rule: "Health", Phase: pending, Reason: "NeedsReinstall", Message: "installing: missing deployment with name=cool"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(c.phase, c.reason, "before")
			c.change(&in)
			got := assess(t, in)
			got.Requirements = nil
			require.Equal(t, c.want, got)
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, c.want.RequeueAfter, out.RequeueAfter)
			for _, a := range out.Actions {
				verb, target, _ := a.Describe()
				require.Equal(t, olmcore.VerbUpdateStatus, verb, "%s", target)
			}
		})
	}
}

// TestAnOldVersionThatRunsMayBeReplaced: the upgrade took the version of the CRD
// that it describes away. Whether it ran before is read from the history or, when
// that has been overwritten, from its Deployment.
func TestAnOldVersionThatRunsMayBeReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *csv.Input)
		rule   string
	}{
		"the history says so": {func(in *csv.Input) {
			s := &in.ClusterServiceVersion.Status
			s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded, Reason: "InstallSucceeded"}}, s.Conditions...)
		}, "UpgradeBegan"},
		"its Deployment is available": {func(in *csv.Input) { deploy(t, in) }, "UpgradeBegan"},
		"its Deployment is not": {func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].Status.Conditions[0].Status = corev1.ConditionFalse
		}, "RequirementsNotMet"},
		"the Deployment is another's": {func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].OwnerReferences = nil
		}, "RequirementsNotMet"},
		"it never ran": {func(*csv.Input) {}, "RequirementsNotMet"},
		"something else is missing, too": {func(in *csv.Input) {
			deploy(t, in)
			in.ServiceAccounts.Items = nil
		}, "RequirementsNotMet"},
		"nobody replaces it": {func(in *csv.Input) {
			deploy(t, in)
			in.Neighbours.Items = nil
		}, "RequirementsNotMet"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsNotMet", "requirements not met")
			successorOf(&in, pending)
			c.change(&in)
			in.CustomResourceDefinitions.Items[0].Spec.Versions[0].Served = false
			a := assess(t, in)
			require.Equal(t, c.rule, a.Rule)
			if c.rule == "UpgradeBegan" {
				require.Equal(t, replacing, a.Phase)
				require.Equal(t, "being replaced by csv: cool.v2", a.Message)
			}
		})
	}
}
