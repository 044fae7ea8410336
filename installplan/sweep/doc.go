// SPDX-License-Identifier: Apache-2.0

// Package sweep keeps the InstallPlans of a namespace in order.
//
// [Reconcile] deletes old plans that are done and that no Subscription refers to, plans that never got their steps, and
// unpacked bundles that no plan of any namespace needs. It audits how plans and Subscriptions relate: each finding is a
// Diagnostic with a reason of its own, and what can be repaired is, with one Update for each object. A plan that waits
// or runs is never deleted.
package sweep
