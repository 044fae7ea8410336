// SPDX-License-Identifier: Apache-2.0

package olmruntime

// AddIndexes and CachedNamespaces are for tests that have a cache without a
// manager.
var AddIndexes = addIndexes

// CachedNamespaces see AddIndexes.
func (o Options) CachedNamespaces() []string { return o.cached() }
