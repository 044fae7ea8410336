// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"reflect"

	"github.com/olmcore/olm/olmcore"
)

// Sharing detects readers that change an object which they share with the store of a Cluster.
type Sharing struct{ cluster *Cluster }

// Sharing returns the detector of changes to shared objects.
func (c *Cluster) Sharing() Sharing { return Sharing{c} }

// Watch makes the cluster keep a private copy of each object from now on, for Verify. It costs a deep copy per write.
func (s Sharing) Watch() {
	c := s.cluster
	c.twins = map[olmcore.Object]olmcore.Object{}
	for _, o := range c.uids {
		c.twins[o] = o.DeepCopyObject().(olmcore.Object)
	}
}

// Verify returns an error that names an object which a reader changed since Watch was called. It returns nil if Watch
// was never called.
func (s Sharing) Verify() error {
	c := s.cluster
	if c.twins == nil {
		return nil
	}
	for _, o := range c.Objects() {
		if twin := c.twins[o]; twin != nil && !reflect.DeepEqual(o, twin) {
			return fmt.Errorf("%s was changed by a reader of it", olmcore.KeyOf(twin))
		}
	}
	return nil
}
