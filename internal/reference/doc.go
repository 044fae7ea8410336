// SPDX-License-Identifier: Apache-2.0

// Package reference writes the pages of docs that follow from the tables of the library: its state graphs, the kinds of
// objects that it knows, and the reasons that it gives. Its test fails when a page is not current, and writes it with
// OLMCORE_UPDATE=1.
package reference
