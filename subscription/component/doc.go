// SPDX-License-Identifier: Apache-2.0

// Package component keeps what belongs to an operator together: by the component label
// that [Labels] puts on a Subscription, the ClusterServiceVersion that it installed and
// what that owns, and by the cluster-scoped Operator object of the label, which
// [Reconcile] keeps.
//
// Objects are made with their labels by packages installplan and csv; what is put here
// repairs. So nothing of a ClusterServiceVersion is labelled while package csv writes it.
package component
