// SPDX-License-Identifier: Apache-2.0

// Package fbc reads and writes file-based catalogs: streams of JSON or YAML documents of the schemas olm.package,
// olm.channel, olm.bundle and olm.deprecations, in one file or in many.
//
//	packages, diagnostics, err := fbc.Load(os.DirFS("catalog"), ".", fbc.Options{})
//	catalog, more := resolution.Build(packages)
//
// [Read] takes one stream, [Load] a directory; both accept documents in any order, uncompressed or with gzip, and
// hold one document at a time beside the result. They check the form of each document; [resolution.Build] checks what
// the documents say together.
//
// A document that opm refuses, or whose bundle could not be installed, is left out and reported with its file, its
// number and the field, or refuses the catalog with [Options].Strict. What is odd and yet served by OLM is used as
// OLM uses it, and reported as well. Reading is bounded in the size of documents, in their number, and in all.
package fbc

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Options bound what is read. The zero value is the defaults.
type Options struct {
	// Strict refuses the whole catalog at the first problem. Otherwise a document that cannot be used is left out,
	// with a Diagnostic.
	Strict bool
	// MaxDocumentBytes and MaxDocuments bound one document's size and the number of documents. 0 is the default. MaxBytes
	// bounds a catalog as a whole, all files together, once inflated, and with aliases of YAML as what they stand for.
	// What is beyond a bound is an error even without Strict, since there is no telling what else is there.
	MaxDocumentBytes, MaxDocuments int
	MaxBytes                       int64
	// OmitProperties are types of bundle properties to leave out, to save memory: resolution needs neither
	// olm.csv.metadata nor olm.bundle.object.
	OmitProperties []string
	// OmitNothingOf are names of bundles that keep all their properties: packages.Heads, for who shows them to people.
	OmitNothingOf map[string]bool
}

// Defaults of Options.
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
	// ReasonUnreadableFile: a file is neither JSON nor YAML, or no file in the catalog's folder; what stood before
	// the broken place is used. Repair it, or name it in .indexignore.
	ReasonUnreadableFile = "UnreadableFile"
	// ReasonInvalidDocument: a document is not what its schema says, and is left out. OLM serves no catalog that has it.
	ReasonInvalidDocument = "InvalidDocument"
	// ReasonDuplicateKey: a key is there twice. As in OLM the last one counts; remove the one that is not meant. Of
	// JSON nothing is said about keys inside the values of properties, which are carried along as they are.
	ReasonDuplicateKey = "DuplicateKey"
	// ReasonKeyCase: a key is written in another case than the schema has it. As in OLM it is read; write it as the
	// message says.
	ReasonKeyCase = "KeyCase"
	// ReasonLooseVersion: a bundle's version is not as semver.org has it, such as v1.0.0 or 1.0. It is read as the
	// message says, as OLM reads older catalogs. Strict refuses it.
	ReasonLooseVersion = "LooseVersion"
	// ReasonUnknownPackage: a channel, bundle or deprecation names a package that no document describes, and is left out.
	ReasonUnknownPackage = "UnknownPackage"
)

// Read reads one stream of documents: JSON values one after another, or YAML documents; compressed with gzip or not.
// file is for errors and diagnostics. The packages come sorted by name. Errors are *Error, or *olmcore.InputError for
// bad Options. The content is not validated beyond its form: that is resolution.Build's work.
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
