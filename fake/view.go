// SPDX-License-Identifier: Apache-2.0

package fake

import "github.com/olmcore/olm/fake/internal/caches"

// View is the cache of a reconciler: an olmcore.Reader that is stale, for each kind by its own number of events. It
// only moves forward, when a method is called. A new View is up to date.
//
// Next takes in one event of a kind, SyncKind all events of a kind, and Sync all events. Restart brings the view up to
// date at once. Behind returns the stale kinds, and Lag the number of events that are missing. Watch is called for each
// event. Close removes the view.
type View = caches.View

// View returns the view of a name. A new one is up to date.
func (c *Cluster) View(name string) *View { return c.caches.View(name) }
