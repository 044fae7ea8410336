// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"fmt"
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

// releases reports whether a result takes the finalizer off, which is then all it
// does.
func releases(t require.TestingT, out cleanup.Outcome) bool {
	for _, a := range out.Actions {
		if c, ok := metadataOf(a); ok && !slices.Contains(c.Finalizers, cleanup.Finalizer) {
			require.Len(t, out.Actions, 1)
			return true
		}
	}
	return false
}

// cleanupModes are the ways in which a CSV can be deleted.
var cleanupModes = map[cleanup.Mode]func(in *csv.Input){
	cleanup.ModeUninstall:     func(*csv.Input) {},
	cleanup.ModeSuperseded:    func(in *csv.Input) { hold(in.ClusterServiceVersion, deleting, "Replaced", "", time.Hour) },
	cleanup.ModeNamespaceGone: func(in *csv.Input) { in.Deletion.Namespaces.Items[0].Status.Phase = corev1.NamespaceTerminating },
	cleanup.ModeOrphan: func(in *csv.Input) {
		in.ClusterServiceVersion.Finalizers = append(in.ClusterServiceVersion.Finalizers, "orphan")
	},
}

// TestOthersObjectsStayInEveryMode: one label, UID or time that differs, and an
// object of any sort outlives the whole clean-up; without the difference only a
// CRD, which is never deleted, and everything after an orphaning deletion does.
func TestOthersObjectsStayInEveryMode(t *testing.T) {
	differences := map[string]func(o olmcore.Object){
		"none":                      func(olmcore.Object) {},
		"another owner":             label("olm.owner", "cool.v2"),
		"another namespace":         label("olm.owner.namespace", "other"),
		"another kind of owner":     label("olm.owner.kind", "OperatorGroup"),
		"another incarnation":       label("olm.owner.uid", "before"),
		"no owner":                  func(o olmcore.Object) { o.SetLabels(map[string]string{"olm.managed": "true"}) },
		"younger than the deletion": func(o olmcore.Object) { o.SetCreationTimestamp(*ago(9 * time.Second)) },
		"owned by another version":  func(o olmcore.Object) { o.SetOwnerReferences(ownerCSV("other")) },
	}
	for mode, enter := range cleanupModes {
		for name, differ := range differences {
			for i := range belongings() {
				o := belongings()[i]
				key := olmcore.KeyOf(o)
				t.Run(fmt.Sprintf("%s/%s/%s", mode, key.Kind, name), func(t *testing.T) {
					in := leaving(t)
					enter(&in)
					differ(o)
					in.Deletion.ClusterObjects.Items = []olmcore.Object{o}
					end := cleanUp(t, in)
					deleted := name == "none" && key.Kind != "CustomResourceDefinition" && mode != cleanup.ModeOrphan
					require.Equal(t, !deleted, len(end.Deletion.ClusterObjects.Items) == 1)
				})
			}
		}
	}
}

func label(key, value string) func(o olmcore.Object) {
	return func(o olmcore.Object) {
		labels, _ := olmcore.MergeLabels(o.GetLabels(), map[string]string{key: value})
		o.SetLabels(labels)
	}
}

// cleanUp runs a clean-up to its end; nothing fails.
func cleanUp(t require.TestingT, in csv.Input) csv.Input {
	for range 8 {
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
		done := releases(t, out)
		in, _ = applied(t, in, out.Actions)
		if done {
			return in
		}
	}
	require.FailNow(t, "still held after 8 calls")
	return in
}

// TestACleanUpTakesEightCallsAtMost: a stage for each of them, when each object is
// gone at the next call; one when there is nothing.
func TestACleanUpTakesEightCallsAtMost(t *testing.T) {
	in := leaving(t)
	calls := func(in csv.Input) (stages []cleanup.Stage) {
		for len(stages) < 20 {
			stages = append(stages, assess(t, in).Stage)
			out, err := reconcileCleanup(in)
			require.NoError(t, err)
			if releases(t, out) {
				return stages
			}
			in, _ = applied(t, in, out.Actions)
		}
		return stages
	}
	require.Equal(t, []cleanup.Stage{cleanup.StageRelease}, calls(in))
	full(&in)
	require.Equal(t, []cleanup.Stage{
		cleanup.StageOperands, cleanup.StageAdmission, cleanup.StageConversion, cleanup.StageAPIServices, cleanup.StageWorkload, cleanup.StageRBAC, cleanup.StageOthers, cleanup.StageRelease,
	}, calls(in))
}

// TestTheOrderOfEveryListIsNothingToACleanUp, call by call.
func TestTheOrderOfEveryListIsNothingToACleanUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := leavingNow()
		full(&in)
		for gone := false; !gone; {
			want, err := reconcileCleanup(in)
			require.NoError(t, err)
			got, err := reconcileCleanup(shuffled(in, func(n int) []int { return rapid.Permutation(indices(n)).Draw(t, "order") }))
			require.NoError(t, err)
			require.Equal(t, want, got)
			in, gone = applied(t, in, want.Actions)
		}
	})
}

// full gives a clean-up work in every stage.
func full(in *csv.Input) {
	in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
	in.Deletion.ClusterObjects = olmcore.Found(belongings()...)
	in.Deletion.WellKnown, in.Deletion.Copies = olmcore.Found[olmcore.Object](delegator()), olmcore.Found(copied("elsewhere"))
	in.Deletion.Operands = nil
	in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{GenerateName: "w", DeploymentName: "cool", Type: v1alpha1.ConversionWebhook}}
	in.CustomResourceDefinitions.Items[0].Spec.Conversion = ourConversion()
	in.Deletion.Operands = operandsOf(cool("one"), cool("two", "example.com/x"))
}

// TestAnyInterruptionEndsTheSame: whatever prefix of each result runs, and whatever
// somebody else deletes meanwhile, the same is left in the end.
func TestAnyInterruptionEndsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := interruptible(t)
		want := left(cleanUp(t, in))
		for range 60 {
			out, err := reconcileCleanup(in)
			require.NoError(t, err)
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
		in = cleanUp(t, in)
		require.Equal(t, want, left(in))
	})
}

// interruptible draws a clean-up that nothing but its own actions ends.
func interruptible(t *rapid.T) csv.Input {
	in := leavingNow()
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

func leavingNow() csv.Input {
	in := input(succeeded, "InstallSucceeded", "install strategy completed with no errors")
	in.Deployments = olmcore.Found(installed().DeepCopy())
	in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Second)
	cameAlongside(in.CustomResourceDefinitions.Items[0], "ns/cool.v1")
	in.Deletion = cleanup.Deletion{
		Peers: olmcore.Found[*v1alpha1.ClusterServiceVersion](), Namespaces: olmcore.Found(namespace("ns", nil)),
		ClusterObjects: olmcore.Found[olmcore.Object](), WellKnown: olmcore.Found[olmcore.Object](), Copies: olmcore.Found[*v1alpha1.ClusterServiceVersion](),
	}
	return in
}

// left lists what a clean-up did not delete.
func left(in csv.Input) []string {
	names := []string{}
	for _, list := range []olmcore.Observed[olmcore.Object]{in.Deletion.ClusterObjects, in.Deletion.WellKnown, in.Deletion.Operands[coolKind]} {
		for _, o := range list.Items {
			names = append(names, olmcore.KeyOf(o).String())
		}
	}
	for _, d := range in.Deployments.Items {
		names = append(names, olmcore.KeyOf(d).String())
	}
	for _, c := range in.Deletion.Copies.Items {
		names = append(names, olmcore.KeyOf(c).String())
	}
	for _, crd := range in.CustomResourceDefinitions.Items {
		if crd.Spec.Conversion != nil && crd.Spec.Conversion.Webhook != nil {
			names = append(names, "conversion of "+crd.Name)
		}
	}
	slices.Sort(names)
	return names
}

// TestOneFailureStopsNothingElse: the outcomes of some deletions change nothing
// about those of the others of their stage.
func TestOneFailureStopsNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := interruptible(t)
		want, err := reconcileCleanup(in)
		require.NoError(t, err)
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
		got, err := reconcileCleanup(in)
		require.NoError(t, err)
		require.Equal(t, without(deletions(want), failing), without(deletions(got), failing))
	})
}

func deletions(out cleanup.Outcome) []string {
	list := []string{}
	for _, a := range out.Actions {
		if d, ok := a.(olmcore.Delete); ok {
			list = append(list, d.Target.Key().String())
		}
	}
	return list
}

func without(list []string, leave map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return leave[s] })
}

// TestReleasedWhateverFails: nobody can delete anything, most lists cannot be read,
// and the user, the caller, or the namespace wants the CSV to go.
func TestReleasedWhateverFails(t *testing.T) {
	for name, enter := range map[string]func(in *csv.Input){
		"abandoned": func(in *csv.Input) {
			in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideAbandon
		},
		"disabled": func(in *csv.Input) { in.Config.Cleanup.Disabled = true },
		"orphaned": cleanupModes[cleanup.ModeOrphan],
		"the namespace went": func(in *csv.Input) {
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
				out, err := reconcileCleanup(in)
				require.NoError(t, err)
				require.True(t, releases(t, out))
			})
		})
	}
}

// TestOurOwnStatusNeverChangesTheMode of a clean-up.
func TestOurOwnStatusNeverChangesTheMode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		before := assess(t, in)
		for range 3 {
			out, err := reconcileCleanup(in)
			require.NoError(t, err)
			after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			if !written {
				return
			}
			in.ClusterServiceVersion = after
			in.Now = in.Now.Add(10 * time.Second)
			require.Equal(t, before.Mode, assess(t, in).Mode)
		}
	})
}

// TestASupersededVersionKeepsItsPhase: its clean-up writes down what it waits for, and
// nothing else.
func TestASupersededVersionKeepsItsPhase(t *testing.T) {
	for _, was := range []struct {
		phase phaseName
		why   reason
	}{{replacing, "BeingReplaced"}, {replacing, "Odd"}, {deleting, "Replaced"}} {
		in := leavingNow()
		hold(in.ClusterServiceVersion, was.phase, was.why, "words", time.Minute)
		in.Deletion.ClusterObjects = olmcore.Found[olmcore.Object](belongings()[0])
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
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
		require.Equal(t, cleanup.ModeSuperseded, assess(t, in).Mode)
	}
}

// TestWaitingHidesNoReason: behind the reason that a clean-up writes, the one before
// it tells whether the version was replaced.
func TestWaitingHidesNoReason(t *testing.T) {
	for before, mode := range map[reason]cleanup.Mode{
		"Replaced": cleanup.ModeSuperseded, "BeingReplaced": cleanup.ModeSuperseded, "InstallSucceeded": cleanup.ModeUninstall, "ComponentUnhealthy": cleanup.ModeUninstall,
	} {
		in := leavingNow()
		hold(in.ClusterServiceVersion, deleting, "WaitingOnCleanup", "", time.Minute)
		entries := &in.ClusterServiceVersion.Status.Conditions
		*entries = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: deleting, Reason: "Replaced"}, {Phase: deleting, Reason: before}}, *entries...)
		require.Equal(t, mode, assess(t, in).Mode, before)
	}
}

// TestThePendingListIsBounded: fifty at most, operands first, sorted, each once,
// and the message names five.
func TestThePendingListIsBounded(t *testing.T) {
	for _, n := range []int{1, 5, 6, 50, 51, 120} { // none is a multiple of 7
		in := leavingNow()
		in.ClusterServiceVersion.Spec.Cleanup.Enabled = true
		var all []olmcore.Object
		var want []v1alpha1.ResourceInstance
		for i := range n {
			o := cool(fmt.Sprintf("c%03d", (i*7)%n))
			all = append(all, o)
			want = append(want, v1alpha1.ResourceInstance{Namespace: "ns", Name: fmt.Sprintf("c%03d", i)})
		}
		in.Deletion.Operands = operandsOf(all...)
		out, err := reconcileCleanup(in)
		require.NoError(t, err)
		require.Len(t, deletions(out), min(n, 100))
		after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		require.Equal(t, []v1alpha1.ResourceList{{Group: "example.com", Kind: "Cool", Instances: want[:min(n, 50)]}}, after.Status.Cleanup.PendingDeletion)
		require.Equal(t, n > 5, strings.HasSuffix(after.Status.Message, fmt.Sprintf(" and %d more", n-5)), after.Status.Message)
		require.Equal(t, min(n, 5), strings.Count(after.Status.Message, "Cool.example.com ns/"))
	}
}
