// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"strconv"
	"strings"
)

// Name returns a name for use in a sentence. A name that consists only of letters, digits and . _ - + ~ : / @ is
// returned unchanged. Any other name is returned in quotes, because the name of a channel, a package or a step may
// contain spaces.
func Name(name string) string {
	isOther := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+~:/@", r))
	}
	if name == "" || strings.IndexFunc(name, isOther) >= 0 {
		return strconv.Quote(name)
	}
	return name
}

// Names returns the result of Name for each name.
func Names(names []string) []string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = Name(name)
	}
	return list
}
