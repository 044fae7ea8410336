// SPDX-License-Identifier: Apache-2.0

// Package model contains the ClusterServiceVersion and its relations: the objects that it owns, its upgrade chain, its
// OperatorGroup, the APIs that it provides, and its copies. The other packages below csv decide from them.
package model
