// SPDX-License-Identifier: Apache-2.0

package yamljson_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/internal/yamljson"
)

func TestConvertIsTheConversionOfKubernetes(t *testing.T) {
	for name, document := range map[string]string{
		"empty":               "",
		"a comment":           "# nothing\n",
		"a mapping":           "a: 1\nb: [x, 1.5, true, null, ~]\nc: {d: '1', e: \"\\u00e9\"}\n",
		"keys of other types": "1: a\n2.5: b\ntrue: c\n-3: d\n9223372036854775807: f\n",
		"old booleans":        "yes: no\non: off\n",
		"times and numbers":   "a: 2001-01-01\nb: 0x1f\nc: 0o17\nd: 1e3\ne: 9007199254740993\nf: 012\n",
		"block texts":         "a: |\n  x\n  y\nb: >-\n  x\n  y\n",
		"anchors":             "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n",
		"binary":              "a: !!binary aGVsbG8=\n",
		"a text":              "just text\n",
		"a key twice":         "a: 1\na: 2\n",
		"flow that is JSON":   `{"a": {"b": [1, 2, {"c": null}]}}`,
		"html":                "a: <b>&</b>\n",
	} {
		t.Run(name, func(t *testing.T) {
			want, err := yaml.YAMLToJSON([]byte(document))
			require.NoError(t, err)
			got, err := yamljson.Convert([]byte(document))
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got))
		})
	}
}

func TestConvertLeavesNothingToChance(t *testing.T) {
	for name, c := range map[string]struct {
		document, want string
	}{
		"one text of two types":   {document: "1: a\n\"1\": b\n", want: `key "1" is there twice`},
		"deep inside":             {document: "a:\n- b: {true: 1, 'true': 2}\n", want: `key "true" is there twice`},
		"a mapping as a key":      {document: "? {a: 1}\n: b\n", want: "map"},
		"a key beyond int64":      {document: "18446744073709551615: a\n", want: "a key is no text"},
		"a list as a key":         {document: "? [a]\n: b\n", want: "key"},
		"no end":                  {document: "a: [", want: "did not find expected"},
		"a number without a JSON": {document: "a: .inf\n", want: "unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				got, err := yamljson.Convert([]byte(c.document))
				require.ErrorContains(t, err, c.want)
				require.Nil(t, got)
			}
		})
	}
}
