// SPDX-License-Identifier: Apache-2.0

// Package decode reads Kubernetes objects: from JSON, from the objects and lists that a client returns, and from text
// that people write and kubectl prints (YAML documents, streams of JSON values, and lists of either). It opens no
// files.
//
//	read, err := decode.Read("all.yaml", f)                                         // the objects, and their places
//	objects, err := decode.Distinct(read)                                           // fails if an object is repeated
//	err = cluster.Load(objects...)                                                  // into a fake.Cluster
//	snapshot, err := olmcore.NewSnapshot(objects, decode.Scopes(objects, false)...) // or to reconcile from
//
// Objects of the kinds in [olmcore.Kinds] have their Go types. All others are *unstructured.Unstructured. Every error
// of [Read] and [Distinct] is an [*Error], which names the file, the document and the field.
//
// Adapters of clients use [AddToScheme] for the scheme of the client, [Blank] and [BlankList] to read objects, and
// [Typed], [Items] and [Kept] to convert them. [Action] and [Apply] turn an [olmcore.Record] back into a write.
package decode
