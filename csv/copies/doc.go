// SPDX-License-Identifier: Apache-2.0

// Package copies decides about the copies of one ClusterServiceVersion. An operator is seen in every namespace that it
// watches, because a copy of its ClusterServiceVersion is there.
//
// [Gather] reads an [Input], [Reconcile] turns it into an [Outcome], and [Affected] says which originals to look at
// again when an object changed. The key is the original's, which need not exist any more: then its copies go.
//
//	original, its OperatorGroup, Namespaces, OLMConfig  ->  where copies shall be
//	original                                            ->  what they hold
//	a copy that is missing                              ->  created; its status follows
//	a copy that holds something else                    ->  updated, as a whole
//	a copy without a reason to exist                    ->  deleted
//	copies that the OLMConfig has disabled              ->  a Warning Event on the original
//
// Whose copy an object is its label olm.copiedFrom says alone. One without the label that is a copy by its annotation
// is decided about under its own key.
//
// There are as many copies as operators times namespaces. A cache that keeps them whole holds gigabytes of the same
// text: [Slim] is what a cache keeps of a copy.
package copies
