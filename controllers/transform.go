// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/csv/copies"
	"github.com/olmcore/olm/internal/share"
	"github.com/olmcore/olm/olmcore"
)

// Transform is what a cache does to each object before it keeps it, in the form in which client-go and
// controller-runtime want it (cache.TransformFunc): managed fields are left out, and of copies of versions all that no
// controller looks at. A cluster has as many of these as operators times namespaces. What objects have in common, such as
// the icon and the rules of a bundle, names and labels, is kept once for all of them, so that what one reads of a cache must
// not be written to. It may change o, and returns what is no object as it is; the error is nil.
func Transform(o any) (any, error) {
	object, ok := o.(olmcore.Object)
	if !ok {
		return o, nil
	}
	object.SetManagedFields(nil)
	object = copies.Slim(object)
	if u, isMap := object.(*unstructured.Unstructured); isMap {
		share.InCommon.Map(u)
	} else {
		share.InCommon.Object(object)
	}
	return object, nil
}
