// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/internal/printable"
	_ "github.com/olmcore/olm/internal/seeded"
)

// invisible are characters that mislead: of each kind a few.
var invisible = []rune{
	0, 0x07, 0x08, '\r', 0x1b, 0x7f, 0x85, 0x9b, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x17b4, 0x180b, 0x180e, 0x200b, 0x200c,
	0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2064, 0x2066, 0x2067, 0x2068, 0x2069, 0x206a,
	0x2800, 0x3000, 0x3164, 0xe000, 0xfe00, 0xfe0e, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001,
	0xe0041, 0xe007f, 0xe0100, 0xf0000, 0x10fffd,
}

// shown are texts that people read as they are.
var shown = []string{
	"plain", "über", "e\u0301", "日本語", "Ελληνικά", "العربية", "עברית",
	"हिन्दी", "ภาษาไทย",
	"😀", "👍🏽", "❤️", "👩‍🚀", "👨‍👩‍👧", "🏳️‍🌈", "→ … – “x”", "\uFFFD",
}

func TestWhatIsShownStays(t *testing.T) {
	for _, s := range shown {
		require.Equal(t, s, printable.Text(s), "%+q", s)
		require.Equal(t, s, printable.Line(s, 100), "%+q", s)
		require.True(t, printable.IsPlain(s))
		checkRoundTrip(t, s)
	}
	require.Equal(t, "a\n\tb", printable.Text("a\n\tb"))
}

func TestWhatIsNotShownIsEscaped(t *testing.T) {
	for _, r := range invisible {
		s := "a" + string(r) + "b"
		texts := []string{
			printable.Text(s), printable.Lines(s), printable.Line(s, 100), printable.OneLine(s), printable.Mermaid(s), inYAML(t, s), inJSON(t, s),
		}
		for _, out := range texts {
			for _, got := range out {
				require.True(t, got == '\n' || got > 0x1f && got < 0x7f, "%U in %+q", got, out)
			}
		}
		require.False(t, printable.IsPlain(s), "%U", r)
	}
	require.Equal(t, `\u202e`, printable.Text("\u202e"))
	require.Equal(t, `\udb40\udc41`, printable.Line("\U000e0041", 5))
	require.Equal(t, `👩\u200d`, printable.Text("👩\u200d"), "nothing is joined")
	require.Equal(t, `stable\ufe0f`, printable.Text("stable\ufe0f"))
}

// TestOneLine checks that a whole text becomes one line, and that a text of one line stays as it is.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"one line":                "one line",
		" a\ncatalog b: delete\n": "a catalog b: delete",
		"a\r\n\tb":                "a   b",
		"a\u2028b\u2029c\u0085d":  `a\u2028b\u2029c\u0085d`,
		"a\x00\xffb":              `a\u0000\xffb`,
		strings.Repeat("ä", 5000): strings.Repeat("ä", 5000),
	} {
		require.Equal(t, want, printable.OneLine(text))
	}
}

// TestErrors checks that each error of a join has one line, whatever its text contains.
func TestErrors(t *testing.T) {
	one, two := errors.New("one"), errors.New("two\nolm: forged")
	for name, tt := range map[string]struct {
		err  error
		want []string
	}{
		"one error":            {two, []string{"two olm: forged"}},
		"a join":               {errors.Join(one, two), []string{"one", "two olm: forged"}},
		"a join of joins":      {errors.Join(errors.Join(one, two), one), []string{"one", "two olm: forged", "one"}},
		"a wrapped join":       {fmt.Errorf("all: %w", errors.Join(one, two)), []string{"all: one two olm: forged"}},
		"a text of two errors": {fmt.Errorf("%w and %w", one, two), []string{"one and two olm: forged"}},
	} {
		require.Equal(t, tt.want, printable.Errors(tt.err), name)
	}
}

// TestKeep checks that a recorded message stays if only its escaping differs from that of the new one.
func TestKeep(t *testing.T) {
	for name, tt := range map[string]struct{ recorded, message, want string }{
		"a plain message":                 {"a", "b", "b"},
		"a new message is escaped":        {"", "b\u202e", `b\u202e`},
		"what OLM recorded":               {"b\u202e", "b\u202e", "b\u202e"},
		"what OLM recorded of another":    {"a\u202e", "b\u202e", `b\u202e`},
		"what is escaped":                 {`b\u202e`, "b\u202e", `b\u202e`},
		"a new message that is escaped":   {"b\u202e", `b\u202e`, "b\u202e"},
		"a message is cleared":            {"b\u202e", "", ""},
		"line ends of a message are kept": {"", "a\nb", "a\nb"},
	} {
		require.Equal(t, tt.want, printable.Keep(tt.recorded, tt.message), name)
	}
}

func inYAML(t require.TestingT, value any) string {
	document, err := printable.YAML(value)
	require.NoError(t, err)
	return string(document)
}

func inJSON(t require.TestingT, value any) string {
	document, err := json.Marshal(value)
	require.NoError(t, err)
	return string(printable.JSON(document))
}

// drawText draws a text of which some characters are not shown.
func drawText() *rapid.Generator[string] {
	parts := append([]string{
		"", " ", "\n", "\t", "- ", ": ", "#", "'", `"`, `\`, "&", "*", "|", ">", "text0x", "text0x0x", "text1x",
		"true", "1e3", "null", "~", "{", "%",
	}, shown...)
	for _, r := range invisible {
		parts = append(parts, string(r))
	}
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 20).Draw(t, "long") == 0 {
			return strings.Repeat(rapid.SampledFrom(parts).Draw(t, "part")+"\u202e", 300)
		}
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 6).Draw(t, "parts"), "")
	})
}

func drawValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return float64(rapid.IntRange(-9, 9).Draw(t, "number"))
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "length") {
				list = append(list, drawValue(depth-1).Draw(t, "item"))
			}
			return list
		case 5:
			fields := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "size") {
				fields[drawText().Draw(t, "key")] = drawValue(depth-1).Draw(t, "value")
			}
			return fields
		}
		return drawText().Draw(t, "text")
	})
}

// checkRoundTrip: what is written for people decodes to the same value, and has no character that is not shown.
func checkRoundTrip(t require.TestingT, value any) {
	var back any
	document := inJSON(t, value)
	require.NoError(t, json.Unmarshal([]byte(document), &back))
	require.Empty(t, cmp.Diff(value, back), document)
	require.True(t, printable.IsPlain(document), "%+q", document)

	document = inYAML(t, value)
	back = nil
	require.NoError(t, yaml.Unmarshal([]byte(document), &back), "%+q", document)
	require.Empty(t, cmp.Diff(value, back), "%+q", document)
	require.True(t, printable.IsPlain(document), "%+q", document)
}

func TestAValueStaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkRoundTrip(t, drawValue(3).Draw(t, "value")) })
	checkRoundTrip(t, map[string]any{strings.Repeat("\u202e", 2000): "\u202e"})
	checkRoundTrip(t, strings.Repeat("a \u202e\n", 2000))
	for _, key := range []string{"a", "- ", "{", "'", "\n", "\\", "ä", "\U0001F469"} {
		long := strings.Repeat(key, 1100)
		checkRoundTrip(t, map[string]any{long: []any{map[string]any{long: map[string]any{long: long}}, long}})
	}
}

func FuzzAValueStaysTheSame(f *testing.F) {
	f.Add("a\x1b[2J\u202e\U000e0041\n", "key\u2066")
	f.Add("text0x0x \u061c", "- a: 'b'")
	f.Add(strings.Repeat("- ", 900), strings.Repeat("k", 2000))
	f.Fuzz(func(t *testing.T, text, key string) {
		text, key = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(key, "?")
		checkRoundTrip(t, map[string]any{key: []any{text, map[string]any{text: key}}})
		require.True(t, printable.IsPlain(printable.Text(text)), "%+q", printable.Text(text))
		require.True(t, printable.IsPlain(printable.Line(text, 1000)))
	})
}
