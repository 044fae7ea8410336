// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"errors"

	"github.com/olmcore/olm/olmcore"
)

// Needed returns the error of a read that a Gather cannot do without, or nil if err is nil. If the objects were not
// read, the message also contains unknown, which names what cannot be determined without them, for example "the phase
// of a ClusterServiceVersion".
func Needed(err error, unknown string) error {
	var notRead *olmcore.NotReadError
	if !errors.As(err, &notRead) || notRead.Unknown != "" {
		return err
	}
	return &olmcore.NotReadError{Kind: notRead.Kind, Namespace: notRead.Namespace, Unknown: unknown}
}
