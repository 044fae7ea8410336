// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/olmcore"
)

// rotation is what is known of the certificate of one Deployment.
type rotation struct {
	*Source
	record
	deployment string
	hosts      []string
	secret     *corev1.Secret     // nil: there is none
	live       *appsv1.Deployment // nil: there is none
	// health is that of the current certificate, nextHealth that of the next.
	health, nextHealth certificate.Health
	// issued is what was issued for the Deployment and is good, else there is a problem with what was, if anything.
	issued       certificate.Certificate
	isIssued     bool
	issueProblem string
	// clients are the bundles, each once, of those that exist and trust anything; missing: one does not exist that shall.
	clients []certificate.Bundle
	missing bool
	// wanted is what clients shall trust, by what they trust now.
	wanted map[string][]byte
}

// trusted are all authorities that clients trust and that have not expired.
func (r *rotation) trusted() (all certificate.Bundle) {
	for _, c := range r.clients {
		all = all.With(c)
	}
	return all.Without(func(a certificate.Authority) bool { return a.HasExpired(r.Now) })
}

// mayFollow reports whether Pods may serve with the next certificate: all clients trust it. One that does not exist may be
// in the making, by one who does not know of the next, so it is waited for while there is something to lose.
func (r *rotation) mayFollow() bool {
	next := r.authorities(r.next.CAPEM)
	distrusts := func(c certificate.Bundle) bool { return !c.Trusts(next) }
	return !slices.ContainsFunc(r.clients, distrusts) && !(r.missing && r.health.Valid && r.serves())
}

// serves reports whether Pods may run that mount the certificate, also where the annotation of their template was lost.
func (r *rotation) serves() bool {
	return r.live != nil && (r.live.Spec.Template.Annotations[annotationCAHash] != "" || hasVolume(&r.live.Spec.Template.Spec, CertificateName(r.deployment)))
}

// isRolledOut reports whether all Pods serve with the current certificate.
func (r *rotation) isRolledOut() bool {
	if r.live == nil || r.live.DeletionTimestamp != nil || len(r.current.CAPEM) == 0 {
		return false
	}
	annotations, status := r.live.Spec.Template.Annotations, &r.live.Status
	return annotations[annotationCAHash] == certificate.Hash(r.current.CAPEM) && annotations[annotationCertHash] == r.certHash &&
		status.ObservedGeneration >= r.live.Generation && status.UpdatedReplicas == status.Replicas &&
		(status.TerminatingReplicas == nil || *status.TerminatingReplicas == 0)
}

// mayMakeClients reports whether a client that trusts what is in use trusts all Pods.
func (r *rotation) mayMakeClients() bool {
	return r.isOwned() && r.health.Valid && (!r.unknown || r.isRolledOut())
}

func (r *rotation) isOwned() bool { return r.secret != nil && olmcore.OwnedBy(r.secret, r.CSV.UID) }

// inspectIssued returns what was issued for the Deployment, and what is wrong with it.
func (r *rotation) inspectIssued() (c certificate.Certificate, problem string, ok bool) {
	for _, i := range r.Issued {
		if i.Deployment != r.deployment {
			continue
		}
		if problem = r.Memory.Inspect(i.Certificate, r.hosts, r.Now).Problem; problem == "" {
			return i.Certificate, "", true
		}
		problem = fmt.Sprintf("the certificate that was issued for deployment %s is not good: %s", r.deployment, problem)
	}
	return certificate.Certificate{}, problem, false
}

// step is the next one on the way from a certificate to the following one; none when there is nothing to do, or something
// to wait for. What was issued becomes the next certificate, and that the current one when all clients trust it.
func (r *rotation) step() (after record, why string) {
	_, needed := r.request()
	switch {
	case r.secret != nil && r.nextHealth.Problem == "" && r.mayFollow():
		return r.follow()
	case needed && r.isIssued:
		after = r.followed(r.issued)
		if !r.health.Valid {
			after = after.remembering(r.trusted())
			after.unknown = after.unknown || r.serves() && !after.knows(r.live.Spec.Template.Annotations[annotationCAHash])
		}
		return after, r.health.Problem
	case r.health.Problem == "" && r.nextHealth.Problem != "" && !r.next.IsEmpty():
		after = r.record
		after.next, after.trustedSince = certificate.Certificate{}, time.Time{}
		return after, "the next certificate of deployment " + r.deployment + " is not good, and none is needed"
	case !r.trustedSince.IsZero():
		after = r.record
		after.trustedSince = time.Time{}
		return after, "not all clients trust the next certificate of deployment " + r.deployment
	}
	return r.record, ""
}

// cacheGrace is how old the caches may be through which API servers learn of a client's bundle.
const cacheGrace = 10 * time.Second

// TrustGrace is how long all clients have to trust the next certificate before Pods serve with it. Another manager may have
// written when that began, and its clock may be behind. The time that is written has no fraction of a second.
const TrustGrace = cacheGrace + olmcore.ClockTolerance + time.Second

// follow makes the next certificate, which all clients trust, the current one. Where Pods serve with another it notes when
// it found that they do, and waits.
func (r *rotation) follow() (after record, why string) {
	why = "all clients trust the next certificate of deployment " + r.deployment
	switch since := r.trustedSince; {
	case r.serves() && (since.IsZero() || since.After(r.Now)):
		after = r.record
		after.trustedSince = r.Now.Truncate(time.Second)
		return after, why + " from now on"
	case r.waits() > 0:
		return r.record, ""
	}
	return r.promoted(r.trusted()), why
}

// knows reports whether the authority with a hash is among those in use; the one of no hash is not known.
func (r record) knows(hash string) bool {
	return hash != "" && (certificate.Hash(r.current.CAPEM) == hash ||
		slices.ContainsFunc(r.previous, func(a certificate.Authority) bool { return certificate.Hash(a.PEM) == hash }))
}

// install brings the Secret a step further, and makes it the CSV's.
func (r *rotation) install() olmcore.Action {
	after, why := r.step()
	if r.secret == nil {
		if why == "" {
			return nil
		}
		o := &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: r.meta(CertificateName(r.deployment)),
			Type: corev1.SecretTypeTLS,
		}
		after.writeTo(o)
		return r.create(o, ReasonCertificate, why)
	}
	meta, claimed := r.claimed(r.secret.ObjectMeta)
	if why == "" && !claimed && meta.Annotations[annotationCAHash] == certificate.Hash(r.current.CAPEM) {
		return nil
	}
	o := r.secret.DeepCopy()
	o.ObjectMeta = meta
	switch {
	case why != "":
		after.writeTo(o)
		return r.update(r.secret, o, ReasonCertificate, why)
	case claimed:
		return r.update(r.secret, o, ReasonInstall, "secret "+o.Name+" goes with this version")
	}
	r.writeTo(o)
	return r.update(r.secret, o, ReasonCertificate, "the annotation of secret "+o.Name+" is that of another authority")
}

// settle forgets what was needed while one certificate followed another.
func (r *rotation) settle() olmcore.Action {
	after, changed := r.settled(r.trusted())
	if !changed || !r.isOwned() || !r.isRolledOut() {
		return nil
	}
	o := r.secret.DeepCopy()
	after.writeTo(o)
	return r.update(r.secret, o, ReasonSettled, "all Pods of deployment "+r.deployment+" serve with the same certificate")
}

// startsLater reports whether the renewal has not begun and must wait until every clock within olmcore.ClockTolerance finds the
// certificate due. Otherwise a manager with a slow clock would end each installation that the other one begins.
func (r *rotation) startsLater() bool {
	phase := r.CSV.Status.Phase
	isInstalling := phase == v1alpha1.CSVPhaseInstallReady || phase == v1alpha1.CSVPhaseInstalling
	return !isInstalling && r.health.Valid && r.next.IsEmpty() && r.Now.Before(r.health.RenewAt.Add(olmcore.ClockTolerance))
}
