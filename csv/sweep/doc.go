// SPDX-License-Identifier: Apache-2.0

// Package sweep finds objects whose ClusterServiceVersion or OperatorGroup does not exist any more. The owner was
// deleted while no controller ran, or without the finalizer, or a controller with a stale cache created the object too
// late. [Gather] reads an [Input], and [Reconcile] turns it into an [olmcore.Outcome].
//
// Call it once for the whole cluster every few minutes. That is enough, because package cleanup removes what a deleted
// ClusterServiceVersion leaves behind. While nothing changes, a [Rest] lets Gather skip the reads that no cache
// answers.
package sweep
