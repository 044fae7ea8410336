// SPDX-License-Identifier: Apache-2.0

package yamljson

import "io"

// Uncut returns a stream that leaves all to the library.
func Uncut(r io.Reader, limit int) *Stream {
	s := NewStream(r, limit)
	if s.cutter != nil {
		s.beginYAML(newSection(s.cutter.rest()))
		s.cutter = nil
	}
	return s
}

// Cut returns a stream that parses each element of a list apart.
func Cut(r io.Reader, limit int) *Stream {
	s := NewStream(r, limit)
	if s.cutter != nil {
		s.cutter.part = 1
	}
	return s
}

// Cuts reports whether a stream still cuts.
func Cuts(s *Stream) bool { return s.cutter != nil }
