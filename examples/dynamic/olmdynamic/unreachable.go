// SPDX-License-Identifier: Apache-2.0

package olmdynamic

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// unreachable says of an error of the first request what is wrong and what to do; of others it names the server.
func unreachable(config *rest.Config, err error, now time.Time) error {
	if ended := clientCertificate(config); ended != nil && now.After(ended.NotAfter) {
		return fmt.Errorf("%s: the client certificate of the kubeconfig (%s) ended on %s: get a new kubeconfig: %w",
			config.Host, ended.Subject, date(ended.NotAfter), err)
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) && len(untrusted.UnverifiedCertificates) > 0 {
		return fmt.Errorf("%s: %s: %w", config.Host, distrust(untrusted, now), err)
	}
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: the server does not accept the credentials of the kubeconfig, or of the Pod: log in again, or get a new kubeconfig: %w", config.Host, err)
	}
	return fmt.Errorf("%s: %w", config.Host, err)
}

// distrust says why a server's certificate is not trusted, and what to do.
func distrust(err *tls.CertificateVerificationError, now time.Time) string {
	for _, c := range err.UnverifiedCertificates {
		switch {
		case now.After(c.NotAfter):
			return fmt.Sprintf("the server's certificate (%s) ended on %s: renew it", c.Subject, date(c.NotAfter))
		case now.Before(c.NotBefore):
			return fmt.Sprintf("the server's certificate (%s) begins on %s: set this machine's clock, or renew the certificate", c.Subject, date(c.NotBefore))
		}
	}
	serving := err.UnverifiedCertificates[0]
	var host x509.HostnameError
	if errors.As(err.Err, &host) {
		names := serving.DNSNames
		for _, ip := range serving.IPAddresses {
			names = append(names, ip.String())
		}
		return fmt.Sprintf("the server's certificate is for %s: name the server so in the kubeconfig, or set tls-server-name to one of them", strings.Join(names, ", "))
	}
	return fmt.Sprintf("the server's certificate (%s) was issued by an authority that is not trusted (%s): "+
		"set certificate-authority-data in the kubeconfig to the authority of this cluster", serving.Subject, serving.Issuer)
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// clientCertificate returns the certificate that a process presents, nil for none that can be read.
func clientCertificate(config *rest.Config) *x509.Certificate {
	data := config.CertData
	if len(data) == 0 && config.CertFile != "" {
		data, _ = os.ReadFile(config.CertFile) // the request failed already because of it
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}
