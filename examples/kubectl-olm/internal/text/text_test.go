// SPDX-License-Identifier: Apache-2.0

package text_test

import (
	"encoding/json"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"plain":                 "plain",
		" a\n\tb\r\n":           "a  b",
		"\x1b[31mred":           `\u001b[31mred`,
		"\u009b31m":             `\u009b31m`,
		"\u202egnp.exe":         `\u202egnp.exe`,
		"a\xffb":                `a\xffb`,
		"\uFFFD":                "\uFFFD",
		"日本語 ü é":               "日本語 ü é",
		"\U000e0041":            `\udb40\udc41`,
		"twelve characters":     "twelve chara...",
		"\u00a0":                `\u00a0`,
		"e\u0301 has an accent": "e\u0301 has an ac...",
	} {
		require.Equal(t, want, text.Line(in, 12), "%q", in)
	}
}

func TestJSONStaysWhatItSays(t *testing.T) {
	const hostile = "a\x1b[2J\u009b\u202e\U000e0041\u2028 ü\n"
	document, err := json.MarshalIndent(map[string]string{"k": hostile}, "", "  ")
	require.NoError(t, err)
	safe := text.JSON(document)
	for _, r := range string(safe) {
		require.True(t, r == '\n' || unicode.IsPrint(r))
	}
	var back map[string]string
	require.NoError(t, json.Unmarshal(safe, &back))
	require.Equal(t, hostile, back["k"])
}

func TestTable(t *testing.T) {
	rows := [][]text.Cell{text.Cells("a", "", "long\ntext"), {{Text: "red", Color: text.Red}, {Text: "\x1b"}, {Text: "x", Color: text.Green}}}
	require.Equal(t, "ONE   TWO      THREE\na     -        long text\nred   \\u001b   x\n", text.Palette(false).Table([]string{"ONE", "TWO", "THREE"}, rows))
	require.Equal(t, "ONE   TWO      THREE\na     -        long text\n\x1b[31mred\x1b[0m   \\u001b   \x1b[32mx\x1b[0m\n", text.Palette(true).Table([]string{"ONE", "TWO", "THREE"}, rows))
}

func TestMermaid(t *testing.T) {
	require.Equal(t, "a#27;b\nü", text.Mermaid("a\x1bb\nü"))
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1b[2J\xff\u202e", 5)
	f.Fuzz(func(t *testing.T, s string, most int) {
		for _, r := range text.Line(s, max(most, 0)) {
			require.True(t, unicode.IsPrint(r), "%U", r)
		}
		for _, r := range text.Lines(s) {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%U", r)
		}
	})
}
