// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// VersionRange is a parsed range with its text.
type VersionRange struct {
	Text string
	in   semver.Range
}

// Contains reports whether v is in the range. The range functions of the semver library call nil for texts with an
// empty alternative, such as ">1.0.0 || || <0.1.0", when no other alternative matches; nothing is in that part.
func (r *VersionRange) Contains(v semver.Version) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return r.in(v)
}

// maxRangeSize bounds the text of a range in bytes: the functions of the library nest as deep as a range has
// alternatives.
const maxRangeSize = 16 << 10

// ParseRange parses a version range. It never panics.
func ParseRange(text string) (r *VersionRange, err error) {
	if len(text) > maxRangeSize {
		return nil, fmt.Errorf("version range is longer than %d bytes", maxRangeSize)
	}
	in, err := semver.ParseRange(text)
	if err != nil {
		return nil, err
	}
	return &VersionRange{Text: text, in: in}, nil
}
