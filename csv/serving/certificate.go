// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Validity is the lifetime of a requested certificate.
	Validity = 730 * 24 * time.Hour
	// RenewBefore is the time before its expiry at which a certificate is replaced. If the lifetime of a certificate is
	// less than three times RenewBefore, it is replaced after two thirds of its lifetime.
	RenewBefore = 24 * time.Hour
	// Backdated is the time between the NotBefore of a requested certificate and the request. It keeps the certificate
	// valid for clients whose clock is behind the clock of the caller.
	Backdated = time.Hour
)

// Keys of a Secret that contains a certificate, as OLM names them.
const (
	// CAKey is the key of the certificate of the authority. Despite its name, OLM stores no private key under it.
	CAKey = "olmCAKey"
	// CertKey is the key of the serving certificate. The value may contain intermediate certificates after the serving
	// certificate.
	CertKey = corev1.TLSCertKey
	// PrivateKeyKey is the key of the private key of the serving certificate.
	PrivateKeyKey = corev1.TLSPrivateKeyKey
)

// Request is a request for the serving certificate of a Service. All requests of one call are for Deployments of the
// same ClusterServiceVersion, so one authority may sign all of them.
type Request struct {
	// Deployment is the name of a Deployment in Namespace. The Pods of the Deployment serve with the certificate. Clients
	// call the Pods through the Service with the name Service.
	Deployment, Namespace, Service string
	// Hosts contains the DNS names for which the certificate must be valid. The first one is the common name.
	Hosts []string
	// NotBefore and NotAfter are the start and the end of the requested validity period. An issuer may shorten it.
	NotBefore, NotAfter time.Time
	// Owner references the ClusterServiceVersion. An issuer may set this owner reference on objects that it creates in the
	// namespace. The objects are then deleted together with the ClusterServiceVersion.
	Owner metav1.OwnerReference
}

// Certificate contains a serving certificate, its private key, and the certificate of the authority that signed it. All
// are PEM data.
type Certificate struct {
	CAPEM, CertPEM, KeyPEM []byte
}

// IsEmpty reports whether all fields are empty.
func (c Certificate) IsEmpty() bool {
	return len(c.CAPEM) == 0 && len(c.CertPEM) == 0 && len(c.KeyPEM) == 0
}

// Issued contains the certificate that was issued for the Request with the same Deployment.
type Issued struct {
	Deployment string
	Certificate
}

// FromData returns the certificate in the data of a Secret. Fields whose key is missing are empty.
func FromData(data map[string][]byte) Certificate {
	return Certificate{CAPEM: data[CAKey], CertPEM: data[CertKey], KeyPEM: data[PrivateKeyKey]}
}

// Hosts returns the DNS names by which the API server and other clients call a Service. The first one is
// service.namespace.
func Hosts(service, namespace string) []string {
	host := service + "." + namespace
	return []string{host, host + ".svc", host + ".svc.cluster.local"}
}
