// SPDX-License-Identifier: Apache-2.0

package yamljson_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/internal/yamljson"
)

// lists are documents with items, and whether they are cut.
var lists = map[string]struct {
	text string
	cut  bool
}{
	"kubectl's":              {"apiVersion: v1\nitems:\n- a: 1\n  b:\n  - c\n  - d\n- a: 2\nkind: List\nmetadata:\n  resourceVersion: \"\"\n", true},
	"indented":               {"apiVersion: v1\nkind: List\nitems:\n  - a: 1\n    b:\n      - c\n  - a: 2\n", true},
	"items alone":            {"items:\n- a\n- [b, c]\n-\n- - d\n  - e\n", true},
	"no line end":            {"kind: List\nitems:\n- a", true},
	"dashes before":          {"---\nkind: List\nitems:\n- a\n", true},
	"several":                {"items:\n- a\n---\nitems:\n- b\n---\nitems:\n- c\nkind: List\n", true},
	"carriage returns":       {"kind: List\r\nitems:\r\n- a: |\r\n    x\r\n    - y\r\n- b\r\nmore: z\r\n", true},
	"a block text":           {"items:\n- a: |\n    x\n    - y\n\n- |\n - b\n- c: |+\n    z\n\n\n- >-\n  d\n  - e\nkind: List\n", true},
	"a text in quotes":       {"items:\n- a: \"x\n    - y\"\n- 'b\n  - c'\n", true},
	"a plain text":           {"items:\n- a\n  - b\n- c\n", true},
	"comments":               {"# x\nkind: List\n# y\nitems:\n- a # z\n# - b\n  # c\n- d\n# e\nmore: f\n# g\n", false},
	"comments behind":        {"kind: List\n# y\nitems:\n- a # z\n# - b\n  # c\n- d\n# e\nmore: f\n# g\n", true},
	"ampersands":             {"items:\n- 'a & b'\n- c?d=e&f=g\n", true},
	"words with a star":      {"items:\n- '*'\n- |\n  *a* b\n", true},
	"a key of another type":  {"true: x\nitems:\n- 1: a\n", true},
	"merged":                 {"items:\n- <<: {a: 1}\n  b: 2\n", true},
	"tags":                   {"items:\n- !!str 1\n- !!binary aGVsbG8=\n", true},
	"quotes around elements": {"items:\n- \"a\n- b\"\n- c\n", false},
	"an anchor":              {"items:\n- &a b\n- *a\n", false},
	"an alias alone":         {"items:\n- *a\n", false},
	"an anchor inside":       {"items:\n- [&a b, *a]\n", false},
	"a directive":            {"%YAML 1.1\n---\nitems:\n- a\n", false},
	"a tag of the document":  {"--- !!map\nitems:\n- a\n", false},
	"dots":                   {"items:\n- a\n...\nitems:\n- b\n", false},
	"dots, then a mapping":   {"items:\n- a\n...\nkind: b\n", false},
	"flow":                   {"items: [a, b]\n", false},
	"a flow around":          {"{a: [\nitems:\n- b\n]}\n", false},
	"an empty one":           {"kind: List\nitems: []\n", false},
	"null":                   {"kind: List\nitems: null\n", false},
	"nothing":                {"kind: List\nitems:\nmore: a\n", false},
	"a mapping":              {"items:\n  a: b\n", false},
	"a comment first":        {"items:\n# x\n- a\n", false},
	"items twice":            {"items:\n- a\nkind: List\nitems:\n- b\n", false},
	"a key twice":            {"kind: a\nitems:\n- a\nkind: b\n", false},
	"a key twice inside":     {"items:\n- a\n- {b: 1, b: 2}\n", false},
	"keys of one text":       {"items:\n- {1: a, '1': b}\n", false},
	"keys of one text, both": {"yes: a\nitems:\n- b\n\"true\": c\n", false},
	"no JSON":                {"items:\n- a\n- .inf\n", false},
	"no YAML":                {"kind: List\nitems:\n- a\n- b: [\n- c\n", false},
	"no YAML behind":         {"items:\n- a\nkind: \"List\n", false},
	"less indented":          {"items:\n  - a\n - b\n", false},
	"more indented before":   {"---\n  kind: List\nitems:\n- a\n", false},
	"a tab":                  {"items:\n- a: b\n\t- c\n", false},
	"another line end":       {"items:\n- a\rkind: List\n", false},
	"yet another line end":   {"items:\n- a\u2028- b\n", false},
	"a byte order mark":      {"\ufeffitems:\n- a\n", true},
	"two byte order marks":   {"\ufeff\ufeffitems:\n- a\n", false},
	"junk behind":            {"items:\n- a\n] b\n", false},
	"a list, then another":   {"items:\n- a\n- b\n---\na: &x 1\nb: *x\n---\na: [\n", true},
	"a list, then nothing":   {"items:\n- a\n---\n", true},
}

func TestAListIsCutWhereThatChangesNothing(t *testing.T) {
	for name, c := range lists {
		t.Run(name, func(t *testing.T) {
			s := yamljson.Cut(strings.NewReader(c.text), limit)
			_, _ = s.Next()
			require.Equal(t, c.cut, yamljson.Cuts(s))
			same(t, c.text)
		})
	}
}

const limit = 1 << 20

// same demands that the cutter changes nothing about a text.
func same(t require.TestingT, text string) {
	want := documents(yamljson.Uncut(strings.NewReader(text), limit))
	require.Equal(t, want, documents(yamljson.Cut(strings.NewReader(text), limit)), "%q", text)
	require.Equal(t, want, documents(yamljson.NewStream(strings.NewReader(text), limit)), "%q", text)
}

// lines are hostile in some place of a list.
var lines = []string{
	"items:", "items:", "items: ", "items: []", "items: null", "kind: List", "kind: ", "metadata:", "\"a\": b", "? a", ": b", "a: b: c", "- a", "- a: 1", "-", "- - a", "- - - b", "- |", "- >-", "- |1", "- a: |", "- a: |+", "- a: >2", "- \"a",
	"b\"", "- 'c", "d'", "- ''''", "- {a: b}", "- {a:", "}", "- [", "]", "- &a b", "- *a", "- !!str 1", "- !<tag:yaml.org,2002:int> 1", "# c", "- # d", "- a #", "---", "--- ", "--- a", "...", "%YAML 1.1", "\t- a", "-\ta", "- ? a", "- <<: {a: 1}", "- 1: a", "1: b",
	"'1': c", "- .nan", "- a & b", "- \u2028a", "- a\rb", "", " ", "x", "- \"a\\", "apiVersion: v1", "a:", "- a:", "b: \"c", "k: |", "k: 'x", "y'",
}

func hostile(t *rapid.T) string {
	var b strings.Builder
	if rapid.Bool().Draw(t, "a list") {
		b.WriteString("kind: List\nitems:\n- first\n")
	}
	for range rapid.IntRange(0, 8).Draw(t, "lines") {
		b.WriteString(strings.Repeat(" ", rapid.SampledFrom([]int{0, 0, 0, 1, 2, 2, 3, 4}).Draw(t, "indent")))
		b.WriteString(rapid.SampledFrom(lines).Draw(t, "line"))
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n", "\n\n", ""}).Draw(t, "end"))
	}
	return b.String()
}

func TestLawCuttingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		same(t, hostile(t))
	})
}

func FuzzCut(f *testing.F) {
	for _, c := range lists {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Where the library meets a character that it does not read depends on how much it reads at once.
		strange := func(c rune) bool {
			return c == utf8.RuneError || c == '\ufeff' || unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t' || c >= 0xfffe
		}
		if len(text) < 1<<11 && strings.IndexFunc(text, strange) < 0 {
			same(t, text)
		}
	})
}

func TestALongListInManyPartsIsOneDocument(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nitems:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "- kind: Pod\n  metadata:\n    name: pod-%d\n    labels:\n      a: b\n", i)
	}
	text.WriteString("kind: List\n")
	s := yamljson.NewStream(strings.NewReader(text.String()), limit)
	document, err := s.Next()
	require.NoError(t, err)
	require.True(t, yamljson.Cuts(s))
	require.Equal(t, documents(yamljson.Uncut(strings.NewReader(text.String()), limit)), string(document.JSON))
	_, err = s.Next()
	require.ErrorIs(t, err, io.EOF)
}

func TestAListThatIsTooLongIsTooLarge(t *testing.T) {
	text := "items:\n" + strings.Repeat("- a\n", limit/4)
	require.Equal(t, "error: "+yamljson.ErrTooLarge.Error(), all(strings.NewReader(text), limit))
	broken := errors.New("disk on fire")
	require.Equal(t, "error: "+broken.Error(), all(io.MultiReader(strings.NewReader("items:\n- a\n"), iotestErr{broken}), limit))
}

// endless is a text without an end of line. It counts the bytes that are read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

// TestALongLineIsReadUpToTheLimit checks that the limit of a document bounds how much of one line is read into memory.
func TestALongLineIsReadUpToTheLimit(t *testing.T) {
	text := &endless{}
	require.Equal(t, "error: "+yamljson.ErrTooLarge.Error(), all(io.MultiReader(strings.NewReader("a: "), text), limit))
	require.Less(t, text.read, 2*limit)
}
