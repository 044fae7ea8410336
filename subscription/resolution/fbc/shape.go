// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bytes"
	"encoding/json"
)

// identifying are the keys that tools match without regard to case, so that two
// spellings of one would mean different things to different readers.
var identifying = []string{"schema", "package", "name"}

// checkShape looks at a valid JSON document before it is decoded: that it is an
// object, does not nest too deep, and has no identifying key twice.
func checkShape(document []byte, maxDepth int) *Error {
	if len(document) == 0 || document[0] != '{' {
		return fault("", "is not an object")
	}
	depth := 0
	key := true // the next string at depth 1 is a key
	seen := [3]bool{}
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case '"':
			end := stringEnd(document, i)
			if depth == 1 && key {
				spelt := plain(document[i+1 : end])
				for k, name := range identifying {
					if !bytes.EqualFold(spelt, []byte(name)) {
						continue
					}
					if seen[k] {
						return fault(name, "is there twice")
					}
					seen[k] = true
				}
				key = false
			}
			i = end
		case '{', '[':
			if depth++; depth > maxDepth {
				return fault("", "nests deeper than %d levels", maxDepth)
			}
		case '}', ']':
			depth--
		case ',':
			if depth == 1 {
				key = true
			}
		}
	}
	return nil
}

// plain returns what the inside of a JSON string stands for.
func plain(text []byte) []byte {
	var s string
	if bytes.IndexByte(text, '\\') >= 0 && json.Unmarshal([]byte(`"`+string(text)+`"`), &s) == nil {
		return []byte(s)
	}
	return text
}

// stringEnd returns the index of the quote that ends the string that begins at
// start.
func stringEnd(document []byte, start int) int {
	for i := start + 1; i < len(document); i++ {
		switch document[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(document)
}
