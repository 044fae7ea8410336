// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"

	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
)

// errTooLarge ends reading: what follows cannot be told apart any more.
var errTooLarge = errors.New("the document is too large")

// read adds the documents of one file.
func (a *assembly) read(file string, r io.Reader) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	if head, _ := buffered.Peek(2); len(head) == 2 && head[0] == 0x1f && head[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return &Error{File: file, Err: err}
		}
		buffered = bufio.NewReaderSize(&total{unzipped, a}, 64<<10)
	} else {
		buffered = bufio.NewReaderSize(&total{buffered, a}, 64<<10)
	}
	var next func() ([]byte, error)
	if isJSON(buffered) {
		next = jsonDocuments(buffered, a.options.maxDocumentBytes())
	} else {
		next = yamlDocuments(buffered, a.options.maxDocumentBytes())
	}
	for number := 1; ; number++ {
		document, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			err = &Error{File: file, Document: number, Err: err}
			if a.options.Strict || !isSyntax(err) {
				return err
			}
			a.report(ReasonUnreadableFile, olmcore.Warning, err.Error())
			return nil
		}
		if len(document) == 0 {
			continue
		}
		if a.documents++; a.documents > a.options.maxDocuments() {
			return &Error{File: file, Document: number, Err: errTooMany}
		}
		if err := a.add(file, number, document); err != nil {
			return err
		}
	}
}

// syntaxError marks text that is neither JSON nor YAML, as opposed to a reader
// that failed.
type syntaxError struct{ error }

func (e syntaxError) Unwrap() error { return e.error }

func isSyntax(err error) bool {
	var s syntaxError
	return errors.As(err, &s)
}

// isJSON reports whether the first character that is not white space opens an
// object.
func isJSON(r *bufio.Reader) bool {
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

// total counts what is read of all files of a catalog.
type total struct {
	r io.Reader
	*assembly
}

func (t *total) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if t.bytes += int64(n); t.bytes > t.options.maxBytes() {
		return 0, errTooBig
	}
	return n, err
}

// bounded fails once more than left bytes were read since it was last filled up.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func jsonDocuments(r io.Reader, limit int) func() ([]byte, error) {
	source := &bounded{r: r}
	decoder := json.NewDecoder(source)
	return func() ([]byte, error) {
		source.left = limit
		var value json.RawMessage
		err := decoder.Decode(&value)
		switch {
		case errors.Is(err, errTooLarge), errors.Is(err, io.EOF):
			return nil, err
		case err != nil:
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = syntaxError{err}
			}
			return nil, err
		case len(value) > limit:
			return nil, errTooLarge
		}
		return value, nil
	}
}

func yamlDocuments(r *bufio.Reader, limit int) func() ([]byte, error) {
	ended := false
	return func() ([]byte, error) {
		if ended {
			return nil, io.EOF
		}
		var text []byte
		for {
			line, err := r.ReadSlice('\n')
			if separator(line) && !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
			if len(text)+len(line) > limit {
				return nil, errTooLarge
			}
			text = append(text, line...)
			if errors.Is(err, io.EOF) {
				ended = true
				break
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return nil, err
			}
		}
		return yamlToJSON(text)
	}
}

// separator reports whether a line ends a YAML document.
func separator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	if !ok {
		return false
	}
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || rest[0] == '#'
}

func yamlToJSON(text []byte) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	document, err := yamljson.Convert(text, true)
	if err != nil {
		return nil, syntaxError{err}
	}
	if string(document) == "null" {
		return nil, nil // nothing but comments
	}
	return document, nil
}
