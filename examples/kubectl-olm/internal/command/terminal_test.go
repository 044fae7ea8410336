// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/text"
)

// TestColoursAreForTerminals, unless a flag says otherwise.
func TestColoursAreForTerminals(t *testing.T) {
	for _, tt := range []struct {
		color         string
		isTerminal    bool
		noColor, term string
		want          text.Palette
	}{
		{"auto", true, "", "xterm", true},
		{"auto", false, "", "xterm", false},
		{"auto", true, "1", "xterm", false},
		{"auto", true, "", "dumb", false},
		{"always", false, "1", "dumb", true},
		{"never", true, "", "xterm", false},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.term)
		got, err := palette(tt.color, tt.isTerminal)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%+v", tt)
	}
	_, err := palette("sometimes", true)
	require.EqualError(t, err, `--color "sometimes" is none of auto, always, never`)
}

func TestABufferIsNoTerminal(t *testing.T) {
	require.False(t, isTerminal(&bytes.Buffer{}))
	var b bytes.Buffer
	told, done := progress(&b)
	told("something")
	done()
	require.Empty(t, b.String(), "progress is for terminals")
}
