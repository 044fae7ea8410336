// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/olmcore"
)

// Annotations of the Secret with a certificate, and of Pod templates that it is mounted into.
const (
	// annotationCAHash is OLM's: the hash of the authority that signed the certificate.
	annotationCAHash = "olmcahash"
	// annotationCertHash is the hash of the certificate, where it followed another of the same authority: the Pods are
	// replaced all the same.
	annotationCertHash = olmcore.KeyPrefix + "certificate-hash"
	// annotationRetired lists authorities with which no Pod serves any more.
	annotationRetired = olmcore.KeyPrefix + "retired-authorities"
	// annotationUnknown says that Pods may serve with an authority that is known no more, as the Secret was deleted.
	annotationUnknown = olmcore.KeyPrefix + "unknown-authority"
	// annotationTrusted says since when all clients trust the next certificate, where Pods serve with another.
	annotationTrusted = olmcore.KeyPrefix + "next-trusted-since"
)

// Keys of the Secret besides OLM's, which volumes do not list: the certificate that is to follow, and the authorities
// of those before.
const (
	nextPrefix  = "next."
	keyPrevious = "previous." + certificate.CAKey
)

// maxRetired bounds the list of retired authorities. One that is forgotten and still trusted somewhere retires again.
const maxRetired = 32

// record is what the Secret of a Deployment says: how far the change from one certificate to the next has come.
type record struct {
	memory *certificate.Memory
	// current is the certificate that Pods mount, next the one that follows once all clients trust it.
	current, next certificate.Certificate
	// previous are the authorities of certificates that Pods may still serve with.
	previous certificate.Bundle
	// retired are the IDs of authorities with which no Pod serves any more, the latest first.
	retired []string
	// unknown: Pods may serve with an authority that is not among these.
	unknown bool
	// trustedSince is since when all clients trust the next certificate, zero while that is not known or does not
	// matter.
	trustedSince time.Time
	// certHash goes into the Pod template where the authority does not tell the certificate from the one before.
	certHash string
}

// authorities returns the certificates of a field of a Secret; none of one that is too large to be believed.
func (r record) authorities(field []byte) certificate.Bundle {
	if len(field) > certificate.MaxField {
		return nil
	}
	return r.memory.Bundle(field)
}

func recordOf(s *corev1.Secret, memory *certificate.Memory) record {
	r := record{memory: memory}
	if s == nil {
		return r
	}
	r.current = certificate.FromData(s.Data)
	r.next = certificate.Certificate{
		CAPEM: s.Data[nextPrefix+certificate.CAKey], CertPEM: s.Data[nextPrefix+certificate.CertKey],
		KeyPEM: s.Data[nextPrefix+certificate.PrivateKeyKey],
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

// writeTo puts the record into a Secret, whose other data and annotations stay.
func (r record) writeTo(s *corev1.Secret) {
	s.Data, s.Annotations = maps.Clone(s.Data), maps.Clone(s.Annotations)
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	// The type demands the keys, also before there is a certificate.
	s.Data[certificate.CertKey] = append([]byte{}, r.current.CertPEM...)
	s.Data[certificate.PrivateKeyKey] = append([]byte{}, r.current.KeyPEM...)
	for key, value := range map[string][]byte{
		certificate.CAKey:                      r.current.CAPEM,
		nextPrefix + certificate.CAKey:         r.next.CAPEM,
		nextPrefix + certificate.CertKey:       r.next.CertPEM,
		nextPrefix + certificate.PrivateKeyKey: r.next.KeyPEM,
		keyPrevious:                            r.previous.PEM(),
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
		annotationCAHash:   certificate.Hash(r.current.CAPEM),
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

// inUse are the authorities that a client must trust: those that Pods may serve with now, or will next.
func (r record) inUse(now time.Time) certificate.Bundle {
	return r.authorities(r.current.CAPEM).With(r.toCome(now)).With(r.previous.Without(func(a certificate.Authority) bool {
		return a.HasExpired(now) || slices.Contains(r.retired, a.ID)
	}))
}

// toCome are the authorities of the next certificate.
func (r record) toCome(now time.Time) certificate.Bundle {
	return r.authorities(r.next.CAPEM).Without(func(a certificate.Authority) bool { return a.HasExpired(now) })
}

// bundle returns what a client shall trust that trusts have now. It loses what is no certificate, what expired, and
// what retired; everything else may have been added by one who knows more.
func (r record) bundle(have []byte, now time.Time) []byte {
	observed := r.memory.Bundle(have)
	want := r.inUse(now).With(observed.Without(func(a certificate.Authority) bool {
		return a.HasExpired(now) || slices.Contains(r.retired, a.ID)
	}))
	switch {
	case len(want) == 0:
		return have
	case r.authorities(r.current.CAPEM).Trusts(want):
		return r.current.CAPEM
	case want.Trusts(observed) && observed.Trusts(want) && bytes.Equal(observed.PEM(), have):
		return have // in another order
	}
	return want.PEM()
}

// promoted is the record once the next certificate is the one that Pods mount. What clients trust besides may be in
// use, too.
func (r record) promoted(trusted certificate.Bundle) record {
	before := r.authorities(r.current.CAPEM)
	r.certHash, r.trustedSince = "", time.Time{}
	if bytes.Equal(r.current.CAPEM, r.next.CAPEM) {
		r.certHash = certificate.Hash(r.next.CertPEM)
	}
	r.current, r.next = r.next, certificate.Certificate{}
	r.previous = before.With(r.previous)
	return r.remembering(trusted)
}

// followed is the record with a certificate that is to follow. An authority that comes back has not retired.
func (r record) followed(by certificate.Certificate) record {
	r.next, r.trustedSince = by, time.Time{}
	back := r.authorities(by.CAPEM)
	r.retired = slices.DeleteFunc(slices.Clone(r.retired), back.Has)
	return r
}

// remembering is the record with what clients trust among the authorities that Pods may serve with.
func (r record) remembering(trusted certificate.Bundle) record {
	known := r.authorities(r.current.CAPEM).With(r.authorities(r.next.CAPEM))
	r.previous = r.previous.With(trusted).Without(func(a certificate.Authority) bool {
		return known.Has(a.ID) || slices.Contains(r.retired, a.ID)
	})
	r.previous = r.previous[:min(len(r.previous), certificate.MaxOfField)]
	return r
}

// settled is the record once all Pods serve with the current certificate: what else clients trust retires.
func (r record) settled(trusted certificate.Bundle) (after record, changed bool) {
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
