// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"slices"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

func TestWhatAFailedDeleteMeans(t *testing.T) {
	for name, c := range map[string]struct {
		class   olmcore.ErrorClass
		count   int
		first   time.Duration
		want    []string
		requeue time.Duration
	}{
		"it is gone":                        {olmcore.Gone, 1, 0, release, 0},
		"its kind is not served":            {olmcore.NoMatch, 1, 0, release, 0},
		"it will never be accepted":         {olmcore.Invalid, 1, 0, release, 0},
		"it changed meanwhile":              {olmcore.Conflict, 3, 0, nil, time.Second},
		"the API server was busy":           {olmcore.Transient, 3, 0, nil, 4 * time.Second},
		"the API server is busy for long":   {olmcore.Transient, 90, time.Hour, nil, 15 * time.Second},
		"we may not":                        {olmcore.Forbidden, 2, 0, nil, 2 * time.Second},
		"we may not, and never will":        {olmcore.Forbidden, 20, 10 * time.Minute, release, 0},
		"a webhook forbids it":              {olmcore.Webhook, 1, 0, nil, time.Second},
		"an unknown class is a busy server": {"Odd", 1, 0, nil, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.Deployments.Items = nil
			in.ClusterServiceVersion.DeletionTimestamp = ago(time.Hour)
			m := ours("role")
			m.CreationTimestamp = *ago(2 * time.Hour)
			role := &rbacv1.ClusterRole{ObjectMeta: m}
			in.Deletion.ClusterObjects.Items = []olmcore.Object{role}
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(role): {Class: c.class, Message: "no", Count: c.count, First: now.Add(-c.first), Last: now}}
			require.Equal(t, c.want, does(t, in))
			out := reconciled(t, in)
			require.Equal(t, c.requeue, out.RequeueAfter)
		})
	}
}

// TestOneFailureStopsNothingElse: the outcomes of some deletions change nothing about those of the others of their
// stage.
func TestOneFailureStopsNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := interruptible(t)
		want := reconciled(t, in)
		in.LastRun = olmcore.LastResults{}
		failing := map[string]bool{}
		for _, a := range want.Actions {
			verb, target, _ := a.Describe()
			if verb == olmcore.VerbDelete && rapid.Bool().Draw(t, "fails") {
				failing[target.Key().String()] = true
				in.LastRun[target.Key()] = olmcore.LastResult{
					Class: rapid.SampledFrom([]olmcore.ErrorClass{olmcore.Conflict, olmcore.Transient, olmcore.Forbidden, olmcore.Webhook, "Odd"}).Draw(t, "class"),
					Count: rapid.IntRange(1, 9).Draw(t, "count"), Message: "no", First: now.Add(-time.Second), Last: now,
				}
			}
		}
		got := reconciled(t, in)
		require.Equal(t, without(deletions(want), failing), without(deletions(got), failing))
	})
}

func without(list []string, leave map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return leave[s] })
}

// TestAnyInterruptionEndsTheSame: whatever prefix of each result runs, and whatever another deletes meanwhile, the same
// is left in the end.
func TestAnyInterruptionEndsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := interruptible(t)
		want := left(finish(t, in))
		for range 60 {
			out := reconciled(t, in)
			n := rapid.IntRange(0, len(out.Actions)).Draw(t, "run")
			var gone bool
			if in, gone = applied(t, in, out.Actions[:n]); gone || releases(t, out) && n == 1 {
				require.Equal(t, want, left(in))
				return
			}
			if items := in.Deletion.ClusterObjects.Items; len(items) > 0 && rapid.IntRange(0, 5).Draw(t, "somebody") == 0 {
				if o := rapid.SampledFrom(items).Draw(t, "deletes"); !slices.Contains(want, olmcore.KeyOf(o).String()) {
					take(&in, olmcore.RefOf(o))
				}
			}
		}
		in = finish(t, in)
		require.Equal(t, want, left(in))
	})
}

// interruptible draws a cleanup that nothing but its own actions ends.
func interruptible(t *rapid.T) cleanup.Input {
	in := leaving()
	full(&in)
	keep := func(list olmcore.Observed[olmcore.Object]) olmcore.Observed[olmcore.Object] {
		list.Items = slices.DeleteFunc(list.Items, func(o olmcore.Object) bool { return rapid.IntRange(0, 2).Draw(t, "there") == 0 })
		for _, o := range list.Items {
			if rapid.IntRange(0, 5).Draw(t, "another's") == 0 {
				label("olm.owner.uid", "another")(o)
			}
		}
		return list
	}
	in.Deletion.ClusterObjects = keep(in.Deletion.ClusterObjects)
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = rapid.Bool().Draw(t, "cleanup")
	return in
}

// TestReleasedWhateverFails: every deletion fails, most lists cannot be read, and the user, the caller, or the
// namespace wants the CSV to go.
func TestReleasedWhateverFails(t *testing.T) {
	for name, enter := range map[string]func(in *cleanup.Input){
		"abandoned": func(in *cleanup.Input) {
			in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideAbandon
		},
		"disabled": func(in *cleanup.Input) { in.Config.Disabled = true },
		"orphaned": cleanupModes[cleanup.ModeOrphan],
		"the namespace went": func(in *cleanup.Input) {
			cleanupModes[cleanup.ModeNamespaceGone](in)
			in.ClusterServiceVersion.DeletionTimestamp = ago(30 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := dying(t)
				in.ClusterServiceVersion.Finalizers = []string{cleanup.Finalizer}
				delete(in.ClusterServiceVersion.Annotations, cleanup.AnnotationCleanup)
				in.Deletion.Namespaces = olmcore.Found(namespace("ns", nil))
				for _, o := range in.Deletion.ClusterObjects.Items {
					in.LastRun[olmcore.KeyOf(o)] = olmcore.LastResult{Class: olmcore.Transient, Count: 3, First: now, Last: now}
				}
				enter(&in)
				out := reconciled(t, in)
				require.True(t, releases(t, out))
			})
		})
	}
}

// TestADeletionInTheFuture: a clock that went back makes no wait longer, and no object too old.
func TestADeletionInTheFuture(t *testing.T) {
	in := leaving()
	in.ClusterServiceVersion.DeletionTimestamp = ago(-time.Hour)
	in.Deletion.ClusterObjects.Items = []olmcore.Object{&rbacv1.ClusterRole{ObjectMeta: ours("role")}}
	require.Equal(t, []string{"delete Deployment cool"}, does(t, in))
	out := reconciled(t, in)
	require.Equal(t, 5*time.Second, out.RequeueAfter)
}

// TestPendingNeverGrowsThroughOurOwnActions: what a stage waits for gets less, and the status lists it sorted, each
// object once.
func TestPendingNeverGrowsThroughOurOwnActions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out := reconciled(t, in)
		if after, ok := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions); ok {
			soundPending(t, after.Status.Cleanup.PendingDeletion, reconciled(t, in).Pending)
		}
		before, things := reconciled(t, in), len(left(in))
		next, gone := applied(t, in, out.Actions)
		require.LessOrEqual(t, len(left(next)), things)
		if after := reconciled(t, next); !gone && after.Stage == before.Stage {
			require.LessOrEqual(t, after.Pending, before.Pending)
		}
	})
}
