// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

func reconcile(in csv.Input) (olmcore.Result, error) {
	out, err := csv.Reconcile(in)
	return out.Result, err
}

func vocabulary(hostile bool) gen.Vocabulary {
	operand := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Cool"}}
	operand.SetNamespace("ns")
	operand.SetName("one")
	return gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"cool.v1", "cool.v2", "cool", "cools.example.com", "group"}, Hostile: hostile,
		Words: map[string][]string{
			"phase":             {"", "Pending", "InstallReady", "Installing", "Succeeded", "Failed", "Replacing", "Deleting", "Unknown"},
			"reason":            {"", "InstallSucceeded", "RequirementsNotMet", "NoOperatorGroup", "BeingReplaced", "Replaced", "InstallComponentFailed", "InstallComponentFailedNoRetry", "WaitingOnCleanup"},
			"replaces":          {"", "cool.v1", "cool.v2"},
			"strategyname":      {"deployment", "deployment", "deployment", "other"},
			"version":           {"v1", "1.2.3"},
			"type":              {"Available", "Progressing", "Established", "NamesAccepted", "OwnNamespace"},
			"status":            {"True", "False"},
			"kind":              {"Cool", "ServiceAccount", "Role", "ClusterRole", "Group", "User"},
			"group":             {"example.com", ""},
			"kubernetesversion": {"", "v1.36.2", "nonsense"},
			"minkubeversion":    {"", "1.20.0", "99.0.0", "x"},
			"finalizers":        {cleanup.Finalizer, cleanup.Finalizer, "other", "orphan", "foregroundDeletion"},
			"annotations":       {"a", "b", cleanup.OverrideAbandon},
		},
		Objects: []olmcore.Object{
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role", UID: "1"}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "2"}}, operand,
		},
	}
}

// readOrEmpty makes a list that was not read hold nothing.
func readOrEmpty(in any) {
	fields := reflect.ValueOf(in).Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Kind() == reflect.Struct && field.FieldByName("Complete").IsValid() && !field.FieldByName("Complete").Bool() {
			field.SetZero()
		}
	}
}

// arbitrary draws an Input around a CSV that gets past the first checks often.
func arbitrary(t *rapid.T, hostile bool) csv.Input {
	in := gen.Value[csv.Input](vocabulary(hostile)).Draw(t, "in")
	in.Now = now
	in.Checkpoint = nil
	if !hostile {
		in.Config = csv.Config{}
		readOrEmpty(&in)
		readOrEmpty(&in.Deletion)
		maps.DeleteFunc(in.Deletion.Operands, func(_ schema.GroupKind, list olmcore.Observed[olmcore.Object]) bool { return !list.Complete })
	}
	base := input(pending, "RequirementsUnknown", "")
	c := in.ClusterServiceVersion
	if c == nil || hostile {
		return in
	}
	for _, at := range []**metav1.Time{&c.Status.LastUpdateTime, &c.Status.LastTransitionTime, &c.Status.CertsLastUpdated, &c.Status.CertsRotateAt} {
		if *at != nil && (*at).IsZero() {
			*at = nil // JSON has no pointer to a zero time
		}
	}
	// Values that no JSON decodes to.
	c.Spec.Version.Pre, c.Spec.Version.Build, c.Spec.Release.Release = nil, nil, nil
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastUpdateTime, c.Status.Conditions[i].LastTransitionTime = nil, nil
	}
	c.Namespace, c.Name, c.UID, c.ResourceVersion = "ns", "cool.v1", "uid-cool.v1", "10"
	if rapid.Bool().Draw(t, "sound") {
		c.Spec.InstallStrategy, c.Spec.CustomResourceDefinitions = base.ClusterServiceVersion.Spec.InstallStrategy, base.ClusterServiceVersion.Spec.CustomResourceDefinitions
		c.Labels, c.Annotations, c.Spec.InstallModes = base.ClusterServiceVersion.Labels, base.ClusterServiceVersion.Annotations, base.ClusterServiceVersion.Spec.InstallModes
		in.OperatorGroups = base.OperatorGroups
		if rapid.Bool().Draw(t, "met") {
			in.CustomResourceDefinitions, in.ServiceAccounts, in.Roles, in.RoleBindings = base.CustomResourceDefinitions, base.ServiceAccounts, base.Roles, base.RoleBindings
			in.ClusterRoles, in.ClusterRoleBindings = base.ClusterRoles, base.ClusterRoleBindings
		}
		if rapid.Bool().Draw(t, "finalizer") {
			c.Finalizers = []string{cleanup.Finalizer}
		}
	}
	return in
}

func TestTheLawsHoldForAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, invariant.Laws(reconcile, arbitrary(t, false)))
	})
}

func TestHostileInputIsRefusedOrAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := arbitrary(t, true)
		_, err := csv.Reconcile(in)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		}
		_, _ = csv.Assess(in)
	})
}

func TestOnlyKnownEdgesAreTaken(t *testing.T) {
	edges := csv.Edges()
	rapid.Check(t, func(t *rapid.T) {
		out, err := csv.Reconcile(arbitrary(t, false))
		require.NoError(t, ignoreInvalid(err))
		for _, x := range out.Transitions {
			from := v1alpha1.ClusterServiceVersionPhase(x.From)
			if from == v1alpha1.CSVPhaseUnknown {
				from = none
			}
			require.True(t, edges.Allows(from, phaseName(x.To)), "%s -> %s (%s)", x.From, x.To, x.Reason)
			require.NotEmpty(t, x.Message)
		}
	})
}

func ignoreInvalid(err error) error {
	if err != nil && strings.Contains(err.Error(), "invalid input") {
		return nil
	}
	return err
}

// anyWorld draws an Input as a cluster can hold it: mostly one where an operator is well but for a few oddities,
// sometimes any objects at all.
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

// TestEveryResultIsAFixedPointInTheEnd applies what is asked for, at one instant, in a cluster where nothing else
// moves: after a few calls nothing is asked for any more, and no result comes twice.
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

// OLM's case: the history is trimmed at, below and above its limit.
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

// TestEveryWaitHasADeadlineOrAnEvent looks at what is left when everything that was asked for has been done.
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

// TestACopyIsNeverTouched: all that is ever done to a copy is to take off the finalizer that only originals need.
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
