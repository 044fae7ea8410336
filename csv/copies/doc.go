// SPDX-License-Identifier: Apache-2.0

// Package copies creates, updates and deletes the copies of one ClusterServiceVersion, and reports in the status of the
// OLMConfig whether the copies match its option. A copied CSV in each namespace that an operator watches shows its
// users that the operator is there.
//
// [Gather] reads an [Input], and [Reconcile] turns it into an [olmcore.Outcome]. [Affected] returns the originals to
// reconcile after a change of an object. The key is the key of the original. If the original does not exist any more,
// its copies are deleted.
//
//	original, its OperatorGroup, Namespaces, OLMConfig  ->  the namespaces that should have a copy
//	original                                            ->  the content of its copies
//	a copy that is missing                              ->  created; its status is written afterwards
//	a copy with other content                           ->  updated as a whole
//	a copy that should not exist                        ->  deleted
//	copies that the OLMConfig disables                  ->  a Warning Event on the original
//
// Only the label olm.copiedFrom decides which original a copy belongs to. A copy that has only the annotation, and not
// the label, is reconciled under its own key.
//
// There are as many copies as operators times namespaces. A cache that keeps whole copies stores gigabytes of the same
// text. [Slim] returns the part of a copy that a cache should keep.
//
// [GatherConfig], [ReconcileConfig] and [AffectedConfigs] do the same for the OLMConfig. Its condition reports whether
// the copies of operators that watch all namespaces match features.disableCopiedCSVs.
package copies
