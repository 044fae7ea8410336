// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Options bound what is read. The zero value is the defaults.
type Options struct {
	// Strict refuses the whole catalog at the first problem. Otherwise a document
	// that cannot be used is left out, with a Diagnostic.
	Strict bool
	// MaxDocumentBytes, MaxDocuments and MaxDepth bound one document's size, the
	// number of documents, and how deep a document may nest. 0 is the default.
	// MaxBytes bounds a catalog as a whole, all files together, once inflated. What
	// is beyond a bound is an error even without Strict, since there is no telling
	// what else is there.
	MaxDocumentBytes, MaxDocuments, MaxDepth int
	MaxBytes                                 int64
	// OmitProperties are types of bundle properties to leave out, to save memory:
	// resolution needs neither olm.csv.metadata nor olm.bundle.object.
	OmitProperties []string
}

// Defaults of Options.
const (
	DefaultMaxDocumentBytes = 64 << 20
	DefaultMaxDocuments     = 1_000_000
	DefaultMaxDepth         = 200
	DefaultMaxBytes         = 4 << 30
)

func (o Options) maxDocumentBytes() int { return cmp.Or(o.MaxDocumentBytes, DefaultMaxDocumentBytes) }
func (o Options) maxDocuments() int     { return cmp.Or(o.MaxDocuments, DefaultMaxDocuments) }
func (o Options) maxDepth() int         { return cmp.Or(o.MaxDepth, DefaultMaxDepth) }
func (o Options) maxBytes() int64       { return cmp.Or(o.MaxBytes, DefaultMaxBytes) }

func (o Options) check() error {
	for _, bound := range []struct {
		field string
		value int64
	}{
		{"MaxDocumentBytes", int64(o.MaxDocumentBytes)},
		{"MaxDocuments", int64(o.MaxDocuments)},
		{"MaxDepth", int64(o.MaxDepth)},
		{"MaxBytes", o.MaxBytes},
	} {
		if bound.value < 0 {
			return &olmcore.InputError{Field: "Options." + bound.field, Problem: "is negative"}
		}
	}
	return nil
}

// Error says where a catalog cannot be read, and why.
type Error struct {
	File string
	// Document counts from 1; 0 is the file as a whole.
	Document int
	// Field is the path inside the document, empty for the whole document.
	Field string
	Err   error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.File
	if e.Document > 0 {
		text += fmt.Sprintf(": document %d", e.Document)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Diagnostic reasons.
const (
	// ReasonUnreadableFile: a file is neither JSON nor YAML; what stood before the
	// broken place is used. Repair it, or name it in .indexignore.
	ReasonUnreadableFile = "UnreadableFile"
	// ReasonInvalidDocument: a document is not what its schema says, and is left
	// out.
	ReasonInvalidDocument = "InvalidDocument"
	// ReasonUnknownPackage: a channel, bundle or deprecation names a package that
	// no document describes, and is left out.
	ReasonUnknownPackage = "UnknownPackage"
)

// Read reads one stream of documents: JSON values one after another, or YAML
// documents; compressed with gzip or not. file is for errors and diagnostics.
// The packages come sorted by name. Errors are *Error, or *olmcore.InputError
// for bad Options. The content is not validated beyond its form: that is
// resolution.Build's work.
func Read(file string, r io.Reader, o Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	a := newAssembly(o)
	if err := a.read(file, r); err != nil {
		return nil, nil, err
	}
	return a.result()
}

// Load reads every file below root, "." for all of fsys, in the order of their
// names, apart from those that files named .indexignore exclude; their syntax is
// that of .gitignore. Names that begin with two dots are left out, and links to
// directories are not followed: a mounted ConfigMap has both beside the links to
// its files. root may be a single file. Otherwise it is like Read.
func Load(fsys fs.FS, root string, o Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	a := newAssembly(o)
	ignore := ignorer{}
	err := fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return &Error{File: name, Err: err}
		}
		if name != root && (strings.HasPrefix(path.Base(name), "..") || ignore.matches(name, d.IsDir())) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return ignore.load(fsys, name)
		}
		if path.Base(name) == ignoreFile || isLinkToDirectory(fsys, name, d) {
			return nil
		}
		return a.readFile(fsys, name)
	})
	if err != nil {
		return nil, nil, err
	}
	return a.result()
}

// isLinkToDirectory reports whether a file is a link to a directory.
func isLinkToDirectory(fsys fs.FS, name string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}

func (a *assembly) readFile(fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	readErr := a.read(name, f)
	if err := f.Close(); err != nil && readErr == nil {
		return &Error{File: name, Err: err}
	}
	return readErr
}

var (
	errTooMany = errors.New("the catalog has too many documents")
	errTooBig  = errors.New("the catalog is too large")
)
