// SPDX-License-Identifier: Apache-2.0

// Package printable writes texts of tenants for people. A character that people do not see, or that changes how other
// characters are shown, is written as an escape sequence: controls, controls that reorder a line (U+202E), characters
// without width, tags and fillers. Letters, combining marks and emoji stay.
package printable

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a text as one line: white space becomes a blank, what is not shown is escaped as in Go, and what is
// longer than most characters is cut.
func Line(s string, most int) string {
	var b strings.Builder
	n := 0
	previous := rune(-1)
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
		case isShown(previous, r, s[i+utf8.RuneLen(r):]):
			b.WriteRune(r)
			previous = r
			continue
		default:
			b.WriteString(inJSON(r))
		}
		previous = -1
	}
	return strings.TrimSpace(b.String())
}

// OneLine returns a whole text as one line: white space becomes a blank, and what is not shown is escaped as in Go. A
// text of one line of which people see each character is returned as it is, without blanks at its ends.
func OneLine(s string) string { return Line(s, math.MaxInt) }

// Errors returns a line for each error that errors.Join joined, or one line for any other error. An error text with
// line ends adds no lines.
func Errors(err error) []string {
	joined, isJoined := err.(interface{ Unwrap() []error })
	if !isJoined {
		return []string{OneLine(err.Error())}
	}
	var lines, texts []string
	for _, one := range joined.Unwrap() {
		lines, texts = append(lines, Errors(one)...), append(texts, one.Error())
	}
	if err.Error() != strings.Join(texts, "\n") { // fmt.Errorf wrapped the errors in a text
		return []string{OneLine(err.Error())}
	}
	return lines
}

// Lines returns a text of several lines in which what is not shown is escaped, tabs too. It cuts nothing.
func Lines(s string) string { return escape(s, "\n", inJSON) }

// Text returns a message in which what is not shown is escaped. Line ends and tabs stay. A message without such
// characters is returned as it is.
func Text(s string) string { return escape(s, "\n\t", inJSON) }

// Keep returns the message to write into a status that has a recorded one: Text of the new message, or the recorded
// message if the two differ in their escaping alone. OLM escapes no characters, and what it recorded needs no write.
func Keep(recorded, message string) string {
	if text := Text(message); Text(recorded) != text {
		return text
	}
	return recorded
}

// JSON returns a JSON document in which what is not shown is escaped. It decodes to the same value.
func JSON(document []byte) []byte {
	if isPlain(document) {
		return document
	}
	return []byte(Lines(string(document)))
}

// Mermaid returns a graph for Mermaid in which what is not shown has the form that Mermaid decodes.
func Mermaid(graph string) string {
	return escape(graph, "\n", func(r rune) string { return fmt.Sprintf("#%d;", r) })
}

// IsPlain reports whether people see each character of a text; line ends and tabs count as seen.
func IsPlain(s string) bool {
	return isPlain(s) || Text(s) == s
}

// escape writes what is not shown in a form. The characters of keep stay.
func escape(s, keep string, form func(rune) string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	previous := rune(-1)
	for i, r := range s {
		switch {
		case r == utf8.RuneError, strings.ContainsRune(keep, r), isShown(previous, r, s[min(len(s), i+utf8.RuneLen(r)):]):
			b.WriteRune(r)
			previous = r
		default:
			b.WriteString(form(r))
			previous = -1
		}
	}
	return b.String()
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

const (
	joiner         = '\u200d'
	textSelector   = '\ufe0e'
	emojiSelector  = '\ufe0f'
	brailleNothing = '\u2800'
)

// isShown reports whether people see a character after and before others. A joiner and the selectors of a form are
// shown only as parts of an emoji.
func isShown(previous, r rune, next string) bool {
	switch r {
	case joiner:
		after, _ := utf8.DecodeRuneInString(next)
		return isSymbol(previous) && isSymbol(after)
	case textSelector, emojiSelector:
		return isSymbol(previous)
	case brailleNothing:
		return false
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func isSymbol(r rune) bool {
	isEmpty := r == utf8.RuneError || r == brailleNothing
	return r == emojiSelector || r > 0x7f && !isEmpty && unicode.In(r, unicode.So, unicode.Sk, unicode.Sm, unicode.Po)
}

// inJSON returns how JSON and Go write a character.
func inJSON(r rune) string {
	if r > 0xffff {
		high, low := 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Clip returns text as valid UTF-8 with escaped invisible characters, so that a status can contain it. A text of more
// than 8 KiB is cut and ends with " ...".
func Clip(text string) string {
	const limit = 8 << 10
	text = Text(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " ..."
}
