// SPDX-License-Identifier: Apache-2.0

// Package olmconfig decides about the status of one OLMConfig: whether the copies of operators that watch all
// namespaces are where the OLMConfig wants them. Package copies makes and deletes them.
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], and [Affected] says when to look again.
package olmconfig
