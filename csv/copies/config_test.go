// SPDX-License-Identifier: Apache-2.0

package copies_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/internal/csvtest"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
)

// configWorld returns a ConfigInput with an operator in namespace ns that watches all namespaces, its copies, and an
// operator that watches only its own namespace.
func configWorld(disabled *bool) copies.ConfigInput {
	c := csvtest.Operator("cool.v1", 1)
	c.Annotations["olm.targetNamespaces"] = ""
	csvtest.Hold(c, csvtest.Succeeded, v1alpha1.CSVReasonInstallSuccessful, "it runs", 0)
	g := csvtest.Group()
	g.Spec.TargetNamespaces, g.Status.Namespaces = nil, []string{""}
	own := c.DeepCopy()
	own.Namespace = "b"
	own.Annotations = map[string]string{"olm.operatorGroup": "group", "olm.operatorNamespace": "b", "olm.targetNamespaces": "b"}
	own.Name, own.UID = "own.v1", "own"
	ownGroup := csvtest.Group()
	ownGroup.Namespace, ownGroup.Status.Namespaces, ownGroup.UID = "b", []string{"b"}, "own"
	in := copies.ConfigInput{
		Now: now, OLMConfig: olmConfig(disabled), OperatorGroups: olmcore.Found(g, ownGroup),
		ClusterServiceVersions: olmcore.Found(c, own, csvtest.Copied("a"), csvtest.Copied("b")),
		Namespaces:             olmcore.Found(namespace("ns", nil), namespace("a", nil), namespace("b", nil)),
	}
	for i, v := range in.ClusterServiceVersions.Items {
		if v.IsCopied() {
			v.ResourceVersion = "20"
			in.ClusterServiceVersions.Items[i] = copies.Slim(v).(*v1alpha1.ClusterServiceVersion)
		}
	}
	return in
}

func reconcileConfig(in copies.ConfigInput) (olmcore.Result, error) {
	out, err := copies.ReconcileConfig(in)
	return out.Result, err
}

func TestConditionReportsMissingAndUnexpectedCopies(t *testing.T) {
	without := func(in *copies.ConfigInput) { // the copy in b
		in.ClusterServiceVersions.Items = in.ClusterServiceVersions.Items[:3]
	}
	for name, tt := range map[string]struct {
		disabled        *bool
		change          func(*copies.ConfigInput)
		status          metav1.ConditionStatus
		reason, message string
		again           time.Duration
	}{
		"all copies exist": {
			nil, func(*copies.ConfigInput) {}, "False", "CopiedCSVsEnabled",
			"Copied CSVs are enabled and present across the cluster", 0,
		},
		"enabled": {
			new(false), func(*copies.ConfigInput) {}, "False", "CopiedCSVsEnabled",
			"Copied CSVs are enabled and present across the cluster", 0,
		},
		"a copy is missing": {
			nil, without, "False", "CopiedCSVsEnabled",
			"Copied CSVs are enabled and at least one copied CSVs is missing", 10 * time.Second,
		},
		"a terminating namespace": {nil, func(in *copies.ConfigInput) {
			without(in)
			in.Namespaces.Items[2].Status.Phase = corev1.NamespaceTerminating
		}, "False", "CopiedCSVsEnabled",
			"Copied CSVs are enabled and present across the cluster", 0},
		"another namespace": {nil, func(in *copies.ConfigInput) {
			in.ClusterServiceVersions.Items[3] = in.ClusterServiceVersions.Items[3].DeepCopy()
			in.ClusterServiceVersions.Items[3].Namespace = "gone"
		}, "False", "CopiedCSVsEnabled",
			"Copied CSVs are enabled and at least one copied CSVs is missing", 10 * time.Second},
		"disabled, and all exist": {
			new(true), func(*copies.ConfigInput) {}, "False", "CopiedCSVsDisabled",
			"Copied CSVs are disabled and at least one unexpected copied CSV was found " +
				"for an operator installed in AllNamespace mode", 10 * time.Second,
		},
		"disabled, one exists": {
			new(true), func(in *copies.ConfigInput) { in.Config.ProtectedNamespaces = []string{"a"} }, "False", "CopiedCSVsDisabled",
			"Copied CSVs are disabled and at least one unexpected copied CSV was found " +
				"for an operator installed in AllNamespace mode", 10 * time.Second,
		},
		"disabled, protected": {
			new(true), func(in *copies.ConfigInput) { in.Config.ProtectedNamespaces = []string{"a", "z"}; without(in) },
			"True", "CopiedCSVsDisabled",
			"Copied CSVs are disabled and no unexpected copied CSVs were found " +
				"for operators installed in AllNamespace mode", 0,
		},
		"disabled, none exists": {
			new(true), func(in *copies.ConfigInput) { in.ClusterServiceVersions.Items = in.ClusterServiceVersions.Items[:2] },
			"True", "CopiedCSVsDisabled",
			"Copied CSVs are disabled and no unexpected copied CSVs were found " +
				"for operators installed in AllNamespace mode", 0,
		},
		"copies of another": {
			new(true), func(in *copies.ConfigInput) { in.ClusterServiceVersions.Items = in.ClusterServiceVersions.Items[1:] },
			"True", "CopiedCSVsDisabled",
			"Copied CSVs are disabled and no unexpected copied CSVs were found " +
				"for operators installed in AllNamespace mode", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := configWorld(tt.disabled)
			tt.change(&in)
			out, err := copies.ReconcileConfig(in)
			require.NoError(t, err)
			require.Len(t, out.Actions, 1)
			after := out.Actions[0].(olmcore.UpdateStatus).After.(*operatorsv1.OLMConfig)
			want := metav1.Condition{
				Type: "DisabledCopiedCSVs", Status: tt.status, Reason: tt.reason, Message: tt.message,
				LastTransitionTime: metav1.NewTime(now),
			}
			require.Equal(t, []metav1.Condition{want}, after.Status.Conditions)
			require.Equal(t, tt.again, out.RequeueAfter)

			in.OLMConfig = after
			out, err = copies.ReconcileConfig(in)
			require.NoError(t, err)
			require.True(t, out.Empty())
			require.NotNil(t, out.Checkpoint)
		})
	}
}

func TestOtherOLMConfigsAreIgnored(t *testing.T) {
	in := configWorld(new(true))
	in.OLMConfig.Name = "other"
	res, err := reconcileConfig(in)
	require.NoError(t, err)
	require.Empty(t, res.Actions)
	require.Equal(t, "only the OLMConfig cluster has an effect. Move the settings to it, and delete this one", res.Diagnostics[0].Message)
	in = configWorld(nil)
	in.OLMConfig.DeletionTimestamp = csvtest.Ago(0)
	res, err = reconcileConfig(in)
	require.NoError(t, err)
	require.Equal(t, olmcore.Result{}, res)
}

func TestUnreadListsLeaveTheOLMConfigUnchanged(t *testing.T) {
	for name, change := range map[string]func(*copies.ConfigInput){
		"ClusterServiceVersions": func(in *copies.ConfigInput) {
			in.ClusterServiceVersions = olmcore.Observed[*v1alpha1.ClusterServiceVersion]{}
		},
		"OperatorGroups": func(in *copies.ConfigInput) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} },
		"Namespaces":     func(in *copies.ConfigInput) { in.Namespaces = olmcore.Observed[*corev1.Namespace]{} },
	} {
		in := configWorld(nil)
		change(&in)
		res, err := reconcileConfig(in)
		require.NoError(t, err)
		require.Empty(t, res.Actions)
		require.Equal(t, "the list of "+name+" was not read, so the condition DisabledCopiedCSVs stays as it is", res.Diagnostics[0].Message)
	}
}

func TestConfigInputErrorsNameTheField(t *testing.T) {
	for field, change := range map[string]func(*copies.ConfigInput){
		"OLMConfig":                 func(in *copies.ConfigInput) { in.OLMConfig = nil },
		"OLMConfig.metadata.name":   func(in *copies.ConfigInput) { in.OLMConfig.Name = "" },
		"Now":                       func(in *copies.ConfigInput) { in.Now = time.Time{} },
		"ClusterServiceVersions[0]": func(in *copies.ConfigInput) { in.ClusterServiceVersions.Items[0] = nil },
		"OperatorGroups":            func(in *copies.ConfigInput) { in.OperatorGroups.Complete = false },
		"Namespaces[1]":             func(in *copies.ConfigInput) { in.Namespaces.Items[1] = nil },
	} {
		in := configWorld(nil)
		change(&in)
		_, err := reconcileConfig(in)
		var input *olmcore.InputError
		require.ErrorAs(t, err, &input, field)
		require.Equal(t, field, input.Field)
	}
}

// configAtRest returns a ConfigInput whose OLMConfig has its condition.
func configAtRest(t require.TestingT) copies.ConfigInput {
	in := configWorld(nil)
	res, err := reconcileConfig(in)
	require.NoError(t, err)
	in.OLMConfig = res.Actions[0].(olmcore.UpdateStatus).After.(*operatorsv1.OLMConfig)
	return in
}

func TestReconcileConfigWithCheckpointAllocatesNothing(t *testing.T) {
	in := configAtRest(t)
	require.NoError(t, invariant.CheckpointSound(copies.ReconcileConfig, in))
	require.NoError(t, invariant.CheckpointCovers(copies.ReconcileConfig, in))
	out, err := copies.ReconcileConfig(in)
	require.NoError(t, err)
	in.Checkpoint = out.Checkpoint
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = copies.ReconcileConfig(in) }))
}

func TestLawsHoldForRandomConfigInputs(t *testing.T) {
	vocabulary := gen.Vocabulary{
		Now: now, Namespace: "ns", Names: []string{"cluster", "cool.v1", "group"},
		Words: map[string][]string{"phase": {"", "Succeeded"}, "namespaces": {"", "ns"}},
	}
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Value[copies.ConfigInput](vocabulary).Draw(t, "in")
		in.Now, in.Checkpoint = now, nil
		in.ClusterServiceVersions.Complete, in.OperatorGroups.Complete, in.Namespaces.Complete = true, true, true
		if rapid.Bool().Draw(t, "a world") {
			w := configWorld(nil)
			in.ClusterServiceVersions, in.OperatorGroups, in.Namespaces = w.ClusterServiceVersions, w.OperatorGroups, w.Namespaces
		}
		require.NoError(t, invariant.Laws(reconcileConfig, in))
		require.NoError(t, invariant.CheckpointSound(copies.ReconcileConfig, in))
	})
}

// FuzzReconcileConfig decodes an OLMConfig and all other objects from any bytes.
func FuzzReconcileConfig(f *testing.F) {
	data, err := json.Marshal(configWorld(new(true)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		in := copies.ConfigInput{}
		if json.Unmarshal(data, &in) != nil {
			return
		}
		in.Now, in.Checkpoint = now, nil
		require.NoError(t, invariant.Deterministic(reconcileConfig, in))
	})
}

func TestGatherReadsAllListsForTheOLMConfigCluster(t *testing.T) {
	in := configWorld(nil)
	objects := []olmcore.Object{in.OLMConfig}
	for _, c := range in.ClusterServiceVersions.Items {
		objects = append(objects, c)
	}
	snapshot, err := olmcore.NewSnapshot(objects, olmcore.Everything)
	require.NoError(t, err)
	got, err := copies.GatherConfig(t.Context(), snapshot, types.NamespacedName{Name: "cluster"}, copies.Config{})
	require.NoError(t, err)
	require.Len(t, got.ClusterServiceVersions.Items, 4)
	require.True(t, got.OperatorGroups.Complete && got.Namespaces.Complete)
	_, err = copies.GatherConfig(t.Context(), snapshot, types.NamespacedName{Name: "other"}, copies.Config{})
	require.True(t, apierrors.IsNotFound(err))
	nothing, err := olmcore.NewSnapshot(nil)
	require.NoError(t, err)
	_, err = copies.GatherConfig(t.Context(), nothing, types.NamespacedName{Name: "cluster"}, copies.Config{})
	require.ErrorIs(t, err, olmcore.ErrNotRead)
}

func TestAffectedConfigsReturnsTheOLMConfig(t *testing.T) {
	counts := []types.NamespacedName{{Name: "cluster"}}
	other := olmConfig(nil)
	other.Name = "other"
	everywhere, nowhere := csvtest.Operator("cool.v1", 1), csvtest.Operator("cool.v1", 1)
	everywhere.Annotations = map[string]string{"olm.targetNamespaces": ""}
	nowhere.Annotations = nil
	for name, c := range map[string]struct {
		object olmcore.Object
		want   []types.NamespacedName
	}{
		"the OLMConfig":                           {olmConfig(nil), counts},
		"another OLMConfig":                       {other, []types.NamespacedName{{Name: "other"}}},
		"an operator that watches all namespaces": {everywhere, counts},
		"an operator that watches some":           {csvtest.Operator("cool.v1", 1), nil},
		"an operator that watches none":           {nowhere, nil},
		"a copy":                                  {csvtest.Copied("a"), nil},
		"a group":                                 {csvtest.Group(), counts},
		"a namespace":                             {namespace("a", nil), counts},
		"another kind":                            {&corev1.Pod{}, nil},
	} {
		require.Equal(t, c.want, copies.AffectedConfigs(c.object), name)
	}
}

// TestUnaffectedOriginalsDoNotChangeTheCondition checks that the condition is the same with and without an original for
// which Affected returns no key.
func TestUnaffectedOriginalsDoNotChangeTheCondition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := configWorld(rapid.SampledFrom([]*bool{nil, new(true)}).Draw(t, "disabled"))
		c := in.ClusterServiceVersions.Items[rapid.IntRange(0, 1).Draw(t, "which")]
		if targets := rapid.SampledFrom([]string{"", "ns", "b", ",", "none"}).Draw(t, "targets"); targets == "none" {
			delete(c.Annotations, "olm.targetNamespaces")
		} else {
			c.Annotations["olm.targetNamespaces"] = targets
		}
		in.OperatorGroups.Items[1].Status.Namespaces = []string{rapid.SampledFrom([]string{"", "b"}).Draw(t, "selected")}
		before, err := reconcileConfig(in)
		require.NoError(t, err)
		in.ClusterServiceVersions.Items = slices.DeleteFunc(in.ClusterServiceVersions.Items, func(o *version) bool { return o == c })
		after, err := reconcileConfig(in)
		require.NoError(t, err)
		if diff := cmp.Diff(before, after); diff != "" {
			require.NotEmpty(t, copies.AffectedConfigs(c), diff)
		}
	})
}

func TestOtherConditionsOfTheOLMConfigStay(t *testing.T) {
	in := configWorld(nil)
	in.OLMConfig.Status.Conditions = []metav1.Condition{{Type: "Other", Status: "True"}}
	res, err := reconcileConfig(in)
	require.NoError(t, err)
	after := res.Actions[0].(olmcore.UpdateStatus).After.(*operatorsv1.OLMConfig)
	require.NotNil(t, meta.FindStatusCondition(after.Status.Conditions, "Other"))
	require.Len(t, in.OLMConfig.Status.Conditions, 1)
}
