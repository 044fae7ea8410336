// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

// anyWorld draws an Input as a cluster can hold it: mostly one where an operator
// is well but for a few oddities, sometimes any objects at all.
func anyWorld(t *rapid.T) csv.Input {
	if rapid.IntRange(0, 9).Draw(t, "arbitrary") == 0 {
		return distinct(arbitrary(t, false))
	}
	if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
		in := likely(t)
		return deleted(in)
	}
	return likely(t)
}

func TestTheLawsHoldForLikelyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, invariant.Laws(reconcile, anyWorld(t)))
	})
}

func TestTheOrderOfEveryListIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		other := shuffled(in, func(n int) []int { return rapid.Permutation(indices(n)).Draw(t, "order") })
		want, wantErr := csv.Reconcile(in)
		got, gotErr := csv.Reconcile(other)
		require.Equal(t, wantErr, gotErr)
		if !equality.Semantic.DeepEqual(want, got) {
			t.Fatalf("(-one order +another):\n%s", cmp.Diff(want, got))
		}
		require.Equal(t, assess(t, in), assess(t, other))
	})
}

// TestEveryResultIsAFixedPointInTheEnd applies what is asked for, at one instant,
// in a cluster where nothing else moves: after a few calls nothing is asked for
// any more, and no result comes twice.
func TestEveryResultIsAFixedPointInTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		var last []olmcore.Action
		for range 12 {
			out, err := csv.Reconcile(in)
			if err != nil || len(out.Actions) == 0 {
				return
			}
			if equality.Semantic.DeepEqual(last, out.Actions) {
				t.Fatalf("asked for twice: %v", last)
			}
			last = out.Actions
			gone := false
			if in, gone = applied(t, in, out.Actions); gone {
				return
			}
		}
		t.Fatalf("still asked for after 12 calls: %v", last)
	})
}

var knownPhases = []phaseName{none, pending, installReady, installing, succeeded, failed, replacing, deleting, v1alpha1.CSVPhaseUnknown}

var knownReasons = []reason{
	"RequirementsUnknown", "RequirementsNotMet", "AllRequirementsMet", "OwnerConflict", "InstallComponentFailed",
	"InstallComponentFailedNoRetry", "InvalidInstallStrategy", "InstallWaiting", "InstallSucceeded", "InstallCheckFailed",
	"ComponentUnhealthy", "BeingReplaced", "Replaced", "NeedsReinstall", "NeedsCertRotation", "APIServiceResourceIssue",
	"APIServiceResourcesNeedReinstall", "APIServiceInstallFailed", "Copied", "InvalidInstallModes", "NoTargetNamespaces",
	"UnsupportedOperatorGroup", "NoOperatorGroup", "TooManyOperatorGroups", "InterOperatorGroupOwnerConflict",
	"CannotModifyStaticOperatorGroupProvidedAPIs", "DetectedClusterChange", "InvalidWebhookDescription",
	"OperatorConditionNotUpgradeable", "WaitingOnCleanup",
}

// soundStatus is what holds of every status write.
func soundStatus(t require.TestingT, before, after *v1alpha1.ClusterServiceVersionStatus, now time.Time) {
	require.False(t, equality.Semantic.DeepEqual(before, after), "a write that changes nothing")
	require.Equal(t, olmcore.Timestamp(now), *after.LastUpdateTime)
	moved := before.Phase != after.Phase || before.LastTransitionTime == nil && after.Phase == installing
	if moved {
		require.Equal(t, olmcore.Timestamp(now), *after.LastTransitionTime)
	} else if before.LastTransitionTime != nil {
		require.Equal(t, before.LastTransitionTime, after.LastTransitionTime, "the phase stayed")
	}
	if before.Phase == after.Phase && before.Reason == after.Reason && before.Message == after.Message {
		require.LessOrEqual(t, len(after.Conditions), len(before.Conditions)+1)
		return
	}
	require.Contains(t, knownPhases, after.Phase)
	require.NotEmpty(t, after.Message)
	if before.Reason != after.Reason {
		require.Contains(t, knownReasons, after.Reason)
	}
	n := len(after.Conditions)
	require.True(t, n > 0 && n <= 20, "%d entries", n)
	last := after.Conditions[n-1]
	require.Equal(t, [2]string{string(after.Phase), string(after.Reason)}, [2]string{string(last.Phase), string(last.Reason)})
	kept := after.Conditions
	if grown := n > len(before.Conditions) || n == 20 && len(before.Conditions) >= 20 && !sameEntry(before.Conditions[len(before.Conditions)-1], last); grown {
		kept = after.Conditions[:n-1]
		require.Equal(t, after.Message, last.Message)
		require.Equal(t, []any{after.LastUpdateTime, after.LastTransitionTime}, []any{last.LastUpdateTime, last.LastTransitionTime})
		require.True(t, n == 1 || !sameEntry(after.Conditions[n-2], last), "an entry that says the same again")
	}
	require.True(t, equality.Semantic.DeepEqual(kept, before.Conditions[len(before.Conditions)-len(kept):]), "the past stays as it was")
}

func sameEntry(a, b v1alpha1.ClusterServiceVersionCondition) bool {
	return a.Phase == b.Phase && a.Reason == b.Reason
}

func TestEveryStatusThatIsWrittenIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		if c := in.ClusterServiceVersion; c != nil && rapid.Bool().Draw(t, "long") {
			for i := range 19 {
				c.Status.Conditions = append(c.Status.Conditions, v1alpha1.ClusterServiceVersionCondition{Phase: knownPhases[i%2], Reason: "x"})
			}
		}
		out, err := csv.Reconcile(in)
		after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		if err != nil || !written {
			require.Empty(t, out.Transitions)
			return
		}
		soundStatus(t, &in.ClusterServiceVersion.Status, &after.Status, in.Now)
	})
}

// waitsFor says which event ends a wait that has no deadline.
var waitsFor = map[string]string{
	"Health": "a Deployment, or nothing: it is installed", "InvalidSpec": "a change of the spec", "NoTargetNamespaces": "a namespace",
	"InvalidInstallModes": "a change of the spec", "UnsupportedOperatorGroup": "a change of the spec or of the group",
	"APIConflict": "a change of one of the groups", "InvalidStrategy": "a change of the spec", "RequirementsNotMet": "a requirement",
	"WaitingForOlderVersions": "the predecessor", "Copy": "nothing: it is a copy", "Cleanup": "nothing: there is no finalizer",
}

// TestEveryWaitHasADeadlineOrAnEvent looks at what is left when everything that was
// asked for has been done.
func TestEveryWaitHasADeadlineOrAnEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		for range 12 {
			out, err := csv.Reconcile(in)
			require.GreaterOrEqual(t, out.RequeueAfter, time.Duration(0))
			if err != nil || out.RequeueAfter > 0 && len(out.Actions) == 0 {
				return
			}
			if len(out.Actions) == 0 {
				rule := assess(t, in).Rule
				require.NotEmpty(t, waitsFor[rule], "%s waits for nothing that would come", rule)
				return
			}
			gone := false
			if in, gone = applied(t, in, out.Actions); gone {
				return
			}
		}
	})
}

// TestACopyIsNeverTouched: all that is ever done to a copy is to take off the
// finalizer that only originals need.
func TestACopyIsNeverTouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyWorld(t)
		c := in.ClusterServiceVersion
		switch rapid.IntRange(0, 2).Draw(t, "mark") {
		case 0:
			c.Status.Reason = "Copied"
		case 1:
			c.Labels = map[string]string{"olm.copiedFrom": "other"}
		case 2:
			c.Annotations = map[string]string{"olm.operatorNamespace": "other"}
		}
		out, err := outcome(in)
		if err != nil {
			return
		}
		want := csv.Outcome{}
		if slices.Contains(c.Finalizers, cleanup.Finalizer) {
			after := c.DeepCopy()
			after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return f == cleanup.Finalizer })
			want.Actions = []olmcore.Action{olmcore.UpdateOf(c, after, olmcore.Cause{Reason: cleanup.ReasonCopyReleased, Message: "a copy has nothing to clean up"})}
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
