// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake/olm"
	_ "github.com/olmcore/olm/internal/seeded"
)

var (
	start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hosts = serving.Hosts("cool-service", "ns")
)

// issue returns a certificate that is valid from start on.
func issue(t testing.TB, seed string, lasts time.Duration, hosts ...string) serving.Certificate {
	t.Helper()
	issued, _, err := olm.Issuer{Seed: seed}.Issue(t.Context(), nil, []serving.Request{{
		Deployment: "cool", Namespace: "ns", Service: "cool-service", Hosts: hosts, NotBefore: start, NotAfter: start.Add(lasts),
	}}, start)
	require.NoError(t, err)
	return issued[0].Certificate
}

// parse returns the certificates in PEM data.
func parse(data []byte) serving.Bundle { return (*serving.Memory)(nil).Bundle(data) }

func TestHostsOfService(t *testing.T) {
	want := []string{"cool-service.ns", "cool-service.ns.svc", "cool-service.ns.svc.cluster.local"}
	require.Empty(t, cmp.Diff(want, hosts))
}

func TestInspectFindsProblems(t *testing.T) {
	good, other := issue(t, "a", serving.Validity, hosts...), issue(t, "b", serving.Validity, hosts...)
	with := func(change func(*serving.Certificate)) serving.Certificate {
		c := good
		change(&c)
		return c
	}
	cases := map[string]struct {
		c       serving.Certificate
		at      time.Duration
		problem string
		valid   bool
	}{
		"a valid certificate":         {good, time.Hour, "", true},
		"at the time of its creation": {good, 0, "", true},
		"24 hours before it expires":  {good, serving.Validity - serving.RenewBefore, "", true},
		"less than 24 hours before it expires": {
			good,
			serving.Validity - serving.RenewBefore + time.Second,
			"the certificate expires soon, and is replaced from 2028-02-28T12:00:00Z on",
			true,
		},
		"after it expired": {
			good,
			serving.Validity + time.Second,
			"the certificate or its authority has expired, or is not valid yet",
			false,
		},
		"before it is valid": {
			good,
			-time.Second,
			"the certificate or its authority has expired, or is not valid yet",
			false,
		},
		"nothing": {serving.Certificate{}, 0, "the authority's certificate is missing", false},
		"no authority": {
			with(func(c *serving.Certificate) { c.CAPEM = nil }),
			0,
			"the authority's certificate is missing",
			false,
		},
		"no certificate": {
			with(func(c *serving.Certificate) { c.CertPEM = nil }),
			0,
			"the certificate is missing",
			false,
		},
		"no key": {
			with(func(c *serving.Certificate) { c.KeyPEM = nil }),
			0,
			"the private key does not match the certificate",
			false,
		},
		"the key of another certificate": {
			with(func(c *serving.Certificate) { c.KeyPEM = other.KeyPEM }),
			0,
			"the private key does not match the certificate",
			false,
		},
		"another authority": {
			with(func(c *serving.Certificate) { c.CAPEM = other.CAPEM }),
			0,
			"the authority did not sign the certificate",
			false,
		},
		"an additional authority": {
			with(func(c *serving.Certificate) { c.CAPEM = append(bytes.Clone(other.CAPEM), c.CAPEM...) }),
			0,
			"",
			true,
		},
		"an invalid authority": {
			with(func(c *serving.Certificate) { c.CAPEM = []byte("garbage") }),
			0,
			"the authority's certificate is missing",
			false,
		},
		"a PEM block that is not a certificate": {
			with(func(c *serving.Certificate) { c.CAPEM = block("CERTIFICATE", []byte("garbage")) }),
			0,
			"the authority's certificate cannot be parsed",
			false,
		},
		"a certificate that is too large": {
			with(func(c *serving.Certificate) { c.CertPEM = bytes.Repeat(c.CertPEM, 1000) }),
			0,
			fmt.Sprintf("the certificate is too large: %d bytes", 1000*len(good.CertPEM)),
			false,
		},
		"too many certificates": {
			with(func(c *serving.Certificate) { c.CAPEM = bytes.Repeat(c.CAPEM, 17) }),
			0,
			"the authority's certificate is too large: more than 16 certificates",
			false,
		},
		"a key that is too large": {
			with(func(c *serving.Certificate) { c.KeyPEM = bytes.Repeat(c.KeyPEM, 100) }),
			0,
			"the private key is too large",
			false,
		},
		"another name": {
			issue(t, "a", serving.Validity, hosts[0], hosts[2]),
			0,
			"the certificate is not for cool-service.ns.svc",
			false,
		},
		"a short life, at its beginning": {issue(t, "a", 3*time.Hour, hosts...), time.Hour, "", true},
		"a short life, in its last third": {
			issue(t, "a", 3*time.Hour, hosts...),
			2*time.Hour + time.Second,
			"the certificate expires soon, and is replaced from 2026-03-01T14:00:00Z on",
			true,
		},
		"with an Ed25519 key": {signed(t, ed25519Key(t), x509.ExtKeyUsageServerAuth), 0, "", true},
		"with an RSA key":     {signed(t, rsaKey(t), x509.ExtKeyUsageServerAuth), 0, "", true},
		"for clients": {
			signed(t, ed25519Key(t), x509.ExtKeyUsageClientAuth),
			0,
			"the usages of the certificate, or a restriction of its authority, do not allow a serving certificate",
			false,
		},
		"a signing certificate that is not an authority": {signedByLeaf(t), 0, "the authority did not sign the certificate", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := serving.Inspect(c.c, hosts, start.Add(c.at))
			require.Equal(t, c.problem, h.Problem)
			require.Equal(t, c.valid, h.Valid)
			require.Equal(t, c.valid, !h.RenewAt.IsZero())
		})
	}
}

func block(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}

func ed25519Key(t testing.TB) any {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}

func rsaKey(t testing.TB) any {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return key
}

// signed returns a self-signed certificate with the given key.
func signed(t testing.TB, key any, usage x509.ExtKeyUsage) serving.Certificate {
	t.Helper()
	var public any
	switch key := key.(type) {
	case ed25519.PrivateKey:
		public = key.Public()
	case *rsa.PrivateKey:
		public = key.Public()
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "self"}, NotBefore: start, NotAfter: start.Add(serving.Validity),
		DNSNames: hosts, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return serving.Certificate{CAPEM: block("CERTIFICATE", der), CertPEM: block("CERTIFICATE", der), KeyPEM: block("PRIVATE KEY", private)}
}

// TestPrivateKeysMatchAsInTLS checks that the key of a certificate is found, parsed and compared as a TLS server does
// it.
func TestPrivateKeysMatchAsInTLS(t *testing.T) {
	rsaOne, ed := rsaKey(t), ed25519Key(t)
	byRSA, byEd, byEC := signed(
		t,
		rsaOne,
		x509.ExtKeyUsageServerAuth,
	), signed(
		t,
		ed,
		x509.ExtKeyUsageServerAuth,
	), issue(
		t,
		"a",
		serving.Validity,
		hosts...)
	exchange, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(exchange)
	require.NoError(t, err)
	der := func(data []byte) []byte { b, _ := pem.Decode(data); return b.Bytes }
	pkcs1 := x509.MarshalPKCS1PrivateKey(rsaOne.(*rsa.PrivateKey))
	keys := [][]byte{
		byRSA.KeyPEM, byEd.KeyPEM, byEC.KeyPEM, nil, []byte("garbage"), byEC.CertPEM, block("PRIVATE KEY", []byte("garbage")),
		block("RSA PRIVATE KEY", pkcs1), block("PRIVATE KEY", pkcs1), block("RSA PRIVATE KEY", der(byRSA.KeyPEM)), block("NO PRIVATE KEY", pkcs1),
		block("XPRIVATE KEY", pkcs1), block("PRIVATE KEYS", pkcs1), block("PRIVATE KEY", pkcs8), block("EC PRIVATE KEY", der(byEC.KeyPEM)),
		append(
			bytes.Clone(byEC.CertPEM),
			byEC.KeyPEM...), append(bytes.Clone(byEC.KeyPEM), byRSA.KeyPEM...), append(bytes.Clone(byRSA.KeyPEM), byEC.KeyPEM...),
	}
	for i, key := range keys {
		for j, c := range []serving.Certificate{byRSA, byEd, byEC} {
			c.KeyPEM = key
			_, err := tls.X509KeyPair(c.CertPEM, key)
			fits := serving.Inspect(c, hosts, start).Problem != "the private key does not match the certificate"
			require.Equal(t, err == nil, fits, "key %d, certificate %d: %v", i, j, err)
		}
	}
}

// signedByLeaf returns a certificate whose authority is not allowed to sign certificates.
func signedByLeaf(t testing.TB) serving.Certificate {
	t.Helper()
	leaf := issue(t, "a", serving.Validity, hosts...)
	pair := func(data []byte) []byte { b, _ := pem.Decode(data); return b.Bytes }
	parent, err := x509.ParseCertificate(pair(leaf.CertPEM))
	require.NoError(t, err)
	key, err := x509.ParseECPrivateKey(pair(leaf.KeyPEM))
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: start, NotAfter: start.Add(serving.Validity), DNSNames: hosts}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
	require.NoError(t, err)
	return serving.Certificate{CAPEM: leaf.CertPEM, CertPEM: block("CERTIFICATE", der), KeyPEM: leaf.KeyPEM}
}

func TestFromDataReadsKeysOfSecret(t *testing.T) {
	data := map[string][]byte{"olmCAKey": []byte("a"), "tls.crt": []byte("b"), "tls.key": []byte("c"), "other": []byte("d")}
	want := serving.Certificate{CAPEM: []byte("a"), CertPEM: []byte("b"), KeyPEM: []byte("c")}
	require.Empty(t, cmp.Diff(want, serving.FromData(data)))
	require.True(t, serving.FromData(nil).IsEmpty())
	require.Equal(t, corev1.TLSCertKey, serving.CertKey)
}

// TestBundleContainsEachAuthorityOnce checks that Memory.Bundle and With add each authority once. It also checks Has,
// Trusts and Without.
func TestBundleContainsEachAuthorityOnce(t *testing.T) {
	a, b := issue(t, "a", serving.Validity, hosts...).CAPEM, issue(t, "b", time.Hour, hosts...).CAPEM
	both := parse(
		bytes.Join([][]byte{[]byte("garbage\n"), a, block("PRIVATE KEY", []byte("x")), b, a, block("CERTIFICATE", []byte("x"))}, nil),
	)
	require.Len(t, both, 2, "each once, nothing else")
	require.Equal(t, string(a)+string(b), string(both.PEM()))
	onlyA, onlyB := parse(a), parse(b)
	require.True(t, both.Trusts(onlyA) && both.Trusts(onlyB) && both.Trusts(both) && both.Has(onlyB[0].ID))
	require.False(t, onlyA.Trusts(onlyB) || onlyA.Trusts(both) || onlyA.Trusts(nil) || onlyA.Has(onlyB[0].ID))
	require.Empty(t, cmp.Diff(both, onlyA.With(onlyB)))
	require.Empty(t, cmp.Diff(both, both.With(onlyB)))
	require.Empty(t, cmp.Diff(onlyA, both.Without(func(x serving.Authority) bool { return x.HasExpired(start.Add(2 * time.Hour)) })))
	require.False(t, onlyB[0].HasExpired(start.Add(time.Hour)))
}

// TestCostOfInspectionIsLimited inspects Secrets that a tenant filled with a mebibyte of any data.
func TestCostOfInspectionIsLimited(t *testing.T) {
	good := issue(t, "a", serving.Validity, hosts...)
	for name, data := range map[string][]byte{
		"the beginnings of blocks": bytes.Repeat([]byte("-----BEGIN CERTIFICATE-----\n"), 1<<20/28),
		"a chain":                  bytes.Repeat(good.CAPEM, 1<<20/len(good.CAPEM)),
		"many headers":             append([]byte("-----BEGIN CERTIFICATE-----\n"), bytes.Repeat([]byte("a: b\n"), 1<<20/5)...),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			for _, c := range []serving.Certificate{
				{CAPEM: data, CertPEM: data, KeyPEM: data}, {CAPEM: good.CAPEM, CertPEM: data, KeyPEM: data},
				{CAPEM: good.CAPEM, CertPEM: good.CertPEM, KeyPEM: data},
			} {
				require.False(t, serving.Inspect(c, hosts, start).Valid)
			}
			parse(data)
			require.Less(t, time.Since(began), 5*time.Second)
		})
	}
}

func FuzzInspect(f *testing.F) {
	good := issue(f, "a", serving.Validity, hosts...)
	f.Add(good.CAPEM, good.CertPEM, good.KeyPEM, "cool-service.ns", int64(0))
	f.Add([]byte("x"), good.CAPEM, []byte(nil), "", int64(1<<62))
	f.Fuzz(func(t *testing.T, ca, cert, key []byte, host string, at int64) {
		c := serving.Certificate{CAPEM: ca, CertPEM: cert, KeyPEM: key}
		now := start.Add(time.Duration(at))
		h := serving.Inspect(c, []string{host}, now)
		if h.Problem == "" && !h.Valid || h.Valid == h.RenewAt.IsZero() {
			t.Fatalf("%+v", h)
		}
		if h.Problem == "" && now.After(h.RenewAt) {
			t.Fatalf("good after %s", h.RenewAt)
		}
	})
}

func FuzzBundle(f *testing.F) {
	good := issue(f, "a", serving.Validity, hosts...)
	f.Add(good.CAPEM, good.CertPEM)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte(nil))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		a, b := parse(x), parse(y)
		joined := a.With(b)
		if len(a) > 0 && !joined.Trusts(a) || len(b) > 0 && !joined.Trusts(b) {
			t.Fatal("a bundle lost something")
		}
		if again := parse(joined.PEM()); cmp.Diff(joined, again) != "" {
			t.Fatal(cmp.Diff(joined, again))
		}
	})
}

// TestMemoryDoesNotChangeResults checks that a Memory returns the results that would be returned without it, for any
// earlier inspections at any times and in any order.
func TestMemoryDoesNotChangeResults(t *testing.T) {
	good, short, other := issue(t, "a", serving.Validity, hosts...), issue(t, "a", 3*time.Hour, hosts...), issue(t, "b", time.Hour, hosts...)
	mixed := good
	mixed.CAPEM = append(bytes.Clone(good.CAPEM), other.CAPEM...)
	foreign := good
	foreign.KeyPEM = other.KeyPEM
	moved := good
	moved.CAPEM, moved.CertPEM = nil, append(bytes.Clone(good.CAPEM), good.CertPEM...)
	certificates := []serving.Certificate{good, short, other, mixed, foreign, moved, {}}
	// What is said changes at these instants, and a nanosecond later.
	instants := []time.Duration{0, time.Hour, 2 * time.Hour, 3 * time.Hour, serving.Validity - serving.RenewBefore, serving.Validity}
	rapid.Check(t, func(t *rapid.T) {
		var memory *serving.Memory
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			memory = memory.Next()
			for range rapid.IntRange(0, 3).Draw(t, "questions") {
				c := rapid.SampledFrom(certificates).Draw(t, "certificate")
				at := start.Add(rapid.SampledFrom(instants).Draw(t, "at") + time.Duration(rapid.IntRange(-1, 1).Draw(t, "beside")))
				names := hosts[:rapid.IntRange(0, len(hosts)).Draw(t, "hosts")]
				require.Equal(t, serving.Inspect(c, names, at), memory.Inspect(c, names, at))
				require.Empty(t, cmp.Diff(parse(c.CAPEM), memory.Bundle(c.CAPEM)))
			}
		}
	})
	for _, empty := range []*serving.Memory{nil, {}} {
		require.Equal(t, serving.Inspect(good, hosts, start), empty.Inspect(good, hosts, start))
		require.Equal(t, parse(good.CAPEM), empty.Bundle(good.CAPEM))
	}
}

// TestMemoryContainsNoPrivateKey prints a Memory in several ways, and searches the output for the private key.
func TestMemoryContainsNoPrivateKey(t *testing.T) {
	c := issue(t, "a", serving.Validity, hosts...)
	memory := (*serving.Memory)(nil).Next()
	memory.Inspect(c, hosts, start)
	key, _ := pem.Decode(c.KeyPEM)
	for _, text := range []string{fmt.Sprintf("%+v", memory), fmt.Sprintf("%#v", memory)} {
		require.NotContains(t, text, string(c.KeyPEM))
		require.NotContains(t, text, string(key.Bytes))
	}
}
