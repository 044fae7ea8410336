// SPDX-License-Identifier: Apache-2.0

// Package olmcore holds the words that all packages of this library share.
//
// A reconcile function takes observed state as a value and returns a [Result]: the [Action]s to run, the [Transition]s
// that the observations prove, the [Diagnostic]s that explain the decision, and the time to the next deadline. It reads
// no clock, calls no API server and keeps no memory.
//
// What touches the world is small and yours:
//
//   - a [Reader] gathers the input ([Snapshot] is one over plain objects),
//   - an [Executor] performs one write, [Run] performs a Result's actions,
//   - [LastResultsOf] folds what Run returned into the memory that the next input
//     may carry.
//
// An action is a value. [RecordOf] returns its JSON form, for logs, tools and clients without Go types. Package decode
// contains the inverse, and decodes objects for the adapters of clients.
//
// [PermissionObjects] and [ComponentLabelKey] give names, hashes and labels that are bit-identical to OLM's, so that a
// running cluster is recognised as it is.
package olmcore
