// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"reflect"

	"github.com/olmcore/olm/olmcore"
)

// Watch makes the store keep a private copy of each object from now on, for Verify.
func (s *Store) Watch() {
	s.twins = map[olmcore.Object]olmcore.Object{}
	for _, o := range s.uids {
		s.twins[o] = o.DeepCopyObject().(olmcore.Object)
	}
}

// Verify returns an error that names an object which a reader changed since Watch was called.
func (s *Store) Verify() error {
	if s.twins == nil {
		return nil
	}
	for _, o := range s.Objects() {
		if twin := s.twins[o]; twin != nil && !reflect.DeepEqual(o, twin) {
			return fmt.Errorf("%s was changed by a reader of it", olmcore.KeyOf(twin))
		}
	}
	return nil
}
