// SPDX-License-Identifier: Apache-2.0

package fbc_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/subscription/resolution/fbc"
)

// repeated sends a text for ever.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}

func TestLimitsApplyToTheWholeCatalog(t *testing.T) {
	for name, text := range map[string]string{
		"documents of YAML that are empty":   "---\n",
		"comments":                           "# nothing\n",
		"white space between JSON documents": " ",
		"small documents":                    `{"schema":"x"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := fbc.Read("f", &repeated{text: text}, fbc.Options{MaxBytes: 1 << 20})
			require.ErrorContains(t, err, "the catalog is too large")
			// A megabyte of zeros and the like is a kilobyte.
			var bomb bytes.Buffer
			w := gzip.NewWriter(&bomb)
			_, err = io.CopyN(w, &repeated{text: text}, 4<<20)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.Less(t, bomb.Len(), 64<<10)
			_, _, err = fbc.Read("f", &bomb, fbc.Options{MaxBytes: 1 << 20})
			require.ErrorContains(t, err, "the catalog is too large")
		})
	}
	half := &fstest.MapFile{Data: []byte(strings.Repeat(`{"schema":"x"}`, 50))}
	_, _, err := fbc.Load(fstest.MapFS{"a": half, "b": half}, ".", fbc.Options{MaxBytes: 1399})
	require.ErrorContains(t, err, "b: document", "all files count together")
	_, _, err = fbc.Load(fstest.MapFS{"a": half, "b": half}, ".", fbc.Options{MaxBytes: 1400})
	require.NoError(t, err)
}

// TestInvalidCatalogsAreRejected has a case of OLM.
//
// OLM's case: documents that are none.
func TestInvalidCatalogsAreRejected(t *testing.T) {
	deepJSON := `{"schema":"x","v":` + strings.Repeat(`{"v":`, 100_000) + "1" + strings.Repeat("}", 100_001)
	for name, c := range map[string]struct{ text, want string }{
		"a file that is cut off":  {`{"schema":"olm.package","name":"a"}` + "\n" + `{"schema":"olm.ch`, "document 2: unexpected EOF"},
		"zeros":                   {strings.Repeat("\x00", 100), "document 1: "},
		"an image":                {"\x89PNG\r\n\x1a\n\x00\x00", "document 1: "},
		"deep JSON":               {deepJSON, "document 1: "},
		"deep YAML":               {strings.Repeat("- ", 20_000), "document 1: "},
		"deep YAML in braces":     {strings.Repeat("[", 20_000), "document 1: "},
		"a key twice in YAML":     {"schema: olm.package\nname: a\nname: b\n", "document 1: "},
		"a number for a list":     {`{"schema":"olm.bundle","package":"a","name":"x","properties":7}`, "document 1: properties: is a JSON number"},
		"two documents in a line": {`{"schema":"olm.package"} {"schema":"olm.package","name":"a"}`, "document 1: name: is empty"},
		"a cut gzip":              {zipped(t, strings.Repeat(`{"schema":"olm.package"}`, 50))[:30], "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diagnostics, err := fbc.Read("f", strings.NewReader(c.text), fbc.Options{})
			said := fmt.Sprint(err)
			for _, d := range diagnostics {
				said += d.Message
			}
			require.Contains(t, said, c.want)
			_, _, err = fbc.Read("f", strings.NewReader(c.text), fbc.Options{Strict: true})
			require.Error(t, err)
		})
	}
}

// TestIgnorePatterns has a case of OLM.
//
// OLM's case: unknown schemas, folders, ignored files, deprecations.
func TestIgnorePatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		ignored       bool
	}{
		{"a.json", "a.json", true}, {"a.json", "x/y/a.json", true}, {"/a.json", "x/a.json", false}, {"x/a.json", "x/a.json", true}, {"x/a.json", "y/x/a.json", false},
		{"x/**", "x/y/a.json", true}, {"x/**", "y/a.json", false}, {"**/y", "x/y/a.json", true}, {"x/**/a.json", "x/a.json", true}, {"x/**/a.json", "x/y/z/a.json", true},
		{"x/**/a.json", "x/y/z/b.json", false}, {"x/*/a.json", "x/y/z/a.json", false}, {"*.json", "x/a.json", true}, {"x/", "x/a.json", true}, {"a.json/", "a.json", false},
		{"**", "x/a.json", true}, {"**/x/**/z/**", "q/x/y/z/a.json", true}, {"**/x/**/z/**", "q/x/y/a.json", false}, {"[", "a.json", false}, {"**/**/**", "x/y/a.json", true}, {"!a.json", "a.json", false},
	} {
		fsys := fstest.MapFS{".indexignore": {Data: []byte(c.pattern + "\n")}, c.file: {Data: []byte(`{"schema":"olm.package","name":"a"}`)}}
		packages, _, err := fbc.Load(fsys, ".", fbc.Options{})
		require.NoError(t, err)
		require.Equal(t, c.ignored, len(packages) == 0, "%q and %s", c.pattern, c.file)
	}
	start := time.Now()
	fsys := fstest.MapFS{
		".indexignore":                 {Data: []byte(strings.Repeat("**/a/", 30) + "b\n")},
		strings.Repeat("a/", 60) + "c": {Data: []byte(`{"schema":"olm.package","name":"a"}`)},
	}
	packages, _, err := fbc.Load(fsys, ".", fbc.Options{})
	require.NoError(t, err)
	require.Len(t, packages, 1)
	require.Less(t, time.Since(start), time.Minute, "it takes years when each ** is tried at each place")
}
