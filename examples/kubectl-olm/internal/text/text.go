// SPDX-License-Identifier: Apache-2.0

// Package text writes what people read on terminals. Names and messages are written by tenants, so that nothing of them reaches
// a terminal which is no plain character.
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a text as one line: white space is a blank, what is no printable character is written as an escape sequence of
// Go, and what is longer than most runes is cut. Controls that reorder a line are no printable characters.
func Line(s string, most int) string {
	var b strings.Builder
	n := 0
	for i, r := range s {
		if n == most {
			b.WriteString("...")
			break
		}
		n++
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsSpace(r) && (r < 0x80 || unicode.IsPrint(r)):
			b.WriteByte(' ')
		default:
			b.WriteString(printable(r))
		}
	}
	return strings.TrimSpace(b.String())
}

// Lines is Line for a text of several lines of any length, which stay apart.
func Lines(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r == '\n' {
			b.WriteRune(r)
		} else {
			b.WriteString(printable(r))
		}
	}
	return b.String()
}

// JSON returns a JSON document in which what is no printable character is escaped.
func JSON(document []byte) []byte {
	if isPlain(document) {
		return document
	}
	return []byte(Lines(string(document)))
}

// isPlain reports whether a text has plain characters alone, as nearly all have: a document may be large.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c > 0x7e) && c != '\n' {
			return false
		}
	}
	return true
}

// Mermaid returns a graph for Mermaid in which what is no printable character has the form that Mermaid knows.
func Mermaid(graph string) string {
	var b strings.Builder
	for _, r := range graph {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// printable returns a character, or how JSON and Go write it where it is none that can be printed.
func printable(r rune) string {
	switch {
	case unicode.IsPrint(r):
		return string(r)
	case r > 0xffff:
		high, low := 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
