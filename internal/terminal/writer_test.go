// SPDX-License-Identifier: Apache-2.0

package terminal_test

import (
	"bytes"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/internal/terminal"
)

func TestAWriterEscapesWhateverComesInParts(t *testing.T) {
	parts := []string{"a", "\n", "\t", "\x1b[2J", "\u202e", "\u200b", "\U000e0041", "\u0085", "日本", "👨\u200d👩", "\xff"}
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for _, part := range rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "parts") {
			text = append(text, part...)
		}
		var out bytes.Buffer
		w := terminal.NewWriter(&out)
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			written, err := w.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
		}
		for _, r := range out.String() {
			require.True(t, r == '\n' || r == '\t' || r == '\u200d' || unicode.IsPrint(r), "%U", r)
		}
	})
}
