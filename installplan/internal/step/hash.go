// SPDX-License-Identifier: Apache-2.0

package step

import (
	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/olmcore"
)

// hashKey is the annotation of an object with the hash of what a step applied. Later calls compare this hash instead of
// the object, because the API server may have added defaults to the object.
const hashKey = olmcore.KeyPrefix + "step-hash"

// hashOf returns the hash of the content of an object. It does not depend on the UID of the owner, which changes if the
// version is created again.
func hashOf(object map[string]any) (string, error) {
	if labels := bundle.Strings(bundle.Fields(object, "metadata"), "labels"); labels[olmcore.LabelOwnerUID] != nil {
		delete(labels, olmcore.LabelOwnerUID)
		object = withMetadata(object)
		bundle.Fields(object, "metadata")["labels"] = labels
	}
	return objecthash.HashCanonical(object)
}
