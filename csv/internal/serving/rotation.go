// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Backends contains the observed objects of the Deployments that serve webhooks or APIs, from which CertificatesOf
// computes Certificates.
type Backends struct {
	model.Operator
	// Clients contains all webhooks and APIServices that call a Service of the CSV. A client belongs to this CSV or to
	// another version in its namespace.
	Clients []Client
}

// Certificates contains the certificate requests and the writes for the Deployments of a CSV that serve webhooks or
// APIs.
type Certificates struct {
	// Requests contains the requests for certificates that are not issued yet. While Requests is not empty, Install
	// contains only writes of Secrets.
	Requests []serving.Request
	// Install contains the writes that create missing objects and update differing objects, in order. Each call makes at
	// most one step of a certificate rotation.
	Install []olmcore.Action
	// Settle contains the writes that end a certificate rotation. They retire the authorities that only the rotation
	// needed. Run them once the operator runs.
	Settle []olmcore.Action
	// Renew is a message about the first certificate that must be replaced or is being replaced. It is empty if there is
	// none.
	Renew string
	// RenewAt is the earliest time at which a current certificate must be replaced. It is zero if no certificate is valid.
	RenewAt time.Time
	// Wait is the shortest time until a next certificate may become the current one. Until then, API servers may still
	// cache an older caBundle. Wait is 0 if no certificate waits.
	Wait time.Duration
	// Memory contains the certificates that this call inspected. Pass it in Operator.Memory of the next call.
	Memory *serving.Memory
	// Problem explains why nothing may be written, for example because an object belongs to another owner. It is empty if
	// everything may be written. If it is not empty, Requests, Install and Settle are empty.
	Problem string

	backends map[string]*rotation // by Deployment
}

// CertificatesOf returns the Certificates of the Deployments of a CSV that serve webhooks or APIs.
//
// The Secret of a Deployment is the only record of the progress of a rotation. Every write of the Secret requires the
// resourceVersion that was read. A rotation has these steps:
//
//  1. The issued certificate is stored in the Secret beside the current one, as the next certificate.
//  2. All clients are updated to trust the next certificate too (Trust).
//  3. After TrustGrace, the next certificate becomes the current one. The authority of the old certificate is kept as a
//     previous authority. Pods may mount the files at any time, so they serve with either certificate from now on.
//  4. The Deployment is rolled out with the hash of the new authority (Mount).
//  5. Once all Pods belong to that rollout, the Secret records the previous authorities as retired (Settle). Then they
//     are removed from the clients.
//
// An authority is removed from a client only if the Secret lists the authority as retired. This is safe even if the
// Secret that was read is stale, because no Pod serves with a retired authority again. A CSV creates new clients only
// after it owns the Secret. From then on, no other version rotates the certificate.
//
// If a user deletes a client during a rotation, a caller with a stale Secret may create the client again without the
// authority of the next certificate. The following call adds this authority.
func CertificatesOf(s Backends) (p Certificates) {
	names := DeploymentNames(s.CSV)
	s.Memory = s.Memory.Next()
	p.Memory = s.Memory
	p.backends = make(map[string]*rotation, len(names))
	services := map[string]string{}
	var secrets, objects, settle []olmcore.Action
	for _, name := range names {
		r := s.rotationOf(name)
		p.backends[name] = r
		if other, taken := services[ServiceName(name)]; taken {
			p.Problem = cmp.Or(p.Problem, fmt.Sprintf("deployments %s and %s have the same service %s", other, name, ServiceName(name)))
		}
		services[ServiceName(name)] = name
		p.Renew = cmp.Or(p.Renew, r.renew())
		p.RenewAt = earlier(p.RenewAt, r.health.RenewAt)
		p.Wait = olmcore.Nearest(p.Wait, r.waits())
		request, needed := r.request()
		if needed && !r.isIssued {
			p.Requests = append(p.Requests, request)
		}
		around := s.objectsOf(name)
		p.Problem = cmp.Or(p.Problem, r.obstacle(), around.problem)
		objects = append(objects, around.actions...)
		if a := r.install(); a != nil {
			secrets = append(secrets, a)
		} else if a := r.settle(); a != nil {
			settle = append(settle, a)
		}
	}
	if p.Problem != "" {
		p.Requests = nil
		return p
	}
	p.Install, p.Settle = secrets, settle
	if len(p.Requests) == 0 { // an installation begins only with all certificates
		p.Install = append(p.Install, objects...)
	}
	return p
}

// earlier returns the earlier of two times. The zero time means that there is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Trust returns the caBundle that a client of a Deployment should have. have is the current caBundle of the client, or
// nil if it has none. An authority that is still in use is never removed. If have and the result are nil, the client
// must not be created yet.
func (p Certificates) Trust(deployment string, have []byte) []byte {
	r := p.backends[deployment]
	switch {
	case r == nil || r.secret == nil || !isClaimable(r.secret):
		return have
	case len(have) == 0 && !r.mayMakeClients():
		return nil
	}
	if want, known := r.wanted[string(have)]; known {
		return want
	}
	return r.bundle(have, r.source.Now)
}

// Ready reports whether a Deployment has a certificate.
func (p Certificates) Ready(deployment string) bool { return p.Hash(deployment) != "" }

// Hash returns the hash of the authority that signed the certificate of a Deployment, for the annotation olmcahash. It
// is empty if there is no certificate.
func (p Certificates) Hash(deployment string) string {
	if r := p.backends[deployment]; r != nil {
		return Hash(r.current.CAPEM)
	}
	return ""
}

// rotation contains the facts about the certificate of one Deployment. rotationOf fills it once.
type rotation struct {
	source *Backends // as the caller passed it
	record
	deployment string
	hosts      []string
	secret     *corev1.Secret     // nil: there is none
	live       *appsv1.Deployment // nil: there is none
	// health is the health of the current certificate, and nextHealth that of the next.
	health, nextHealth serving.Health
	// issued is the valid certificate that was issued for the Deployment, if isIssued is true. Otherwise issueProblem
	// explains why the issued certificate is invalid. It is empty if none was issued.
	issued       serving.Certificate
	isIssued     bool
	issueProblem string
	// clients contains the distinct, non-empty caBundles of existing clients. missing is true if a desired client does not
	// exist.
	clients []serving.Bundle
	missing bool
	// wanted contains the desired caBundle of clients, by their current caBundle.
	wanted map[string][]byte
}

// rotationOf returns the facts about the certificate of a Deployment.
func (s *Backends) rotationOf(deployment string) *rotation {
	service := ServiceName(deployment)
	r := &rotation{source: s, deployment: deployment, hosts: serving.Hosts(service, s.CSV.Namespace)}
	r.secret, _ = model.Find(s.Objects.Secrets.Items, s.CSV.Namespace, CertificateName(deployment))
	r.live, _ = model.Find(s.Deployments, s.CSV.Namespace, deployment)
	r.record = recordOf(r.secret, s.Memory)
	r.health = s.Memory.Inspect(r.current, r.hosts, s.Now)
	r.nextHealth = s.Memory.Inspect(r.next, r.hosts, s.Now)
	r.issued, r.issueProblem, r.isIssued = r.inspectIssued()
	r.wanted = map[string][]byte{"": r.bundle(nil, s.Now)}
	for _, c := range s.Clients {
		if c.Service != service {
			continue
		}
		r.missing = r.missing || c.Missing
		_, known := r.wanted[string(c.Bundle)]
		if known || c.Missing {
			continue // most clients have the same caBundle
		}
		r.wanted[string(c.Bundle)] = r.bundle(c.Bundle, s.Now)
		if b := r.memory.Bundle(c.Bundle); len(b) > 0 {
			r.clients = append(r.clients, b)
		}
	}
	return r
}

// request returns a request for a certificate. needed is false if the current or the next certificate is good.
func (r *rotation) request() (request serving.Request, needed bool) {
	if r.health.Problem == "" || r.nextHealth.Problem == "" {
		return serving.Request{}, false
	}
	return serving.Request{
		Deployment: r.deployment, Namespace: r.source.CSV.Namespace, Service: ServiceName(r.deployment), Hosts: r.hosts,
		NotBefore: r.source.Now.Add(-serving.Backdated), NotAfter: r.source.Now.Add(serving.Validity),
		Owner: olmcore.OwnerReferenceTo(r.source.CSV),
	}, true
}

// waits returns how long the next certificate must still wait, because API servers may have cached older caBundles. It
// is 0 if the certificate does not wait, or if it also waits for something else.
func (r *rotation) waits() time.Duration {
	if !r.serves() || r.trustedSince.IsZero() || r.trustedSince.After(r.source.Now) || r.nextHealth.Problem != "" || !r.mayFollow() {
		return 0
	}
	return max(0, r.trustedSince.Add(TrustGrace).Sub(r.source.Now))
}

// renew returns why the certificate must be replaced. If the replacement has begun, it returns a message about that.
// Otherwise it returns an empty string.
func (r *rotation) renew() string {
	switch {
	case r.startsLater():
		return ""
	case r.health.Problem != "":
		return fmt.Sprintf("deployment %s: %s", r.deployment, r.health.Problem)
	case !r.next.IsEmpty():
		return fmt.Sprintf("deployment %s: the next certificate is not in use yet", r.deployment)
	}
	return ""
}

// obstacle returns why no certificate may be written. It is empty if one may be written.
func (r *rotation) obstacle() string {
	if r.secret != nil && !isClaimable(r.secret) {
		return fmt.Sprintf("secret %s exists and is not managed by an operator", r.secret.Name)
	}
	if r.secret != nil && r.secret.Immutable != nil && *r.secret.Immutable {
		return fmt.Sprintf("secret %s is immutable", r.secret.Name)
	}
	if other := r.holder(); other != nil {
		return fmt.Sprintf("secret %s is owned by ClusterServiceVersion %s", r.secret.Name, other.Name)
	}
	if _, needed := r.request(); !needed {
		return ""
	}
	return r.issueProblem
}

// holder returns the CSV of another operator that serves with the Secret, or nil if there is none. Deployments with
// different names may have the same Service name. The CSV that owns the Secret also writes all other objects, so two
// CSVs do not overwrite each other's objects.
func (r *rotation) holder() *model.CSV {
	if r.secret == nil || r.isOwned() {
		return nil
	}
	isNamed := func(deployment string) bool { return CertificateName(deployment) == r.secret.Name }
	i := slices.IndexFunc(r.source.Neighbours, func(other *model.CSV) bool {
		return olmcore.OwnedBy(r.secret, other.UID) && model.IsNeighbour(r.source.CSV, other) && other.DeletionTimestamp == nil &&
			!r.source.Relatives.Has(other) && slices.ContainsFunc(DeploymentNames(other), isNamed)
	})
	if i < 0 {
		return nil
	}
	return r.source.Neighbours[i]
}

// trusted returns the authorities that clients trust and that have not expired.
func (r *rotation) trusted() (all serving.Bundle) {
	for _, c := range r.clients {
		all = all.With(c)
	}
	return all.Without(func(a serving.Authority) bool { return a.HasExpired(r.source.Now) })
}

// mayFollow reports whether Pods may serve with the next certificate, because all clients trust it. A client that is
// missing may be about to be created by a manager that does not know the next certificate. So a valid certificate that
// Pods serve with is not replaced while a client is missing.
func (r *rotation) mayFollow() bool {
	next := r.authorities(r.next.CAPEM)
	distrusts := func(c serving.Bundle) bool { return !c.Trusts(next) }
	return !slices.ContainsFunc(r.clients, distrusts) && !(r.missing && r.health.Valid && r.serves())
}

// serves reports whether Pods that mount the certificate may run, even if the annotation of their template was removed.
func (r *rotation) serves() bool {
	if r.live == nil {
		return false
	}
	template := &r.live.Spec.Template
	return template.Annotations[annotationCAHash] != "" || hasVolume(&template.Spec, CertificateName(r.deployment))
}

// isRolledOut reports whether all Pods serve with the current certificate.
func (r *rotation) isRolledOut() bool {
	if r.live == nil || r.live.DeletionTimestamp != nil || len(r.current.CAPEM) == 0 {
		return false
	}
	annotations, status := r.live.Spec.Template.Annotations, &r.live.Status
	return annotations[annotationCAHash] == Hash(r.current.CAPEM) && annotations[annotationCertHash] == r.certHash &&
		status.ObservedGeneration >= r.live.Generation && status.UpdatedReplicas == status.Replicas &&
		(status.TerminatingReplicas == nil || *status.TerminatingReplicas == 0)
}

// mayMakeClients reports whether clients may be created now. A new client trusts the authorities in use, so these must
// include the authority of every Pod.
func (r *rotation) mayMakeClients() bool {
	return r.isOwned() && r.health.Valid && (!r.unknown || r.isRolledOut())
}

func (r *rotation) isOwned() bool {
	return r.secret != nil && olmcore.OwnedBy(r.secret, r.source.CSV.UID)
}

// inspectIssued returns the certificate that was issued for the Deployment. If it is invalid, ok is false and problem
// explains why.
func (r *rotation) inspectIssued() (c serving.Certificate, problem string, ok bool) {
	for _, i := range r.source.Issued {
		if i.Deployment != r.deployment {
			continue
		}
		if problem = r.source.Memory.Inspect(i.Certificate, r.hosts, r.source.Now).Problem; problem == "" {
			return i.Certificate, "", true
		}
		problem = fmt.Sprintf("the certificate that was issued for deployment %s is invalid: %s", r.deployment, problem)
	}
	return serving.Certificate{}, problem, false
}

// step returns the record after the next step of a certificate rotation, and the reason for the step. The reason is
// empty if there is nothing to do, or if the rotation waits. An issued certificate becomes the next certificate. The
// next certificate becomes the current one once all clients trust it.
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
		after.next, after.trustedSince = serving.Certificate{}, time.Time{}
		return after, "the next certificate of deployment " + r.deployment + " is invalid, and none is needed"
	case !r.trustedSince.IsZero():
		after = r.record
		after.trustedSince = time.Time{}
		return after, "not all clients trust the next certificate of deployment " + r.deployment
	}
	return r.record, ""
}

// cacheGrace is the maximum age of the caches from which API servers read the caBundle of a client.
const cacheGrace = 10 * time.Second

// TrustGrace is the time that all clients must have trusted the next certificate before Pods serve with it. It includes
// the tolerance for clocks, because another manager may have recorded the start. Recorded times have no fraction of a
// second.
const TrustGrace = cacheGrace + olmcore.ClockTolerance + time.Second

// follow makes the next certificate, which all clients trust, the current one. If Pods serve with another certificate,
// it first records the time, and waits for TrustGrace.
func (r *rotation) follow() (after record, why string) {
	why = "all clients trust the next certificate of deployment " + r.deployment
	switch since := r.trustedSince; {
	case r.serves() && (since.IsZero() || since.After(r.source.Now)):
		after = r.record
		after.trustedSince = r.source.Now.Truncate(time.Second)
		return after, why + " from now on"
	case r.waits() > 0:
		return r.record, ""
	}
	return r.promoted(r.trusted()), why
}

// knows reports whether the current or a previous authority has a hash. It returns false for an empty hash.
func (r record) knows(hash string) bool {
	return hash != "" && (Hash(r.current.CAPEM) == hash ||
		slices.ContainsFunc(r.previous, func(a serving.Authority) bool { return Hash(a.PEM) == hash }))
}

// install returns the write of the Secret that makes the next step of the rotation and makes the CSV the owner, or nil.
func (r *rotation) install() olmcore.Action {
	after, why := r.step()
	if r.secret == nil {
		if why == "" {
			return nil
		}
		o := &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: r.source.meta(CertificateName(r.deployment)),
			Type: corev1.SecretTypeTLS,
		}
		after.writeTo(o)
		return r.source.create(o, ReasonCertificate, why)
	}
	meta, claimed := r.source.claimed(r.secret.ObjectMeta)
	if why == "" && !claimed && meta.Annotations[annotationCAHash] == Hash(r.current.CAPEM) {
		return nil
	}
	o := r.secret.DeepCopy()
	o.ObjectMeta = meta
	switch {
	case why != "":
		after.writeTo(o)
		return r.source.update(r.secret, o, ReasonCertificate, why)
	case claimed:
		return r.source.update(r.secret, o, ReasonInstall, "secret "+o.Name+" is taken over by this version")
	}
	r.writeTo(o)
	why = "annotation olmcahash of secret " + o.Name + " does not match the authority in the Secret"
	return r.source.update(r.secret, o, ReasonCertificate, why)
}

// settle returns the write of the Secret that removes the authorities that only the rotation needed, or nil.
func (r *rotation) settle() olmcore.Action {
	after, changed := r.settled(r.trusted())
	if !changed || !r.isOwned() || !r.isRolledOut() {
		return nil
	}
	o := r.secret.DeepCopy()
	after.writeTo(o)
	return r.source.update(r.secret, o, ReasonSettled, "all Pods of deployment "+r.deployment+" serve with the same certificate")
}

// startsLater reports whether the renewal must not start yet. It starts once the certificate is due for every clock
// within olmcore.ClockTolerance, so that two managers do not end each other's installations.
func (r *rotation) startsLater() bool {
	phase := r.source.CSV.Status.Phase
	isInstalling := phase == v1alpha1.CSVPhaseInstallReady || phase == v1alpha1.CSVPhaseInstalling
	return !isInstalling && r.health.Valid && r.next.IsEmpty() && r.source.Now.Before(r.health.RenewAt.Add(olmcore.ClockTolerance))
}
