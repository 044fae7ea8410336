// SPDX-License-Identifier: Apache-2.0

// Package certificate is what is said about the certificates that operators serve their webhooks and APIs with: what is
// wanted, what was issued, and whether one is still good. Making one needs randomness and is left to an issuer.
package certificate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Validity is how long a certificate that is asked for shall be valid.
	Validity = 730 * 24 * time.Hour
	// RenewBefore is how long before its end one is replaced; of one that an issuer made for less than three times as
	// long, it is a third of its life.
	RenewBefore = 24 * time.Hour
	// Backdated is how long before it is asked for a certificate shall be valid already: clients whose clock is behind
	// that of who asks would distrust it.
	Backdated = time.Hour
)

// The keys of a Secret that holds a certificate, as OLM has them.
const (
	// CAKey is that of the certificate of the authority; OLM's name says key, but there is none.
	CAKey = "olmCAKey"
	// CertKey is that of the certificate, followed by those between it and the authority, if any.
	CertKey = corev1.TLSCertKey
	// PrivateKeyKey is that of the private key.
	PrivateKeyKey = corev1.TLSPrivateKeyKey
)

// Request asks for a certificate that a Service serves with. Those of one call are for Deployments of one
// ClusterServiceVersion, and may have one authority in common.
type Request struct {
	// Deployment and Namespace say whose Pods serve with it, Service by which name they are called.
	Deployment, Namespace, Service string
	// Hosts are the names that it must be good for; the first is its common name.
	Hosts []string
	// NotBefore and NotAfter say when it shall be valid. An issuer with rules of its own may shorten that.
	NotBefore, NotAfter time.Time
	// Owner is the ClusterServiceVersion. What an issuer makes in the namespace may go with it.
	Owner metav1.OwnerReference
}

// Certificate is a serving certificate with its key and the certificate of the authority that signed it, each as PEM.
type Certificate struct {
	CAPEM, CertPEM, KeyPEM []byte
}

// IsEmpty reports whether there is nothing of a certificate.
func (c Certificate) IsEmpty() bool {
	return len(c.CAPEM) == 0 && len(c.CertPEM) == 0 && len(c.KeyPEM) == 0
}

// Issued answers the Request for a Deployment.
type Issued struct {
	Deployment string
	Certificate
}

// FromData returns the certificate that the data of a Secret hold, with empty fields for what is missing.
func FromData(data map[string][]byte) Certificate {
	return Certificate{CAPEM: data[CAKey], CertPEM: data[CertKey], KeyPEM: data[PrivateKeyKey]}
}

// Hosts are the names by which the API server and others call a Service.
func Hosts(service, namespace string) []string {
	host := service + "." + namespace
	return []string{host, host + ".svc", host + ".svc.cluster.local"}
}
