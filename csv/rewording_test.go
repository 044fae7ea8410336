// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// reword replaces every message that Reconcile wrote into a status.
func reword(s *v1alpha1.ClusterServiceVersionStatus) {
	replace := func(message *string) {
		if *message != "" {
			*message = "reworded"
		}
	}
	replace(&s.Message)
	for i := range s.Conditions {
		replace(&s.Conditions[i].Message)
	}
	for i := range s.RequirementStatus {
		r := &s.RequirementStatus[i]
		replace(&r.Message)
		for j := range r.Dependents {
			replace(&r.Dependents[j].Message)
		}
	}
}

// withoutStatus returns the actions that do not write the status of the CSV.
func withoutStatus(actions []olmcore.Action) (rest []string) {
	for _, a := range actions {
		if _, isStatus := a.(olmcore.UpdateStatus); !isStatus {
			verb, target, cause := a.Describe()
			rest = append(rest, string(verb)+" "+target.String()+" "+cause.Reason)
		}
	}
	return rest
}

// TestNoDecisionDependsOnTheWordingOfAMessage rewords every message in the status that a call wrote, and demands the
// same decision from the next call.
func TestNoDecisionDependsOnTheWordingOfAMessage(t *testing.T) {
	compared := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		in.Checkpoint = nil
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
			in.ClusterServiceVersion = after.DeepCopy()
		}
		in.Now = in.Now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seconds")) * time.Second)
		in.Judged = out.Judged
		compared[requireSameDecision(t, in)]++
	})
	t.Log(compared)
}

// TestRecordedMessagesDecideNothing checks the same for every phase and reason that may be recorded. The messages
// contain words that a decision could depend on.
func TestRecordedMessagesDecideNothing(t *testing.T) {
	phases := []v1alpha1.ClusterServiceVersionPhase{
		v1alpha1.CSVPhasePending, v1alpha1.CSVPhaseInstallReady, v1alpha1.CSVPhaseInstalling, v1alpha1.CSVPhaseSucceeded,
		v1alpha1.CSVPhaseFailed, v1alpha1.CSVPhaseReplacing, v1alpha1.CSVPhaseDeleting,
	}
	reasons := []v1alpha1.ConditionReason{
		v1alpha1.CSVReasonRequirementsNotMet, v1alpha1.CSVReasonComponentFailed, v1alpha1.CSVReasonComponentFailedNoRetry,
		v1alpha1.CSVReasonInstallCheckFailed, v1alpha1.CSVReasonComponentUnhealthy, v1alpha1.CSVReasonInvalidStrategy,
		v1alpha1.CSVReasonNeedsReinstall, v1alpha1.CSVReasonNeedsCertRotation, v1alpha1.CSVReasonAPIServiceInstallFailed,
		v1alpha1.CSVReasonAPIServiceResourceIssue, v1alpha1.CSVReasonOperatorConditionNotUpgradeable,
		v1alpha1.CSVReasonOwnerConflict, v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, v1alpha1.CSVReasonNoOperatorGroup,
		v1alpha1.CSVReasonInvalidWebhookDescription, v1alpha1.CSVReasonWaiting,
	}
	texts := []string{
		"forbidden", "deployments.apps is forbidden: no", "admission webhook \"w\" denied the request: no", "conflict: no",
		"CRD version not served", "waiting for APIService", "minKubeVersion not met", "not found",
	}
	compared := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		in := likely(t)
		in.Checkpoint = nil
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
			in.ClusterServiceVersion = after.DeepCopy()
		}
		in.Now = in.Now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seconds")) * time.Second)
		for i, phase := range phases {
			for j, reason := range reasons {
				in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
				s := &in.ClusterServiceVersion.Status
				s.Phase, s.Reason = phase, reason
				s.Message = texts[(i+j)%len(texts)]
				compared[requireSameDecision(t, in)]++
			}
		}
	})
	t.Log(compared)
}

// requireSameDecision checks that a call decides the same after every message in the status was reworded, and returns
// the name of the rule that decides.
func requireSameDecision(t require.TestingT, in csv.Input) string {
	want, err := csv.Assess(in)
	require.NoError(t, err)
	wantOutcome, err := csv.Reconcile(in)
	require.NoError(t, err)

	in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
	reword(&in.ClusterServiceVersion.Status)
	got, err := csv.Assess(in)
	require.NoError(t, err)
	gotOutcome, err := csv.Reconcile(in)
	require.NoError(t, err)

	require.Equal(t, want.Rule, got.Rule)
	require.Equal(t, want.Phase, got.Phase)
	require.Equal(t, want.Reason, got.Reason)
	require.Equal(t, want.Stage, got.Stage)
	require.Equal(t, want.Diagnostics, got.Diagnostics)
	require.Equal(t, want.RequeueAfter, got.RequeueAfter)
	require.Equal(t, withoutStatus(wantOutcome.Actions), withoutStatus(gotOutcome.Actions))
	require.Equal(t, len(wantOutcome.Transitions), len(gotOutcome.Transitions))
	require.Equal(t, wantOutcome.Certificates, gotOutcome.Certificates)
	return got.Rule
}
