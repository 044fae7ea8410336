// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func TestDecodeTypesWhatTheLibraryKnows(t *testing.T) {
	for text, want := range map[string]olmcore.Object{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`: &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}},
		`{"apiVersion":"a.b/v1","kind":"Widget","n":1}`: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "a.b/v1", "kind": "Widget", "n": int64(1)}},
	} {
		got, err := decode.Decode([]byte(text))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	}
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                  "invalid input: object is not a JSON object",
		`{"apiVersion":"v1"}`: "invalid input: kind is empty",
		`{"kind":"Pod"}`:      "invalid input: apiVersion is empty",
		`{"apiVersion":"v1","kind":"Pod","spec":"x"}`: "invalid input: Pod cannot be decoded",
	} {
		_, err := decode.Decode([]byte(text))
		require.ErrorIs(t, err, olmcore.ErrInvalidInput)
		require.ErrorContains(t, err, want)
	}
}

func TestAnyUpdateStrategyDecodes(t *testing.T) {
	for strategy, want := range map[string]*v1alpha1.UpdateStrategy{
		`null`:                  nil,
		`{}`:                    {},
		`{"registryPoll":null}`: {},
		`{"registryPoll":null,"REGISTRYPOLL":{}}`: {},
		`{"registryPoll":{"interval":"45m"},"REGISTRYPOLL":null}`: {RegistryPoll: &v1alpha1.RegistryPoll{
			RawInterval: "45m", Interval: &metav1.Duration{Duration: 45 * time.Minute}}},
	} {
		o, err := decode.Decode(
			[]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","spec":{"image":"i","updateStrategy":` + strategy + `}}`),
		)
		require.NoError(t, err, strategy)
		require.Empty(t, cmp.Diff(want, o.(*v1alpha1.CatalogSource).Spec.UpdateStrategy), strategy)
		back, err := olmcore.ToMap(o)
		require.NoError(t, err)
		again := &v1alpha1.CatalogSource{}
		require.NoError(t, decode.FromMap(back, again))
		require.Empty(t, cmp.Diff(o.(*v1alpha1.CatalogSource).Spec, again.Spec))
	}
	_, err := decode.Decode(
		[]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","spec":{"updateStrategy":{"registryPoll":{"interval":7}}}}`),
	)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

func TestFromMapRejectsValuesThatJSONCannotHold(t *testing.T) {
	require.ErrorIs(t, decode.FromMap(nil, nil), olmcore.ErrInvalidInput)
	require.ErrorIs(t, decode.FromMap(nil, (*corev1.Pod)(nil)), olmcore.ErrInvalidInput)
	pod := map[string]any{"a": &corev1.Pod{}}
	require.ErrorIs(t, decode.FromMap(pod, &unstructured.Unstructured{}), olmcore.ErrInvalidInput)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`))
	f.Add([]byte(`{"ApiVersion":"v1","kind":"Pod"}`)) // the API server's names are case-sensitive
	f.Add([]byte(`{"apiVersion":"example.com/v1","kind":"Widget","spec":[1,2.5,null]}`))
	f.Add([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"CatalogSource","spec":{"updateStrategy":{}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := decode.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, olmcore.ErrInvalidInput)
			return
		}
		record, err := olmcore.RecordOf(olmcore.CreateOf(o, because))
		if err != nil {
			return
		}
		_, err = decode.Action(record, nil)
		require.NoError(t, err)
	})
}
