// SPDX-License-Identifier: Apache-2.0

package decode_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

func TestRead(t *testing.T) {
	const node = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                 {"", nil},
		"comments and separators": {"---\n# nothing\n---\n", nil},
		"YAML documents": {
			"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: c}\n",
			[]string{"Node a", "Pod c/b"},
		},
		"a dash line within a string": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  x: |\n    ---\n    y\n", []string{"ConfigMap b/a"},
		},
		"one JSON object":          {node, []string{"Node n"}},
		"a stream of JSON objects": {node + "\n" + node, []string{"Node n", "Node n"}},
		"a list":                   {`{"apiVersion":"v1","kind":"List","items":[` + node + `,` + node + `]}`, []string{"Node n", "Node n"}},
		"a typed list in YAML": {
			"apiVersion: v1\nkind: NodeList\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: node}\n", []string{"Node node"},
		},
		"an empty list":              {`{"apiVersion":"v1","kind":"List","items":[]}`, nil},
		"an empty list as Go has it": {"apiVersion: v1\nkind: PodList\nitems: null\n", nil},
		"carriage returns": {
			strings.ReplaceAll("---\n"+"apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n# nothing\n---\n", "\n", "\r\n"), []string{"Node a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := decode.Read("f", strings.NewReader(tt.text))
			require.NoError(t, err)
			var got []string
			for _, o := range objects {
				got = append(got, olmcore.KeyOf(o.Object).String())
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestReadNamesFileDocumentAndReason(t *testing.T) {
	for text, want := range map[string]string{
		"a: b": "f: document 1: invalid input: kind is empty",
		"apiVersion: v1\nkind: Node\n---\nkind: Pod\n": "f: document 2: invalid input: apiVersion is empty",
		"a: [":                                "f: document 1: ",
		`{"apiVersion":"v1","kind":"Node"} {`: "f: document 2: unexpected EOF",
		`{"kind":"List","items":[{"kind":"Node"}]}`:                        "f: document 1: items[0]: invalid input: apiVersion is empty",
		"apiVersion: v1\nkind: Pod\nspec: [1]\n":                           "f: document 1: invalid input: Pod cannot be decoded: ",
		"apiVersion: v1\nkind: Pod\nspec:\n  hostname: a\n  hostname: b\n": "f: document 1: invalid input: spec.hostname is there twice",
		"- 1\n": "f: document 1: invalid input: object is not a JSON object",
		strings.Repeat(`{"kind":"List","items":[`, 100) + strings.Repeat("]}", 100): "f: document 1: items[0]: items[0]: " +
			"items[0]: items[0]: items[0]: items[0]: items[0]: items[0]: lists are nested",
	} {
		_, err := decode.Read("f", strings.NewReader(text))
		require.ErrorContains(t, err, want)
		var problem *decode.Error
		require.ErrorAs(t, err, &problem)
	}
}

func TestDistinct(t *testing.T) {
	read := func(text string) ([]olmcore.Object, error) {
		objects, err := decode.Read("f", strings.NewReader(text))
		require.NoError(t, err)
		return decode.Distinct(objects)
	}
	objects, err := read(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	_, err = read(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`)
	require.EqualError(t, err, "f: document 2: Node a stands in f, document 1, already")
	_, err = read(`{"apiVersion":"v1","kind":"Node"}`)
	require.EqualError(t, err, "f: document 1: invalid input: Node.metadata.name is empty")
}

func FuzzRead(f *testing.F) {
	f.Add("apiVersion: v1\nkind: Node\n---\n{}")
	f.Add(`{"kind":"List","items":[null,{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, err := decode.Read("f", strings.NewReader(text))
		if err != nil {
			var problem *decode.Error
			require.ErrorAs(t, err, &problem)
		}
	})
}

// TestWhatIsMisspelt: keys and kinds that are near one that is known are named with it; what is near none may be newer.
func TestWhatIsMisspelt(t *testing.T) {
	read, err := decode.Read("x.yaml", strings.NewReader(`
apiVersion: operators.coreos.com/v1alpha1
kind: Subscripton
metadata: {namespace: ops, name: a}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {namespace: ops, name: b, lables: {x: y}}
spec: {name: vault, chanel: stable, source: c, sourceNamespace: olm, somethingNew: 1}
---
apiVersion: shop.example.com/v1
kind: Subscripton
metadata: {namespace: ops, name: c}
`))
	require.NoError(t, err)
	var said [][]string
	for _, o := range read {
		var keys []string
		for _, k := range o.Keys {
			keys = append(keys, k.String())
		}
		said = append(said, keys)
	}
	require.Equal(t, [][]string{
		{"kind Subscripton is not known, and ignored: did you mean Subscription?"},
		{"metadata.lables is not known, and ignored: did you mean labels?", "spec.chanel is not known, and ignored: did you mean channel?"},
		nil,
	}, said)
}
