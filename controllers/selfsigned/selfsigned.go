// SPDX-License-Identifier: Apache-2.0

// Package selfsigned issues the certificates that operators serve with as OLM does: from an authority of its own for
// each call, whose key is forgotten at once.
package selfsigned

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

const organization = "Red Hat, Inc."

// Issuer issues certificates with random keys. The zero value is ready.
type Issuer struct{}

// Issue implements controllers.Issuer. It needs no Reader and no second call.
func (Issuer) Issue(
	_ context.Context,
	_ olmcore.Reader,
	requests []serving.Request,
	_ time.Time,
) ([]serving.Issued, olmcore.Result, error) {
	issued, err := Sign(requests, func(string) (*ecdsa.PrivateKey, error) {
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	})
	return issued, olmcore.Result{}, err
}

// Sign issues certificates for some requests from one new authority. key makes the keys: of the authority, with an
// empty name, and of each Deployment. Equal keys and requests give equal certificates. The error is that of key, or of
// a request from which no certificate can be made.
//
// Source: operator-lifecycle-manager pkg/controller/certs.
func Sign(requests []serving.Request, key func(deployment string) (*ecdsa.PrivateKey, error)) ([]serving.Issued, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	authorityKey, err := key("")
	if err != nil {
		return nil, err
	}
	authority, err := authorityOf(authorityKey, requests)
	if err != nil {
		return nil, err
	}
	var issued []serving.Issued
	for _, r := range requests {
		leafKey, err := key(r.Deployment)
		if err != nil {
			return nil, err
		}
		c, err := leafOf(leafKey, authority, authorityKey, r)
		if err != nil {
			return nil, fmt.Errorf("certificate of deployment %s/%s: %w", r.Namespace, r.Deployment, err)
		}
		issued = append(issued, serving.Issued{Deployment: r.Deployment, Certificate: c})
	}
	return issued, nil
}

// authorityOf makes the certificate of an authority that is valid as long as all requests.
func authorityOf(key *ecdsa.PrivateKey, requests []serving.Request) (*x509.Certificate, error) {
	serial, err := serialOf(key)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: fmt.Sprintf("olm-selfsigned-%x", serial), Organization: []string{organization}},
		NotBefore:    requests[0].NotBefore, NotAfter: requests[0].NotAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	for _, r := range requests {
		if r.NotBefore.Before(template.NotBefore) {
			template.NotBefore = r.NotBefore
		}
		if r.NotAfter.After(template.NotAfter) {
			template.NotAfter = r.NotAfter
		}
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func leafOf(
	key *ecdsa.PrivateKey,
	authority *x509.Certificate,
	authorityKey *ecdsa.PrivateKey,
	r serving.Request,
) (c serving.Certificate, err error) {
	if len(r.Hosts) == 0 {
		return c, fmt.Errorf("the request names no hosts")
	}
	serial, err := serialOf(key)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.Hosts[0], Organization: []string{organization}},
		NotBefore: r.NotBefore, NotAfter: r.NotAfter, DNSNames: r.Hosts,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if len(template.Subject.CommonName) > maxCommonName {
		template.Subject.CommonName = "" // the hosts are what counts
	}
	der, err := x509.CreateCertificate(nil, template, authority, key.Public(), authorityKey)
	if err != nil {
		return c, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return c, err
	}
	return serving.Certificate{
		CAPEM:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}),
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, nil
}

// maxCommonName is the limit of X.509.
const maxCommonName = 64

// serialOf returns the serial number of a certificate: as random as its key.
func serialOf(key *ecdsa.PrivateKey) (*big.Int, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(public)
	return new(big.Int).SetBytes(sum[:8]), nil
}
