// SPDX-License-Identifier: Apache-2.0

package olmruntime

// What tests look at beside the API.
var (
	AddIndexes   = addIndexes
	WatchedKinds = watchedKinds
	Tell         = tell
)

const MaxNote = maxNote

func (o Options) CachedNamespaces() []string { return o.cached() }
