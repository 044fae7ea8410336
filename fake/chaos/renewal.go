// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/internal/operators"
	"github.com/olmcore/olm/olmcore"
)

// servingPackages are the tenants whose operators serve webhooks, a conversion and APIs, with the packages that do.
var servingPackages = map[string][]string{everywhere: {"delta", "epsilon"}, platform: {"zeta"}, namespace: {"gamma"}}

// installServing is the beginning of a history in which operators serve already.
func installServing(h *History) {
	for _, ns := range tenants {
		for _, name := range servingPackages[ns] {
			h.must(h.Cluster.Create(&v1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Spec: &v1alpha1.SubscriptionSpec{Package: name, Channel: "stable", CatalogSource: "community",
					CatalogSourceNamespace: "olm", InstallPlanApproval: v1alpha1.ApprovalAutomatic},
			}))
		}
	}
	h.runFor(10 * time.Minute)
	for _, ns := range tenants {
		for _, name := range servingPackages[ns] {
			if c := fake.Find[*v1alpha1.ClusterServiceVersion](h.Cluster, ns, operators.Name(name, 1)); c == nil ||
				c.Status.Phase != v1alpha1.CSVPhaseSucceeded {
				h.must(fmt.Errorf("%s/%s is not installed at the beginning: %+v", ns, name, c))
			}
		}
	}
	h.must(h.Cluster.Serving().Check())
}

// seenCertificate is what a Secret held.
type seenCertificate struct {
	pem      string
	notAfter time.Time
}

// certificateIn reads what a Secret holds; nothing when that is no certificate.
func certificateIn(s *corev1.Secret) seenCertificate {
	data := s.Data[corev1.TLSCertKey]
	block, _ := pem.Decode(data)
	if block == nil {
		return seenCertificate{}
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return seenCertificate{}
	}
	return seenCertificate{string(data), c.NotAfter}
}

// noteCertificates remembers what Pods may serve with, and counts the certificates that took the place of another: as
// that neared its end, or as it was lost.
func noteCertificates(h *History) {
	for _, s := range listed[*corev1.Secret](h) {
		seen := h.certificates[olmcore.KeyOf(s)]
		now := certificateIn(s)
		if now.pem == "" || len(seen) > 0 && now.pem == seen[len(seen)-1].pem {
			continue
		}
		h.certificates[olmcore.KeyOf(s)] = append(seen, now)
		switch {
		case len(seen) == 0:
		case h.Cluster.Now().After(seen[len(seen)-1].notAfter.Add(-serving.RenewBefore - time.Hour)):
			h.Figures.Renewals++
			if h.Races && !h.Spoils && !h.Deletes {
				checkTrust(h, s)
			}
		default:
			h.Figures.OtherCertificates++
		}
	}
}

// soonest is when the first certificate ends that Pods may serve with, zero for none; settled: all of them serve with
// the one that is in their Secret.
func soonest(h *History) (end time.Time, settled bool) {
	settled = true
	for key, seen := range h.certificates {
		d := fake.Find[*appsv1.Deployment](h.Cluster, key.Namespace, strings.TrimSuffix(key.Name, "-service-cert"))
		secret := fake.Find[*corev1.Secret](h.Cluster, key.Namespace, key.Name)
		switch {
		case d == nil && secret == nil:
			delete(h.certificates, key)
			continue
		case d != nil && secret != nil && certificateIn(secret).pem == seen[len(seen)-1].pem && isRolledOut(d, secret):
			seen = seen[len(seen)-1:]
		default:
			settled = false
		}
		h.certificates[key] = seen
		for _, c := range seen {
			if c.notAfter.After(h.Cluster.Now()) && (end.IsZero() || c.notAfter.Before(end)) {
				end = c.notAfter
			}
		}
	}
	return end, settled
}

// isRolledOut reports whether all Pods of a Deployment were started with what a Secret holds.
func isRolledOut(d *appsv1.Deployment, secret *corev1.Secret) bool {
	return d.Spec.Template.Annotations["olmcahash"] == authorityHash(secret.Data[serving.CAKey]) &&
		d.Status.ObservedGeneration >= d.Generation &&
		d.Status.UpdatedReplicas == d.Status.Replicas && d.Status.AvailableReplicas == d.Status.Replicas
}

// authorityHash returns the value of OLM's annotation olmcahash for the certificate of an authority. It is empty if
// there is no certificate.
func authorityHash(ca []byte) string {
	if len(ca) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(ca))
}

// stepYears lets the time pass until a certificate is to be replaced, or is soon, or, where operators need not go on,
// has ended. Certificates that Pods serve with and that their Secrets lost are replaced before.
func stepYears(h *History, r Choices) {
	jumps := []time.Duration{-25*time.Hour - time.Minute, -23 * time.Hour, -23 * time.Hour, -12 * time.Hour}
	if !keepsServing(h) {
		jumps = append(jumps, time.Hour)
	}
	end, settled := soonest(h)
	if at := end.Add(pick(r, jumps)); at.After(h.Cluster.Now()) && (settled || !keepsServing(h)) {
		h.advance(at.Sub(h.Cluster.Now()))
	}
}

// lastHours are those of a certificate that a history leaves to the managers, when nothing fails any more.
const lastHours = 3 * time.Hour

// keepsServing reports whether no certificate may end while operators serve with it.
func keepsServing(h *History) bool { return h.Serves || !h.Spoils }

// beforeTheEnd shortens a time that passes, so that the managers have to renew the certificates first.
func beforeTheEnd(h *History, d time.Duration) time.Duration {
	end, _ := soonest(h)
	if !keepsServing(h) || end.IsZero() {
		return d
	}
	return max(0, min(d, end.Add(-lastHours).Sub(h.Cluster.Now())))
}

// renewNow lets the time pass until no certificate has to be replaced soon, so that the world may come to rest.
func renewNow(h *History) {
	for end, _ := soonest(h); h.problem == nil && !end.IsZero() && end.Sub(h.Cluster.Now()) < 3*24*time.Hour; end, _ = soonest(h) {
		h.runFor(settleTime)
	}
}

// stepPolicy: for a while the API server refuses changes of who calls operators, so that some of them trust the next
// certificate and others do not.
func stepPolicy(h *History, r Choices) { h.policy = r.IntN(3) == 0 }

var errPolicy = apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("a policy says no"))

// isRefused reports whether the policy of the moment refuses a write.
func isRefused(h *History, verb olmcore.Verb, kind string) bool {
	return h.policy && verb == olmcore.VerbUpdate &&
		(strings.HasSuffix(kind, "WebhookConfiguration") || kind == "APIService" || kind == "CustomResourceDefinition")
}

// stepSpoilCertificate: a Secret with a certificate is deleted or changed.
func stepSpoilCertificate(h *History, r Choices) {
	var all []olmcore.Object
	for _, s := range listed[*corev1.Secret](h) {
		if strings.HasSuffix(s.Name, "-service-cert") {
			all = append(all, s)
		}
	}
	if len(all) > 0 {
		spoilOne(h, r, pick(r, all))
	}
}
