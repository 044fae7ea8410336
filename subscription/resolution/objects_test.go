// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// TestObjectsOfABundleAreReadFromItsProperties checks that each property olm.bundle.object becomes an object, or makes
// the bundle invalid with a message that names the property. A bundle with an image is unpacked then.
func TestObjectsOfABundleAreReadFromItsProperties(t *testing.T) {
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
	const before = "property at index 3 of type olm.bundle.object: "
	value := func(text string) string {
		data, err := json.Marshal(map[string][]byte{"data": []byte(text)})
		require.NoError(t, err)
		return string(data)
	}
	for name, c := range map[string]struct {
		value, image string
		objects      []string
		invalid      string
	}{
		"JSON":        {value("{\"kind\":\"Gizmo\",\"metadata\":{\"name\":\"g\"}}"), "", []string{"ConfigMap c", "Gizmo g"}, ""},
		"YAML":        {value("kind: Gizmo\nmetadata: {name: g}\n"), "", []string{"ConfigMap c", "Gizmo g"}, ""},
		"no kind":     {value("{}"), "", []string{"ConfigMap c"}, before + "the object has no kind"},
		"a list":      {value("[]"), "", []string{"ConfigMap c"}, before + "the manifest is not an object"},
		"a text":      {value("hello"), "", []string{"ConfigMap c"}, before + "the manifest is not an object"},
		"no YAML":     {value("{"), "", []string{"ConfigMap c"}, before + "yaml: line 1: did not find expected node content"},
		"no data":     {"{}", "", []string{"ConfigMap c"}, before + "it has no data"},
		"a reference": {`{"ref":"objects/c.yaml"}`, "", []string{"ConfigMap c"}, before + "it has no data"},
		"not base64":  {`{"data":"*"}`, "", []string{"ConfigMap c"}, before + "illegal base64 data at input byte 0"},
		"not an object": {`"x"`, "", []string{"ConfigMap c"},
			before + "json: cannot unmarshal string into Go value of type resolution.bundleObject"},
		"no kind, with an image": {value("{}"), "quay.io/a:1", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			list := packages(line("a/s", "a1", "", property("odd", "1"), property(resolution.PropertyBundleObject, "%s", value(configMap)),
				property(resolution.PropertyBundleObject, "%s", c.value)))
			list[0].Bundles[0].Image = c.image
			w := newWorld(line("a/s", "a1", "")).sub("a/s")
			w.in.Catalogs[0].Content, _ = resolution.Build(list)
			res := resolution.Resolve(w.in)
			require.Equal(t, resolution.Resolved, res.Outcome)
			got := res.Operators[0].Bundle
			var objects []string
			for _, o := range got.Objects {
				objects = append(objects, olmcore.KeyOf(o).Kind+" "+o.GetName())
			}
			require.Empty(t, cmp.Diff(c.objects, objects))
			require.Equal(t, c.invalid, got.Invalid)
		})
	}
}
