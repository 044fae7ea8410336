// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// TestReconcileCreatesUpdatesAndDeletesCopies checks each reason to create, update or delete a copy, with whole and
// with slim copies.
func TestReconcileCreatesUpdatesAndDeletesCopies(t *testing.T) {
	without := func(to ...string) func(*copies.Input) {
		return func(in *copies.Input) {
			in.Copies.Items = slices.DeleteFunc(in.Copies.Items, func(c *version) bool { return slices.Contains(to, c.Namespace) })
		}
	}
	change := func(edit func(*version)) func(*copies.Input) { // of the copy in a
		return func(in *copies.Input) { edit(copyIn(t, in, "a")) }
	}
	original := func(edit func(*version)) func(*copies.Input) {
		return func(in *copies.Input) { edit(in.Sources.Items[0]) }
	}
	leaving := func(in *copies.Input) { in.Namespaces.Items[1].DeletionTimestamp = csvtest.Ago(time.Second) }
	all := func(reason string) []string {
		var lines []string
		for _, n := range []string{"a", "b", "c"} {
			lines = append(lines, "delete ClusterServiceVersion "+n+"/cool.v1 ("+reason+")")
		}
		return lines
	}
	const (
		createA = "create ClusterServiceVersion a/cool.v1 (CopyMissing)"
		updateA = "update ClusterServiceVersion a/cool.v1 (CopyDiffers)"
		statusA = "updateStatus ClusterServiceVersion a/cool.v1 (CopyDiffers)"
	)
	for name, tt := range map[string]struct {
		targets []string
		change  []func(*copies.Input)
		want    []string
	}{
		"all copies exist":                {[]string{""}, nil, nil},
		"one copy is missing":             {[]string{""}, []func(*copies.Input){without("a")}, []string{createA}},
		"no copy in the own namespace":    {[]string{"ns"}, nil, nil},
		"targets by name":                 {[]string{"a", "ns"}, []func(*copies.Input){without("a")}, []string{createA}},
		"a target that does not exist":    {[]string{"a", "z"}, nil, nil},
		"none in a terminating namespace": {[]string{""}, []func(*copies.Input){without("a"), leaving}, nil},
		"kept in a terminating namespace": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Status.Phase = "" }), leaving}, all("SourceUncopiable")[1:],
		},
		"the spec differs": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.Spec.Description = "" })}, []string{updateA},
		},
		"a label is missing": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { delete(c.Labels, "olm.api.c38844a2fa17abf0") })}, []string{updateA},
		},
		"the copy has the targets": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.Annotations["olm.targetNamespaces"] = "" })}, []string{updateA},
		},
		"the copy has an owner": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.OwnerReferences = csvtest.OwnedBy("x") })}, []string{updateA},
		},
		"the status differs": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.Status.Phase = "Failed" })}, []string{statusA},
		},
		"spec and status differ": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.Status.Phase, c.Spec.Maturity = "Failed", "x" })}, []string{updateA},
		},
		"the copy is being deleted": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.Status.Phase, c.DeletionTimestamp = "Failed", csvtest.Ago(0) })}, nil,
		},
		"no original": {
			[]string{""}, []func(*copies.Input){func(in *copies.Input) { in.Sources = olmcore.Found[*version]() }}, all("SourceGone"),
		},
		"the original is being deleted": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.DeletionTimestamp = csvtest.Ago(0) })}, all("SourceGone"),
		},
		"the original is a copy": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Labels["olm.copiedFrom"] = "a" })}, all("SourceGone"),
		},
		"the original has no phase": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Status.Phase = "" })}, all("SourceUncopiable"),
		},
		"another operator owns its APIs": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Status.Reason = v1alpha1.CSVReasonInterOperatorGroupOwnerConflict })}, all("SourceUncopiable"),
		},
		"no OperatorGroup": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Status.Reason = v1alpha1.CSVReasonNoOperatorGroup })}, all("SourceUncopiable"),
		},
		"it failed for another reason": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Status.Reason = v1alpha1.CSVReasonComponentFailed }), without("b", "c")}, []string{"create ClusterServiceVersion b/cool.v1 (CopyMissing)", "create ClusterServiceVersion c/cool.v1 (CopyMissing)"},
		},
		"no targets": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { delete(c.Annotations, "olm.targetNamespaces") })}, all("NotWatched"),
		},
		"another target": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Annotations["olm.targetNamespaces"] = "b" })}, []string{all("NotWatched")[0], all("NotWatched")[2]},
		},
		"the targets are about to change": {
			[]string{"a"}, []func(*copies.Input){func(in *copies.Input) { in.OperatorGroups.Items[0].Status.Namespaces = []string{"a", "b"} }}, nil,
		},
		"only the annotation names all": {
			[]string{"a"}, []func(*copies.Input){original(func(c *version) { c.Annotations["olm.targetNamespaces"] = "" })}, nil,
		},
		"the CSV is not in the group": {
			[]string{""}, []func(*copies.Input){original(func(c *version) { c.Annotations["olm.operatorGroup"] = "x" }), without("a")}, nil,
		},
		"two groups": {[]string{""}, []func(*copies.Input){func(in *copies.Input) {
			g := groupOf("")
			g.Name = "two"
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, g)
		}, without("a")}, nil},
		"the annotation is missing": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { delete(c.Annotations, "olm.operatorNamespace") })}, []string{"delete ClusterServiceVersion a/cool.v1 (MarksDisagree)"},
		},
		"the annotation names another namespace": {
			[]string{""}, []func(*copies.Input){change(func(c *version) { c.Annotations["olm.operatorNamespace"] = "b" })}, []string{"delete ClusterServiceVersion a/cool.v1 (MarksDisagree)"},
		},
		"the label names another namespace": {[]string{""}, []func(*copies.Input){change(func(c *version) { c.Labels["olm.copiedFrom"] = "b" })},
			[]string{"Warning NameTaken: namespace a has no copy, because its ClusterServiceVersion cool.v1 is not a copy of this one. Delete one of the two"}},
		"an original has the name": {[]string{""}, []func(*copies.Input){change(func(c *version) { c.Labels, c.Annotations, c.Status.Reason = nil, nil, "" })},
			[]string{"Warning NameTaken: namespace a has no copy, because its ClusterServiceVersion cool.v1 is not a copy of this one. Delete one of the two"}},
		"other objects are ignored": {[]string{""}, []func(*copies.Input){func(in *copies.Input) {
			other := copyOf(source(""), "d")
			other.Name = "other"
			in.Copies.Items, in.Sources.Items = append(in.Copies.Items, other, in.Sources.Items[0]), append(in.Sources.Items, other)
		}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := world(tt.targets...)
			for _, change := range tt.change {
				change(&in)
			}
			require.Equal(t, tt.want, lines(reconciled(t, in).Result), "whole copies")
			require.Equal(t, tt.want, lines(reconciled(t, slimmed(in)).Result), "slim copies")
		})
	}
}

// TestContentOfACopy compares whole objects.
func TestContentOfACopy(t *testing.T) {
	in := world("a")
	want := in.Copies.Items[0].DeepCopy()
	in.Copies = olmcore.Found[*version]()
	made := reconciled(t, in).Actions[0].(olmcore.Create).Object.(*version)
	want.UID, want.ResourceVersion, want.Status = "", "", v1alpha1.ClusterServiceVersionStatus{}
	require.Empty(t, cmp.Diff(want, made))
	require.Equal(t, map[string]string{"olm.copiedFrom": "ns", "olm.api.c38844a2fa17abf0": "provided"}, made.Labels)
	require.Equal(t, map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "ns", "alm-examples": `[{"kind": "Cool"}]`}, made.Annotations)
	require.Empty(t, made.Finalizers)
	require.Empty(t, made.OwnerReferences)

	made = made.DeepCopy()
	made.UID, made.ResourceVersion = "copy-a", "20"
	in.Copies = olmcore.Found(made)
	status := reconciled(t, in).Actions[0].(olmcore.UpdateStatus).After.(*version).Status
	require.Equal(t, v1alpha1.CSVPhaseSucceeded, status.Phase)
	require.Equal(t, v1alpha1.CSVReasonCopied, status.Reason)
	require.Equal(t, "The operator is running in ns but is managing this namespace", status.Message)
}

// TestDisabledCopiesExistOnlyInProtectedNamespaces checks that the OLMConfig disables copies of operators that watch
// all namespaces, except in protected namespaces, and that an Event reports it.
func TestDisabledCopiesExistOnlyInProtectedNamespaces(t *testing.T) {
	disabled := func(in *copies.Input, on *bool) { in.OLMConfigs = olmcore.Found(olmConfig(on)) }
	eventName := copies.EventName(source(""))
	in := world("")
	disabled(&in, new(true))
	in.Config.ProtectedNamespaces = []string{"ns", "b", "z"}
	out := reconciled(t, in)
	require.Equal(t, []string{
		"delete ClusterServiceVersion a/cool.v1 (CopiedCSVsDisabled)", "delete ClusterServiceVersion c/cool.v1 (CopiedCSVsDisabled)",
		"create Event ns/" + eventName + " (CopiedCSVsDisabled)",
	}, lines(out.Result))
	event := out.Actions[2].(olmcore.Create).Object.(*corev1.Event)
	want := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: eventName}, Reason: "DisabledCopiedCSVs", Message: "CSV copying disabled for ns/cool.v1", Type: "Warning",
		InvolvedObject: corev1.ObjectReference{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v1", UID: "uid-cool.v1"},
		Source:         corev1.EventSource{Component: "operator-lifecycle-manager"}, FirstTimestamp: metav1.NewTime(now), LastTimestamp: metav1.NewTime(now), Count: 1,
	}
	require.Empty(t, cmp.Diff(want, event))

	in.Copies = olmcore.Found[*version]()
	event.UID, event.ResourceVersion = "e", "1"
	in.Events = olmcore.Found(event)
	require.Equal(t, []string{"create ClusterServiceVersion b/cool.v1 (CopyMissing)"}, lines(reconciled(t, in).Result), "protected")
	in.Copies = olmcore.Found(copyOf(source(""), "b"))
	out = reconciled(t, in)
	require.True(t, out.Empty())
	require.Equal(t, time.Hour, out.RequeueAfter, "an API server deletes old Events")
	require.NotNil(t, out.Checkpoint)

	for name, on := range map[string]*bool{"enabled again": new(false)} {
		disabled(&in, on)
		require.Equal(t, []string{
			"create ClusterServiceVersion a/cool.v1 (CopyMissing)", "create ClusterServiceVersion c/cool.v1 (CopyMissing)", "delete Event ns/" + eventName + " (CopiedCSVsEnabled)",
		}, lines(reconciled(t, in).Result), name)
	}
	anothers := event.DeepCopy()
	anothers.InvolvedObject.UID = "x"
	in.Events = olmcore.Found(anothers)
	require.Len(t, reconciled(t, in).Actions, 2, "an Event that is not ours stays")

	in = world("a", "b")
	disabled(&in, new(true))
	require.True(t, reconciled(t, in).Empty(), "it watches some namespaces")
	in = world("")
	disabled(&in, nil)
	in.OLMConfigs.Items[0].Name = "other"
	in.OLMConfigs.Items[0].Spec.Features.DisableCopiedCSVs = new(true)
	require.True(t, reconciled(t, in).Empty(), "an OLMConfig of another name")
}

// TestCopiesWithoutAnOriginalAreDeleted checks ClusterServiceVersions that are marked as copies without naming an
// original in another namespace. They are reconciled under their own keys.
func TestCopiesWithoutAnOriginalAreDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*version)
		want   []string
	}{
		"no label": {
			func(c *version) { delete(c.Labels, "olm.copiedFrom") }, []string{"delete ClusterServiceVersion a/cool.v1 (MarksDisagree)"},
		},
		"the label names its namespace": {
			func(c *version) { c.Labels["olm.copiedFrom"] = "a" }, []string{"delete ClusterServiceVersion a/cool.v1 (MarksDisagree)"},
		},
		"it is being deleted": {func(c *version) { delete(c.Labels, "olm.copiedFrom"); c.DeletionTimestamp = csvtest.Ago(0) }, nil},
		"only its status marks it": {
			func(c *version) { c.Labels, c.Annotations = nil, nil }, []string{"Warning Unmarked: its status says that it is a copy, but no label or annotation names the original. Delete it, or reinstall the operator"},
		},
		"the label names its original": {func(*version) {}, nil},
		"an original":                  {func(c *version) { c.Labels, c.Annotations, c.Status.Reason = nil, nil, "" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := world("")
			c := copyOf(source(""), "a")
			tt.change(c)
			in.Key.Namespace, in.Sources, in.Copies = "a", olmcore.Found(c), olmcore.Found[*version]()
			require.Equal(t, tt.want, lines(reconciled(t, in).Result))
		})
	}
}

func TestUnreadListsAreReportedAndChangeNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*copies.Input)
		want   []string
	}{
		"the original": {func(in *copies.Input) { in.Sources = olmcore.Observed[*version]{} }, []string{"ClusterServiceVersions"}},
		"the copies": {
			func(in *copies.Input) { in.Copies = olmcore.Observed[*version]{} }, []string{"ClusterServiceVersions of other namespaces"},
		},
		"the groups": {
			func(in *copies.Input) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} }, []string{"OperatorGroups"},
		},
		"the namespaces": {func(in *copies.Input) { in.Namespaces = olmcore.Observed[*corev1.Namespace]{} }, []string{"Namespaces"}},
		"the OLMConfigs": {
			func(in *copies.Input) { in.OLMConfigs = olmcore.Observed[*operatorsv1.OLMConfig]{} }, []string{"OLMConfigs (whether copies are disabled)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := world("")
			in.Copies.Items = in.Copies.Items[1:]
			tt.change(&in)
			out := reconciled(t, in)
			require.Empty(t, out.Actions)
			require.Equal(t, "the list of "+tt.want[0]+" was not read, so dependent copies and Events stay as they are", out.Diagnostics[0].Message)
			require.Equal(t, 5*time.Second, out.RequeueAfter)
		})
	}
	in := world("a")
	in.OLMConfigs, in.Events = olmcore.Observed[*operatorsv1.OLMConfig]{}, olmcore.Observed[*corev1.Event]{}
	require.True(t, reconciled(t, in).Empty(), "the lists matter only if the operator watches all namespaces")
	in = world("")
	in.OLMConfigs, in.Events = olmcore.Found(olmConfig(new(true))), olmcore.Observed[*corev1.Event]{}
	require.Len(t, reconciled(t, in).Actions, 3, "decisions that depend on other lists are made")
	require.Contains(t, reconciled(t, in).Diagnostics[0].Message, "Events")
}

// TestRejectedWritesAreRetriedWithBackoff checks that only rejected writes wait, and that a limited number of them is
// reported by name.
func TestRejectedWritesAreRetriedWithBackoff(t *testing.T) {
	in := world("")
	in.Copies = olmcore.Found[*version]()
	last := func(namespace string, class olmcore.ErrorClass, ago time.Duration) {
		key := olmcore.Key{Group: "operators.coreos.com", Kind: "ClusterServiceVersion", Namespace: namespace, Name: "cool.v1"}
		in.LastRun[key] = olmcore.LastResult{Class: class, Message: "no", Count: 1, Last: now.Add(-ago)}
	}
	in.LastRun = olmcore.LastResults{}
	last("a", olmcore.Webhook, 10*time.Second)
	last("b", olmcore.Transient, 10*time.Second)
	last("c", olmcore.Forbidden, 2*time.Minute)
	out := reconciled(t, in)
	require.Equal(t, []string{
		"create ClusterServiceVersion b/cool.v1 (CopyMissing)", "create ClusterServiceVersion c/cool.v1 (CopyMissing)",
		"Warning Refused: the API server rejected the last write (create): no",
	}, lines(out.Result))
	require.Equal(t, 50*time.Second, out.RequeueAfter)

	in = many(8, true)
	in.Copies, in.LastRun = olmcore.Found[*version](), olmcore.LastResults{}
	for _, n := range in.Namespaces.Items {
		last(n.Name, olmcore.Invalid, 0)
	}
	res := reconciled(t, in).Result
	require.Empty(t, res.Actions)
	require.Len(t, res.Diagnostics, 6)
	require.Equal(t, "the API server rejected the writes of 3 more copies", res.Diagnostics[5].Message)
}

func TestInputErrorsNameTheField(t *testing.T) {
	for field, change := range map[string]func(*copies.Input){
		"Key.Name":       func(in *copies.Input) { in.Key.Name = "" },
		"Key.Namespace":  func(in *copies.Input) { in.Key.Namespace = "" },
		"Now":            func(in *copies.Input) { in.Now = time.Time{} },
		"Sources[0]":     func(in *copies.Input) { in.Sources = olmcore.Found[*version](nil) },
		"Copies[1]":      func(in *copies.Input) { in.Copies.Items[1] = nil },
		"Namespaces":     func(in *copies.Input) { in.Namespaces.Complete = false },
		"OLMConfigs[0]":  func(in *copies.Input) { in.OLMConfigs = olmcore.Found[*operatorsv1.OLMConfig](nil) },
		"OperatorGroups": func(in *copies.Input) { in.OperatorGroups.Complete = false },
		"Events[0]":      func(in *copies.Input) { in.Events = olmcore.Found[*corev1.Event](nil) },
	} {
		in := world("")
		change(&in)
		_, err := copies.Reconcile(in)
		var input *olmcore.InputError
		require.ErrorAs(t, err, &input, field)
		require.Equal(t, field, input.Field)
	}
}

func TestEventNamesAreValid(t *testing.T) {
	c := source("")
	for len(c.Name) < 253 {
		c.Name += "-"
	}
	require.LessOrEqual(t, len(copies.EventName(c)), 253)
	require.NotContains(t, copies.EventName(c), "-.")
}
