// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/fake"
)

// Inspect returns the time at which a certificate must be replaced.
func ExampleInspect() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	hosts := certificate.Hosts("webhook", "ops")
	issued, _, err := fake.Issuer{}.Issue(context.Background(), nil, []certificate.Request{{
		Deployment: "operator", Namespace: "ops", Service: "webhook", Hosts: hosts, NotBefore: now, NotAfter: now.Add(certificate.Validity),
	}}, now)
	if err != nil {
		panic(err)
	}
	h := certificate.Inspect(issued[0].Certificate, hosts, now)
	fmt.Println(h.Valid, "to be replaced at", h.RenewAt.Format(time.DateOnly))
	h = certificate.Inspect(issued[0].Certificate, []string{"other.ops.svc"}, now)
	fmt.Println(h.Valid, h.Problem)
	// Output:
	// true to be replaced at 2027-12-31
	// false the certificate is not for other.ops.svc
}
