// SPDX-License-Identifier: Apache-2.0

// Package sweep finds what ClusterServiceVersions and OperatorGroups of the whole cluster left behind that were deleted
// while no controller ran, or whose finalizer was removed by hand or not yet added. It also finds what a controller
// with a stale cache creates for an owner that is gone. [Gather] reads an [Input], [Reconcile] turns it into an
// [Outcome].
//
// One call for the whole cluster every few minutes is enough: what a deleted ClusterServiceVersion leaves, its own
// cleanup removes (package cleanup). A [Rest] spares calls at rest the reads that no cache answers.
package sweep
