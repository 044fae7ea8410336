// SPDX-License-Identifier: Apache-2.0

// Package sat holds a test that compares package resolution with a SAT solver on instances too large to try all
// subsets. It is a module of its own, so that users need no solver.
package sat
