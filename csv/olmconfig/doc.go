// SPDX-License-Identifier: Apache-2.0

// Package olmconfig reconciles the status of one OLMConfig. A condition reports whether the copies of operators that
// watch all namespaces match features.disableCopiedCSVs. Package copies creates and deletes the copies.
//
// [Gather] reads an [Input], and [Reconcile] turns it into an [Outcome]. [Affected] returns the OLMConfigs to reconcile
// after a change of an object.
package olmconfig
