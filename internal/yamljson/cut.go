// SPDX-License-Identifier: Apache-2.0

package yamljson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
)

// cutter reads documents that are long lists, as kubectl prints them: a mapping in block form with a line "items:",
// below it a sequence in block form. The library takes many times the memory of what it parses, so that it gets the
// elements of the sequence some at a time. The cutter takes a document only where this makes what the library makes of
// the whole: all that is out of the ordinary, and every error, is left to the library.
type cutter struct {
	r     *bufio.Reader
	limit int
	part  int   // how much text is parsed at once, unless one element is larger
	err   error // of r
	// ahead was read and not taken.
	ahead [][]byte
	// lines were taken; the library counts those that it gets from there.
	lines int
}

// list is a document in parts, which end with a line.
type list struct {
	begin      []byte       // the line of dashes
	head, tail bytes.Buffer // the lines before items: and behind the last element
	items      []byte       // the line items:
	elements   [][]byte     // each begins with an element
	column     int          // of the elements
	part, size int
}

const (
	partSize = 64 << 10 // of a cutter
	// maxHead bounds the lines before items:.
	maxHead = 64 << 10
	// readAhead is what the library may read beyond a document, which counts towards the limit, too.
	readAhead = 64 << 10

	dashes = "---"
)

var (
	itemsLine = regexp.MustCompile(`^items: *\r?\n$`)
	keyLine   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*:[ \r\n]`)
)

// next returns the next document as JSON, and how much text it was. Its size without escapes is at most the limit that
// allowed returns for its text. taken is false where the library is to go on, with rest.
func (c *cutter) next(allowed func(read int) int64) (document []byte, read int, taken bool) {
	l := &list{part: c.part}
	if !c.split(l) {
		c.giveBack(l)
		return nil, 0, false
	}
	document, taken = l.convert(allowed(l.size))
	if !taken {
		c.giveBack(l)
		return nil, 0, false
	}
	for _, part := range l.parts() {
		c.lines += bytes.Count(part, []byte("\n"))
	}
	return document, l.size, true
}

func (l *list) parts() [][]byte {
	return slices.Concat([][]byte{l.begin, l.head.Bytes(), l.items}, l.elements, [][]byte{l.tail.Bytes()})
}

func (c *cutter) giveBack(l *list) { c.ahead = append(l.parts(), c.ahead...) }

// rest returns what was not taken, behind as many empty lines as were.
func (c *cutter) rest() io.Reader {
	readers := []io.Reader{strings.NewReader(strings.Repeat("\n", c.lines))}
	for _, part := range c.ahead {
		readers = append(readers, bytes.NewReader(part))
	}
	if c.err != nil {
		return full{io.MultiReader(append(readers, failed{c.err})...)}
	}
	return full{io.MultiReader(append(readers, c.r)...)}
}

// failed is a reader whose error was returned already.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// full reads as much as there is room for: which of several errors the library finds depends on the sizes of reads.
type full struct{ r io.Reader }

func (f full) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = f.r.Read(p[n:])
		n += more
	}
	return n, err
}

// line returns the next line, or the beginning of a line that is longer than the limit.
func (c *cutter) line() []byte {
	if len(c.ahead) > 0 {
		line := c.ahead[0]
		c.ahead = c.ahead[1:]
		return line
	}
	if c.err != nil {
		return nil
	}
	var line []byte
	for {
		part, err := c.r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			c.err = err
			return line
		}
		if len(line) > c.limit {
			return line
		}
	}
}

// split reads a document into a list and reports whether it looks like one.
func (c *cutter) split(l *list) bool {
	for line := c.line(); len(line) > 0; line = c.line() {
		if l.size > 0 && isMark(line, dashes) {
			c.ahead = append([][]byte{line}, c.ahead...)
			break
		}
		l.size += len(line)
		if !l.add(line) || l.size > c.limit-readAhead || !isPlain(line) {
			return false
		}
	}
	return len(l.elements) > 0 && (c.err == nil || errors.Is(c.err, io.EOF))
}

// add puts a line where it belongs and reports whether it can be in a list.
func (l *list) add(line []byte) bool {
	fits := isOutside(line)
	column, begins := element(line)
	switch {
	case l.size == len(line) && isMark(line, dashes):
		l.begin = line
		return len(bytes.TrimSpace(line)) == len(dashes)
	case l.tail.Len() > 0 || len(l.elements) > 0 && keyLine.Match(line):
		l.tail.Write(line)
		return fits
	case l.items == nil && itemsLine.Match(line):
		l.items = line
		return true
	case l.items == nil:
		isFirst := l.head.Len() == 0
		l.head.Write(line)
		return fits && (!isFirst || keyLine.Match(line)) && l.head.Len() <= maxHead
	case len(l.elements) == 0:
		l.column = column
		l.elements = [][]byte{line}
		return begins
	}
	last := &l.elements[len(l.elements)-1]
	if begins && column == l.column && len(*last) >= l.part {
		l.elements = append(l.elements, line)
		return true
	}
	*last = append(*last, line...)
	return !isMark(line, dots)
}

// isOutside reports whether a line can be one of a mapping whose keys are simple, with what is below them.
func isOutside(line []byte) bool {
	return keyLine.Match(line) || strings.IndexByte(" \r\n#", line[0]) >= 0
}

// element reports whether a line can begin an element of a sequence, and at which column.
func element(line []byte) (column int, begins bool) {
	trimmed := bytes.TrimLeft(line, " ")
	begins = len(trimmed) > 1 && trimmed[0] == '-' && strings.IndexByte(" \r\n", trimmed[1]) >= 0
	return len(line) - len(trimmed), begins
}

// isMark reports whether a line begins with the dashes or dots between documents.
func isMark(line []byte, mark string) bool {
	rest, found := bytes.CutPrefix(line, []byte(mark))
	return found && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// isPlain reports whether a line is one for the library, too, and has no anchor, without which no alias has a meaning.
func isPlain(line []byte) bool {
	for _, other := range []string{"\u0085", "\u2028", "\u2029", byteOrderMark} {
		if bytes.Contains(line, []byte(other)) {
			return false
		}
	}
	if i := bytes.IndexByte(line, '\r'); i >= 0 && !bytes.Equal(line[i:], []byte("\r\n")) {
		return false
	}
	for i, c := range line {
		if c == '&' && (i == 0 || !isWord(line[i-1], "=/;.%&_>)")) && i+1 < len(line) && isWord(line[i+1], "_-") {
			return false
		}
	}
	return true
}

func isWord(c byte, more string) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(more, c) >= 0
}

// convert returns the list as JSON, in the form of marshal. It fails where the library has anything to say about it.
func (l *list) convert(left int64) ([]byte, bool) {
	outside := map[any]any{}
	for _, text := range [][]byte{l.head.Bytes(), l.items, l.tail.Bytes()} {
		mapping, ok := parse(&left, text)
		if !ok {
			return nil, false
		}
		for key, value := range mapping {
			if _, twice := outside[key]; twice {
				return nil, false
			}
			outside[key] = value
		}
	}
	around, err := jsonMapping(outside)
	if err != nil {
		return nil, false
	}
	var elements [][]byte
	for _, part := range l.elements {
		text, ok := l.convertElements(&left, part)
		if !ok {
			return nil, false
		}
		elements = append(elements, text)
	}
	return join(around, elements)
}

// convertElements returns elements as JSON, without the brackets.
func (l *list) convertElements(left *int64, part []byte) ([]byte, bool) {
	mapping, ok := parse(left, l.items, part)
	elements, isSequence := mapping["items"].([]any)
	if !ok || !isSequence || len(mapping) != 1 {
		return nil, false
	}
	text, err := marshal(elements)
	if err != nil {
		return nil, false
	}
	return text[1 : len(text)-1], true
}

// join writes what is around the elements, and these.
func join(around map[string]any, elements [][]byte) ([]byte, bool) {
	size := 0
	for _, text := range elements {
		size += len(text) + 1
	}
	var b bytes.Buffer
	b.Grow(size + maxHead)
	separator := byte('{')
	for _, key := range slices.Sorted(maps.Keys(around)) {
		name, _ := json.Marshal(key)
		b.WriteByte(separator)
		separator = ','
		b.Write(name)
		b.WriteByte(':')
		if key != "items" {
			value, err := json.Marshal(around[key])
			if err != nil {
				return nil, false
			}
			b.Write(value)
			continue
		}
		b.WriteByte('[')
		for i, text := range elements {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(text)
		}
		b.WriteByte(']')
	}
	b.WriteByte('}')
	return b.Bytes(), true
}

// parse returns the mapping that the texts are, one behind the other; none for no text.
func parse(left *int64, texts ...[]byte) (map[any]any, bool) {
	var readers []io.Reader
	for _, text := range texts {
		readers = append(readers, bytes.NewReader(text))
	}
	d := yaml.NewDecoder(io.MultiReader(readers...))
	var first, second tree
	err := decode(d, &first)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	mapping, ok := first.value.(map[any]any)
	ok = err == nil && first.err == nil && len(first.repeated) == 0 && (ok || first.value == nil) && take(first.value, left)
	return mapping, ok && errors.Is(decode(d, &second), io.EOF)
}
