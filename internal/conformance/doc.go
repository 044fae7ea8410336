// SPDX-License-Identifier: Apache-2.0

// Package conformance checks the pages of docs/conformance: each says, row by
// row, which test shows a promise of a package. A row that names a test, a case
// or a file that does not exist fails its test, so the pages cannot grow stale
// unnoticed.
package conformance
