// SPDX-License-Identifier: Apache-2.0

// Package invariant holds the laws of this library as functions that return an error, as testing/fstest.TestFS does, so
// that tests, fuzz targets and other repositories can share them.
//
// [Laws] checks what a single input can show of a reconcile function: that it is deterministic and pure, that its
// deadlines are sound, that it does not care about the absolute time, and that its actions are separate and recordable.
//
// A [World] is a cluster with controllers in it. [Settles], [Repeatable] and [Resumable] run it: it comes to rest in a
// bounded number of rounds, running an action twice does no harm, and losing any action, or everything behind it, leads
// to the same end.
//
// [TwoManagers] runs two managers at once, and [TwoClocks] two managers whose clocks differ: they come to rest, and
// neither takes back what the other one wrote.
//
// [CheckExecutor] tests an adapter's Executor against what olmcore.Run expects, [CheckReader] and [CheckBrokenReader]
// its Reader against what the gatherers do.
package invariant
