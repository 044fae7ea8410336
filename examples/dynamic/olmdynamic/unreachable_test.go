// SPDX-License-Identifier: Apache-2.0

package olmdynamic_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/dynamic/olmdynamic"
	"github.com/olmcore/olm/fake"
)

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue returns a certificate by an authority, nil for one of its own.
func issue(t *testing.T, name string, by *pair, from, to time.Time) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: to,
		DNSNames: []string{name}, BasicConstraintsValid: true, IsCA: by == nil,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "local" {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	issued := &pair{certificate: c, key: key}
	if by == nil {
		by = issued
	}
	data, err := x509.CreateCertificate(rand.Reader, c, by.certificate, &key.PublicKey, by.key)
	require.NoError(t, err)
	issued.certificate, err = x509.ParseCertificate(data)
	require.NoError(t, err)
	return issued
}

func (p *pair) pem(t *testing.T) (certificate, key []byte) {
	t.Helper()
	data, err := x509.MarshalECPrivateKey(p.key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: data})
}

// TestWhatKeepsFromConnecting: each message names the server, what is wrong, and what to do.
func TestWhatKeepsFromConnecting(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	authority := issue(t, "authority", nil, now.Add(-24*time.Hour), now.Add(24*time.Hour))
	good := issue(t, "local", authority, before, after)
	ended := issue(t, "user", authority, now.Add(-2*time.Hour), before)
	endedCert, endedKey := ended.pem(t)
	file := func(data []byte) string {
		path := filepath.Join(t.TempDir(), "pem")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	trusted, _ := authority.pem(t)
	for name, tt := range map[string]struct {
		server *pair
		config rest.TLSClientConfig
		status int // of the answer; 0: of a cluster
		want   string
	}{
		"a good certificate":                    {server: good, config: rest.TLSClientConfig{CAData: trusted}},
		"an ended certificate":                  {server: issue(t, "local", authority, now.Add(-2*time.Hour), before), config: rest.TLSClientConfig{CAData: trusted}, want: "the server's certificate (CN=local) ended on " + at(-time.Hour) + ": renew it"},
		"a certificate that is yet to begin":    {server: issue(t, "local", authority, after, after.Add(time.Hour)), config: rest.TLSClientConfig{CAData: trusted}, want: "the server's certificate (CN=local) begins on " + at(time.Hour) + ": set this machine's clock, or renew the certificate"},
		"an authority that is not trusted":      {server: good, want: "the server's certificate (CN=local) was issued by an authority that is not trusted (CN=authority): set certificate-authority-data in the kubeconfig to the authority of this cluster"},
		"another server's certificate":          {server: issue(t, "elsewhere", authority, before, after), config: rest.TLSClientConfig{CAData: trusted, ServerName: "here"}, want: "the server's certificate is for elsewhere: name the server so in the kubeconfig, or set tls-server-name to one of them"},
		"an ended certificate of the client":    {server: good, status: http.StatusUnauthorized, config: rest.TLSClientConfig{CAData: trusted, CertData: endedCert, KeyData: endedKey}, want: "the client certificate of the kubeconfig (CN=user) ended on " + at(-time.Hour) + ": get a new kubeconfig"},
		"an ended certificate in a file":        {server: good, status: http.StatusUnauthorized, config: rest.TLSClientConfig{CAData: trusted, CertFile: file(endedCert), KeyFile: file(endedKey)}, want: "the client certificate of the kubeconfig (CN=user) ended on " + at(-time.Hour) + ": get a new kubeconfig"},
		"credentials that the server knows not": {server: good, status: http.StatusUnauthorized, config: rest.TLSClientConfig{CAData: trusted}, want: "the server does not accept the credentials of the kubeconfig, or of the Pod: log in again, or get a new kubeconfig"},
		"a server that is broken":               {server: good, status: http.StatusTeapot, config: rest.TLSClientConfig{CAData: trusted}, want: "the server responded with the status code 418"},
	} {
		t.Run(name, func(t *testing.T) {
			var handler http.Handler = apiserver.New(fake.NewCluster(time.Now()))
			if tt.status != 0 {
				handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) })
			}
			front := httptest.NewUnstartedServer(handler)
			front.Config.ErrorLog = log.New(io.Discard, "", 0)
			front.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{{
				Certificate: [][]byte{tt.server.certificate.Raw}, PrivateKey: tt.server.key,
			}}}
			front.StartTLS()
			defer front.Close()
			_, err := olmdynamic.New(&rest.Config{Host: front.URL, QPS: -1, TLSClientConfig: tt.config})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, front.URL+": "+tt.want)
			require.False(t, strings.Contains(err.Error(), "\n"), "one line")
		})
	}
	_, err := olmdynamic.New(&rest.Config{Host: "https://127.0.0.1:1"})
	require.ErrorContains(t, err, "https://127.0.0.1:1: ")
}
