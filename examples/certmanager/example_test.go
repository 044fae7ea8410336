// SPDX-License-Identifier: Apache-2.0

package certmanager_test

import (
	"context"
	"fmt"

	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/examples/certmanager"
	"github.com/olmcore/olm/olmcore"
)

// Operators serve with certificates of the cluster's own authority, once this is in the options of the controllers.
func ExampleIssuer() {
	options := controllers.Options{Issuer: certmanager.Issuer{Ref: cmmeta.IssuerReference{Kind: "ClusterIssuer", Name: "company"}}}

	// The controllers call it with their Reader, for an operator that serves a webhook.
	snapshot, err := olmcore.NewSnapshot(nil, olmcore.Everything)
	if err != nil {
		panic(err)
	}
	_, result, err := options.Issuer.Issue(context.Background(), snapshot, []serving.Request{{
		Deployment: "operator", Namespace: "ops", Service: "webhook", Hosts: serving.Hosts("webhook", "ops"),
		NotBefore: start, NotAfter: start.Add(serving.Validity),
	}}, start)
	if err != nil {
		panic(err)
	}
	for _, a := range result.Actions {
		verb, target, cause := a.Describe()
		fmt.Println(verb, target, cause.Reason)
	}
	// Output:
	// create Certificate ops/webhook-cert-manager CertManagerCertificate
}

// The Certificate of a Service, and the Secret that cert-manager writes for it.
func ExampleName() {
	fmt.Println(certmanager.Name("webhook"))
	// Output:
	// webhook-cert-manager
}
