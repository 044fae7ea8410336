// SPDX-License-Identifier: Apache-2.0

// Package operatorgroup decides about one OperatorGroup: which namespaces its operators watch and what its users may do
// with what they provide.
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], and [Affected] says
// which groups to look at again when an object changed. Every ClusterServiceVersion of the namespace waits for the
// status that Reconcile writes; package csv reads it.
//
//	spec.targetNamespaces, spec.selector   ->  status.namespaces
//	spec.serviceAccountName                ->  status.serviceAccountRef, a condition
//	other groups of the namespace          ->  a condition
//	status.namespaces                      ->  a label with the group's UID on each
//	APIs that its operators provide        ->  ClusterRoles admin, edit and view
//	APIs that no operator provides         ->  leave the annotation olm.providedAPIs
//
// What a deleted group leaves behind is found by package sweep.
package operatorgroup
