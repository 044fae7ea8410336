// SPDX-License-Identifier: Apache-2.0

package fbc_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/fbc"
)

const jsonCatalog = `
{"schema":"olm.package","name":"a","defaultChannel":"stable","description":"An operator.","icon":{"base64data":"x","mediatype":"image/png"},"properties":[{"type":"t","value":1}]}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a1"},{"name":"a2","replaces":"a1","skips":["a0"],"skipRange":"<2.0.0"}]}
{"schema":"olm.bundle","package":"a","name":"a1","image":"i1","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}},{"type":"x","value":{"any":["thing",null]}}],"relatedImages":[{"name":"r","image":"ri"}]}
{"schema":"olm.bundle","package":"a","name":"a2","image":"i2","properties":[{"type":"olm.package","value":{"packageName":"a","version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.package"},"message":"old"},{"reference":{"schema":"olm.channel","name":"stable"},"message":"older"},{"reference":{"schema":"olm.bundle","name":"a1"},"message":"oldest"}]}
{"schema":"custom.thing","package":"a","other":true}
`

const yamlCatalog = `# a catalog
---
schema: olm.package
name: a
defaultChannel: stable
description: An operator.
icon: {base64data: x, mediatype: image/png}
properties:
- {type: t, value: 1}
---
schema: olm.channel
package: a
name: stable
entries:
- name: a1
- name: a2
  replaces: a1
  skips: [a0]
  skipRange: <2.0.0
--- # bundles
schema: olm.bundle
package: a
name: a1
image: i1
properties:
- type: olm.package
  value: {packageName: a, version: 1.0.0}
- type: x
  value:
    any: [thing, null]
relatedImages:
- {name: r, image: ri}
---
schema: olm.bundle
package: a
name: a2
image: i2
properties:
- type: olm.package
  value: {packageName: a, version: 2.0.0}
---
---
schema: olm.deprecations
package: a
entries:
- reference: {schema: olm.package}
  message: old
- reference: {schema: olm.channel, name: stable}
  message: older
- reference: {schema: olm.bundle, name: a1}
  message: oldest
`

func property(kind, value string) olmcore.Property {
	return olmcore.Property{Type: kind, Value: []byte(value)}
}

func wantPackage() resolution.Package {
	a1 := resolution.Bundle{Name: "a1", RelatedImages: []resolution.RelatedImage{{Name: "r", Image: "ri"}}}
	a1.Image, a1.Properties = "i1", []olmcore.Property{property("olm.package", `{"packageName":"a","version":"1.0.0"}`), property("x", `{"any":["thing",null]}`)}
	a2 := resolution.Bundle{Name: "a2"}
	a2.Image, a2.Properties = "i2", []olmcore.Property{property("olm.package", `{"packageName":"a","version":"2.0.0"}`)}
	return resolution.Package{
		Name: "a", DefaultChannel: "stable", Description: "An operator.", Icon: v1alpha1.Icon{Data: "x", MediaType: "image/png"},
		Properties:   []olmcore.Property{property("t", "1")},
		Channels:     []resolution.Channel{{Name: "stable", Entries: []resolution.ChannelEntry{{Name: "a1"}, {Name: "a2", Replaces: "a1", Skips: []string{"a0"}, SkipRange: "<2.0.0"}}}},
		Bundles:      []resolution.Bundle{a1, a2},
		Deprecations: []resolution.Deprecation{{Message: "old"}, {Channel: "stable", Message: "older"}, {Bundle: "a1", Message: "oldest"}},
	}
}

func zipped(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// TestRead has cases of OLM.
//
// OLM's cases: a catalog's bundle: properties, default channel; unknown schemas, folders, ignored files, deprecations.
func TestRead(t *testing.T) {
	for name, text := range map[string]string{"JSON": jsonCatalog, "YAML": yamlCatalog, "JSON with gzip": zipped(t, jsonCatalog), "YAML with gzip": zipped(t, yamlCatalog)} {
		t.Run(name, func(t *testing.T) {
			packages, diagnostics, err := fbc.Read("catalog", strings.NewReader(text), fbc.Options{Strict: true})
			require.NoError(t, err)
			require.Empty(t, diagnostics)
			if diff := cmp.Diff([]resolution.Package{wantPackage()}, packages); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	packages, diagnostics, err := fbc.Read("empty", strings.NewReader(" \n"), fbc.Options{})
	require.NoError(t, err)
	require.Empty(t, packages)
	require.Empty(t, diagnostics)
}

func TestWriteIsTheInverseOfRead(t *testing.T) {
	var first, second bytes.Buffer
	require.NoError(t, fbc.Write(&first, []resolution.Package{wantPackage()}))
	packages, _, err := fbc.Read("x", bytes.NewReader(first.Bytes()), fbc.Options{Strict: true})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]resolution.Package{wantPackage()}, packages))
	require.NoError(t, fbc.Write(&second, packages))
	require.Equal(t, first.String(), second.String())
}

func TestOmittedProperties(t *testing.T) {
	packages, _, err := fbc.Read("x", strings.NewReader(jsonCatalog), fbc.Options{OmitProperties: []string{"x"}})
	require.NoError(t, err)
	require.Len(t, packages[0].Bundles[0].Properties, 1)
	packages, _, err = fbc.Read("x", strings.NewReader(jsonCatalog), fbc.Options{OmitProperties: []string{"x", "olm.package"}, OmitNothingOf: map[string]bool{"a1": true}})
	require.NoError(t, err)
	require.Equal(t, wantPackage().Bundles[0].Properties, packages[0].Bundles[0].Properties)
	require.Empty(t, packages[0].Bundles[1].Properties)
}

// endless never stops sending one document.
type endless struct{ started bool }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if !e.started {
		e.started = true
		copy(p, `{"schema":"`)
	}
	return len(p), nil
}

func TestLimitsOfADocument(t *testing.T) {
	tight := fbc.Options{MaxDocumentBytes: 1 << 20}
	_, _, err := fbc.Read("f", &endless{}, tight)
	require.ErrorContains(t, err, "f: document 1: the document is too large")
	_, _, err = fbc.Read("f", io.MultiReader(strings.NewReader("a: "), &endless{started: true}), tight)
	require.ErrorContains(t, err, "f: document 1: the document is too large")
	_, _, err = fbc.Read("f", strings.NewReader(strings.Repeat(`{"schema":"x"}`, 11)), fbc.Options{MaxDocuments: 10})
	require.ErrorContains(t, err, "f: document 11: the catalog has too many documents")
	_, _, err = fbc.Read("f", strings.NewReader(""), fbc.Options{MaxDocuments: -1})
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for _, c := range "bcdefghijk" {
		previous := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+previous+",", 8) + "*" + previous + "]\n"
	}
	_, diagnostics, err := fbc.Read("f", strings.NewReader(bomb), fbc.Options{})
	require.NoError(t, err)
	require.Len(t, diagnostics, 1)

	failing := io.MultiReader(strings.NewReader(`{"schema":"x"}`), brokenReader{})
	_, _, err = fbc.Read("f", failing, fbc.Options{})
	require.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("disk on fire")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// TestLoad has a case of OLM.
//
// OLM's case: unknown schemas, folders, ignored files, deprecations.
func TestLoad(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	lines := strings.Split(strings.TrimSpace(jsonCatalog), "\n")
	fsys := fstest.MapFS{
		"c/.indexignore":        file("# not for us\n*.md\n/top.json\nskip/\n!keep.md\nx/**/deep.txt\n"),
		"c/README.md":           file("# no catalog"),
		"c/keep.md":             file(lines[0]),
		"c/top.json":            file("broken"),
		"c/a/bundles.json":      file(lines[2] + lines[3]),
		"c/a/channel.yaml":      file("schema: olm.channel\npackage: a\nname: stable\nentries:\n- name: a1\n- {name: a2, replaces: a1, skips: [a0], skipRange: <2.0.0}\n"),
		"c/a/skip/x.json":       file("broken"),
		"c/a/deprecations.json": file(lines[4]),
		"c/a/.indexignore":      file("notes\n"),
		"c/a/notes":             file("broken"),
		"c/x/y/z/deep.txt":      file("broken"),
		"elsewhere/other.json":  file("broken"),
	}
	packages, diagnostics, err := fbc.Load(fsys, "c", fbc.Options{Strict: true})
	require.NoError(t, err)
	require.Empty(t, diagnostics)
	require.Empty(t, cmp.Diff([]resolution.Package{wantPackage()}, packages))

	packages, _, err = fbc.Load(fsys, "c/keep.md", fbc.Options{Strict: true})
	require.NoError(t, err)
	require.Len(t, packages, 1)

	_, _, err = fbc.Load(fsys, "nowhere", fbc.Options{})
	var where *fbc.Error
	require.ErrorAs(t, err, &where)
	require.Equal(t, "nowhere", where.File)

	_, diagnostics, err = fbc.Load(fsys, ".", fbc.Options{})
	require.NoError(t, err)
	require.Len(t, diagnostics, 1)
	require.Contains(t, diagnostics[0].Message, "elsewhere/other.json: document 1: is not an object")
}

const yamlBundle = "schema: olm.bundle\npackage: a\nname: x\nimage: i\nImage: j\nproperties: [{type: olm.package, value: {packageName: a, version: v1.0}}, {type: t, value: 1}]\nimage: k\n"

func FuzzRead(f *testing.F) {
	f.Add([]byte(jsonCatalog))
	f.Add([]byte(yamlCatalog))
	f.Add([]byte("--- {schema: olm.package, name: a}\n--- !!map\nschema: olm.channel\npackage: a\nname: c\nentries: [&x {name: x}, {<<: *x, name: y}]\n...\n---  # z\r" + yamlBundle))
	f.Add([]byte("\ufeff{\"schema\":\"olm.package\",\"name\":\"a\",\"Name\":\"b\"}\n---\n" + yamlBundle + "---\nx: &x [1]\ny: &y [*x,*x,*x]\nz: [*y,*y,*y]\n"))
	f.Add([]byte("{\"schema\":\"olm.package\",\"name\":\"a\"}{\"schema\":\"olm.channel\",\"package\":\"a\",\"name\":\"c\",\"entries\":[{\"name\":\"x\",\"skipRange\":\"> 1.0.0 || ||\"}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		packages, _, err := fbc.Read("fuzz", bytes.NewReader(data), fbc.Options{MaxDocumentBytes: 1 << 16, MaxDocuments: 100})
		if err != nil {
			return
		}
		resolution.Build(packages)
		var text bytes.Buffer
		if err := fbc.Write(&text, packages); err != nil {
			t.Fatal(err)
		}
		again, diagnostics, err := fbc.Read("again", &text, fbc.Options{})
		loose := func(d olmcore.Diagnostic) bool { return d.Reason == fbc.ReasonLooseVersion }
		if err != nil || len(slices.DeleteFunc(diagnostics, loose)) > 0 {
			t.Fatalf("what was written cannot be read: %v %v", err, diagnostics)
		}
		if len(again) != len(packages) {
			t.Fatalf("%d packages of %d", len(again), len(packages))
		}
	})
}
