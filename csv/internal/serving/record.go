// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Annotations of the Secret with a certificate, and of Pod templates that it is mounted into.
const (
	// annotationCAHash is OLM's annotation with the hash of the authority that signed the certificate.
	annotationCAHash = "olmcahash"
	// annotationCertHash contains the hash of the certificate if the certificate before it had the same authority. So the
	// Deployment replaces its Pods.
	annotationCertHash = olmcore.KeyPrefix + "certificate-hash"
	// annotationRetired lists the authorities that no Pod serves with any more.
	annotationRetired = olmcore.KeyPrefix + "retired-authorities"
	// annotationUnknown means that Pods may serve with an authority that is not known, because the Secret was deleted.
	annotationUnknown = olmcore.KeyPrefix + "unknown-authority"
	// annotationTrusted contains the time since which all clients trust the next certificate. It is set if Pods serve with
	// another certificate.
	annotationTrusted = olmcore.KeyPrefix + "next-trusted-since"
)

// Keys of the Secret in addition to OLM's. Volumes do not list them. They contain the next certificate, and the
// authorities of previous certificates.
const (
	nextPrefix  = "next."
	keyPrevious = "previous." + serving.CAKey
)

// maxRetired is the maximum number of retired authorities that are recorded. An authority beyond it that is still
// trusted somewhere retires again.
const maxRetired = 32

// record is the content of the Secret of a Deployment: the progress of a certificate rotation.
type record struct {
	memory *serving.Memory
	// current is the certificate that Pods mount. next replaces it once all clients trust it.
	current, next serving.Certificate
	// previous contains the authorities of certificates that Pods may still serve with.
	previous serving.Bundle
	// retired contains the IDs of authorities that no Pod serves with any more, the latest first.
	retired []string
	// unknown is true if Pods may serve with an authority that the record does not contain.
	unknown bool
	// trustedSince is the time since which all clients trust the next certificate. It is zero if that is not known or not
	// needed.
	trustedSince time.Time
	// certHash is the value of annotationCertHash. It is empty if the authority distinguishes the certificate from the one
	// before.
	certHash string
}

// authorities returns the certificates in a field of a Secret. It returns none if the field is too large.
func (r record) authorities(field []byte) serving.Bundle {
	if len(field) > serving.MaxField {
		return nil
	}
	return r.memory.Bundle(field)
}

func recordOf(s *corev1.Secret, memory *serving.Memory) record {
	r := record{memory: memory}
	if s == nil {
		return r
	}
	r.current = serving.FromData(s.Data)
	r.next = serving.Certificate{
		CAPEM: s.Data[nextPrefix+serving.CAKey], CertPEM: s.Data[nextPrefix+serving.CertKey],
		KeyPEM: s.Data[nextPrefix+serving.PrivateKeyKey],
	}
	r.previous = r.authorities(s.Data[keyPrevious])
	if retired := s.Annotations[annotationRetired]; retired != "" {
		r.retired = strings.Split(retired, ",")
	}
	_, r.unknown = s.Annotations[annotationUnknown]
	r.certHash = s.Annotations[annotationCertHash]
	if at, err := time.Parse(time.RFC3339, s.Annotations[annotationTrusted]); err == nil {
		r.trustedSince = at
	}
	return r
}

// writeTo writes the record into a Secret. Other data and annotations of the Secret stay.
func (r record) writeTo(s *corev1.Secret) {
	s.Data, s.Annotations = maps.Clone(s.Data), maps.Clone(s.Annotations)
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	// The type of the Secret requires these keys, even if there is no certificate.
	s.Data[serving.CertKey] = append([]byte{}, r.current.CertPEM...)
	s.Data[serving.PrivateKeyKey] = append([]byte{}, r.current.KeyPEM...)
	for key, value := range map[string][]byte{
		serving.CAKey:                      r.current.CAPEM,
		nextPrefix + serving.CAKey:         r.next.CAPEM,
		nextPrefix + serving.CertKey:       r.next.CertPEM,
		nextPrefix + serving.PrivateKeyKey: r.next.KeyPEM,
		keyPrevious:                        r.previous.PEM(),
	} {
		if len(value) == 0 {
			delete(s.Data, key)
		} else {
			s.Data[key] = value
		}
	}
	unknown, trusted := "", ""
	if r.unknown {
		unknown = "true"
	}
	if !r.trustedSince.IsZero() {
		trusted = r.trustedSince.UTC().Format(time.RFC3339)
	}
	for key, value := range map[string]string{
		annotationCAHash:   Hash(r.current.CAPEM),
		annotationCertHash: r.certHash,
		annotationRetired:  strings.Join(r.retired, ","),
		annotationUnknown:  unknown,
		annotationTrusted:  trusted,
	} {
		if value == "" {
			delete(s.Annotations, key)
		} else {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, value)
		}
	}
}

// inUse returns the authorities that a client must trust, because Pods may serve with them now or next.
func (r record) inUse(now time.Time) serving.Bundle {
	return r.authorities(r.current.CAPEM).With(r.upcoming(now)).With(r.previous.Without(func(a serving.Authority) bool {
		return a.HasExpired(now) || slices.Contains(r.retired, a.ID)
	}))
}

// upcoming returns the authorities of the next certificate.
func (r record) upcoming(now time.Time) serving.Bundle {
	return r.authorities(r.next.CAPEM).Without(func(a serving.Authority) bool { return a.HasExpired(now) })
}

// bundle returns the caBundle that a client should have. have is its current one. Invalid, expired and retired
// certificates are removed. All others stay, because a manager with newer data may have added them.
func (r record) bundle(have []byte, now time.Time) []byte {
	observed := r.memory.Bundle(have)
	want := r.inUse(now).With(observed.Without(func(a serving.Authority) bool {
		return a.HasExpired(now) || slices.Contains(r.retired, a.ID)
	}))
	switch {
	case len(want) == 0:
		return have
	case r.authorities(r.current.CAPEM).Trusts(want):
		return r.current.CAPEM
	case want.Trusts(observed) && observed.Trusts(want) && bytes.Equal(observed.PEM(), have):
		return have // the same authorities in another order
	}
	return want.PEM()
}

// promoted returns the record once the next certificate is the current one. Other authorities that clients trust may be
// in use, so they become previous ones.
func (r record) promoted(trusted serving.Bundle) record {
	before := r.authorities(r.current.CAPEM)
	r.certHash, r.trustedSince = "", time.Time{}
	if bytes.Equal(r.current.CAPEM, r.next.CAPEM) {
		r.certHash = Hash(r.next.CertPEM)
	}
	r.current, r.next = r.next, serving.Certificate{}
	r.previous = before.With(r.previous)
	return r.remembering(trusted)
}

// followed returns the record with a new next certificate. The authority of that certificate is no longer retired.
func (r record) followed(by serving.Certificate) record {
	r.next, r.trustedSince = by, time.Time{}
	back := r.authorities(by.CAPEM)
	r.retired = slices.DeleteFunc(slices.Clone(r.retired), back.Has)
	return r
}

// remembering returns the record with authorities that clients trust as previous ones, unless they are known or
// retired.
func (r record) remembering(trusted serving.Bundle) record {
	known := r.authorities(r.current.CAPEM).With(r.authorities(r.next.CAPEM))
	r.previous = r.previous.With(trusted).Without(func(a serving.Authority) bool {
		return known.Has(a.ID) || slices.Contains(r.retired, a.ID)
	})
	r.previous = r.previous[:min(len(r.previous), serving.MaxOfField)]
	return r
}

// settled returns the record once all Pods serve with the current certificate. All other authorities that clients trust
// retire.
func (r record) settled(trusted serving.Bundle) (after record, changed bool) {
	gone := r.remembering(trusted).previous
	if len(gone) == 0 && len(r.previous) == 0 && !r.unknown {
		return r, false
	}
	r.previous, r.unknown = nil, false
	var ids []string
	for _, a := range gone {
		ids = append(ids, a.ID)
	}
	r.retired = slices.Concat(ids, r.retired)
	r.retired = r.retired[:min(len(r.retired), maxRetired)]
	return r, true
}

// Hash returns the value of OLM's annotation olmcahash for the certificate of an authority. The value is the SHA-256
// hash of the PEM data, in hex. Hash returns an empty string if there is no data.
func Hash(ca []byte) string {
	if len(ca) == 0 {
		return ""
	}
	sum := sha256.Sum256(ca)
	return hex.EncodeToString(sum[:])
}
