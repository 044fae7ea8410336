// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// stageOf is the place of an object's stage in the order of a clean-up, counted
// from 1; 0 for what is never deleted.
func stageOf(key olmcore.Key) int {
	switch key.Kind {
	case "Cool":
		return 1
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return 2
	case "APIService":
		return 4
	case "Deployment":
		return 5
	case "ClusterRole", "ClusterRoleBinding", "RoleBinding":
		return 6
	case "PriorityClass", "ClusterServiceVersion":
		return 7
	}
	return 0
}

// belongs says once more which cluster objects are a CSV's: by label, UID, age and
// owner.
func belongs(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool {
	l := o.GetLabels()
	uid, named := l["olm.owner.uid"]
	created := o.GetCreationTimestamp()
	owners := o.GetOwnerReferences()
	return l["olm.owner"] == c.Name && l["olm.owner.namespace"] == c.Namespace && l["olm.owner.kind"] == "ClusterServiceVersion" &&
		(!named || uid == string(c.UID)) && !created.After(c.DeletionTimestamp.Time) && len(owners) == 0 && stageOf(olmcore.KeyOf(o)) > 0
}

// holding says once more whether such an object holds a CSV: what deletes it next
// can succeed, and the patience with it is not over.
func holding(in *csv.Input, o olmcore.Object) bool {
	others := stageOf(olmcore.KeyOf(o)) == 7
	limit := func(d time.Duration) time.Duration {
		if others {
			return min(d, time.Minute)
		}
		return d
	}
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		return in.Now.Sub(deleted.Time) < limit(5*time.Minute)
	}
	last, tried := in.LastRun[olmcore.KeyOf(o)]
	if !tried || last.Last.Before(in.ClusterServiceVersion.DeletionTimestamp.Time) {
		return true
	}
	switch last.Class {
	case olmcore.Gone, olmcore.NoMatch, olmcore.Invalid:
		return false
	case olmcore.Forbidden, olmcore.Webhook:
		return last.Last.Sub(last.First) < limit(10*time.Minute)
	}
	return !others || last.Last.Sub(last.First) < time.Minute
}

// held are the cluster objects that hold a CSV.
func held(in *csv.Input) (list []olmcore.Object) {
	for _, o := range in.Deletion.ClusterObjects.Items {
		if belongs(in.ClusterServiceVersion, o) && holding(in, o) {
			list = append(list, o)
		}
	}
	return list
}

func terminatingNamespace(in *csv.Input) bool {
	return in.Deletion.Namespaces.Items[0].Status.Phase == corev1.NamespaceTerminating
}

// letGo says whether a CSV may go whatever is left.
func letGo(in *csv.Input) bool {
	c := in.ClusterServiceVersion
	return in.Config.Cleanup.Disabled || slices.Contains(c.Finalizers, "orphan") || c.Annotations[cleanup.AnnotationCleanup] == cleanup.OverrideAbandon ||
		terminatingNamespace(in) && in.Now.Sub(c.DeletionTimestamp.Time) >= 30*time.Second
}

// TestReleasedOnlyWhenNothingHolds: all lists were read, and whatever is ours is
// gone, was skipped by the rules, or had its time.
func TestReleasedOnlyWhenNothingHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
		if !releases(t, out) || letGo(&in) {
			return
		}
		require.Empty(t, held(&in))
		for list, complete := range unreadForCleanup(&in) {
			switch list {
			case "ClusterServiceVersions of all namespaces": // only operands and conversions ask for it
				wants := in.ClusterServiceVersion.Spec.Cleanup.Enabled && assess(t, in).Mode == cleanup.ModeUninstall && in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] == ""
				require.True(t, *complete || !wants, list)
			case "objects for serving certificates":
				require.True(t, *complete || len(in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0, list)
			default:
				require.True(t, *complete, list)
			}
		}
	})
}

// TestAStageWaitsForTheOneBefore: nothing of an earlier stage holds, though what was
// given up there is tried again.
func TestAStageWaitsForTheOneBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
		stage := 0
		holds := map[olmcore.Key]bool{}
		for _, o := range held(&in) {
			holds[olmcore.KeyOf(o)] = true
		}
		var written []olmcore.Key
		for _, a := range out.Actions {
			d, ok := a.(olmcore.Delete)
			if !ok {
				verb, target, _ := a.Describe()
				require.Contains(t, []string{"update ClusterServiceVersion", "updateStatus ClusterServiceVersion", "update CustomResourceDefinition"}, string(verb)+" "+target.Kind, "clean-up makes nothing")
				continue
			}
			require.NotZero(t, stageOf(d.Target.Key()), d.Target)
			stage = max(stage, stageOf(d.Target.Key()))
			written = append(written, d.Target.Key())
		}
		for key := range holds {
			require.False(t, stage > stageOf(key), "stage %d before %s", stage, key)
		}
		for _, key := range written {
			_, tried := in.LastRun[key]
			require.True(t, stageOf(key) == stage || tried && !holds[key], "two stages in one result: %v", out.Actions)
		}
	})
}

// TestOperandsGoOnlyWhenAsked: enabled, in a true uninstallation, and nobody else
// alive has the CRD.
func TestOperandsGoOnlyWhenAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
		c := in.ClusterServiceVersion
		if !slices.ContainsFunc(deletions(out), func(s string) bool { return strings.Contains(s, "Cool") }) {
			return
		}
		require.True(t, c.Spec.Cleanup.Enabled)
		require.NotContains(t, []string{cleanup.OverrideAbandon, cleanup.OverrideSkipOperands}, c.Annotations[cleanup.AnnotationCleanup])
		require.NotContains(t, c.Finalizers, "orphan")
		require.False(t, terminatingNamespace(&in))
		require.NotEqual(t, replacing, c.Status.Phase)
		require.NotContains(t, []reason{"Replaced", "BeingReplaced"}, c.Status.Reason)
		require.Empty(t, in.Deletion.Peers.Items, "another one owns the CRD")
		require.Empty(t, in.Subscriptions.Items, "a Subscription has it installed")
		for _, n := range in.Neighbours.Items {
			require.True(t, n.Name != "rival.v1", "a neighbour owns the CRD")
			require.False(t, n.Spec.Replaces == c.Name && n.DeletionTimestamp == nil && c.Spec.Replaces != n.Name, "%s goes on", n.Name)
		}
	})
}

// TestASupersededVersionLeavesItsOperands, whatever spec.cleanup says.
func TestASupersededVersionLeavesItsOperands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
		why := rapid.SampledFrom([]string{"phase", "reason", "successor"}).Draw(t, "why")
		switch why {
		case "phase":
			in.ClusterServiceVersion.Status.Phase = replacing
		case "reason":
			hold(in.ClusterServiceVersion, deleting, rapid.SampledFrom([]reason{"Replaced", "BeingReplaced"}).Draw(t, "reason"), "", time.Hour)
		case "successor":
			in.Neighbours.Items = nil
			in.ClusterServiceVersion.Spec.Replaces = ""
			successorOf(&in, phaseOf(t, "successor"))
		}
		for range 8 {
			out, err := reconcileCleanup(in)
			require.NoError(t, err)
			for _, key := range deletions(out) {
				require.NotContains(t, key, "Cool", why)
			}
			require.Empty(t, out.Operands)
			var gone bool
			if in, gone = applied(t, in, out.Actions); gone || len(out.Actions) == 0 {
				return
			}
		}
	})
}

// TestPendingNeverGrowsThroughOurOwnActions: what a stage waits for gets less, and
// the status lists it sorted, each object once.
func TestPendingNeverGrowsThroughOurOwnActions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
		if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
			soundPending(t, after.Status.Cleanup.PendingDeletion, assess(t, in).Pending)
		}
		before, things := assess(t, in), len(left(in))
		next, gone := applied(t, in, out.Actions)
		require.LessOrEqual(t, len(left(next)), things)
		if after := assess(t, next); !gone && after.Stage == before.Stage {
			require.LessOrEqual(t, after.Pending, before.Pending)
		}
	})
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
