// SPDX-License-Identifier: Apache-2.0

// Package terminal writes for terminals and logs.
package terminal

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/olmcore/olm/internal/printable"
)

// NewWriter returns a Writer for a terminal or a log that escapes characters that people do not see, as printable.Text
// does. It is safe for concurrent use. A character whose bytes come with two calls is written with the second one.
func NewWriter(w io.Writer) io.Writer { return &writer{to: w} }

type writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // the beginning of a character
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				whole = len(text) - n
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.to, printable.Text(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
