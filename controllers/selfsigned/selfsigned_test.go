// SPDX-License-Identifier: Apache-2.0

package selfsigned_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/controllers/selfsigned"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake/olm"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func request(deployment string) serving.Request {
	service := deployment + "-service"
	return serving.Request{
		Deployment: deployment, Namespace: "ns", Service: service, Hosts: serving.Hosts(service, "ns"),
		NotBefore: now, NotAfter: now.Add(serving.Validity),
	}
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, rest := pem.Decode(data)
	require.NotNil(t, block)
	require.Empty(t, rest)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}

func TestCertificatesAreAsOLMMakesThem(t *testing.T) {
	requests := []serving.Request{request("a"), request("b")}
	issued, result, err := selfsigned.Issuer{}.Issue(t.Context(), nil, requests, now)
	require.NoError(t, err)
	require.True(t, result.Empty())
	require.Len(t, issued, 2)
	require.Equal(t, issued[0].CAPEM, issued[1].CAPEM, "one authority for a call")
	for i, r := range requests {
		require.Equal(t, r.Deployment, issued[i].Deployment)
		require.Empty(t, serving.Inspect(issued[i].Certificate, r.Hosts, now).Problem)
		leaf, authority := parse(t, issued[i].CertPEM), parse(t, issued[i].CAPEM)
		require.Equal(t, r.Hosts[0], leaf.Subject.CommonName)
		require.Equal(t, []string{"Red Hat, Inc."}, leaf.Subject.Organization)
		require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, leaf.ExtKeyUsage)
		require.Equal(t, r.Hosts, leaf.DNSNames)
		require.Equal(t, []string{"Red Hat, Inc."}, authority.Subject.Organization)
		require.Regexp(t, "^olm-selfsigned-[0-9a-f]+$", authority.Subject.CommonName)
		require.True(t, authority.IsCA && authority.KeyUsage == x509.KeyUsageCertSign && !leaf.IsCA)
		for _, c := range []*x509.Certificate{leaf, authority} {
			require.Equal(t, elliptic.P256(), c.PublicKey.(*ecdsa.PublicKey).Curve)
			require.True(t, c.NotBefore.Equal(r.NotBefore) && c.NotAfter.Equal(r.NotAfter))
		}
	}
	again, _, err := selfsigned.Issuer{}.Issue(t.Context(), nil, requests, now)
	require.NoError(t, err)
	require.NotEqual(t, issued[0].CAPEM, again[0].CAPEM)
	require.NotEqual(t, issued[0].KeyPEM, again[0].KeyPEM)
}

func TestNothingIsAskedFor(t *testing.T) {
	issued, _, err := selfsigned.Issuer{}.Issue(t.Context(), nil, nil, now)
	require.NoError(t, err)
	require.Empty(t, issued)
}

func TestARequestThatCannotBeAnswered(t *testing.T) {
	r := request("a")
	r.Hosts = nil
	_, _, err := selfsigned.Issuer{}.Issue(t.Context(), nil, []serving.Request{r}, now)
	require.EqualError(t, err, "certificate of deployment ns/a: the request names no hosts")
}

func TestLongNames(t *testing.T) {
	r := request(strings.Repeat("a", 55))
	issued, _, err := selfsigned.Issuer{}.Issue(t.Context(), nil, []serving.Request{r}, now)
	require.NoError(t, err)
	require.Empty(t, serving.Inspect(issued[0].Certificate, r.Hosts, now).Problem)
}

// TestTheFakeIssuerIsDeterministic: simulations and scenarios depend on it.
func TestTheFakeIssuerIsDeterministic(t *testing.T) {
	issue := func(seed string, requests ...serving.Request) []serving.Issued {
		issued, _, err := olm.Issuer{Seed: seed}.Issue(t.Context(), nil, requests, now)
		require.NoError(t, err)
		return issued
	}
	require.Empty(t, cmp.Diff(issue("x", request("a")), issue("x", request("a"))))
	require.NotEmpty(t, cmp.Diff(issue("x", request("a")), issue("y", request("a"))))
	later := request("a")
	later.NotBefore = now.Add(time.Second)
	require.NotEqual(t, issue("x", request("a"))[0].CAPEM, issue("x", later)[0].CAPEM)
}
