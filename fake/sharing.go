// SPDX-License-Identifier: Apache-2.0

package fake

// Sharing detects readers that change an object which they share with the store of a Cluster.
type Sharing struct{ cluster *Cluster }

// Sharing returns the detector of changes to shared objects.
func (c *Cluster) Sharing() Sharing { return Sharing{c} }

// Watch makes the cluster keep a private copy of each object from now on, for Verify. It costs a deep copy per write.
func (s Sharing) Watch() { s.cluster.store.Watch() }

// Verify returns an error that names an object which a reader changed since Watch was called. It returns nil if Watch
// was never called.
func (s Sharing) Verify() error { return s.cluster.store.Verify() }
