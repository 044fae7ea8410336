// SPDX-License-Identifier: Apache-2.0

// Package message bounds the texts that are stored in a status.
package message

import (
	"strings"
	"unicode/utf8"
)

// limit bounds a text in bytes; names and the texts of an API server may have any
// length.
const limit = 8 << 10

// Clip returns a text as valid UTF-8 of at most 8 KiB and a mark where it was cut.
func Clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " ..."
}
