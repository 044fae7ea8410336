// SPDX-License-Identifier: Apache-2.0

// Package quoted writes names that a catalog or a user chose into sentences of advice.
package quoted

import (
	"strconv"
	"strings"
)

// Name returns a name as it is written into a sentence. A name of letters, digits and . _ - + ~ : / @ stays as it is,
// any other is quoted: names of channels, packages and steps are free text, and the end of the name must be seen.
func Name(name string) string {
	isOther := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+~:/@", r))
	}
	if name == "" || strings.IndexFunc(name, isOther) >= 0 {
		return strconv.Quote(name)
	}
	return name
}

// Names returns a list of names as they are written into a sentence.
func Names(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = Name(name)
	}
	return list
}
