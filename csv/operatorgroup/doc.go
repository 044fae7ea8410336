// SPDX-License-Identifier: Apache-2.0

// Package operatorgroup reconciles one OperatorGroup. It determines which namespaces its operators watch, and creates
// the ClusterRoles that let users access the provided APIs.
//
// [Gather] reads an [Input], and [Reconcile] turns it into an [olmcore.Outcome]. [Affected] returns the OperatorGroups
// to reconcile after a change of an object. Every ClusterServiceVersion of the namespace waits for the status that
// Reconcile writes. Package csv reads it.
//
//	spec.targetNamespaces, spec.selector   ->  status.namespaces
//	spec.serviceAccountName                ->  status.serviceAccountRef, and a condition
//	other OperatorGroups of the namespace  ->  a condition
//	status.namespaces                      ->  a label with the UID of the group on each namespace
//	APIs that its operators provide        ->  ClusterRoles for admin, edit and view
//	APIs that no operator provides         ->  removed from the annotation olm.providedAPIs
//
// Package sweep finds what a deleted OperatorGroup leaves behind.
package operatorgroup
