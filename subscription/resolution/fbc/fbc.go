// SPDX-License-Identifier: Apache-2.0

// Package fbc reads and writes file-based catalogs. These are JSON or YAML documents with the schemas olm.package,
// olm.channel, olm.bundle and olm.deprecations, in one or more files.
//
//	packages, diagnostics, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	catalog, more := resolution.Build(packages)
//
// [Read] reads one stream, and [Load] reads a directory. Both accept documents in any order, uncompressed or with
// gzip. Besides the result, they keep only one document in memory at a time. They check the form of each document, and
// [resolution.Build] checks whether the documents are consistent with each other.
//
// A document that opm rejects, or whose bundle cannot be installed, is left out. It is reported with its file, its
// number and the field. With [Options].Strict, it makes the whole catalog invalid. Unusual content that OLM serves
// anyway is used as OLM uses it, and is also reported. The size of documents, their number and the total size are
// limited.
package fbc

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Options configures how a catalog is read. The zero value selects the defaults.
type Options struct {
	// Strict rejects the whole catalog at the first problem, except for ReasonDuplicateKey and ReasonKeyCase, which are
	// always Diagnostics. Without Strict, an invalid document is left out, and a Diagnostic reports it.
	Strict bool
	// MaxDocumentBytes limits the size of a document, and MaxDocuments limits the number of documents. MaxBytes limits the
	// total size of all files after decompression and the expansion of YAML aliases. For each limit, 0 selects the
	// default, and a negative value is an error. A catalog that exceeds a limit cannot be read, even without Strict.
	MaxDocumentBytes, MaxDocuments int
	MaxBytes                       int64
	// OmitProperties contains the types of bundle properties that are not kept, which saves memory. Resolution does not
	// need olm.csv.metadata and olm.bundle.object.
	OmitProperties []string
	// OmitNothingOf contains names of bundles to which OmitProperties does not apply, for example the result of
	// packages.Heads.
	OmitNothingOf map[string]bool
}

// These are the defaults of Options.
const (
	DefaultMaxDocumentBytes = 64 << 20
	DefaultMaxDocuments     = 1_000_000
	DefaultMaxBytes         = 4 << 30
)

// newAssembly checks the bounds and fills in their defaults.
func newAssembly(o Options) (*assembly, error) {
	if min(o.MaxDocumentBytes, o.MaxDocuments) < 0 || o.MaxBytes < 0 {
		return nil, &olmcore.InputError{Field: "Options", Problem: "has a negative bound"}
	}
	o.MaxDocumentBytes = cmp.Or(o.MaxDocumentBytes, DefaultMaxDocumentBytes)
	o.MaxDocuments = cmp.Or(o.MaxDocuments, DefaultMaxDocuments)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	return &assembly{options: o, packages: map[string]*pending{}}, nil
}

// Error reports the place in a catalog that cannot be read, and the cause.
type Error struct {
	File string
	// Document is the number of the document in the file, starting at 1. It is 0 if the error concerns the whole file.
	Document int
	// Field is the path of the field in the document. It is empty if the error concerns the whole document.
	Field string
	Err   error
}

// Error returns the file, document, field and reason in one line.
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

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// These are the reasons of Diagnostics.
const (
	// ReasonUnreadableFile means that a file is neither JSON nor YAML, or is not a regular file of the catalog's
	// directory. The documents before the first invalid document are used. Correct the file, or list the file in
	// .indexignore.
	ReasonUnreadableFile = "UnreadableFile"
	// ReasonInvalidDocument means that a document does not match its schema and is left out. OLM does not serve a catalog
	// with such a document, so correct the document.
	ReasonInvalidDocument = "InvalidDocument"
	// ReasonDuplicateKey means that a key occurs twice. As in OLM, the last value is used. Remove the other key. In JSON
	// files, keys inside the values of properties are not checked, because these values are copied unchanged.
	ReasonDuplicateKey = "DuplicateKey"
	// ReasonKeyCase means that a key differs from the schema only in upper and lower case. As in OLM, the key is accepted.
	// Write the key as the message shows.
	ReasonKeyCase = "KeyCase"
	// ReasonLooseVersion means that the version of a bundle is not a semantic version, for example v1.0.0 or 1.0. The
	// version is converted to a semantic version, as OLM does for older catalogs. The message shows the converted version.
	// With Strict, such a version is an error.
	ReasonLooseVersion = "LooseVersion"
	// ReasonUnknownPackage means that a channel, bundle or deprecation names a package that no document defines. The
	// channel, bundle or deprecation is left out. Add the package.
	ReasonUnknownPackage = "UnknownPackage"
)

// Read reads one stream of documents: consecutive JSON values or YAML documents, optionally compressed with gzip. file
// is only used in errors and Diagnostics. The packages are sorted by name. Read returns an *Error if the catalog cannot
// be read, and an *olmcore.InputError for invalid Options. Read checks only the form of the documents; resolution.Build
// checks their content.
func Read(file string, r io.Reader, o Options) ([]resolution.Package, []olmcore.Diagnostic, error) {
	a, err := newAssembly(o)
	if err != nil {
		return nil, nil, err
	}
	if err := a.read(file, r); err != nil {
		return nil, nil, err
	}
	return a.result()
}

var (
	errTooMany = errors.New("the catalog has too many documents")
	errTooBig  = errors.New("the catalog is too large")
)
