// SPDX-License-Identifier: Apache-2.0

package fbc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// TestUnusualDocumentsAreUsedAsInOLMAndReported: refused is what opm refuses or what could not be installed, used
// what OLM serves.
//
// OLM's cases: documents that are none; an empty skip; ranges with a leading v; properties without type, value, or
// JSON.
func TestUnusualDocumentsAreUsedAsInOLMAndReported(t *testing.T) {
	const (
		pkg    = `{"schema":"olm.package","name":"a","defaultChannel":"c"}` + "\n"
		bundle = `"schema":"olm.bundle","package":"a","image":"i"`
	)
	version := func(v string) string {
		return fmt.Sprintf(`{%s,"name":"x","properties":[{"type":"olm.package","value":{"packageName":"a","version":%q}}]}`, bundle, v)
	}
	for name, c := range map[string]struct {
		text string
		// used is the bundle's name and image, empty when it is refused.
		used, want string
	}{
		"image in two spellings": {`{` + bundle + `,"name":"x","Image":"j"}`, "x j",
			"KeyCase: f: document 2: Image: is read as image; where that is there, too, the last one counts"},
		"image in another spelling": {`{"schema":"olm.bundle","package":"a","name":"x","IMAGE":"j"}`, "x j",
			"KeyCase: f: document 2: IMAGE: is read as image; where that is there, too, the last one counts"},
		"a key further inside in another spelling": {`{` + bundle + `,"name":"x","relatedImages":[{"Name":"r"}]}`, "x i",
			"KeyCase: f: document 2: relatedImages[0].Name: is read as relatedImages.name; where that is there, too, the last one counts"},
		"name in another spelling": {`{` + bundle + `,"Name":"x"}`, "x i",
			"KeyCase: f: document 2: Name: is read as name; where that is there, too, the last one counts"},
		"name in two spellings": {`{` + bundle + `,"name":"x","Name":"x"}`, "",
			"InvalidDocument: f: document 2: name: is there twice"},
		"name twice in YAML": {"---\nname: x\n" + bundleYAML + "name: z\n", "",
			"InvalidDocument: f: document 2: name: is there twice"},
		"image twice": {`{` + bundle + `,"name":"x","image":"j"}`, "x j",
			"DuplicateKey: f: document 2: image: is there twice; the last one counts"},
		"image twice in YAML": {"---\nname: x\n" + bundleYAML + "image: j\n", "x j",
			"DuplicateKey: f: document 2: image: is there twice; the last one counts"},
		"a key of a value twice in YAML": {"---\nname: x\n" + bundleYAML + "properties: [{type: t, value: {a: 1, a: 2}}]\n", "x i",
			"DuplicateKey: f: document 2: properties[0].value.a: is there twice; the last one counts"},
		"a key that does not matter twice": {`{` + bundle + `,"name":"x","color":1,"color":2}`, "x i",
			""},
		"a key that is not known": {`{` + bundle + `,"name":"x","icon":1}`, "x i", ""},
		"a property without a type": {`{` + bundle + `,"name":"x","properties":[{"value":1}]}`, "",
			"InvalidDocument: f: document 2: properties[0].type: is empty"},
		"neither image nor objects": {`{"schema":"olm.bundle","package":"a","name":"x"}`, "",
			"InvalidDocument: f: document 2: image: is empty, and there is no property of type olm.bundle.object: there is nothing to install"},
		"objects without an image": {`{"schema":"olm.bundle","package":"a","name":"x","properties":[{"type":"olm.bundle.object","value":{"data":"e30="}}]}`, "x ", ""},
		"two versions": {strings.Replace(version("1.0.0"), `[`, `[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}},`, 1), "",
			"InvalidDocument: f: document 2: properties: has 2 of type olm.package: which version it is cannot be told"},
		"a package twice": {pkg + `{` + bundle + `,"name":"x"}`, "x i",
			`InvalidDocument: f: document 2: name: package "a" is described twice; the first counts`},
		"an empty schema": {`{"schema":"","name":"x"}`, "",
			`InvalidDocument: f: document 2: schema: object '{"schema":"","name":"x"}' is missing root schema field`},
		"a schema that is no text": {`{"schema":5,"name":"x"}`, "",
			`InvalidDocument: f: document 2: schema: is not a text`},
		"another schema, in which entries are something else": {`{"schema":"mine","name":["x"],"entries":5,"Name":"","name":1}`, "", ""},
		"a version with a v": {version("v1.0.0"), "x i",
			`LooseVersion: f: document 2: properties[0].value.version: "v1.0.0" is no semantic version; it is read as 1.0.0`},
		"a version of two numbers": {version("1.0"), "x i",
			`LooseVersion: f: document 2: properties[0].value.version: "1.0" is no semantic version; it is read as 1.0.0`},
		"no schema":                    {`{"name":"x"}`, "", `InvalidDocument: f: document 2: schema: object '{"name":"x"}' is missing root schema field`},
		"a list":                       {`{}` + "\n" + `["x"]`, "", "InvalidDocument: f: document 2: schema: object '{}' is missing root schema field\nInvalidDocument: f: document 3: is not an object"},
		"a key twice":                  {`{"schema":"olm.bundle","name":"x","Name":"y","package":"a"}`, "", `InvalidDocument: f: document 2: name: is there twice`},
		"a key twice, once escaped":    {`{"schema":"olm.bundle","name":"x","n\u0061me":"y","package":"a"}`, "", `InvalidDocument: f: document 2: name: is there twice`},
		"no package":                   {`{"schema":"olm.channel","name":"x"}`, "", `InvalidDocument: f: document 2: package: is empty`},
		"a package without a name":     {`{"schema":"olm.package"}`, "", `InvalidDocument: f: document 2: name: is empty`},
		"a bundle without a name":      {`{"schema":"olm.bundle","package":"a"}`, "", `InvalidDocument: f: document 2: name: is empty`},
		"a wrong type":                 {`{"schema":"olm.bundle","package":"a","name":5}`, "", `InvalidDocument: f: document 2: name: is a JSON number, not a string`},
		"a wrong type further inside":  {`{"schema":"olm.channel","package":"a","name":"c","entries":[{"name":"x","skips":"y"}]}`, "", `InvalidDocument: f: document 2: entries.skips: is a JSON string, not a []string`},
		"an empty skip":                {`{"schema":"olm.channel","package":"a","name":"c","entries":[{"name":"x"},{"name":"y","skips":["x",""]}]}`, "", `InvalidDocument: f: document 2: entries[1].skips: has an empty name`},
		"an entry without a name":      {`{"schema":"olm.channel","package":"a","name":"c","entries":[{}]}`, "", `InvalidDocument: f: document 2: entries[0].name: is empty`},
		"a property without a value":   {`{"schema":"olm.bundle","package":"a","name":"x","properties":[{"type":"t"}]}`, "", `InvalidDocument: f: document 2: properties[0].value: is missing`},
		"a deprecation of a stranger":  {`{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"x"},"message":"m"}]}`, "", `InvalidDocument: f: document 2: entries[0].reference.schema: is "x", not one of olm.package, olm.channel and olm.bundle`},
		"a deprecation without reason": {`{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.package"}}]}`, "", `InvalidDocument: f: document 2: entries[0].message: is empty`},
		"an unknown package":           {`{"schema":"olm.bundle","package":"b","name":"x","image":"i"}`, "", `UnknownPackage: f: document 2: package: no document describes package "b"`},
		"not JSON":                     {`{"schema":`, "", `UnreadableFile: f: document 2: unexpected EOF; nothing that follows in the file is read`},
		"too deep":                     {`{"schema":"x","v":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "", `UnreadableFile: f: document 2: invalid character '[' exceeded max depth; nothing that follows in the file is read`},
		"YAML that is broken": {"---\na: [\n---\nschema: olm.package\nname: b\n", "",
			"UnreadableFile: f: document 2: invalid character '-' in numeric literal; nothing that follows in the file is read"},
		"a version that means nothing": {version("latest"), "x i", ""}, // Build says so
	} {
		t.Run(name, func(t *testing.T) {
			packages, diagnostics, err := fbc.Read("f", strings.NewReader(pkg+c.text), fbc.Options{})
			require.NoError(t, err)
			var used, said []string
			for _, b := range packages[0].Bundles {
				used = append(used, b.Name+" "+b.Image)
			}
			for _, d := range diagnostics {
				require.Equal(t, olmcore.Warning, d.Severity)
				said = append(said, d.Reason+": "+d.Message)
			}
			require.Equal(t, c.used, strings.Join(used, "\n"))
			require.Equal(t, c.want, strings.Join(said, "\n"))
			_, _, err = fbc.Read("f", strings.NewReader(pkg+c.text), fbc.Options{Strict: true})
			if c.want == "" || strings.HasPrefix(c.want, "DuplicateKey") || strings.HasPrefix(c.want, "KeyCase") {
				require.NoError(t, err)
				return
			}
			var where *fbc.Error
			require.ErrorAs(t, err, &where)
			require.Equal(t, "f", where.File)
			require.NotZero(t, where.Document)
		})
	}
}

const bundleYAML = "schema: olm.bundle\npackage: a\nimage: i\n"

func TestEveryDroppedDocumentIsReported(t *testing.T) {
	for name, c := range map[string]struct{ text, names, want string }{
		"separated in all ways": {"# c\n--- {schema: olm.package, name: a}\n--- !!map\nschema: olm.package\nname: b\n...\n---  # c\nschema: olm.package\nname: c\n--- {\"schema\":\"olm.package\",\"name\":\"d\"}\n", "a b c d", ""},
		"JSON, then YAML":       {`{"schema":"olm.package","name":"a"}` + "\n---\nschema: olm.package\nname: b\n", "a b", ""},
		"YAML, then JSON":       {"schema: olm.package\nname: a\n---\n" + `{"schema":"olm.package","name":"b"}`, "a b", ""},
		"YAML, then two of JSON": {"schema: olm.package\nname: a\n---\n" + `{"schema":"olm.package","name":"b"}` + "\n" + `{"schema":"olm.package","name":"c"}`, "a b",
			"f: document 3: yaml: line 4: did not find expected <document start>; nothing that follows in the file is read"},
		"after dots": {"schema: olm.package\nname: a\n...\nschema: olm.package\nname: b\n", "a b", ""},
		"after one that is not usable": {"schema: olm.package\nname: .inf\n---\nschema: olm.package\nname: b\n", "b",
			"f: document 1: json: unsupported value: +Inf"},
	} {
		t.Run(name, func(t *testing.T) {
			packages, diagnostics, err := fbc.Read("f", strings.NewReader(c.text), fbc.Options{})
			require.NoError(t, err)
			var names, said []string
			for _, p := range packages {
				names = append(names, p.Name)
			}
			for _, d := range diagnostics {
				said = append(said, d.Message)
			}
			require.Equal(t, c.names, strings.Join(names, " "))
			require.Equal(t, c.want, strings.Join(said, "\n"))
		})
	}
}

func TestAliasesOfYAMLCountAgainstTheBoundsOfACatalog(t *testing.T) {
	one := "schema: olm.bundle\npackage: a\nx: &x " + strings.Repeat("x", 1000) + "\ny: [" + strings.Repeat("*x,", 10) + "]\n---\n"
	text := strings.Repeat(one, 10)
	_, _, err := fbc.Read("f", strings.NewReader(text), fbc.Options{MaxBytes: 60_000})
	require.ErrorContains(t, err, "f: document 6: the catalog is too large")
	_, _, err = fbc.Read("f", strings.NewReader(text), fbc.Options{MaxBytes: 120_000})
	require.NoError(t, err)
}

func TestABundleWithManyAPIsTakesTimeThatGrowsWithTheirNumber(t *testing.T) {
	const apis = 150_000
	var text bytes.Buffer
	text.WriteString(`{"schema":"olm.package","name":"a","defaultChannel":"c"}{"schema":"olm.channel","package":"a","name":"c","entries":[{"name":"x"}]}`)
	text.WriteString(`{"schema":"olm.bundle","package":"a","name":"x","image":"i","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}`)
	for i := range apis {
		fmt.Fprintf(&text, `,{"type":"olm.gvk","value":{"group":"g%d","version":"v1","kind":"K"}}`, i)
	}
	text.WriteString("]}")
	start := time.Now()
	packages, diagnostics, err := fbc.Read("f", &text, fbc.Options{OmitProperties: []string{resolution.PropertyCSVMetadata}})
	require.NoError(t, err)
	require.Empty(t, diagnostics)
	require.Len(t, packages[0].Bundles[0].Properties, apis+1)
	content, diagnostics := resolution.Build(packages)
	require.Empty(t, diagnostics)
	require.Equal(t, []string{"x"}, content.Chain("a", "c"))
	require.Less(t, time.Since(start), 20*time.Second, "it takes a minute when each API is compared with all others")
}
