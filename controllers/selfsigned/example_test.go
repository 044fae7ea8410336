// SPDX-License-Identifier: Apache-2.0

package selfsigned_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/olmcore/olm/controllers/selfsigned"
	"github.com/olmcore/olm/csv/serving"
)

// One authority signs for all Deployments of a version.
func ExampleSign() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	issued, err := selfsigned.Sign([]serving.Request{{
		Deployment: "operator", Namespace: "ops", Service: "webhook", Hosts: serving.Hosts("webhook", "ops"),
		NotBefore: now, NotAfter: now.Add(serving.Validity),
	}}, func(string) (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })
	if err != nil {
		panic(err)
	}
	fmt.Println(issued[0].Deployment, serving.Inspect(issued[0].Certificate, serving.Hosts("webhook", "ops"), now).Valid)
	// Output:
	// operator true
}
