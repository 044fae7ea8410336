// SPDX-License-Identifier: Apache-2.0

// Package reference writes what documents have of the code: pages that follow from tables of the library (its state
// graphs, the kinds of objects that it knows, the reasons that it gives), and the Examples that documents quote. Its
// tests fail when a document is not current, and write it with OLMCORE_UPDATE=1.
package reference
