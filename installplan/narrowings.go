// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"iter"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan/internal/step"
)

// Narrowings returns the fields in which a change of a CustomResourceDefinition takes something away from its users,
// for example spec.versions[v1].schema.openAPIV3Schema.properties[spec]. from is the definition before the change, and
// to is the one after it. Neither may be nil. A plan may not change a definition of another owner in this way.
// Narrowings reports these changes:
//   - A served version is removed.
//   - Values that were valid are rejected.
//   - Fields that were kept are pruned.
//   - Default values change.
//   - Custom resources are stored or converted in another way.
func Narrowings(from, to *apiextensionsv1.CustomResourceDefinition) iter.Seq[string] {
	return step.Narrowings(from, to)
}
