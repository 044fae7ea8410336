// SPDX-License-Identifier: Apache-2.0

package yamljson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v2"
)

// Stream reads documents one after another: JSON values, if the text begins with one, then YAML documents, in which
// JSON is a way to write one, in whatever of the ways that YAML has they are separated.
type Stream struct {
	source  *source
	json    *json.Decoder // nil once something is no JSON
	yaml    *yaml.Decoder
	section *section // what yaml reads
	cutter  *cutter  // nil once something is no long list
	limit   int
	// became is the size of all YAML documents so far as JSON.
	became int64
	ended  error
}

// Document is one document of a stream.
type Document struct {
	// JSON is the document, "null" for an empty one.
	JSON []byte
	// Repeated are the paths of the first keys of YAML that are there twice, such as .spec.list[2].name. Of such a
	// key the last one counts.
	Repeated []string
}

// DocumentError says why a document is not usable. The stream goes on behind it.
type DocumentError struct{ Err error }

// Error implements error.
func (e *DocumentError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *DocumentError) Unwrap() error { return e.Err }

// SyntaxError says why text is neither JSON nor YAML. It ends the stream, since where the next document begins is not
// known.
type SyntaxError struct{ Err error }

// Error implements error.
func (e *SyntaxError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SyntaxError) Unwrap() error { return e.Err }

// ErrTooLarge ends a stream with a document of more text than the limit.
var ErrTooLarge = errors.New("the document is too large")

var errExpands = errors.New("its aliases make it too large")

// Aliases may make the documents of a stream maxGrowth times as large as their text, which none reaches without
// aliases, and freeGrowth beyond that.
const maxGrowth, freeGrowth = 16, 64 << 10

const byteOrderMark = "\ufeff"

// NewStream returns a stream whose documents have at most limit bytes, as text and as JSON.
func NewStream(r io.Reader, limit int) *Stream {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if head, _ := buffered.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark)) // it is in the buffer
	}
	s := &Stream{source: &source{r: buffered}, limit: limit}
	if beginsWithObject(buffered) {
		s.json = json.NewDecoder(s.source)
	} else {
		s.cutter = &cutter{r: buffered, limit: limit, part: partSize}
	}
	return s
}

// beginYAML begins a stream of YAML, which a line of dots ends: what follows is another one, as in YAML 1.2, where a
// document needs no dashes then. The library demands them, as YAML 1.1 does.
func (s *Stream) beginYAML(text *section) {
	s.section, s.source.r = text, text
	s.json, s.yaml = nil, yaml.NewDecoder(s.source)
}

// beginsWithObject reports whether the first character that is not white space opens a JSON object.
func beginsWithObject(r *bufio.Reader) bool {
	for n := 64; ; n *= 2 {
		head, err := r.Peek(n)
		trimmed := bytes.TrimLeft(head, " \t\r\n")
		if len(trimmed) > 0 {
			return trimmed[0] == '{'
		}
		if err != nil {
			return false
		}
	}
}

// Next returns the next document. The error is io.EOF at the end, a *DocumentError when the document after it can be
// read, else what ends the stream: a *SyntaxError, ErrTooLarge, or the error of the reader. What ends the stream is
// returned again.
func (s *Stream) Next() (document Document, err error) {
	if s.ended != nil {
		return Document{}, s.ended
	}
	if s.json != nil {
		document, err = s.nextJSON()
	} else {
		document, err = s.nextYAML()
	}
	if err != nil && !errors.As(err, new(*DocumentError)) {
		s.ended = err
	}
	return document, err
}

func (s *Stream) nextJSON() (Document, error) {
	s.source.left = s.limit
	var value json.RawMessage
	err := s.json.Decode(&value)
	switch {
	case s.source.err != nil:
		return Document{}, s.source.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Document{}, &SyntaxError{err}
	case errors.As(err, new(*json.SyntaxError)):
		rest := s.source.r
		// It may be YAML from here on, such as a line of dashes.
		s.source = &source{}
		s.beginYAML(newSection(io.MultiReader(s.json.Buffered(), rest)))
		document, yamlErr := s.nextYAML()
		if errors.As(yamlErr, new(*SyntaxError)) {
			yamlErr = &SyntaxError{err}
		}
		return document, yamlErr
	case err == nil && len(value) > s.limit:
		return Document{}, ErrTooLarge
	}
	return Document{JSON: value}, err
}

func (s *Stream) nextYAML() (Document, error) {
	s.source.left = s.limit
	if s.cutter != nil {
		text, read, taken := s.cutter.next(func(read int) int64 { return s.allowed(int64(read)) })
		if taken {
			s.source.total += int64(read)
			s.became += int64(len(text))
			return Document{JSON: text}, nil
		}
		// The empty lines are none of the text.
		s.source.total -= int64(s.cutter.lines)
		s.source.left += s.cutter.lines
		s.beginYAML(newSection(s.cutter.rest()))
		s.cutter = nil
	}
	var tree tree
	err := s.decode(&tree)
	switch {
	case s.source.err != nil:
		return Document{}, s.source.err
	case errors.Is(err, io.EOF):
		return Document{}, err
	case err != nil:
		return Document{}, &SyntaxError{err}
	case tree.err == nil && !fits(tree.value, s.allowed(0)):
		tree.err = errExpands
	}
	if tree.err != nil {
		return Document{}, &DocumentError{tree.err}
	}
	text, err := marshal(tree.value)
	if err != nil {
		return Document{}, &DocumentError{err}
	}
	s.became += int64(len(text))
	return Document{JSON: text, Repeated: tree.repeated}, nil
}

// allowed is the size that the document may have as JSON after more text.
func (s *Stream) allowed(more int64) int64 {
	return min(int64(s.limit), (s.source.total+more)*maxGrowth+freeGrowth-s.became)
}

func (s *Stream) decode(tree *tree) error {
	for {
		err := decode(s.yaml, tree)
		if !errors.Is(err, io.EOF) || !s.section.ended {
			return err
		}
		s.beginYAML(s.section.behind())
	}
}

func decode(d *yaml.Decoder, tree *tree) (err error) {
	defer recoverAsError(&err)
	return d.Decode(tree)
}

// tree is a document as it was parsed. An empty one leaves it as it is.
type tree struct {
	value    any
	repeated []string
	err      error
}

// UnmarshalYAML is called once a document was parsed: an error from here is about its values, and the next document
// can be parsed.
func (t *tree) UnmarshalYAML(unmarshal func(any) error) error {
	// This has each key as often as it is there, but nothing that is merged.
	var ordered yaml.MapSlice
	if unmarshal(&ordered) == nil {
		t.repeated = repeated(ordered)
	}
	t.err = unmarshal(&t.value)
	return nil
}

// source counts what is read, and fails once left bytes were read.
type source struct {
	r     io.Reader
	left  int
	total int64
	err   error // other than io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	if s.left <= 0 {
		s.err = ErrTooLarge
		return 0, s.err
	}
	n, err := s.r.Read(p[:min(len(p), s.left)])
	s.left -= n
	s.total += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// section reads up to a line that begins with dots and white space.
type section struct {
	r      io.Reader
	err    error  // of r
	buffer []byte // ahead is its end
	ahead  []byte // was read and not returned
	inLine bool   // the last byte that was returned ends no line
	ended  bool   // the line of dots is reached
}

const dots = "..."

func newSection(r io.Reader) *section { return &section{r: r, buffer: make([]byte, 0, 4<<10)} }

func (s *section) Read(p []byte) (int, error) {
	const more = len(dots) + 1
	for len(s.ahead) <= more && s.err == nil {
		s.buffer = append(s.buffer[:0], s.ahead...)
		var n int
		n, s.err = s.r.Read(s.buffer[len(s.buffer):cap(s.buffer)])
		s.buffer = s.buffer[:len(s.buffer)+n]
		s.ahead = s.buffer
	}
	end, found := s.untilDots()
	switch {
	case s.ended, found && end == 0:
		s.ended = true
		return 0, io.EOF
	case !found && s.err == nil:
		end -= more
	}
	if end == 0 {
		return 0, s.err
	}
	n := copy(p, s.ahead[:end])
	s.inLine = !endsLine(s.ahead[n-1])
	s.ahead = s.ahead[n:]
	return n, nil
}

// untilDots returns how much is before the line of dots, or all.
func (s *section) untilDots() (end int, found bool) {
	for end < len(s.ahead) {
		i := bytes.Index(s.ahead[end:], []byte(dots))
		if i < 0 {
			break
		}
		end += i
		begins := end == 0 && !s.inLine || end > 0 && endsLine(s.ahead[end-1])
		next := end + len(dots)
		if begins && (next == len(s.ahead) && s.err != nil || next < len(s.ahead) && (s.ahead[next] == ' ' || s.ahead[next] == '\t' || endsLine(s.ahead[next]))) {
			return end, true
		}
		end++
	}
	return len(s.ahead), false
}

func endsLine(c byte) bool { return c == '\n' || c == '\r' }

// behind returns what is to be read behind the line of dots.
func (s *section) behind() *section {
	return &section{r: s.r, err: s.err, buffer: s.buffer, ahead: s.ahead[len(dots):], inLine: true}
}

// fits reports whether a value has at most limit bytes as JSON, escapes aside.
func fits(value any, limit int64) bool { return take(value, &limit) }

// take takes the size of a value from left, until nothing is left, and reports whether it fits.
func take(value any, left *int64) bool {
	*left -= 2
	switch x := value.(type) {
	case string:
		*left -= int64(len(x))
	case []any:
		for _, element := range x {
			if !take(element, left) {
				return false
			}
		}
	case map[any]any:
		for key, element := range x {
			if !take(key, left) || !take(element, left) {
				return false
			}
		}
	}
	return *left >= 0
}

// maxRepeated bounds the paths that repeated returns.
const maxRepeated = 10

// repeated returns the paths of the first keys that are there twice.
func repeated(value any) (paths []string) {
	below := func(element any, at func() string) {
		for _, path := range repeated(element) {
			if len(paths) < maxRepeated {
				paths = append(paths, at()+path)
			}
		}
	}
	switch x := value.(type) {
	case yaml.MapSlice:
		seen := make(map[string]int, len(x))
		for _, item := range x {
			key, _ := keyText(item.Key)
			if seen[key]++; seen[key] == 2 && len(paths) < maxRepeated {
				paths = append(paths, "."+key)
			}
			below(item.Value, func() string { return "." + key })
		}
	case []any:
		for i, element := range x {
			below(element, func() string { return fmt.Sprintf("[%d]", i) })
		}
	}
	return paths
}
