// SPDX-License-Identifier: Apache-2.0

// Package serving plans what a ClusterServiceVersion serves: its webhooks, the conversions of its CRDs and its
// APIServices, which the API server calls, and the Deployments behind them. It installs all of them, requests and
// rotates the certificates of the Deployments, and checks the health of the webhooks and APIServices.
package serving

import (
	"slices"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
)

// Reasons of the actions of this package.
const (
	// ReasonInstall means that a webhook, a conversion, an APIService, or an object that a Deployment depends on, such as
	// its Service, is created or updated. An object that cannot be updated is deleted and created again. Nothing to do.
	ReasonInstall = deployment.ReasonInstall
	// ReasonCertificate means that a certificate rotation writes the Secret of a Deployment, or replaces the Pods of the
	// Deployment. Nothing to do.
	ReasonCertificate = "CertificateRotation"
	// ReasonSettled means that a certificate rotation is complete. The authorities that only the rotation needed are
	// retired. Nothing to do.
	ReasonSettled = "CertificateSettled"
	// ReasonTrust means that the caBundle of a webhook or an APIService is updated during a certificate rotation. It is
	// also the reason if the namespaceSelector of a webhook is updated because the OperatorGroup changed. Nothing to do.
	ReasonTrust = "Trust"
	// ReasonRemovedFromSpec means that a webhook is removed because the ClusterServiceVersion no longer describes it.
	// Nothing to do.
	ReasonRemovedFromSpec = "RemovedFromSpec"
	// ReasonNotOwned means that an APIService is deleted because the spec of the CSV that created it no longer contains
	// it. Nothing to do.
	ReasonNotOwned = "NotOwned"
	// ReasonLegacyObject means that an unused object is deleted. A very old version of OLM created it. Nothing to do.
	ReasonLegacyObject = "LegacyObject"
)

// Reasons of the Diagnostics of this package.
const (
	// ReasonRulesKept means that an existing webhook configuration keeps rules that a new configuration would not get. The
	// cause is that the OperatorGroup does not select all namespaces. The next version of the operator gets narrower rules
	// or is rejected. Before you upgrade, give the operator an OperatorGroup that selects all namespaces, or run the
	// command in the message.
	ReasonRulesKept = "WebhookRulesKept"
	// ReasonRulesNarrowed means that a webhook is not called for custom resources of a cluster-scoped CRD, although the
	// ClusterServiceVersion lists the CRD as owned. The cause is that the OperatorGroup does not select all namespaces,
	// and no InstallPlan recorded that the CRD belongs to this operator alone. Give the operator an OperatorGroup that
	// selects all namespaces, or run the command in the message.
	ReasonRulesNarrowed = "WebhookRulesNarrowed"
	// ReasonConversionKept means that a CRD calls the operator for conversions, but no InstallPlan recorded that the CRD
	// was installed with the operator. Only the caBundle of its conversion is updated, even if the next version of the
	// operator needs another conversion. To allow changes, let a cluster administrator run the command in the message.
	ReasonConversionKept = "ConversionKept"
)

// Plan contains what a CSV serves: the certificates of its Deployments, and the clients through which the API server
// calls them. The zero value is that of a CSV that serves nothing.
type Plan struct {
	Certificates Certificates
	Clients      Clients
}

// Purpose is the reason why a Plan is computed.
type Purpose string

// Purposes of a Plan.
const (
	ForChecks       Purpose = "Checks"       // ForChecks means that clients are only checked, so no certificate is planned.
	ForInstallation Purpose = "Installation" // ForInstallation means that the operator is installed, or was installed.
	ForRenewal      Purpose = "Renewal"      // ForRenewal means that a version that waits only renews its certificates.
)

// PlanOf returns the Plan of a CSV. With ForRenewal, certificates do not wait for missing clients, because the version
// creates none.
func PlanOf(o model.Operator, purpose Purpose) Plan {
	p := Plan{Clients: Clients{Operator: o}}
	if purpose == ForChecks {
		return p
	}
	clients := p.Clients.List()
	if purpose == ForRenewal {
		clients = slices.DeleteFunc(clients, func(c Client) bool { return c.Missing })
	}
	p.Certificates = CertificatesOf(Backends{Operator: o, Clients: clients})
	p.Clients.Certificates, p.Clients.Memory = p.Certificates, p.Certificates.Memory
	return p
}
