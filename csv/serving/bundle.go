// SPDX-License-Identifier: Apache-2.0

package serving

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

// Types of PEM blocks. The type of a private key may begin with the name of an algorithm.
const (
	blockType = "CERTIFICATE"
	keyType   = "PRIVATE KEY"
)

// Authority is one certificate of a Bundle.
type Authority struct {
	// ID is the SHA-256 hash of the DER encoding of the certificate, in hex.
	ID string
	// PEM is the certificate as one PEM block.
	PEM []byte
	// NotAfter is the time at which the certificate expires.
	NotAfter time.Time
}

// Bundle is a list of the certificates that a client trusts, without duplicates.
type Bundle []Authority

// parseBundle returns the certificates in PEM data, in their order. Duplicates are omitted, and so is every block that
// is not a valid certificate.
func parseBundle(data []byte) (b Bundle) {
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

// PEM returns all certificates, one after the other, as PEM blocks.
func (b Bundle) PEM() []byte {
	var data bytes.Buffer
	for _, a := range b {
		data.Write(a.PEM)
	}
	return data.Bytes()
}

// Has reports whether b contains the certificate with an ID.
func (b Bundle) Has(id string) bool {
	return slices.ContainsFunc(b, func(a Authority) bool { return a.ID == id })
}

// Trusts reports whether b contains all certificates of other. It returns false if other is empty.
func (b Bundle) Trusts(other Bundle) bool {
	ids := make(map[string]bool, len(b))
	for _, a := range b {
		ids[a.ID] = true
	}
	return len(other) > 0 && !slices.ContainsFunc(other, func(a Authority) bool { return !ids[a.ID] })
}

// With returns the certificates of b, followed by the certificates of other that are not in b. Neither b nor other is
// changed.
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

// Without returns the certificates of b for which goes returns false. b is not changed.
func (b Bundle) Without(goes func(Authority) bool) Bundle {
	return slices.DeleteFunc(slices.Clone(b), goes)
}

// HasExpired reports whether the authority expired more than olmcore.ClockTolerance before now. No certificate of an
// expired authority is valid.
func (a Authority) HasExpired(now time.Time) bool {
	return now.After(a.NotAfter.Add(olmcore.ClockTolerance))
}
