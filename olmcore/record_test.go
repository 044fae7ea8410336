// SPDX-License-Identifier: Apache-2.0

package olmcore_test

import (
	"encoding/json"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/olmcore"
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

func TestRecordOf(t *testing.T) {
	sub := subscription(nil)
	relabelled := subscription(func(s *v1alpha1.Subscription) { s.Labels = map[string]string{"c": "d"}; s.Spec.Channel = "" })
	progressed := subscription(func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "etcd.v1" })
	account := &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ops", Name: "installer"}
	target := `"target":{"apiVersion":"operators.coreos.com/v1alpha1","kind":"Subscription","namespace":"ops","name":"etcd","uid":"7","resourceVersion":"3"},"cause":{"reason":"Test","message":"a test asks for it"}`
	pod := olmcore.CreateOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "p"}}, because)
	pod.As = account
	for name, tt := range map[string]struct {
		action olmcore.Action
		want   string
	}{
		"create holds the whole object with its kind": {pod,
			`{"verb":"create","target":{"apiVersion":"v1","kind":"Pod","namespace":"ops","name":"p"},"cause":{"reason":"Test","message":"a test asks for it"},` +
				`"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"ops"},"spec":{"containers":null}},"as":{"kind":"ServiceAccount","namespace":"ops","name":"installer"}}`},
		"update holds the change": {olmcore.UpdateOf(sub, relabelled, because),
			`{"verb":"update",` + target + `,"patch":{"metadata":{"labels":{"a":null,"c":"d"}},"spec":{"channel":null}}}`},
		"update of the status holds the change": {olmcore.UpdateStatusOf(sub, progressed, because),
			`{"verb":"updateStatus",` + target + `,"patch":{"status":{"currentCSV":"etcd.v1"}}}`},
		"delete holds grace and preconditions": {olmcore.Delete{Target: olmcore.RefOf(sub), GracePeriodSeconds: new(int64(0)), PropagationPolicy: metav1.DeletePropagationForeground, Cause: because},
			`{"verb":"delete",` + target + `,"deleteOptions":{"gracePeriodSeconds":0,"preconditions":{"uid":"7","resourceVersion":"3"},"propagationPolicy":"Foreground"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			record, err := olmcore.RecordOf(tt.action)
			require.NoError(t, err)
			got, err := json.Marshal(record)
			require.NoError(t, err)
			require.JSONEq(t, tt.want, string(got))
		})
	}
}

func TestRecordOfRefusesABrokenAction(t *testing.T) {
	sub := subscription(nil)
	both := subscription(func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "etcd.v1"; s.Spec.Channel = "beta" })
	for name, action := range map[string]olmcore.Action{
		"nil":                                  nil,
		"a nil pointer":                        (*olmcore.Create)(nil),
		"create of what JSON cannot hold":      olmcore.CreateOf(&unstructured.Unstructured{Object: map[string]any{"a": struct{}{}}}, because),
		"create without an object":             olmcore.Create{},
		"create of a typed nil":                olmcore.Create{Object: (*corev1.Pod)(nil)},
		"update without a before":              olmcore.Update{After: sub},
		"update to what JSON cannot hold":      olmcore.UpdateOf(widget(int64(1)), widget(struct{}{}), because),
		"update from what JSON cannot hold":    olmcore.UpdateOf(widget(struct{}{}), widget(int64(1)), because),
		"update that changes the status":       olmcore.UpdateOf(sub, both, because),
		"update of the status that does more":  olmcore.UpdateStatusOf(sub, both, because),
		"update of the status without a after": olmcore.UpdateStatus{Before: sub},
	} {
		_, err := olmcore.RecordOf(action)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput, name)
	}
}

func TestConditionalPatch(t *testing.T) {
	target := olmcore.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "ops", Name: "p", UID: "7", ResourceVersion: "3"}
	for name, tt := range map[string]struct{ patch, want string }{
		"a change of the metadata keeps its fields": {`{"metadata":{"labels":{"a":null}}}`, `{"metadata":{"labels":{"a":null},"resourceVersion":"3","uid":"7"}}`},
		"a change of the status gets a metadata":    {`{"status":{"n":9007199254740993}}`, `{"metadata":{"resourceVersion":"3","uid":"7"},"status":{"n":9007199254740993}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := olmcore.Record{Verb: olmcore.VerbUpdate, Target: target, Patch: json.RawMessage(tt.patch)}.ConditionalPatch()
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
	got, err := olmcore.Record{Target: olmcore.Ref{Kind: "Pod", Name: "p"}, Patch: json.RawMessage(`{}`)}.ConditionalPatch()
	require.NoError(t, err)
	require.Equal(t, `{"metadata":{}}`, string(got))
	for _, broken := range []string{``, `null`, `[]`, `{`} {
		_, err := olmcore.Record{Target: target, Patch: json.RawMessage(broken)}.ConditionalPatch()
		require.ErrorIs(t, err, olmcore.ErrInvalidInput, broken)
	}
}

func TestStatusOf(t *testing.T) {
	sub := subscription(nil)
	after := subscription(func(s *v1alpha1.Subscription) { s.Status.CurrentCSV = "x" })
	actions := []olmcore.Action{olmcore.UpdateOf(sub, sub, because), olmcore.UpdateStatusOf(sub, after, because)}
	got, ok := olmcore.StatusOf[*v1alpha1.Subscription](actions)
	require.True(t, ok)
	require.Same(t, after, got)
	_, ok = olmcore.StatusOf[*v1alpha1.InstallPlan](actions)
	require.False(t, ok)
}

func widget(spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "uid": "1"}, "spec": spec,
	}}
}
