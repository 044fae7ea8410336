// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// A list must not contain an object without a name. The error names the object and the field.
func ExampleObjects_VisitLists() {
	o := serving.Objects{Services: olmcore.Found(&corev1.Service{})}
	lists := inputs.ValidateLists()
	o.VisitLists(&lists)
	fmt.Println(lists.Err())
	// Output:
	// invalid input: Serving.Services[0].metadata.name is empty
}
