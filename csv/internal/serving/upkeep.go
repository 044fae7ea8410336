// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// Upkeep contains the certificate requests and the writes that renew the certificates of a CSV while it is not being
// installed.
type Upkeep struct {
	// Keeps is true if the CSV owns the certificate of at least one Deployment. If Keeps is false, the caller must not
	// update caBundles for the CSV.
	Keeps    bool
	Requests []serving.Request
	Actions  []olmcore.Action
	// Problem explains why an issued certificate is invalid. It is empty if no issued certificate is invalid.
	Problem string
	// RenewAt is the earliest time at which a current certificate must be replaced. It is zero if no certificate is valid.
	RenewAt time.Time
	// Wait is the shortest time until a next certificate may become the current one. Until then, API servers may still
	// cache an older caBundle. Wait is 0 if no certificate waits.
	Wait time.Duration
}

// Upkeep returns the requests and writes that renew the certificates of a Replacing or Pending CSV whose Pods still
// serve. The writes update Secrets and Deployments that the CSV owns, and do not change their owners. Before a CSV
// is installed, it becomes the owner of its Secrets. So no two CSVs write the same certificate.
func (p Certificates) Upkeep() (u Upkeep) {
	written := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.backends)) {
		r := p.backends[name]
		if written[CertificateName(name)] {
			continue
		}
		written[CertificateName(name)] = true
		if !r.isKept() {
			a := r.rollOut()
			if a != nil && r.isKeptByRelative() {
				u.Actions = append(u.Actions, a)
			}
			continue
		}
		u.Keeps = true
		u.RenewAt = earlier(u.RenewAt, r.health.RenewAt)
		u.Wait = olmcore.Nearest(u.Wait, r.waits())
		request, needed := r.request()
		if needed && !r.isIssued && !r.startsLater() {
			u.Requests, u.Problem = append(u.Requests, request), cmp.Or(u.Problem, r.issueProblem)
		}
		if a := r.upkeep(); a != nil {
			u.Actions = append(u.Actions, a)
		}
	}
	return u
}

// isKept reports whether the CSV owns the Secret. If the Secret does not exist, it reports whether the CSV owns the
// Deployment that mounts it.
func (r *rotation) isKept() bool {
	if r.secret == nil {
		return r.isDeployed()
	}
	isImmutable := r.secret.Immutable != nil && *r.secret.Immutable
	return r.isOwned() && !isImmutable && r.secret.DeletionTimestamp == nil
}

// isKeptByRelative reports whether another version of the upgrade chain owns the Secret and renews it, but has not
// taken over the Deployment: it is Pending or Failed.
func (r *rotation) isKeptByRelative() bool {
	return r.secret != nil && slices.ContainsFunc(r.source.Neighbours, func(other *model.CSV) bool {
		hasStopped := other.Status.Phase == v1alpha1.CSVPhasePending || other.Status.Phase == v1alpha1.CSVPhaseFailed
		return r.source.Relatives.Has(other) && hasStopped && olmcore.OwnedBy(r.secret, other.UID)
	})
}

// isDeployed reports whether the CSV owns the Deployment, and its Pods mount the Secret.
func (r *rotation) isDeployed() bool {
	return r.live != nil && r.live.DeletionTimestamp == nil && model.OwnsDeployment(r.source.CSV, r.live) &&
		hasVolume(&r.live.Spec.Template.Spec, CertificateName(r.deployment))
}

// upkeep returns the next write of the Secret or of the Deployment, or nil.
func (r *rotation) upkeep() olmcore.Action {
	after, why := r.step()
	switch {
	case r.secret == nil:
		return r.install()
	case why != "":
		o := r.secret.DeepCopy()
		after.writeTo(o)
		return r.source.update(r.secret, o, ReasonCertificate, why)
	}
	if a := r.rollOut(); a != nil {
		return a
	}
	return r.settle()
}

// rollOut replaces the Pods of a Deployment that were started with an earlier certificate. It changes nothing else of
// the Deployment: spec.config of the Subscription may already be meant for the successor. If the authority of the Pods
// is not known, the Secret was read before a later certificate was stored in it.
func (r *rotation) rollOut() olmcore.Action {
	if !r.isDeployed() || !r.health.Valid || !r.next.IsEmpty() || !r.knows(r.live.Spec.Template.Annotations[annotationCAHash]) {
		return nil
	}
	annotations := maps.Clone(r.live.Spec.Template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationCAHash] = Hash(r.current.CAPEM)
	annotations[annotationCertHash] = r.certHash
	if r.certHash == "" {
		delete(annotations, annotationCertHash)
	}
	if maps.Equal(annotations, r.live.Spec.Template.Annotations) {
		return nil
	}
	o := r.live.DeepCopy()
	o.Spec.Template.Annotations = annotations
	return r.source.update(r.live, o, ReasonCertificate, "deployment "+o.Name+" was started with another certificate")
}
