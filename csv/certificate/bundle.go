// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"time"

	"github.com/olmcore/olm/olmcore"
)

// Types of PEM blocks; that of a private key may follow the name of its algorithm.
const (
	blockType = "CERTIFICATE"
	keyType   = "PRIVATE KEY"
)

// Authority is one certificate of a bundle.
type Authority struct {
	// ID is the SHA-256 of the certificate, in hex.
	ID string
	// PEM is the certificate alone.
	PEM []byte
	// NotAfter is when it expires.
	NotAfter time.Time
}

// Bundle is the certificates that a client trusts, each once.
type Bundle []Authority

// ParseBundle returns the certificates in PEM data, in their order. What is none is left out.
func ParseBundle(data []byte) (b Bundle) {
	seen := map[string]bool{}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != blockType {
			continue
		}
		sum := sha256.Sum256(block.Bytes)
		id := hex.EncodeToString(sum[:])
		if seen[id] {
			continue
		}
		seen[id] = true
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			b = append(b, Authority{ID: id, PEM: pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: block.Bytes}), NotAfter: c.NotAfter})
		}
	}
	return b
}

// PEM returns the certificates one after the other.
func (b Bundle) PEM() []byte {
	var data bytes.Buffer
	for _, a := range b {
		data.Write(a.PEM)
	}
	return data.Bytes()
}

// Has reports whether one of the certificates has an ID.
func (b Bundle) Has(id string) bool {
	return slices.ContainsFunc(b, func(a Authority) bool { return a.ID == id })
}

// Trusts reports whether all certificates of another bundle, which has one at least, are in b.
func (b Bundle) Trusts(other Bundle) bool {
	ids := make(map[string]bool, len(b))
	for _, a := range b {
		ids[a.ID] = true
	}
	return len(other) > 0 && !slices.ContainsFunc(other, func(a Authority) bool { return !ids[a.ID] })
}

// With returns the certificates of both, those of b first. It shares nothing that is written to with either.
func (b Bundle) With(other Bundle) Bundle {
	have := make(map[string]bool, len(b))
	for _, a := range b {
		have[a.ID] = true
	}
	joined := slices.Clone(b)
	for _, a := range other {
		if !have[a.ID] {
			have[a.ID] = true
			joined = append(joined, a)
		}
	}
	return joined
}

// Without returns the certificates that a test is not true for.
func (b Bundle) Without(goes func(Authority) bool) Bundle {
	return slices.DeleteFunc(slices.Clone(b), goes)
}

// HasExpired reports whether nothing that the authority signed is valid any more.
func (a Authority) HasExpired(now time.Time) bool {
	return now.After(a.NotAfter.Add(olmcore.ClockTolerance))
}

// Hash is what OLM's annotation olmcahash has for the certificate of an authority: the SHA-256 of its PEM, in hex.
// Empty for none.
func Hash(ca []byte) string {
	if len(ca) == 0 {
		return ""
	}
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}
