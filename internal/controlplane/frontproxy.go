// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// proxyAs makes the API server say who it asks for when it passes a request on to an APIService: with a certificate
// that is its own authority, and in the headers that every aggregated API server trusts then.
func (c *ControlPlane) proxyAs(name string, server *envtest.APIServer) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return err
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(c.path("proxy.crt"), pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: certificate.Raw}), 0o600),
		os.WriteFile(c.path("proxy.key"), private, 0o600),
	); err != nil {
		return err
	}
	server.Configure().
		Set("requestheader-client-ca-file", c.path("proxy.crt")).
		Set("requestheader-allowed-names", name).
		Set("requestheader-username-headers", "X-Remote-User").
		Set("requestheader-group-headers", "X-Remote-Group").
		Set("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Set("proxy-client-cert-file", c.path("proxy.crt")).
		Set("proxy-client-key-file", c.path("proxy.key"))
	return nil
}
