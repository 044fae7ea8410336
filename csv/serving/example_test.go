// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake/olm"
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

// Inspect returns the time at which a certificate must be replaced.
func ExampleInspect() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	hosts := serving.Hosts("webhook", "ops")
	issued, _, err := olm.Issuer{}.Issue(context.Background(), nil, []serving.Request{{
		Deployment: "operator", Namespace: "ops", Service: "webhook", Hosts: hosts, NotBefore: now, NotAfter: now.Add(serving.Validity),
	}}, now)
	if err != nil {
		panic(err)
	}
	h := serving.Inspect(issued[0].Certificate, hosts, now)
	fmt.Println(h.Valid, "to be replaced at", h.RenewAt.Format(time.DateOnly))
	h = serving.Inspect(issued[0].Certificate, []string{"other.ops.svc"}, now)
	fmt.Println(h.Valid, h.Problem)
	// Output:
	// true to be replaced at 2027-12-31
	// false the certificate is not for other.ops.svc
}
