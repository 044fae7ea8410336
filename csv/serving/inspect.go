// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of the parsed data. They bound the work, because any user who may write a Secret chooses its content.
const (
	// MaxField is the maximum size in bytes of a field with certificates. MaxOfField is the maximum number of certificates
	// in such a field.
	MaxField   = 64 << 10
	MaxOfField = 16

	maxKey     = 16 << 10 // bytes of a private key
	maxRSABits = 8192
)

// Health is the result of Inspect: whether a certificate is valid, and when it must be replaced.
type Health struct {
	// Problem is the reason why the certificate must be replaced. It is empty if the certificate is good.
	Problem string
	// Valid is true if a client that trusts the authority accepts the certificate now, for all hosts. Valid is true even
	// if the certificate must already be renewed.
	Valid bool
	// RenewAt is the time at which the certificate must be replaced. It is zero if Valid is false.
	RenewAt time.Time
}

// Inspect checks a certificate at the time now. A certificate is good if all of these conditions are met:
//   - The certificate and its authority are valid, and the authority signed the certificate.
//   - The private key belongs to the certificate.
//   - The certificate is valid for all hosts. hosts may be empty.
//   - The certificate is not due for renewal yet: see RenewBefore.
//
// A field larger than MaxField is a problem.
//
// Source: operator-lifecycle-manager pkg/controller/install/certresources.go.
// Differs: OLM does not check the private key, and this library does. OLM does not use intermediate certificates, and
// this library accepts them. OLM replaces a certificate with a short lifetime at once. This library replaces it in the
// last third of its lifetime, if the lifetime is less than three times RenewBefore.
func Inspect(c Certificate, hosts []string, now time.Time) Health {
	return inspect(c, hosts, now).Health
}

// inspection is a Health, and the period in which it is valid. The period ends when a certificate becomes valid,
// expires or must be replaced.
type inspection struct {
	Health
	from, until time.Time // until is zero if the period does not end
}

func (i *inspection) stands(now time.Time) bool {
	return !now.Before(i.from) && (i.until.IsZero() || now.Before(i.until))
}

// changesAt ends the period at a time, unless it ends earlier. A time in the past has no effect.
func (i *inspection) changesAt(at time.Time) {
	if at.After(i.from) && (i.until.IsZero() || at.Before(i.until)) {
		i.until = at
	}
}

func inspect(c Certificate, hosts []string, now time.Time) inspection {
	i := inspection{from: now}
	roots, err := parseChain(c.CAPEM)
	if err != nil {
		i.Problem = "the authority's certificate " + err.Error()
		return i
	}
	chain, err := parseChain(c.CertPEM)
	if err != nil {
		i.Problem = "the certificate " + err.Error()
		return i
	}
	if len(c.KeyPEM) > maxKey {
		i.Problem = "the private key is too large"
		return i
	}
	if !keyFits(c.KeyPEM, chain[0]) {
		i.Problem = "the private key does not match the certificate"
		return i
	}
	for _, c := range slices.Concat(roots, chain) {
		i.changesAt(c.NotBefore)
		i.changesAt(c.NotAfter.Add(1)) // it is valid at NotAfter itself
	}
	chains, err := verify(chain, roots, now)
	if err != nil {
		i.Problem = brief(err)
		return i
	}
	for _, host := range hosts {
		if err := chain[0].VerifyHostname(host); err != nil {
			i.Problem = "the certificate is not for " + host
			return i
		}
	}
	i.Valid, i.RenewAt = true, renewAt(chains)
	i.changesAt(i.RenewAt.Add(1))
	if now.After(i.RenewAt) {
		i.Problem = fmt.Sprintf("the certificate expires soon, and is replaced from %s on", i.RenewAt.UTC().Format(time.RFC3339))
	}
	return i
}

// verify returns the chains from the first certificate to an authority. Without an error, there is at least one.
func verify(chain, authorities []*x509.Certificate, now time.Time) ([][]*x509.Certificate, error) {
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, a := range authorities {
		options.Roots.AddCert(a)
	}
	for _, between := range chain[1:] {
		options.Intermediates.AddCert(between)
	}
	return chain[0].Verify(options)
}

// renewAt returns the time at which a certificate must be replaced. A chain must be replaced as soon as one of its
// certificates must. The result is the latest time of all chains.
func renewAt(chains [][]*x509.Certificate) (latest time.Time) {
	for _, chain := range chains {
		var first time.Time
		for _, c := range chain {
			at := c.NotAfter.Add(-min(RenewBefore, c.NotAfter.Sub(c.NotBefore)/3))
			if first.IsZero() || at.Before(first) {
				first = at
			}
		}
		if first.After(latest) {
			latest = first
		}
	}
	return latest
}

// parseChain returns the certificates of a field. It returns an error if there is none.
func parseChain(data []byte) ([]*x509.Certificate, error) {
	if len(data) > MaxField {
		return nil, fmt.Errorf("is too large: %d bytes", len(data))
	}
	var chain []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != blockType {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot be parsed")
		case len(chain) == MaxOfField:
			return nil, fmt.Errorf("is too large: more than %d certificates", MaxOfField)
		}
		key, ok := c.PublicKey.(*rsa.PublicKey)
		if ok && key.N.BitLen() > maxRSABits {
			return nil, fmt.Errorf("has a key of %d bits", key.N.BitLen())
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("is missing")
	}
	return chain, nil
}

// keyFits reports whether a private key belongs to a certificate. It does what tls.X509KeyPair does, but does not parse
// the certificate again.
func keyFits(data []byte, leaf *x509.Certificate) bool {
	block, rest := pem.Decode(data)
	for block != nil && block.Type != keyType && !strings.HasSuffix(block.Type, " "+keyType) {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return false
	}
	signer, ok := parseKey(block.Bytes).(crypto.Signer)
	if !ok {
		return false
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(leaf.PublicKey)
}

// parseKey returns a private key in one of the encodings that a TLS server accepts, or nil.
func parseKey(der []byte) any {
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key
	}
	return nil
}

// brief returns the problem of a certificate that cannot be verified, without the contents of the certificate.
func brief(err error) string {
	switch err := err.(type) {
	case x509.CertificateInvalidError:
		if err.Reason == x509.Expired {
			return "the certificate or its authority has expired, or is not valid yet"
		}
		return "the usages of the certificate, or a restriction of its authority, do not allow a serving certificate"
	case x509.UnknownAuthorityError:
		return "the authority did not sign the certificate"
	}
	return "the certificate cannot be verified"
}

// Memory caches the results of the inspections of the current and the previous call. It saves most of the cost of a
// call, which is the verification of signatures and keys. It stores hashes of the inspected data, and no private key.
// Nil and the zero value cache nothing, and give the same results.
type Memory struct{ earlier, now findings }

type findings struct {
	inspections map[digest]inspection
	bundles     map[digest]Bundle
}

// Next returns a Memory for the next call that contains the results of the current call. A result that one call does
// not use is not available to later calls.
func (m *Memory) Next() *Memory {
	next := &Memory{now: findings{map[digest]inspection{}, map[digest]Bundle{}}}
	if m != nil {
		next.earlier = m.now
	}
	return next
}

// Inspect returns the result of the function Inspect, and caches it.
func (m *Memory) Inspect(c Certificate, hosts []string, now time.Time) Health {
	if m == nil || m.now.inspections == nil {
		return Inspect(c, hosts, now)
	}
	fields := [][]byte{c.CAPEM, c.CertPEM, c.KeyPEM}
	for _, host := range hosts {
		fields = append(fields, []byte(host))
	}
	id := digestOf(fields...)
	i, known := m.now.inspections[id]
	if !known {
		i, known = m.earlier.inspections[id]
	}
	if !known || !i.stands(now) {
		i = inspect(c, hosts, now)
	}
	m.now.inspections[id] = i
	return i.Health
}

// Bundle returns the certificates in PEM data, in their order, and caches them. Duplicates are omitted, and so is every
// block that is not a valid certificate. The caller must not change the result.
func (m *Memory) Bundle(data []byte) Bundle {
	if m == nil || m.now.bundles == nil {
		return parseBundle(data)
	}
	id := digestOf(data)
	b, known := m.now.bundles[id]
	if !known {
		b, known = m.earlier.bundles[id]
	}
	if !known {
		b = parseBundle(data)
	}
	m.now.bundles[id] = b
	return b
}

// digest is a SHA-256 hash of several fields.
type digest [sha256.Size]byte

func digestOf(fields ...[]byte) digest {
	h := sha256.New()
	for _, field := range fields {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(field)))) // the length separates the fields
		h.Write(field)
	}
	return digest(h.Sum(nil))
}
