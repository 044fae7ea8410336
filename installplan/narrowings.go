// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"iter"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan/internal/step"
)

// Narrowings yields the fields, such as spec.versions[v1].schema.openAPIV3Schema.properties[spec], in which a
// CustomResourceDefinition that becomes to takes something away from users of from: a served version, a value that was
// valid, kept or left alone, or the way objects are stored and converted. It is the rule by which a plan may not change
// what others own. Neither may be nil.
func Narrowings(from, to *apiextensionsv1.CustomResourceDefinition) iter.Seq[string] {
	return step.Narrowings(from, to)
}
