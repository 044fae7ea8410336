// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

var because = olmcore.Cause{Reason: "Test", Message: "a test asks for it"}

func subscription(edit func(*v1alpha1.Subscription)) *v1alpha1.Subscription {
	s := &v1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "etcd", UID: "7", ResourceVersion: "3", Labels: map[string]string{"a": "b"}},
		Spec:       &v1alpha1.SubscriptionSpec{Package: "etcd", Channel: "alpha"},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

func TestRecordActionRefusesBrokenRecords(t *testing.T) {
	sub, absent := subscription(nil), (*v1alpha1.Subscription)(nil)
	other := subscription(func(s *v1alpha1.Subscription) { s.Name = "other" })
	for name, tt := range map[string]struct {
		verb    olmcore.Verb
		content string
		current olmcore.Object
		field   string
	}{
		"an unknown verb":           {"apply", ``, sub, "verb"},
		"a create without body":     {olmcore.VerbCreate, ``, sub, "object"},
		"a create without kind":     {olmcore.VerbCreate, `{"apiVersion":"v1"}`, sub, "kind"},
		"a patch that is no map":    {olmcore.VerbUpdate, `[]`, sub, "patch"},
		"a patch that is null":      {olmcore.VerbUpdateStatus, `null`, sub, "patch"},
		"a patch of wrong types":    {olmcore.VerbUpdate, `{"spec":"x"}`, sub, "patch"},
		"a patch that renames":      {olmcore.VerbUpdate, `{"metadata":{"name":"other"}}`, sub, "patch"},
		"a patch without an object": {olmcore.VerbUpdate, `{}`, nil, "current"},
		"a patch of a nil object":   {olmcore.VerbUpdate, `{}`, absent, "current"},
		"a patch of another object": {olmcore.VerbUpdate, `{}`, other, "current"},
		"a patch of another kind":   {olmcore.VerbUpdate, `{}`, pod("etcd"), "current"},
	} {
		record := olmcore.Record{
			Verb:   tt.verb,
			Target: olmcore.RefOf(sub),
			Object: json.RawMessage(tt.content),
			Patch:  json.RawMessage(tt.content),
		}
		_, err := decode.Action(record, tt.current)
		var input *olmcore.InputError
		require.ErrorAs(t, err, &input, name)
		require.Equal(t, tt.field, input.Field, name)
	}
}

// roundTrip sends an action through JSON and back.
func roundTrip(t require.TestingT, a olmcore.Action, current olmcore.Object) olmcore.Action {
	record, err := olmcore.RecordOf(a)
	require.NoError(t, err)
	data, err := json.Marshal(record)
	require.NoError(t, err)
	var decoded olmcore.Record
	require.NoError(t, json.Unmarshal(data, &decoded))
	back, err := decode.Action(decoded, current)
	require.NoError(t, err)
	return back
}

func drawSubscription(t *rapid.T, label string) *v1alpha1.Subscription {
	word := rapid.SampledFrom([]string{"", "a", "b", "größe <&>"})
	return subscription(func(s *v1alpha1.Subscription) {
		s.Labels = rapid.MapOfN(rapid.SampledFrom([]string{"x", "y", "z/~1"}), word, 0, 3).Draw(t, label+" labels")
		if len(s.Labels) == 0 {
			s.Labels = nil
		}
		s.Spec.Channel = word.Draw(t, label+" channel")
		for range rapid.IntRange(0, 2).Draw(t, label+" owners") {
			s.OwnerReferences = append(s.OwnerReferences, owner(word.Draw(t, label+" owner"), "1"))
		}
		s.Status.CurrentCSV = word.Draw(t, label+" csv")
		s.Status.InstallPlanGeneration = rapid.IntRange(0, 3).Draw(t, label+" generation")
	})
}

func TestRecordsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawSubscription(t, "before"), drawSubscription(t, "after")
		metadata := after.DeepCopy()
		metadata.Status = before.Status
		status := before.DeepCopy()
		status.Status = after.Status
		for _, a := range []olmcore.Action{
			olmcore.UpdateOf(before, metadata, because), olmcore.UpdateStatusOf(before, status, because),
			olmcore.DeleteOf(before, because), olmcore.Delete{Target: olmcore.RefOf(before), GracePeriodSeconds: new(int64(1))},
		} {
			require.Empty(t, cmp.Diff(a, roundTrip(t, a, before)))
		}
		created := roundTrip(t, olmcore.CreateOf(after, because), nil).(olmcore.Create)
		want := after.DeepCopy()
		want.APIVersion, want.Kind = "operators.coreos.com/v1alpha1", "Subscription"
		require.Empty(t, cmp.Diff(want, created.Object))
	})
}

func widget(spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "uid": "1"}, "spec": spec,
	}}
}

func TestRecordsOfUnstructuredObjectsSurviveJSON(t *testing.T) {
	flat := widget(map[string]any{"size": int64(3), "list": []any{int64(1), "a", 1.5}})
	deep := widget(map[string]any{"list": []any{int64(2)}, "size": map[string]any{"n": int64(9)}, "huge": int64(math.MaxInt64)})
	for name, action := range map[string]olmcore.Update{
		"a value becomes a map": olmcore.UpdateOf(flat, deep, because),
		"a map becomes a value": olmcore.UpdateOf(deep, flat, because),
		"all of it goes":        olmcore.UpdateOf(deep, widget("none"), because),
	} {
		require.Empty(t, cmp.Diff(olmcore.Action(action), roundTrip(t, action, action.Before)), name)
	}
}

func TestMergePatchAgreesWithTheLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := drawSubscription(t, "before"), drawSubscription(t, "after")
		after.Status = before.Status
		record, err := olmcore.RecordOf(olmcore.UpdateOf(before, after, because))
		require.NoError(t, err)
		from, err := json.Marshal(before)
		require.NoError(t, err)
		to, err := json.Marshal(after)
		require.NoError(t, err)
		want, err := jsonmergepatch.CreateThreeWayJSONMergePatch(from, to, from)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(record.Patch))
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"verb":"update","patch":{"metadata":{"labels":{"a":null}}}}`))
	f.Add([]byte(`{"verb":"create","object":{"apiVersion":"v1","kind":"Pod"}}`))
	f.Add([]byte(`{"verb":"delete","deleteOptions":{"propagationPolicy":"Orphan"}}`))
	f.Add([]byte(`{"verb":"updateStatus","patch":{"status":{"lastUpdated":"2026-01-01T00:00:00Z","conditions":[{"type":"x"}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var record olmcore.Record
		if json.Unmarshal(data, &record) != nil {
			return
		}
		before := subscription(nil)
		record.Target = olmcore.RefOf(before)
		a, err := decode.Action(record, before)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		} else if u, ok := a.(olmcore.Update); ok {
			require.Equal(t, olmcore.KeyOf(before), olmcore.KeyOf(u.After))
		}
		require.Empty(t, cmp.Diff(subscription(nil), before), "the current object was changed")
	})
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func owner(name, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "Subscription", Name: name, UID: types.UID(uid),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}
