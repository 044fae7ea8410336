// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/olmcore"
)

func TestStatusOfCleanupDoesNotChangeItsMode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		before := reconciled(t, in)
		for range 3 {
			out := reconciled(t, in)
			after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			if !written {
				return
			}
			in.ClusterServiceVersion = after
			in.Now = in.Now.Add(10 * time.Second)
			require.Equal(t, before.Mode, reconciled(t, in).Mode)
		}
	})
}

// TestSupersededVersionKeepsItsPhase checks that the cleanup writes only the pending objects into the status.
func TestSupersededVersionKeepsItsPhase(t *testing.T) {
	for _, was := range []struct {
		phase v1alpha1.ClusterServiceVersionPhase
		why   reason
	}{{replacing, "BeingReplaced"}, {replacing, "Odd"}, {deleting, "Replaced"}} {
		in := leaving()
		hold(in.ClusterServiceVersion, was.phase, was.why, "words", time.Minute)
		in.Deletion.ClusterObjects = olmcore.Found[olmcore.Object](belongings()[0])
		out := reconciled(t, in)
		require.Empty(t, out.Transitions)
		after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		require.True(t, written)
		want := in.ClusterServiceVersion.Status.DeepCopy()
		want.LastUpdateTime = ago(0)
		want.Cleanup.PendingDeletion = []v1alpha1.ResourceList{{
			Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Instances: []v1alpha1.ResourceInstance{{Name: "validating"}},
		}}
		require.Equal(t, *want, after.Status)
		in.ClusterServiceVersion = after
		require.Equal(t, cleanup.ModeSuperseded, reconciled(t, in).Mode)
	}
}

// TestStatusIsUpdatedAtMostEveryFiveSeconds checks that the first update is made at once and later ones wait.
func TestStatusIsUpdatedAtMostEveryFiveSeconds(t *testing.T) {
	for updated, follows := range map[*metav1.Time]map[reason]bool{
		ago(time.Second):     {"InstallSucceeded": true, "WaitingOnCleanup": false},
		ago(5 * time.Second): {"InstallSucceeded": true, "WaitingOnCleanup": true},
		nil:                  {"InstallSucceeded": true, "WaitingOnCleanup": true},
	} {
		for why, want := range follows {
			in := leaving()
			hold(in.ClusterServiceVersion, deleting, why, "words", time.Minute)
			in.ClusterServiceVersion.Status.LastUpdateTime, in.ClusterObjects.Items = updated, belongings()[:1]
			_, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](reconciled(t, in).Actions)
			require.Equal(t, want, written, "%s %s", why, updated)
		}
	}
}

// TestModeDependsOnReasonBeforeCleanup checks that the reason before that of the cleanup shows whether the version was
// replaced.
func TestModeDependsOnReasonBeforeCleanup(t *testing.T) {
	for before, mode := range map[reason]cleanup.Mode{
		"Replaced": cleanup.ModeSuperseded, "BeingReplaced": cleanup.ModeSuperseded, "InstallSucceeded": cleanup.ModeUninstall, "ComponentUnhealthy": cleanup.ModeUninstall,
	} {
		in := leaving()
		hold(in.ClusterServiceVersion, deleting, "WaitingOnCleanup", "", time.Minute)
		entries := &in.ClusterServiceVersion.Status.Conditions
		*entries = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: deleting, Reason: "Replaced"}, {Phase: deleting, Reason: before}}, *entries...)
		require.Equal(t, mode, reconciled(t, in).Mode, before)
	}
}

// TestPendingListIsLimited checks that the status contains at most fifty objects, operands first, sorted and without
// duplicates, and that the message names five.
func TestPendingListIsLimited(t *testing.T) {
	for _, n := range []int{1, 5, 6, 50, 51, 120} { // none is a multiple of 7
		in := leaving()
		in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
		var all []olmcore.Object
		var want []v1alpha1.ResourceInstance
		for i := range n {
			o := cool(fmt.Sprintf("c%03d", (i*7)%n))
			all = append(all, o)
			want = append(want, v1alpha1.ResourceInstance{Namespace: "ns", Name: fmt.Sprintf("c%03d", i)})
		}
		in.Deletion.Operands = operandsOf(all...)
		out := reconciled(t, in)
		require.Len(t, deletions(out), min(n, 100))
		after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		require.Equal(t, []v1alpha1.ResourceList{{Group: "example.com", Kind: "Cool", Instances: want[:min(n, 50)]}}, after.Status.Cleanup.PendingDeletion)
		require.Equal(t, n > 5, strings.HasSuffix(after.Status.Message, fmt.Sprintf(" and %d more", n-5)), after.Status.Message)
		require.Equal(t, min(n, 5), strings.Count(after.Status.Message, "Cool.example.com ns/"))
	}
}

func soundPending(t require.TestingT, lists []v1alpha1.ResourceList, pending int) {
	var names, sorted []string
	for _, l := range lists {
		for _, i := range l.Instances {
			names = append(names, strings.Join([]string{l.Group, l.Kind, i.Namespace, i.Name}, "/"))
		}
	}
	sorted = slices.Clone(names)
	slices.Sort(sorted)
	require.Equal(t, sorted, names)
	require.Len(t, slices.Compact(sorted), min(pending, 50))
}

// TestAbandonReportsAllObjectsLeftBehind checks objects outside the namespace and operands, those that the cleanup
// waited for and those of later stages.
func TestAbandonReportsAllObjectsLeftBehind(t *testing.T) {
	in := leaving()
	in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideAbandon
	in.Deletion.ClusterObjects.Items = belongings()[:6]
	require.Equal(t, []string{
		"APIService v1.api", "ClusterRole role", "ClusterRoleBinding binding", "MutatingWebhookConfiguration mutating", "RoleBinding reader", "ValidatingWebhookConfiguration validating",
	}, leftBehind(t, in))

	in = leaving()
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	in.Deletion.Namespaces.Items[0].DeletionTimestamp = ago(time.Minute)
	in.ClusterServiceVersion.DeletionTimestamp = ago(time.Minute)
	in.Deletion.Copies.Items = []*v1alpha1.ClusterServiceVersion{copied("elsewhere")}
	require.Equal(t, []string{"ClusterServiceVersion cool.v1"}, leftBehind(t, in))
}

// leftBehind lists the objects that are reported as left behind when a CSV is released.
func leftBehind(t *testing.T, in cleanup.Input) []string {
	t.Helper()
	out := reconciled(t, in)
	require.True(t, releases(t, out))
	var names []string
	for _, d := range out.Diagnostics {
		if d.Reason == cleanup.ReasonCleanupSkipped {
			names = append(names, d.Target.Kind+" "+d.Target.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, change := range map[string]func(in *cleanup.Input){
		"ClusterServiceVersion":                    func(in *cleanup.Input) { in.ClusterServiceVersion = nil },
		"ClusterServiceVersion.metadata.name":      func(in *cleanup.Input) { in.ClusterServiceVersion.Name = "" },
		"ClusterServiceVersion.metadata.namespace": func(in *cleanup.Input) { in.ClusterServiceVersion.Namespace = "" },
		"ClusterServiceVersion.metadata.uid":       func(in *cleanup.Input) { in.ClusterServiceVersion.UID = "" },
		"Now":                                      func(in *cleanup.Input) { in.Now = time.Time{} },
		"Config.Cleanup.OperandTimeout":            func(in *cleanup.Input) { in.Config.OperandTimeout = -1 },
		"Config.Cleanup.ClusterKinds[0]": func(in *cleanup.Input) {
			in.Config.ClusterKinds = []schema.GroupVersionKind{{Group: "a.example", Kind: "A"}}
		},
		"Neighbours[0]": func(in *cleanup.Input) { in.Neighbours = olmcore.Found[*v1alpha1.ClusterServiceVersion](nil) },
		"Deletion.Peers[2]": func(in *cleanup.Input) {
			in.Peers = olmcore.Found(operator("x", 1), operator("a", 1), operator("x", 1))
		},
		"Deletion.Copies": func(in *cleanup.Input) {
			in.Copies = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{Items: in.Copies.Items[:1]}
		},
		"Deletion.ClusterObjects[0]": func(in *cleanup.Input) { in.ClusterObjects = olmcore.Found[olmcore.Object](nil) },
		"Deletion.Operands[0]": func(in *cleanup.Input) {
			in.Operands = map[schema.GroupKind]olmcore.Observed[olmcore.Object]{{}: olmcore.Found[olmcore.Object](nil)}
		},
	} {
		in := leaving()
		in.Copies = olmcore.Found(copied("elsewhere"))
		change(&in)
		_, err := cleanup.Reconcile(in)
		var invalid *olmcore.InputError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

// TestLawsHoldForRandomCleanups checks the laws in every step of a cleanup, for any order of its lists.
func TestLawsHoldForRandomCleanups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		for range 9 {
			require.NoError(t, invariant.Laws(reconcile, in))
			out := reconciled(t, in)
			var gone bool
			if in, gone = applied(t, in, out.Actions); gone || len(out.Actions) == 0 {
				return
			}
		}
	})
}
