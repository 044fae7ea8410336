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
