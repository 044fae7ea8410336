// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/olmcore/olm/internal/yamljson"
	"github.com/olmcore/olm/olmcore"
)

// read adds the documents of one file.
func (a *assembly) read(file string, r io.Reader) error {
	documents, err := a.open(r)
	if err != nil {
		return &Error{File: file, Err: err}
	}
	for at := (Error{File: file, Document: 1}); ; at.Document++ {
		document, err := documents.Next()
		problem := at
		problem.Err = err
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, new(*yamljson.DocumentError)):
			err = a.refuse(ReasonInvalidDocument, &problem)
		case errors.As(err, new(*yamljson.SyntaxError)):
			problem.Err = fmt.Errorf("%w; nothing that follows in the file is read", err)
			return a.refuse(ReasonUnreadableFile, &problem)
		case err != nil:
			return &problem
		case string(document.JSON) != "null": // it has more than comments
			err = a.add(at, document)
		}
		if err != nil {
			return err
		}
	}
}

// refuse reports what cannot be used, or returns it as an error with Strict.
func (a *assembly) refuse(reason string, problem *Error) error {
	if a.options.Strict {
		return problem
	}
	a.report(reason, olmcore.Warning, problem.Error())
	return nil
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

// open returns the documents of a file, compressed with gzip or not.
func (a *assembly) open(r io.Reader) (*yamljson.Stream, error) {
	buffered := bufio.NewReader(r)
	r = buffered
	if head, _ := buffered.Peek(2); string(head) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		r = unzipped
	}
	return yamljson.NewStream(&total{r, a}, a.options.maxDocumentBytes()), nil
}
