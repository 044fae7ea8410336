// SPDX-License-Identifier: Apache-2.0

package cleanup_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

func TestObjectsAreDeletedInStages(t *testing.T) {
	role, binding := &rbacv1.ClusterRole{ObjectMeta: ours("role")}, &rbacv1.ClusterRoleBinding{ObjectMeta: ours("binding")}
	class := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}}
	class.SetName("class")
	class.SetLabels(ours("class").Labels)
	csv := func(in *cleanup.Input) *v1alpha1.ClusterServiceVersion { return in.ClusterServiceVersion }
	both := delegator()
	both.Labels["olm.owner"], both.Labels["olm.owner.namespace"], both.Labels["olm.owner.kind"] = "cool.v1", "ns", "ClusterServiceVersion"
	nothing := func(*cleanup.Input) {}
	for name, c := range map[string]struct {
		objects []olmcore.Object // with owner labels
		change  func(in *cleanup.Input)
		want    []string
	}{
		"nothing outside the namespace: released at once":       {nil, nothing, release},
		"the operator stops before its permissions are deleted": {[]olmcore.Object{role, binding}, nothing, []string{"delete Deployment cool"}},
		"then the permissions, bindings first":                  {[]olmcore.Object{role, binding}, func(in *cleanup.Input) { in.Deployments.Items = nil }, []string{"delete ClusterRoleBinding binding", "delete ClusterRole role"}},
		"an operator that does not stop is not waited for long": {[]olmcore.Object{role}, func(in *cleanup.Input) { in.Deployments.Items[0].DeletionTimestamp = ago(30 * time.Second) }, []string{"delete ClusterRole role"}},
		"webhooks go before the operator": {
			[]olmcore.Object{role, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: ours("hook")}}, nothing, []string{"delete ValidatingWebhookConfiguration hook"},
		},
		"an APIService goes before the operator": {[]olmcore.Object{role, &apiregistrationv1.APIService{ObjectMeta: ours("v1.api")}}, nothing, []string{"delete APIService v1.api"}},
		"other cluster-scoped objects go last":   {[]olmcore.Object{class}, nothing, []string{"delete PriorityClass class"}},
		"copies go, and no others": {nil, func(in *cleanup.Input) {
			original, another, leaving := copied("two"), copied("three"), copied("four")
			original.Labels, original.Status.Reason, original.Annotations = nil, "InstallSucceeded", map[string]string{"olm.operatorNamespace": "two"}
			another.Labels["olm.copiedFrom"] = "other"
			leaving.DeletionTimestamp = ago(time.Hour)
			renamed := copied("five")
			renamed.Name = "cool.v2"
			in.Copies = olmcore.Found(original, another, leaving, renamed, copied("one"), copied("ns"))
		}, []string{"delete ClusterServiceVersion cool.v1"}},
		"the cleanup does not wait for a copy that is being deleted": {nil, func(in *cleanup.Input) {
			leaving := copied("four")
			leaving.DeletionTimestamp, leaving.Finalizers = ago(time.Second), []string{"example.com/x"}
			in.Copies = olmcore.Found(leaving)
		}, release},
		"the cleanup waits a minute for copies that are created again and again": {nil, func(in *cleanup.Input) {
			csv(in).DeletionTimestamp = ago(10 * time.Minute)
			late, early := copied("evil"), copied("one")
			late.CreationTimestamp, early.CreationTimestamp = *ago(0), *ago(10*time.Minute - 30*time.Second)
			in.Copies = olmcore.Found(late, early)
		}, []string{"delete ClusterServiceVersion cool.v1"}},
		"copies that are created after a minute are left behind": {nil, func(in *cleanup.Input) {
			csv(in).DeletionTimestamp = ago(10 * time.Minute)
			late := copied("evil")
			late.CreationTimestamp = *ago(0)
			in.Copies = olmcore.Found(late)
		}, release},
		"two Deployments, in the order of their names": {[]olmcore.Object{role}, func(in *cleanup.Input) {
			second := in.Deployments.Items[0].DeepCopy()
			second.Name, second.UID = "a", "a"
			in.Deployments.Items = append(in.Deployments.Items, second)
		}, []string{"delete Deployment a", "delete Deployment cool"}},
		"the cleanup waits for unread bindings": {nil, func(in *cleanup.Input) { in.WellKnown = olmcore.Observed[olmcore.Object]{} }, nil},
		"the cleanup waits for unread copies":   {nil, func(in *cleanup.Input) { in.Copies = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{} }, nil},
		"the cleanup waits for unread lists":    {nil, func(in *cleanup.Input) { in.ClusterObjects = olmcore.Observed[olmcore.Object]{} }, nil},
		"a Namespace is never deleted, whatever its labels": {
			[]olmcore.Object{&corev1.Namespace{ObjectMeta: ours("space")}}, nothing, release},
		"a copy has nothing to clean up":                            {[]olmcore.Object{role}, func(in *cleanup.Input) { csv(in).Labels["olm.copiedFrom"] = "other" }, release},
		"a binding for serving certificates is ours by name":        {nil, func(in *cleanup.Input) { in.WellKnown.Items, in.Deployments.Items = []olmcore.Object{delegator()}, nil }, []string{"delete ClusterRoleBinding cool-service-system:auth-delegator"}},
		"a binding with owner labels is deleted once":               {[]olmcore.Object{both}, func(in *cleanup.Input) { in.WellKnown.Items, in.Deployments.Items = []olmcore.Object{both}, nil }, []string{"delete ClusterRoleBinding cool-service-system:auth-delegator"}},
		"deleted with orphan propagation":                           {[]olmcore.Object{role}, func(in *cleanup.Input) { csv(in).Finalizers = append(csv(in).Finalizers, "orphan") }, release},
		"abandoned by annotation":                                   {[]olmcore.Object{role}, func(in *cleanup.Input) { csv(in).Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideAbandon }, release},
		"cleanup is disabled":                                       {[]olmcore.Object{role}, func(in *cleanup.Input) { in.Config.Disabled = true }, release},
		"the namespace is Terminating: Deployments are not drained": {[]olmcore.Object{role}, func(in *cleanup.Input) { in.Namespaces.Items[0].DeletionTimestamp = ago(time.Second) }, []string{"delete ClusterRole role"}},
		"the namespace is Terminating: released after 30 seconds": {[]olmcore.Object{role}, func(in *cleanup.Input) {
			in.Namespaces.Items[0].DeletionTimestamp, csv(in).DeletionTimestamp = ago(time.Second), ago(30*time.Second)
		}, release},
		"without the finalizer there is nothing to do": {nil, func(in *cleanup.Input) { csv(in).Finalizers = []string{"other"} }, nil},
		"a name that is too long is no owner label": {nil, func(in *cleanup.Input) {
			csv(in).Name, in.ClusterObjects = strings.Repeat("a", 64), olmcore.Observed[olmcore.Object]{}
		}, []string{"update ClusterServiceVersion " + strings.Repeat("a", 64)}},
		"a failure before the deletion is ignored": {[]olmcore.Object{role}, func(in *cleanup.Input) {
			in.Deployments.Items = nil
			in.LastRun = olmcore.LastResults{olmcore.KeyOf(role): {Class: olmcore.Invalid, Count: 1, First: ago(24 * time.Hour).Time, Last: ago(24 * time.Hour).Time}}
		}, []string{"delete ClusterRole role"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := leaving()
			in.ClusterObjects.Items = c.objects
			c.change(&in)
			require.Equal(t, c.want, does(t, in))
		})
	}
}

// TestCleanupTakesAtMostEightCalls checks that a cleanup needs one call for each stage if each object is deleted before
// the next call. If there is nothing to clean up, it needs one call.
func TestCleanupTakesAtMostEightCalls(t *testing.T) {
	in := leaving()
	calls := func(in cleanup.Input) (stages []cleanup.Stage) {
		for len(stages) < 20 {
			stages = append(stages, reconciled(t, in).Stage)
			out := reconciled(t, in)
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

// stageOf returns the position of an object's stage in a cleanup, counted from 1. It is 0 if the object is never
// deleted.
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

// belongs computes again which cluster-scoped objects belong to a CSV: by labels, UID, age and owner.
func belongs(c *v1alpha1.ClusterServiceVersion, o olmcore.Object) bool {
	l := o.GetLabels()
	uid, named := l["olm.owner.uid"]
	created := o.GetCreationTimestamp()
	owners := o.GetOwnerReferences()
	return l["olm.owner"] == c.Name && l["olm.owner.namespace"] == c.Namespace && l["olm.owner.kind"] == "ClusterServiceVersion" &&
		(!named || uid == string(c.UID)) && !created.After(c.DeletionTimestamp.Time) && len(owners) == 0 && stageOf(olmcore.KeyOf(o)) > 0
}

// holding computes again whether such an object keeps a CSV, because its next deletion can succeed and its limit is not
// over.
func holding(in *cleanup.Input, o olmcore.Object) bool {
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

// held returns the cluster-scoped objects that keep a CSV.
func held(in *cleanup.Input) (list []olmcore.Object) {
	for _, o := range in.Deletion.ClusterObjects.Items {
		if belongs(in.ClusterServiceVersion, o) && holding(in, o) {
			list = append(list, o)
		}
	}
	return list
}

func terminatingNamespace(in *cleanup.Input) bool {
	return slices.ContainsFunc(in.Deletion.Namespaces.Items, func(n *corev1.Namespace) bool { return n.Status.Phase == corev1.NamespaceTerminating })
}

// letGo reports whether a CSV may be released, whatever objects exist.
func letGo(in *cleanup.Input) bool {
	c := in.ClusterServiceVersion
	return in.Config.Disabled || slices.Contains(c.Finalizers, "orphan") || c.Annotations[cleanup.AnnotationCleanup] == cleanup.OverrideAbandon ||
		terminatingNamespace(in) && in.Now.Sub(c.DeletionTimestamp.Time) >= 30*time.Second
}

// TestFinalizerIsRemovedOnlyWhenNothingIsPending checks that all lists were read by then, and that all objects of the
// CSV were deleted, skipped on purpose, or given up after their time.
func TestFinalizerIsRemovedOnlyWhenNothingIsPending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out := reconciled(t, in)
		if !releases(t, out) || letGo(&in) {
			return
		}
		require.Empty(t, held(&in))
		for list, complete := range unreadForCleanup(&in) {
			switch list {
			case "ClusterServiceVersions of all namespaces": // only operands and conversions ask for it
				wants := in.ClusterServiceVersion.Spec.Cleanup.Enabled && reconciled(t, in).Mode == cleanup.ModeUninstall && in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] == ""
				require.True(t, *complete || !wants, list)
			case "objects for serving certificates":
				require.True(t, *complete || len(in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0, list)
			default:
				require.True(t, *complete, list)
			}
		}
	})
}

// TestStageWaitsForPreviousStage checks that no object of an earlier stage is pending. Objects that were given up are
// tried again.
func TestStageWaitsForPreviousStage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := dying(t)
		out := reconciled(t, in)
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
				require.Contains(t, []string{"update ClusterServiceVersion", "updateStatus ClusterServiceVersion", "update CustomResourceDefinition"}, string(verb)+" "+target.Kind, "cleanup makes nothing")
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

// TestNamesOf63CharactersAreValidLabels checks that a name of 63 characters is a valid label value, and one of 64 is
// not.
func TestNamesOf63CharactersAreValidLabels(t *testing.T) {
	for length, said := range map[int]bool{63: false, 64: true} {
		in := leaving()
		in.ClusterServiceVersion.Name = strings.Repeat("a", length)
		out := reconciled(t, in)
		require.True(t, releases(t, out))
		require.Equal(t, said, slices.ContainsFunc(out.Diagnostics, func(d olmcore.Diagnostic) bool { return d.Reason == cleanup.ReasonNameTooLong }))
	}
}

// TestOneRowAddsAStage adds a row. Its objects are written in batches, reported, given up after their time, and keep
// later stages waiting.
func TestOneRowAddsAStage(t *testing.T) {
	const quotas = cleanup.Stage("Quotas")
	withQuotas := cleanup.WithStage(quotas, "Quota", 3*time.Minute)
	quota := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Quota"}, ObjectMeta: ours(name)}
	}
	in := leaving()
	in.ClusterObjects.Items = []olmcore.Object{quota("b"), quota("a"), &rbacv1.ClusterRole{ObjectMeta: ours("role")}}
	out, err := withQuotas(in)
	require.NoError(t, err)
	require.Equal(t, quotas, out.Stage)
	require.Equal(t, 2, out.Pending)
	require.Equal(t, []string{"Quota a"}, deletions(out))
	require.Contains(t, out.Diagnostics[0].Message, "cleanup stage Quotas: waiting for 2 object(s): Quota.example.com a (deleting), Quota.example.com b (queued)")

	in.LastRun = olmcore.LastResults{}
	for _, name := range []string{"a", "b"} {
		in.LastRun[olmcore.KeyOf(quota(name))] = olmcore.LastResult{Class: olmcore.Forbidden, Message: "no", Count: 9, First: now.Add(-3 * time.Minute), Last: now}
	}
	in.ClusterServiceVersion.DeletionTimestamp = ago(time.Hour)
	in.ClusterObjects.Items[2].(*rbacv1.ClusterRole).CreationTimestamp = *ago(2 * time.Hour)
	for _, o := range in.ClusterObjects.Items {
		o.SetCreationTimestamp(*ago(2 * time.Hour))
	}
	out, err = withQuotas(in)
	require.NoError(t, err)
	require.Equal(t, cleanup.StageWorkload, out.Stage, "what was refused for too long holds no more")
	require.Equal(t, []string{"Quota a", "Quota b", "Deployment ns/cool"}, deletions(out))
}

// TestEveryStageIsDocumented checks that the package comment contains all stages in order.
func TestEveryStageIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var documented []cleanup.Stage
	for _, match := range regexp.MustCompile(`(?m)^//\t(\w+) {2,}\w`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, cleanup.Stage(match[1]))
	}
	require.Equal(t, append(cleanup.Stages(), cleanup.StageRelease), documented)
}

func TestFailedDeletionsByErrorClass(t *testing.T) {
	for name, c := range map[string]struct {
		class   olmcore.ErrorClass
		count   int
		first   time.Duration
		want    []string
		requeue time.Duration
	}{
		"the object does not exist":                     {olmcore.Gone, 1, 0, release, 0},
		"its kind is not served":                        {olmcore.NoMatch, 1, 0, release, 0},
		"the write is invalid":                          {olmcore.Invalid, 1, 0, release, 0},
		"the object changed in the meantime":            {olmcore.Conflict, 3, 0, nil, time.Second},
		"the API server was busy":                       {olmcore.Transient, 3, 0, nil, 4 * time.Second},
		"the API server is busy for a long time":        {olmcore.Transient, 90, time.Hour, nil, 15 * time.Second},
		"the deletion is forbidden":                     {olmcore.Forbidden, 2, 0, nil, 2 * time.Second},
		"the deletion is forbidden for too long":        {olmcore.Forbidden, 20, 10 * time.Minute, release, 0},
		"a webhook forbids it":                          {olmcore.Webhook, 1, 0, nil, time.Second},
		"an unknown class counts as a busy server":      {"Odd", 1, 0, nil, time.Second},
		"the deletion succeeded, and the object exists": {olmcore.ClassNone, 1, 0, []string{"delete ClusterRole role"}, 15 * time.Second},
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

// TestCleanupKeepsPublishedMessageUntilItsFirstAttempt checks that a manager that has not attempted a write yet keeps
// the message of another manager that has. It knows less than that message if it has no results, or only results from
// before the deletion.
func TestCleanupKeepsPublishedMessageUntilItsFirstAttempt(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: ours("role")}
	role.CreationTimestamp = *ago(2 * time.Hour)
	forbidden := func(at *metav1.Time, why string) olmcore.LastResults {
		return olmcore.LastResults{olmcore.KeyOf(role): {Class: olmcore.Forbidden, Message: why, Count: 1, First: at.Time, Last: at.Time}}
	}
	in := leaving()
	in.ClusterServiceVersion.DeletionTimestamp = ago(10 * time.Minute)
	in.Deployments.Items, in.ClusterObjects.Items = nil, []olmcore.Object{role}
	in.LastRun = forbidden(ago(time.Minute), "no")
	published, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](reconciled(t, in).Actions)
	require.True(t, written)
	require.Contains(t, published.Status.Message, "(rejected: no)")
	in.ClusterServiceVersion, in.Now = published, now.Add(time.Minute)
	for name, tc := range map[string]struct {
		last olmcore.LastResults
		says string // what the new message contains, empty if none is written
	}{
		"no results":                         {nil, ""},
		"results from before the deletion":   {forbidden(ago(20*time.Minute), "no"), ""},
		"the same result":                    {forbidden(ago(0), "no"), ""},
		"another result":                     {forbidden(ago(0), "never"), "(rejected: never)"},
		"the API server accepted the delete": {olmcore.LastResults{olmcore.KeyOf(role): {Count: 1, First: now, Last: now}}, "(deleting)"},
	} {
		t.Run(name, func(t *testing.T) {
			in := in
			in.LastRun = tc.last
			out := reconciled(t, in)
			require.Equal(t, []string{"ClusterRole role"}, deletions(out))
			after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
			require.Equal(t, tc.says != "", written)
			if written {
				require.Contains(t, after.Status.Message, tc.says)
			}
		})
	}
}

// TestCleanupOfASupersededVersionWritesItsStatusOnce checks that the status of a replaced version, which does not
// contain the message of the cleanup, is not written again while the same object is refused.
func TestCleanupOfASupersededVersionWritesItsStatusOnce(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: ours("role")}
	role.CreationTimestamp = *ago(2 * time.Hour)
	in := leaving()
	hold(in.ClusterServiceVersion, deleting, "Replaced", "has been replaced", time.Minute)
	in.Deployments.Items, in.ClusterObjects.Items = nil, []olmcore.Object{role}
	for _, want := range []bool{true, false} {
		in.LastRun = olmcore.LastResults{olmcore.KeyOf(role): {Class: olmcore.Forbidden, Message: "no", Count: 1, First: in.Now, Last: in.Now}}
		in.Now = in.Now.Add(time.Minute)
		out := reconciled(t, in)
		after, written := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](out.Actions)
		require.Equal(t, want, written)
		if written {
			in.ClusterServiceVersion = after
		}
	}
}

// TestBlockedCleanupIsReported checks that an object that needs a user is reported when its next attempt is due.
func TestBlockedCleanupIsReported(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: ours("role")}
	for class, says := range map[olmcore.ErrorClass]bool{olmcore.Forbidden: true, olmcore.Webhook: true, olmcore.Transient: false, olmcore.Conflict: false} {
		in := leaving()
		in.Deployments.Items, in.ClusterObjects.Items, in.ClusterServiceVersion.DeletionTimestamp = nil, []olmcore.Object{role}, ago(10*time.Minute)
		in.LastRun = olmcore.LastResults{olmcore.KeyOf(role): {Class: class, Message: "no", Count: 1, First: ago(time.Minute).Time, Last: ago(time.Minute).Time}}
		said := slices.ContainsFunc(reconciled(t, in).Diagnostics, func(d olmcore.Diagnostic) bool { return d.Reason == cleanup.ReasonCleanupBlocked })
		require.Equal(t, says, said, class)
	}
}

// TestFailedDeletionDoesNotBlockOthers checks that the results of some deletions do not change the other deletions of
// their stage.
func TestFailedDeletionDoesNotBlockOthers(t *testing.T) {
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

// TestInterruptedCleanupEndsTheSame runs only a part of each result, and lets other clients delete objects in the
// meantime. In the end, the same objects exist.
func TestInterruptedCleanupEndsTheSame(t *testing.T) {
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

// interruptible draws a cleanup that ends only through its own actions.
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

// TestFinalizerIsRemovedDespiteFailures checks that the CSV is released although every deletion fails and most lists
// cannot be read, if the user, the configuration or the deletion of the namespace demands it.
func TestFinalizerIsRemovedDespiteFailures(t *testing.T) {
	for name, enter := range map[string]func(in *cleanup.Input){
		"abandoned": func(in *cleanup.Input) {
			in.ClusterServiceVersion.Annotations[cleanup.AnnotationCleanup] = cleanup.OverrideAbandon
		},
		"disabled": func(in *cleanup.Input) { in.Config.Disabled = true },
		"orphaned": cleanupModes[cleanup.ModeOrphan],
		"the namespace is Terminating": func(in *cleanup.Input) {
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

// TestDeletionTimestampInTheFuture checks that a clock that is set back does not prolong a wait, and does not make an
// object too old.
func TestDeletionTimestampInTheFuture(t *testing.T) {
	in := leaving()
	in.ClusterServiceVersion.DeletionTimestamp = ago(-time.Hour)
	in.Deletion.ClusterObjects.Items = []olmcore.Object{&rbacv1.ClusterRole{ObjectMeta: ours("role")}}
	require.Equal(t, []string{"delete Deployment cool"}, does(t, in))
	out := reconciled(t, in)
	require.Equal(t, 5*time.Second, out.RequeueAfter)
}

// TestPendingObjectsNeverIncrease checks that a stage waits for fewer and fewer objects if only the cleanup writes. The
// status lists them sorted, each once.
func TestPendingObjectsNeverIncrease(t *testing.T) {
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
